#include "tessera/pattern/text_form.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// `id`, `id:op` or `id:k` as it stands in a chain.
struct Item {
  std::string_view id = {};
  std::string_view op = {};  ///< or the digits of k
  std::size_t offset = 0;
  std::size_t op_offset = 0;
  bool follows_arrow = false;

  [[nodiscard]] bool defines() const { return !op.empty() && !is_digits(op); }
};

class TextParser {
 public:
  explicit TextParser(const SourceText& source) : source_(source), text_(source.text()) {}

  Result<TextForm> parse() {
    TESSERA_TRY(read_items());
    TESSERA_TRY(define_nodes());
    TESSERA_TRY(connect());
    return std::move(form_);
  }

 private:
  [[nodiscard]] Error fail(std::size_t offset, std::string message) const {
    return source_.error_at(offset, std::move(message));
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  [[nodiscard]] bool at_arrow() const { return text_.substr(at_, 2) == "->"; }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  /// The run of characters up to white space, an arrow or one of `ends`.
  std::string_view word(std::string_view ends) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && !at_arrow() &&
           ends.find(text_[at_]) == std::string_view::npos)
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<void> read_items() {
    skip_space();
    if (at_ == text_.size() || peek() == '@') return fail(at_, "expected a node, like 1:relu");
    while (at_ < text_.size() && peek() != '@') {
      TESSERA_TRY(read_chain());
      if (peek() == ';') ++at_;
      skip_space();
    }
    while (at_ < text_.size()) TESSERA_TRY(read_option());
    return {};
  }

  Result<void> read_chain() {
    TESSERA_TRY(read_item(false));
    skip_space();
    while (at_arrow()) {
      at_ += 2;
      TESSERA_TRY(read_item(true));
      skip_space();
    }
    if (at_ < text_.size() && peek() != ';' && peek() != '@') return fail(at_, "expected '->', ';' or '@'");
    return {};
  }

  Result<void> read_item(bool follows_arrow) {
    skip_space();
    Item item{.offset = at_, .follows_arrow = follows_arrow};
    item.id = word(":;@,");
    if (item.id.empty())
      return fail(at_, follows_arrow ? "expected a node after '->'" : "expected a node, like 1:relu");
    skip_space();
    if (peek() == ':') {
      ++at_;
      skip_space();
      item.op_offset = at_;
      item.op = word(";@,");
      if (item.op.empty()) return fail(at_, cat("expected an op after ", quote(cat(item.id, ":"))));
    }
    items_.push_back(item);
    return {};
  }

  Result<void> read_option() {
    TextOption option{.offset = at_++};
    option.key = word("=@;,");
    if (option.key.empty() || peek() != '=') return fail(at_, "expected an option, like @out=2,3");
    ++at_;
    skip_space();
    option.value_offset = at_;
    std::size_t end = std::min(text_.find('@', at_), text_.size());
    at_ = end;
    while (end > option.value_offset && is_space(text_[end - 1])) --end;
    option.value = text_.substr(option.value_offset, end - option.value_offset);
    if (option.value.empty())
      return fail(option.value_offset, cat("expected a value after ", quote(cat("@", option.key, "="))));
    for (const TextOption& other : form_.options)
      if (other.key == option.key) return fail(option.offset, cat("option @", option.key, " is given twice"));
    form_.options.push_back(std::move(option));
    return {};
  }

  Result<void> define_nodes() {
    for (const Item& item : items_) {
      if (!item.defines()) continue;
      const auto [at, is_new] = index_.try_emplace(item.id, static_cast<std::uint32_t>(form_.nodes.size()));
      if (!is_new) return fail(item.offset, cat("node ", quote(item.id), " is defined twice"));
      form_.nodes.push_back({std::string(item.id), std::string(item.op), item.offset, item.op_offset});
    }
    return {};
  }

  Result<void> connect() {
    std::uint32_t from = 0;
    std::uint32_t result = 0;
    for (const Item& item : items_) {
      const auto at = index_.find(item.id);
      if (at == index_.end())
        return fail(item.offset, cat("node ", quote(item.id), " is not defined; write ",
                                     quote(cat(item.id, ":op")), " once"));
      const bool names_result = is_digits(item.op);
      if (names_result && item.follows_arrow)
        return fail(item.op_offset, "an edge leads to a node, not to one of its results");
      if (item.follows_arrow) form_.edges.push_back({from, result, at->second});
      from = at->second;
      result = 0;
      if (names_result) {
        const auto index = parse_result_index(item.op);
        if (!index)
          return fail(item.op_offset,
                      cat("result ", shortened(item.op, 20), " is too large, expected at most 9999"));
        result = *index;
      }
    }
    return {};
  }

  const SourceText& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Item> items_;
  std::unordered_map<std::string_view, std::uint32_t> index_;
  TextForm form_;
};

}  // namespace

std::optional<std::uint32_t> tessera::pattern::parse_result_index(std::string_view text) {
  if (!is_digits(text) || text.size() > 4 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint32_t out = 0;
  for (char c : text) out = 10 * out + static_cast<std::uint32_t>(c - '0');
  return out;
}

Result<TextForm> tessera::pattern::parse_text_form(const SourceText& source) {
  return TextParser(source).parse();
}

Result<std::vector<TextResult>> TextForm::results(const SourceText& source, const TextOption& option) const {
  std::vector<TextResult> out;
  const std::string_view value = option.value;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t comma = std::min(value.find(',', begin), value.size());
    std::string_view name = value.substr(begin, comma - begin);
    const std::size_t offset = option.value_offset + begin;
    while (!name.empty() && is_space(name.front())) name.remove_prefix(1);
    while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
    const std::size_t colon = name.find(':');
    const std::string_view id = name.substr(0, colon);
    std::uint32_t node = 0;
    while (node < nodes.size() && nodes[node].id != id) ++node;
    if (node == nodes.size())
      return source.error_at(offset, cat("@", option.key, " names ", quote(id), ", which is no node"));
    std::uint32_t result = 0;
    if (colon != std::string_view::npos) {
      const auto index = parse_result_index(name.substr(colon + 1));
      if (!index) return source.error_at(offset, cat("expected a result index after ", quote(cat(id, ":"))));
      result = *index;
    }
    out.push_back({node, result, colon == std::string_view::npos});
    begin = comma + 1;
  }
  return out;
}

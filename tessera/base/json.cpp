#include "tessera/base/json.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

using namespace tessera;

namespace {

/// Parses without recursion: `open_` holds the arrays and objects that are not closed yet.
class JsonParser {
 public:
  JsonParser(const SourceText& source, JsonLimits limits)
      : source_(source), text_(source.text()), limits_(limits) {}

  Result<Json> parse() {
    Json root;
    TESSERA_TRY(value(root));
    skip_space();
    if (at_ != text_.size()) return fail("expected the end of the text");
    return root;
  }

 private:
  Error fail(std::string_view message) const { return source_.error_at(at_, std::string(message)); }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  Result<void> value(Json& root) {
    std::vector<Json*> open;
    Json* slot = &root;
    for (;;) {
      if (slot != nullptr) {
        TESSERA_TRY(begin(*slot));
        const bool nests = slot->kind == Json::Kind::array || slot->kind == Json::Kind::object;
        if (nests) {
          if (open.size() >= limits_.depth) return fail(cat("nested deeper than ", limits_.depth, " levels"));
          open.push_back(slot);
        }
      }
      if (open.empty()) return {};
      slot = TESSERA_TRY(next(*open.back()));
      if (slot == nullptr) open.pop_back();
      if (slot == nullptr && open.empty()) return {};
    }
  }

  /// Reads a scalar whole, or the opening bracket of an array or object.
  Result<void> begin(Json& out) {
    skip_space();
    out.offset = at_;
    const char c = peek();
    if (c == '{' || c == '[') {
      out.kind = c == '{' ? Json::Kind::object : Json::Kind::array;
      ++at_;
      return {};
    }
    if (c == '"') {
      out.kind = Json::Kind::string;
      out.text = TESSERA_TRY(string());
      return {};
    }
    if (c == '-' || (c >= '0' && c <= '9')) return number(out);
    return word(out);
  }

  /// The slot of the next element of `parent`, or null after its closing bracket.
  Result<Json*> next(Json& parent) {
    const bool is_object = parent.kind == Json::Kind::object;
    const char close = is_object ? '}' : ']';
    if (accept(close)) {
      if (is_object) TESSERA_TRY(reject_duplicates(parent));
      return nullptr;
    }
    if (!parent.items.empty()) {
      if (!accept(',')) return fail(cat("expected ',' or '", close, "'"));
      skip_space();
      if (peek() == close) return fail("expected a value after ','");
    }
    if (is_object) {
      skip_space();
      if (peek() != '"') return fail("expected a member name in double quotes");
      parent.key_offsets.push_back(at_);
      parent.keys.push_back(TESSERA_TRY(string()));
      if (!accept(':')) return fail("expected ':' after the member name");
    }
    parent.items.emplace_back();
    return &parent.items.back();
  }

  Result<void> reject_duplicates(const Json& object) const {
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < object.keys.size(); ++i)
      if (!seen.insert(object.keys[i]).second)
        return source_.error_at(object.key_offsets[i],
                                cat("member ", quote(object.keys[i]), " is given twice"));
    return {};
  }

  Result<void> word(Json& out) {
    const auto is = [&](std::string_view w) { return text_.substr(at_, w.size()) == w; };
    if (is("true") || is("false")) {
      out.kind = Json::Kind::boolean;
      out.boolean = is("true");
      at_ += out.boolean ? 4 : 5;
    } else if (is("null")) {
      at_ += 4;
    } else if (at_ == text_.size()) {
      return fail("expected a value, got the end of the text");
    } else {
      return fail("expected a value");
    }
    return {};
  }

  Result<void> number(Json& out) {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t from = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ > from;
    };
    if (peek() == '-') ++at_;
    const bool leading_zero = peek() == '0';
    const std::size_t first = at_;
    if (!digits()) return fail("expected a digit");
    if (leading_zero && at_ - first > 1) return source_.error_at(first, "a number may not begin with 0");
    if (peek() == '.') {
      ++at_;
      if (!digits()) return fail("expected a digit after '.'");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return fail("expected a digit in the exponent");
    }
    out.kind = Json::Kind::number;
    out.text = text_.substr(begin, at_ - begin);
    return {};
  }

  Result<std::string> string() {
    const std::size_t begin = at_++;
    std::string out;
    for (;;) {
      const std::size_t run = text_.find_first_of("\"\\", at_);
      const std::size_t end = std::min(run, text_.size());
      for (std::size_t i = at_; i < end; ++i)
        if (static_cast<unsigned char>(text_[i]) < 0x20) {
          at_ = i;
          return fail("control character in a string");
        }
      out += text_.substr(at_, end - at_);
      at_ = end;
      if (run == std::string_view::npos) return source_.error_at(begin, "string is not closed");
      if (text_[at_++] == '"') break;
      TESSERA_TRY(escape(out));
    }
    if (!is_valid_utf8(out)) return source_.error_at(begin, "string is not valid UTF-8");
    return out;
  }

  Result<void> escape(std::string& out) {
    static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const char c = peek();
    if (const std::size_t i = from.find(c); i != std::string_view::npos && c != '\0') {
      out += to[i];
      ++at_;
      return {};
    }
    if (c != 'u') return fail("expected one of \" \\ / b f n r t u after '\\'");
    ++at_;
    std::uint32_t code = TESSERA_TRY(hex4());
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") return fail("expected the second half of a surrogate pair");
      at_ += 2;
      const std::uint32_t low = TESSERA_TRY(hex4());
      if (low < 0xdc00 || low > 0xdfff) return fail("expected the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, code);
    return {};
  }

  Result<std::uint32_t> hex4() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return fail("expected four hexadecimal digits after \\u");
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return code;
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    const auto push = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      push(code);
    } else if (code < 0x800) {
      push(0xc0 | code >> 6);
      push(0x80 | (code & 63));
    } else if (code < 0x10000) {
      push(0xe0 | code >> 12);
      push(0x80 | (code >> 6 & 63));
      push(0x80 | (code & 63));
    } else {
      push(0xf0 | code >> 18);
      push(0x80 | (code >> 12 & 63));
      push(0x80 | (code >> 6 & 63));
      push(0x80 | (code & 63));
    }
  }

  const SourceText& source_;
  std::string_view text_;
  JsonLimits limits_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view tessera::describe(Json::Kind kind) {
  static constexpr std::string_view names[] = {"null",     "a boolean", "a number",
                                               "a string", "an array",  "an object"};
  return names[static_cast<std::size_t>(kind)];
}

const Json* Json::find(std::string_view key) const {
  const auto at = std::find(keys.begin(), keys.end(), key);
  return at == keys.end() ? nullptr : &items[static_cast<std::size_t>(at - keys.begin())];
}

Result<JsonDocument> JsonDocument::parse(std::string file, std::string text, JsonLimits limits) {
  JsonDocument document;
  document.source_ = SourceText(std::move(file), std::move(text));
  document.root_ = TESSERA_TRY(JsonParser(document.source_, limits).parse());
  return document;
}

JsonCursor JsonDocument::cursor() const { return {source_, root_, ""}; }

Error JsonCursor::error(std::string_view message) const {
  return source_->error_at(value_->offset, path_.empty() ? std::string(message) : cat(path_, ": ", message));
}

Error JsonCursor::wrong_kind(std::string_view expected) const {
  return error(cat("expected ", expected, ", got ", describe(value_->kind)));
}

Result<JsonCursor> JsonCursor::field(std::string_view key) const {
  auto found = TESSERA_TRY(optional_field(key));
  if (!found) return error(cat("missing field ", quote(key)));
  return *found;
}

Result<std::optional<JsonCursor>> JsonCursor::optional_field(std::string_view key) const {
  if (!is(Json::Kind::object)) return wrong_kind("an object");
  const Json* found = value_->find(key);
  if (found == nullptr || found->kind == Json::Kind::null) return std::optional<JsonCursor>();
  return std::optional(JsonCursor(*source_, *found, path_.empty() ? std::string(key) : cat(path_, ".", key)));
}

Result<void> JsonCursor::only_fields(std::initializer_list<std::string_view> keys) const {
  if (!is(Json::Kind::object)) return wrong_kind("an object");
  for (Error& error : unknown_fields(keys, 1)) return std::move(error);
  return {};
}

std::vector<Error> JsonCursor::unknown_fields(std::initializer_list<std::string_view> keys,
                                              std::size_t most) const {
  std::vector<Error> out;
  for (std::size_t i = 0; i < value_->keys.size() && out.size() < most; ++i)
    if (std::find(keys.begin(), keys.end(), value_->keys[i]) == keys.end())
      out.push_back(source_->error_at(value_->key_offsets[i],
                                      cat(path_.empty() ? "" : path_ + ": ", "unknown field ",
                                          quote(value_->keys[i]), ", expected one of ", join(keys, ", "))));
  return out;
}

Result<std::string> JsonCursor::string() const {
  if (!is(Json::Kind::string)) return wrong_kind("a string");
  return value_->text;
}

Result<bool> JsonCursor::boolean() const {
  if (!is(Json::Kind::boolean)) return wrong_kind("a boolean");
  return value_->boolean;
}

Result<std::int64_t> JsonCursor::integer() const {
  if (!is(Json::Kind::number)) return wrong_kind("an integer");
  std::int64_t out = 0;
  const char* end = value_->text.data() + value_->text.size();
  const auto parsed = std::from_chars(value_->text.data(), end, out);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return error(cat("expected an integer of 64 bits, got ", shortened(value_->text, 40)));
  return out;
}

Result<double> JsonCursor::number() const {
  if (!is(Json::Kind::number)) return wrong_kind("a number");
  double out = 0;
  const char* end = value_->text.data() + value_->text.size();
  const auto parsed = std::from_chars(value_->text.data(), end, out);
  if (parsed.ec == std::errc::result_out_of_range || !std::isfinite(out))
    return error(cat("expected a finite number, got ", shortened(value_->text, 40)));
  return out;
}

Result<std::vector<JsonCursor>> JsonCursor::array() const {
  if (!is(Json::Kind::array)) return wrong_kind("an array");
  std::vector<JsonCursor> out;
  out.reserve(value_->items.size());
  for (std::size_t i = 0; i < value_->items.size(); ++i)
    out.emplace_back(*source_, value_->items[i], cat(path_, "[", i, "]"));
  return out;
}

Result<std::vector<std::pair<std::string, JsonCursor>>> JsonCursor::members() const {
  if (!is(Json::Kind::object)) return wrong_kind("an object");
  std::vector<std::pair<std::string, JsonCursor>> out;
  for (std::size_t i = 0; i < value_->items.size(); ++i)
    out.emplace_back(value_->keys[i],
                     JsonCursor(*source_, value_->items[i],
                                path_.empty() ? value_->keys[i] : cat(path_, ".", value_->keys[i])));
  return out;
}

void JsonWriter::line_break() {
  if (style_ == Style::compact) return;
  out_ += '\n';
  out_.append(2 * has_items_.size(), ' ');
}

void JsonWriter::separate() {
  if (std::exchange(after_key_, false) || has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
  line_break();
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) line_break();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(out_, name);
  out_ += style_ == Style::compact ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(out_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (std::isfinite(number)) return raw(cat(number));
  // A NaN has a sign, which means nothing to a reader.
  return value(std::string_view(cat(std::isnan(number) ? std::fabs(number) : number)));
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

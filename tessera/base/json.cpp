#include "tessera/base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

using namespace tessera;

namespace {

constexpr std::string_view escaped_from = "\"\\/bfnrt", escaped_to = "\"\\/\b\f\n\r\t";

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

void append_utf8(std::string& out, std::uint32_t code) {
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

/// What stands between the quotes of the string at `offset`. REQUIRES that the string was checked.
std::string_view raw_string(std::string_view text, std::size_t offset) {
  std::size_t end = offset + 1;
  while ((end = text.find_first_of("\"\\", end)) != std::string_view::npos && text[end] != '"') end += 2;
  return text.substr(offset + 1, end - offset - 1);
}

/// REQUIRES escapes that were checked.
std::string decoded(std::string_view raw) {
  std::string out;
  const auto code_at = [&](std::size_t at) {
    std::uint32_t code = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      code = code * 16 + static_cast<std::uint32_t>(hex_digit(raw[i]));
    return code;
  };
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t end = std::min(raw.find('\\', at), raw.size());
    out += raw.substr(at, end - at);
    if (end == raw.size()) break;
    at = end + 2;
    if (raw[end + 1] != 'u') {
      out += escaped_to[escaped_from.find(raw[end + 1])];
      continue;
    }
    std::uint32_t code = code_at(at);
    at += 4;
    if (code >= 0xd800 && code < 0xdc00) {
      code = 0x10000 + ((code - 0xd800) << 10) + (code_at(at + 2) - 0xdc00);
      at += 6;
    }
    append_utf8(out, code);
  }
  return out;
}

}  // namespace

/// Parses without recursion: the arrays and objects that are not closed yet are on a stack.
class tessera::JsonParser {
 public:
  using Nodes = JsonDocument::Nodes;

  JsonParser(const SourceText& source, Nodes& nodes, JsonLimits limits)
      : source_(source), text_(source.text()), nodes_(nodes), limits_(limits) {}

  Result<void> parse() {
    if (text_.size() > std::numeric_limits<std::uint32_t>::max())
      return Error(ErrorCode::limit, cat("the text has ", text_.size(), " bytes, at most 4 GiB are allowed"),
                   {source_.file(), 0, 0});
    TESSERA_TRY(value());
    skip_space();
    if (at_ != text_.size()) return fail("expected the end of the text");
    return {};
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
  [[nodiscard]] std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  void add_node() {
    const std::uint32_t next = node_count() + 1;
    nodes_.push_back({static_cast<std::uint32_t>(at_), next});
  }

  Result<void> value() {
    std::vector<std::uint32_t> open;
    for (bool has_value = true;;) {
      if (has_value && TESSERA_TRY(begin())) {
        if (open.size() >= limits_.depth) return fail(cat("nested deeper than ", limits_.depth, " levels"));
        open.push_back(node_count() - 1);
      }
      if (open.empty()) return {};
      has_value = TESSERA_TRY(next(open.back()));
      if (has_value) continue;
      nodes_[open.back()].next = node_count();
      if (text_[nodes_[open.back()].offset] == '{') TESSERA_TRY(reject_duplicates(open.back()));
      open.pop_back();
      if (open.empty()) return {};
    }
  }

  /// Reads a scalar whole, or the opening bracket of an array or object: then true.
  Result<bool> begin() {
    skip_space();
    add_node();
    const char c = peek();
    if (c == '{' || c == '[') {
      ++at_;
      return true;
    }
    if (c == '"')
      TESSERA_TRY(string());
    else if (c == '-' || (c >= '0' && c <= '9'))
      TESSERA_TRY(number());
    else
      TESSERA_TRY(word());
    return false;
  }

  /// Whether a value follows in `parent`; else its closing bracket was read.
  Result<bool> next(std::uint32_t parent) {
    const bool is_object = text_[nodes_[parent].offset] == '{';
    const char close = is_object ? '}' : ']';
    if (accept(close)) return false;
    if (node_count() > parent + 1) {
      if (!accept(',')) return fail(cat("expected ',' or '", close, "'"));
      skip_space();
      if (peek() == close) return fail("expected a value after ','");
    }
    if (is_object) {
      skip_space();
      if (peek() != '"') return fail("expected a member name in double quotes");
      add_node();
      TESSERA_TRY(string());
      if (!accept(':')) return fail("expected ':' after the member name");
    }
    return true;
  }

  /// A member name as it means, and its node.
  struct Key {
    std::string_view name;
    std::uint32_t node;
    bool operator<(const Key& other) const {
      return name != other.name ? name < other.name : node < other.node;
    }
  };

  [[nodiscard]] Result<void> reject_duplicates(std::uint32_t object) {
    keys_.clear();
    decoded_.clear();
    for (std::uint32_t key = object + 1; key < nodes_[object].next; key = nodes_[key + 1].next) {
      const std::string_view raw = raw_string(text_, nodes_[key].offset);
      const bool is_plain = raw.find('\\') == std::string_view::npos;
      keys_.push_back({is_plain ? raw : decoded_.emplace_back(decoded(raw)), key});
    }
    std::sort(keys_.begin(), keys_.end());
    std::uint32_t first = node_count();
    for (std::size_t i = 1; i < keys_.size(); ++i)
      if (keys_[i].name == keys_[i - 1].name) first = std::min(first, keys_[i].node);
    if (first == node_count()) return {};
    const std::size_t offset = nodes_[first].offset;
    return source_.error_at(offset,
                            cat("member ", quote(decoded(raw_string(text_, offset))), " is given twice"));
  }

  Result<void> word() {
    const auto is = [&](std::string_view w) { return text_.substr(at_, w.size()) == w; };
    if (is("true") || is("null")) {
      at_ += 4;
    } else if (is("false")) {
      at_ += 5;
    } else if (at_ == text_.size()) {
      return fail("expected a value, got the end of the text");
    } else {
      return fail("expected a value");
    }
    return {};
  }

  Result<void> number() {
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
    return {};
  }

  /// Checks a string; decoded() makes what it means.
  Result<void> string() {
    const std::size_t begin = at_++;
    bool has_escapes = false;
    for (;;) {
      const std::size_t run = text_.find_first_of("\"\\", at_);
      const std::size_t end = std::min(run, text_.size());
      for (; at_ < end; ++at_)
        if (static_cast<unsigned char>(text_[at_]) < 0x20) return fail("control character in a string");
      if (run == std::string_view::npos) return source_.error_at(begin, "string is not closed");
      if (text_[at_++] == '"') break;
      has_escapes = true;
      TESSERA_TRY(escape());
    }
    const std::string_view raw = text_.substr(begin + 1, at_ - begin - 2);
    if (!(has_escapes ? is_valid_utf8(decoded(raw)) : is_valid_utf8(raw)))
      return source_.error_at(begin, "string is not valid UTF-8");
    return {};
  }

  Result<void> escape() {
    const char c = peek();
    if (c != '\0' && escaped_from.find(c) != std::string_view::npos) {
      ++at_;
      return {};
    }
    if (c != 'u') return fail("expected one of \" \\ / b f n r t u after '\\'");
    ++at_;
    const std::uint32_t code = TESSERA_TRY(hex4());
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") return fail("expected the second half of a surrogate pair");
      at_ += 2;
      const std::uint32_t low = TESSERA_TRY(hex4());
      if (low < 0xdc00 || low > 0xdfff) return fail("expected the second half of a surrogate pair");
    }
    return {};
  }

  Result<std::uint32_t> hex4() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = hex_digit(peek());
      if (digit < 0) return fail("expected four hexadecimal digits after \\u");
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return code;
  }

  const SourceText& source_;
  std::string_view text_;
  Nodes& nodes_;
  JsonLimits limits_;
  std::size_t at_ = 0;
  std::vector<Key> keys_;            // of the object at hand
  std::deque<std::string> decoded_;  // those with escapes
};

std::string_view tessera::describe(Json::Kind kind) {
  static constexpr std::string_view names[] = {"null",     "a boolean", "a number",
                                               "a string", "an array",  "an object"};
  return names[static_cast<std::size_t>(kind)];
}

Json::Kind Json::kind() const {
  switch (document_->source_.text()[offset()]) {
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    default:
      return Kind::number;
  }
}

std::size_t Json::offset() const { return document_->nodes_[node_].offset; }

bool Json::boolean() const { return document_->source_.text()[offset()] == 't'; }

std::string_view Json::number() const {
  const std::string_view text = document_->source_.text().substr(offset());
  return text.substr(0, text.find_first_not_of("0123456789+-.eE"));
}

std::string Json::text() const {
  const Kind is = kind();
  if (is == Kind::string) return decoded(raw_string(document_->source_.text(), offset()));
  return is == Kind::number ? std::string(number()) : std::string();
}

Result<JsonDocument> JsonDocument::parse(std::string file, std::string text, JsonLimits limits) {
  JsonDocument document;
  document.source_ = SourceText(std::move(file), std::move(text));
  TESSERA_TRY(JsonParser(document.source_, document.nodes_, limits).parse());
  return document;
}

JsonCursor JsonDocument::cursor() const { return JsonCursor(root()); }

std::string JsonCursor::path() const {
  const auto& nodes = value_.document_->nodes_;
  std::string out;
  for (std::uint32_t at = 0; at != value_.node_;) {
    const bool is_object = Json(*value_.document_, at).kind() == Json::Kind::object;
    std::uint32_t child = at + 1;
    for (std::size_t i = 0;; ++i) {
      const std::uint32_t value = is_object ? child + 1 : child;
      if (value_.node_ < nodes[value].next) {
        if (is_object)
          out += cat(out.empty() ? "" : ".", Json(*value_.document_, child).text());
        else
          out += cat("[", i, "]");
        at = value_.node_ == child ? value_.node_ : value;  // a key goes by the name of its value
        break;
      }
      child = nodes[value].next;
    }
  }
  return out;
}

Error JsonCursor::error(std::string_view message) const {
  const std::string where = path();
  return value_.document_->source_.error_at(value_.offset(),
                                            where.empty() ? std::string(message) : cat(where, ": ", message));
}

Error JsonCursor::wrong_kind(std::string_view expected) const {
  return error(cat("expected ", expected, ", got ", describe(value_.kind())));
}

Result<JsonCursor> JsonCursor::field(std::string_view key) const {
  auto found = TESSERA_TRY(optional_field(key));
  if (!found) return error(cat("missing field ", quote(key)));
  return *found;
}

Result<std::optional<JsonCursor>> JsonCursor::optional_field(std::string_view key) const {
  if (!is(Json::Kind::object)) return wrong_kind("an object");
  const auto& nodes = value_.document_->nodes_;
  const std::string_view text = value_.document_->source_.text();
  for (std::uint32_t at = value_.node_ + 1; at < nodes[value_.node_].next; at = nodes[at + 1].next) {
    const std::string_view raw = raw_string(text, nodes[at].offset);
    const bool is_it = raw.find('\\') == std::string_view::npos ? raw == key : decoded(raw) == key;
    if (!is_it) continue;
    const JsonCursor found(Json(*value_.document_, at + 1));
    return found.is(Json::Kind::null) ? std::nullopt : std::optional(found);
  }
  return std::optional<JsonCursor>();
}

Result<void> JsonCursor::only_fields(std::initializer_list<std::string_view> keys) const {
  if (!is(Json::Kind::object)) return wrong_kind("an object");
  for (Error& error : unknown_fields(keys, 1)) return std::move(error);
  return {};
}

std::vector<Error> JsonCursor::unknown_fields(std::initializer_list<std::string_view> keys,
                                              std::size_t most) const {
  std::vector<Error> out;
  const JsonItems names(*value_.document_, value_.node_);
  for (auto key = names.begin(); key != names.end() && out.size() < most; ++ ++key) {
    const std::string name = (*key).value().text();
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::string where = path();
    out.push_back(value_.document_->source_.error_at(
        (*key).value().offset(), cat(where.empty() ? "" : where + ": ", "unknown field ", quote(name),
                                     ", expected one of ", join(keys, ", "))));
  }
  return out;
}

Result<std::string> JsonCursor::string() const {
  if (!is(Json::Kind::string)) return wrong_kind("a string");
  return value_.text();
}

Result<bool> JsonCursor::boolean() const {
  if (!is(Json::Kind::boolean)) return wrong_kind("a boolean");
  return value_.boolean();
}

Result<std::int64_t> JsonCursor::integer() const {
  if (!is(Json::Kind::number)) return wrong_kind("an integer");
  std::int64_t out = 0;
  const std::string_view text = value_.number();
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, out);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    return error(cat("expected an integer of 64 bits, got ", shortened(text, 40)));
  return out;
}

Result<double> JsonCursor::number() const {
  if (!is(Json::Kind::number)) return wrong_kind("a number");
  double out = 0;
  const std::string_view text = value_.number();
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, out);
  if (parsed.ec == std::errc::result_out_of_range || !std::isfinite(out))
    return error(cat("expected a finite number, got ", shortened(text, 40)));
  return out;
}

Result<JsonItems> JsonCursor::array() const {
  if (!is(Json::Kind::array)) return wrong_kind("an array");
  return JsonItems(*value_.document_, value_.node_);
}

Result<JsonMembers> JsonCursor::members() const {
  if (!is(Json::Kind::object)) return wrong_kind("an object");
  return JsonMembers(*value_.document_, value_.node_);
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

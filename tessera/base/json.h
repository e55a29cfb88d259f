// JSON in and out. The reader keeps the place of every value, so that a wrong field is reported with line and
// column, and refuses hostile input (depth, invalid UTF-8, duplicate keys) instead of guessing.
//
// Why not a library: the messages need positions of values, which the packaged readers drop after parsing.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/reflect.h"
#include "tessera/base/result.h"
#include "tessera/base/source_text.h"
#include "tessera/base/text.h"

namespace tessera {

class JsonCursor;
class JsonDocument;
class JsonItems;
class JsonMembers;
class JsonParser;

/// One value of a parsed document, which must outlive it. JsonCursor reads it with messages. Small: strings
/// are decoded, and numbers cut out of the text, when they are asked for.
class Json {
 public:
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  Json(const JsonDocument& document, std::uint32_t node) : document_(&document), node_(node) {}

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] std::size_t offset() const;       ///< where the value begins in the text
  [[nodiscard]] bool boolean() const;             ///< false unless it is `true`
  [[nodiscard]] std::string text() const;         ///< string: the value; number: as written; else empty
  [[nodiscard]] std::string_view number() const;  ///< as written. REQUIRES a number

 private:
  friend class JsonCursor;
  const JsonDocument* document_;
  std::uint32_t node_;  ///< in the document
};

/// "null", "a boolean", "a number", …: for messages.
[[nodiscard]] std::string_view describe(Json::Kind kind);

struct JsonLimits {
  std::size_t depth = 256;
};

/// A parsed text. Takes about four bytes for each of its own where values are as short as they can be, less
/// otherwise.
class JsonDocument {
 public:
  /// Parses one JSON value. Errors have line, column, caret and what was expected.
  static Result<JsonDocument> parse(std::string file, std::string text, JsonLimits limits = {});

  [[nodiscard]] Json root() const { return {*this, 0}; }
  [[nodiscard]] JsonCursor cursor() const;
  [[nodiscard]] const SourceText& source() const { return source_; }

 private:
  friend class Json;
  friend class JsonCursor;
  friend class JsonItems;
  friend class JsonMembers;

  /// Values in the order of the text; an object has a string, the key, before each value.
  struct Node {
    std::uint32_t offset = 0;  ///< in the text; its first character is the kind
    std::uint32_t next = 0;    ///< behind the last node inside
  };
  /// Blocks: a vector would hold everything twice while it grows.
  using Nodes = std::deque<Node>;
  friend class JsonParser;

  SourceText source_;
  Nodes nodes_;
};

/// A value in a document together with messages that name the way to it. Cheap to copy; the document must
/// outlive it and stay where it is.
class JsonCursor {
 public:
  explicit JsonCursor(Json value) : value_(value) {}

  [[nodiscard]] const Json& value() const { return value_; }
  /// "nodes[0].op". Costs a walk over the document: for errors.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] bool is(Json::Kind kind) const { return value_.kind() == kind; }

  /// An error at this value: "file:line:column: path: message".
  [[nodiscard]] Error error(std::string_view message) const;

  /// The member `key` of an object.
  [[nodiscard]] Result<JsonCursor> field(std::string_view key) const;
  /// The member `key`, or nothing if the object has none or it is null.
  [[nodiscard]] Result<std::optional<JsonCursor>> optional_field(std::string_view key) const;
  /// Fails if the value is no object or has a member that is not named here.
  [[nodiscard]] Result<void> only_fields(std::initializer_list<std::string_view> keys) const;
  /// An error for each member that is not named here, for the first `most` of them. REQUIRES an object.
  [[nodiscard]] std::vector<Error> unknown_fields(std::initializer_list<std::string_view> keys,
                                                  std::size_t most) const;

  [[nodiscard]] Result<std::string> string() const;
  [[nodiscard]] Result<bool> boolean() const;
  [[nodiscard]] Result<std::int64_t> integer() const;
  /// A finite number.
  [[nodiscard]] Result<double> number() const;
  [[nodiscard]] Result<JsonItems> array() const;
  /// The members of an object, in the order of the text.
  [[nodiscard]] Result<JsonMembers> members() const;

 private:
  [[nodiscard]] Error wrong_kind(std::string_view expected) const;

  Json value_;
};

/// The elements of an array, to walk over.
class JsonItems {
 public:
  class Iterator {
   public:
    using value_type = JsonCursor;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using reference = JsonCursor;
    using pointer = void;

    Iterator(const JsonDocument& document, std::uint32_t node) : document_(&document), node_(node) {}
    JsonCursor operator*() const { return JsonCursor(Json(*document_, node_)); }
    Iterator& operator++() {
      node_ = document_->nodes_[node_].next;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    friend class JsonMembers;
    const JsonDocument* document_;
    std::uint32_t node_;
  };

  JsonItems(const JsonDocument& document, std::uint32_t array) : document_(&document), array_(array) {}

  [[nodiscard]] Iterator begin() const { return {*document_, array_ + 1}; }
  [[nodiscard]] Iterator end() const { return {*document_, document_->nodes_[array_].next}; }
  [[nodiscard]] bool empty() const { return begin() == end(); }
  /// Counts them.
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(std::distance(begin(), end())); }
  /// Costs a walk over those before it. REQUIRES i < size().
  [[nodiscard]] JsonCursor operator[](std::size_t i) const {
    return *std::next(begin(), static_cast<std::ptrdiff_t>(i));
  }

 private:
  const JsonDocument* document_;
  std::uint32_t array_;
};

/// The members of an object, to walk over: key and value.
class JsonMembers {
 public:
  class Iterator {
   public:
    Iterator(const JsonDocument& document, std::uint32_t key) : at_(document, key) {}
    std::pair<std::string, JsonCursor> operator*() const { return {(*at_).value().text(), *std::next(at_)}; }
    Iterator& operator++() {
      std::advance(at_, 2);
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    JsonItems::Iterator at_;  ///< at a key
  };

  JsonMembers(const JsonDocument& document, std::uint32_t object) : document_(&document), object_(object) {}

  [[nodiscard]] Iterator begin() const { return {*document_, object_ + 1}; }
  [[nodiscard]] Iterator end() const { return {*document_, document_->nodes_[object_].next}; }
  [[nodiscard]] bool empty() const { return begin() == end(); }

 private:
  const JsonDocument* document_;
  std::uint32_t object_;
};

/// Writes JSON into a string, compact or indented. Commas and line breaks are its own business.
class JsonWriter {
 public:
  enum class Style : std::uint8_t { compact, indented };
  explicit JsonWriter(Style style = Style::compact) : style_(style) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  /// JSON has no infinities and no NaN: they are written as the strings "inf", "-inf", "nan".
  JsonWriter& value(double number);
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& value(T number) { return raw(cat(number)); }
  JsonWriter& null() { return raw("null"); }
  /// `json` as it stands. REQUIRES it is one valid value.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    key(name);
    return write_json(*this, v);
  }

  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void line_break();

  Style style_;
  std::string out_;
  std::vector<bool> has_items_;  // one per open bracket
  bool after_key_ = false;
};

/// Scalars, texts, lists and reflected types are written by the same call; ADL finds overloads for others.
template <class T>
JsonWriter& write_json(JsonWriter& json, const T& v) {
  if constexpr (requires { json.value(v); }) {
    return json.value(v);
  } else if constexpr (Reflected<T>) {
    json.begin_object();
    for_each_field(v, [&](const auto& field, const auto& member) { json.member(field.name, member); });
    return json.end_object();
  } else if constexpr (requires { v.has_value(); }) {
    return v.has_value() ? write_json(json, *v) : json.null();
  } else {
    json.begin_array();
    for (const auto& item : v) write_json(json, item);
    return json.end_array();
  }
}

/// A reflected value as "name=value, name=value": for messages and logs.
template <Reflected T>
[[nodiscard]] std::string to_text(const T& v) {
  std::string out;
  for_each_field(v, [&](const auto& field, const auto& member) {
    if (!out.empty()) out += ", ";
    out += field.name;
    out += '=';
    if constexpr (requires { append_text(out, member); }) {
      append_text(out, member);
    } else {
      JsonWriter json;
      write_json(json, member);
      out += json.text();
    }
  });
  return out;
}

}  // namespace tessera

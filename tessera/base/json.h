// JSON in and out. The reader keeps the place of every value, so that a wrong field is reported with line and
// column, and refuses hostile input (depth, invalid UTF-8, duplicate keys) instead of guessing.
//
// Why not a library: the messages need positions of values, which the packaged readers drop after parsing.
#pragma once

#include <cstdint>
#include <initializer_list>
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

/// One value of a parsed document. Plain data; JsonCursor reads it with messages.
struct Json {
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::size_t offset = 0;                ///< where the value begins in the text
  std::string text;                      ///< string: the value; number: as written
  std::vector<Json> items;               ///< array: elements; object: values
  std::vector<std::string> keys;         ///< object: keys, in the order of `items`
  std::vector<std::size_t> key_offsets;  ///< object: where each key begins

  /// The value under `key`, or null.
  [[nodiscard]] const Json* find(std::string_view key) const;
};

/// "null", "a boolean", "a number", …: for messages.
[[nodiscard]] std::string_view describe(Json::Kind kind);

struct JsonLimits {
  std::size_t depth = 256;
};

class JsonCursor;

/// A parsed text.
class JsonDocument {
 public:
  /// Parses one JSON value. Errors have line, column, caret and what was expected.
  static Result<JsonDocument> parse(std::string file, std::string text, JsonLimits limits = {});

  [[nodiscard]] const Json& root() const { return root_; }
  [[nodiscard]] JsonCursor cursor() const;
  [[nodiscard]] const SourceText& source() const { return source_; }

 private:
  SourceText source_;
  Json root_;
};

/// A value in a document together with the way to it; every accessor names both when it fails. Cheap to copy;
/// the document must outlive it.
class JsonCursor {
 public:
  JsonCursor(const SourceText& source, const Json& value, std::string path)
      : source_(&source), value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const Json& value() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is(Json::Kind kind) const { return value_->kind == kind; }

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
  [[nodiscard]] Result<std::vector<JsonCursor>> array() const;
  /// The members of an object, in the order of the text.
  [[nodiscard]] Result<std::vector<std::pair<std::string, JsonCursor>>> members() const;

 private:
  [[nodiscard]] Error wrong_kind(std::string_view expected) const;

  const SourceText* source_;
  const Json* value_;
  std::string path_;
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

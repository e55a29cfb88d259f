#include "tessera/pattern/json_values.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::pattern;

namespace {

bool is_integer_text(const Json& json) {
  return json.kind() == Json::Kind::number && json.number().find_first_of(".eE") == std::string_view::npos;
}

Result<AttributeValue> read_list(const JsonCursor& json) {
  const JsonItems items = TESSERA_TRY(json.array());
  const auto all = [&](auto claim) { return std::all_of(items.begin(), items.end(), claim); };
  if (all([](const JsonCursor& item) {
        return item.is(Json::Kind::boolean) || is_integer_text(item.value());
      })) {
    std::vector<std::int64_t> out;
    for (const JsonCursor item : items)
      out.push_back(item.is(Json::Kind::boolean) ? item.value().boolean() : TESSERA_TRY(item.integer()));
    return AttributeValue(std::move(out));
  }
  if (all([](const JsonCursor& item) { return item.is(Json::Kind::number); })) {
    std::vector<double> out;
    for (const JsonCursor item : items) out.push_back(TESSERA_TRY(item.number()));
    return AttributeValue(std::move(out));
  }
  if (all([](const JsonCursor& item) { return item.is(Json::Kind::string); })) {
    std::vector<std::string> out;
    for (const JsonCursor item : items) out.push_back(TESSERA_TRY(item.string()));
    return AttributeValue(std::move(out));
  }
  return json.error("expected a list of numbers or a list of strings");
}

}  // namespace

Result<AttributeValue> tessera::pattern::read_attribute(const JsonCursor& json) {
  switch (json.value().kind()) {
    case Json::Kind::boolean:
      return AttributeValue(json.value().boolean());
    case Json::Kind::string:
      return AttributeValue(json.value().text());
    case Json::Kind::array:
      return read_list(json);
    case Json::Kind::number:
      if (is_integer_text(json.value())) return AttributeValue(TESSERA_TRY(json.integer()));
      return AttributeValue(TESSERA_TRY(json.number()));
    case Json::Kind::null:
    case Json::Kind::object:
      break;
  }
  return json.error(
      cat("expected a boolean, a number, a string or a list of them, got ", describe(json.value().kind())));
}

Result<std::vector<std::string>> tessera::pattern::read_names(const JsonCursor& json) {
  std::vector<std::string> out;
  if (json.is(Json::Kind::string)) {
    out.push_back(json.value().text());
    return out;
  }
  for (const JsonCursor item : TESSERA_TRY(json.array())) out.push_back(TESSERA_TRY(item.string()));
  return out;
}

Result<ir::Dtype> tessera::pattern::read_dtype(const JsonCursor& json) {
  const std::string name = TESSERA_TRY(json.string());
  const auto dtype = ir::parse_dtype(name);
  if (!dtype)
    return json.error(cat("unknown dtype ", quote(shortened(name, 40)), ", expected one like \"f32\""));
  return *dtype;
}

Result<ir::Dim> TypeReader::read_dim(const JsonCursor& json) {
  if (json.is(Json::Kind::string)) {
    ir::ExprRef& size = sizes_[json.value().text()];
    if (size == nullptr) size = ir::size_symbol(json.value().text());
    return ir::Dim(size);
  }
  const std::int64_t size = TESSERA_TRY(json.integer());
  if (size < 0) return json.error(cat("size ", size, " is negative"));
  return ir::Dim(size);
}

Result<DraftType> TypeReader::read(const JsonCursor& object) {
  DraftType type;
  if (const auto dtype = TESSERA_TRY(object.optional_field("dtype")))
    type.dtype = TESSERA_TRY(read_dtype(*dtype));
  if (const auto shape = TESSERA_TRY(object.optional_field("shape"))) {
    type.shape.emplace();
    for (const JsonCursor item : TESSERA_TRY(shape->array()))
      type.shape->push_back(TESSERA_TRY(read_dim(item)));
  }
  return type;
}

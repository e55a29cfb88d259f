#include "tessera/op/card_text.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::op;

namespace {

std::string_view kind_name(InputKind kind) {
  static constexpr std::string_view names[] = {"tensor", "scalar", "optional", "variadic"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view kind_name(AttributeKind kind) {
  static constexpr std::string_view names[] = {"boolean",  "integer", "number", "text", "dtype",
                                               "integers", "numbers", "shape",  "size"};
  return names[static_cast<std::size_t>(kind)];
}

/// As the text form of the IR writes it.
std::string default_text(const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return cat(spec.integer != 0);
    case AttributeKind::integer:
    case AttributeKind::size:
      return cat(spec.integer);
    case AttributeKind::number:
      return cat(spec.number);
    case AttributeKind::text:
      return quote(spec.text);
    case AttributeKind::dtype:
      return cat(to_string(static_cast<Dtype>(spec.integer)));
    case AttributeKind::integers:
    case AttributeKind::numbers:
      return "[]";
    case AttributeKind::shape:
      return "shape[]";
  }
  return {};
}

bool has_default(const AttributeSpec& spec) { return !spec.required && !spec.may_be_absent; }

std::string input_text(const Input& input) {
  switch (input.kind) {
    case InputKind::tensor:
      return cat(input.name, ": ", input.type);
    case InputKind::scalar:
      return input.type == "i64"
                 ? cat(input.name, ": scalar i64 = ", static_cast<std::int64_t>(input.otherwise))
                 : cat(input.name, ": scalar ", input.type, " = ", input.otherwise);
    case InputKind::optional:
      return cat(input.name, "?: ", input.type);
    case InputKind::variadic:
      return cat(input.name, "...: ", input.type);
  }
  return {};
}

/// The type of the results where the card says it without a rule.
std::string_view result_type(const Card& card) {
  if (card.result == ResultDtype::boolean) return "bool";
  if (card.result == ResultDtype::i64) return "i64";
  return card.infer == nullptr ? "T" : "";
}

std::vector<std::string_view> result_names(const Card& card) {
  if (card.results.empty()) return {"y"};
  return {card.results.begin(), card.results.end()};
}

void write_json(JsonWriter& json, const Input& input) {
  json.begin_object().member("name", input.name).member("type", input.type);
  json.member("kind", kind_name(input.kind));
  if (input.kind == InputKind::scalar) json.member("default", input.otherwise);
  json.end_object();
}

void write_json(JsonWriter& json, const AttributeSpec& spec) {
  json.begin_object().member("name", spec.name).member("kind", kind_name(spec.kind));
  json.member("required", spec.required);
  if (has_default(spec)) json.member("default", default_text(spec));
  json.end_object();
}

template <class Items>
void write_list(JsonWriter& json, std::string_view name, const Items& items) {
  json.key(name).begin_array();
  for (const auto& item : items) write_json(json, item);
  json.end_array();
}

std::vector<std::string_view> dtype_names(DtypeSet set) {
  std::vector<std::string_view> out;
  for (Dtype dtype : ir::all_dtypes())
    if (set.contains(dtype)) out.push_back(to_string(dtype));
  return out;
}

void write_dtypes(JsonWriter& json, const Card& card) {
  json.key("dtypes").begin_object();
  for (std::string_view letter : type_letters(card))
    json.member(letter, dtype_names(dtypes_of(card, letter)));
  json.end_object().key("dtype_sets").begin_object();
  for (std::string_view letter : type_letters(card)) json.member(letter, describe(dtypes_of(card, letter)));
  json.end_object();
}

/// How many letters have to be added, taken away, replaced or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string tessera::op::signature(const Card& card) {
  std::vector<std::string> inputs, results;
  for (const Input& input : card.inputs) inputs.push_back(input_text(input));
  const std::string_view type = result_type(card);
  for (std::string_view name : result_names(card))
    results.push_back(type.empty() ? std::string(name) : cat(name, ": ", type));
  return cat(card.name, "(", join(inputs, ", "), ") -> ", join(results, ", "));
}

std::string tessera::op::describe(const AttributeSpec& spec) {
  std::string out = cat(spec.name, ": ", kind_name(spec.kind));
  if (has_default(spec)) out += cat(" = ", default_text(spec));
  if (spec.may_be_absent) out += ", may be absent";
  return out;
}

std::string tessera::op::describe(DtypeSet set) {
  static constexpr std::pair<DtypeSet, std::string_view> named[] = {
      {float_dtypes, "floats"},   {integer_dtypes, "integers"},
      {number_dtypes, "numbers"}, {all_dtypes, "all"},
      {bool_dtypes, "bool"},      {integer_dtypes | bool_dtypes, "integers and bool"},
      {index_dtypes, "index"}};
  for (const auto& [known, name] : named)
    if (known == set) return std::string(name);
  return join(dtype_names(set), " ");
}

std::vector<std::string_view> tessera::op::type_letters(const Card& card) {
  std::vector<std::string_view> out;
  for (std::string_view letter : {"T", "U"})
    if (std::any_of(card.inputs.begin(), card.inputs.end(),
                    [&](const Input& input) { return input.type == letter; }))
      out.push_back(letter);
  return out;
}

DtypeSet tessera::op::dtypes_of(const Card& card, std::string_view letter) {
  return letter == "U" ? card.U : card.T;
}

std::vector<std::string_view> tessera::op::trait_names(const Card& card) {
  std::vector<std::string_view> out;
  for (const NamedTrait& named : named_traits)
    if (card.traits.*named.flag) out.push_back(named.name);
  return out;
}

JsonWriter& tessera::op::write_json(JsonWriter& json, const Card& card) {
  json.begin_object().member("name", card.name).member("summary", card.summary);
  json.member("signature", signature(card));
  write_list(json, "inputs", card.inputs);
  json.member("results", result_names(card));
  write_list(json, "attributes", card.attributes);
  write_dtypes(json, card);
  json.member("traits", trait_names(card));
  json.member("gradient", card.gradient != nullptr);
  if (!card.no_gradient.empty()) json.member("no_gradient", card.no_gradient);
  json.member("decomposition", card.decompose != nullptr);
  json.key("onnx");
  card.onnx.type.empty() ? json.null() : json.value(card.onnx.type);
  json.member("spellings", card.spellings);
  json.member("oracle", card.oracle);
  return json.end_object();
}

std::vector<std::string_view> tessera::op::nearest_ops(std::string_view name) {
  constexpr std::size_t most = 5;
  const std::size_t limit = std::max<std::size_t>(1, name.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const Card* card : all_cards()) {
    const std::string_view other = card->name;
    const bool part = name.size() >= 3 && other.size() >= 3 &&
                      (other.find(name) != std::string_view::npos || name.substr(0, other.size()) == other);
    if (!part && name.size() > other.size() + limit) continue;
    const std::size_t distance = edit_distance(name.substr(0, 2 * other.size()), other);
    if (part || distance <= limit) found.emplace_back(distance, other);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > most) found.resize(most);
  std::vector<std::string_view> out;
  for (const auto& [distance, card] : found) out.push_back(card);
  return out;
}

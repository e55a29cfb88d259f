#include "tessera/onnx/mapping.h"

#include <algorithm>
#include <map>
#include <memory>

#include "tessera/onnx/value_target.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::onnx;

// ---- inputs

void NodeCall::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Result<void> NodeCall::status() const {
  if (error_) return *error_;
  return b.status();
}

const Item& NodeCall::item(std::size_t i) {
  static const auto& none = *new Item;  // never destroyed
  if (has(i)) return items_[i];
  fail(error("input ", i, " is missing"));
  return none;
}

Value NodeCall::in(std::size_t i) {
  const Item& one = item(i);
  if (one.kind != Item::Kind::tensor)
    fail(error("input ", i, " is ", one.kind == Item::Kind::none ? "empty" : "a sequence",
               ", expected a tensor"));
  return one.value;
}

Values NodeCall::all() {
  Values out;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) out.push_back(in(i));
  if (out.empty()) fail(error("input 0 is missing"));
  return out;
}

const Values& NodeCall::sequence(std::size_t i) {
  static const auto& none = *new Values;  // never destroyed
  const Item& one = item(i);
  if (one.kind == Item::Kind::sequence) return *one.sequence;
  fail(error("input ", i, " is no sequence"));
  return none;
}

Result<HostTensor> NodeCall::elements_of(Value value, std::string_view what) {
  TESSERA_TRY(status());
  if (!value) return error(what, " is missing");
  auto out = target.elements(value);
  if (!out) return unsupported("the elements of ", what, " must be known before the program runs");
  return *std::move(out);
}

Result<HostTensor> NodeCall::elements(std::size_t i) { return elements_of(in(i), cat("input ", i)); }

Result<std::vector<std::int64_t>> NodeCall::integers_in(std::size_t i) {
  const HostTensor tensor = TESSERA_TRY(elements(i));
  if (ir::is_float(tensor.dtype())) return error("input ", i, " is ", tensor.dtype(), ", expected integers");
  return integers_of(tensor);
}

Result<std::int64_t> NodeCall::integer_in(std::size_t i) {
  const auto all = TESSERA_TRY(integers_in(i));
  if (all.size() != 1) return error("input ", i, " has ", all.size(), " elements, expected 1");
  return all[0];
}

Result<double> NodeCall::number_in(std::size_t i) {
  const auto all = numbers_of(TESSERA_TRY(elements(i)));
  if (all.size() != 1) return error("input ", i, " has ", all.size(), " elements, expected 1");
  return all[0];
}

Result<std::vector<Dim>> NodeCall::sizes_in(std::size_t i) {
  const Value value = in(i);
  TESSERA_TRY(status());
  if (!ir::is_integer(value.dtype())) return error("input ", i, " is ", value.dtype(), ", expected integers");
  auto out = target.sizes(value);
  if (!out) return unsupported("input ", i, " must be known before the program runs");
  return *std::move(out);
}

Result<std::vector<Dim>> NodeCall::learned_sizes(Value value, std::string_view what) {
  TESSERA_TRY(status());
  if (!ir::is_integer(value.dtype())) return error(what, " is ", value.dtype(), ", expected integers");
  auto out = target.learned_sizes(value);
  if (!out) return unsupported(what, " must be known before the program runs");
  return *std::move(out);
}

// ---- attributes

const Attribute* NodeCall::attribute(std::string_view name) const {
  const Attribute* out = node.find(name);
  if (out == nullptr || out->reference.empty()) return out;
  if (outer_ != nullptr)
    for (const auto& [given, attribute] : *outer_)
      if (given == out->reference) return attribute;
  return nullptr;
}

template <class T>
const T* NodeCall::attribute_as(std::string_view name, std::string_view expected) {
  const Attribute* found = attribute(name);
  if (found == nullptr) return nullptr;
  const T* out = std::get_if<T>(&found->value);
  if (out == nullptr) fail(error("attribute '", name, "' is ", found->kind, ", expected ", expected));
  return out;
}

std::int64_t NodeCall::integer(std::string_view name, std::int64_t otherwise) {
  const auto* value = attribute_as<std::int64_t>(name, "an integer");
  return value == nullptr ? otherwise : *value;
}

double NodeCall::number(std::string_view name, double otherwise) {
  const auto* value = attribute_as<float>(name, "a float");
  return value == nullptr ? otherwise : static_cast<double>(*value);
}

std::string NodeCall::text(std::string_view name, std::string_view otherwise) {
  const auto* value = attribute_as<std::string>(name, "a string");
  return value == nullptr ? std::string(otherwise) : *value;
}

std::vector<std::int64_t> NodeCall::integers(std::string_view name) {
  const auto* value = attribute_as<std::vector<std::int64_t>>(name, "integers");
  return value == nullptr ? std::vector<std::int64_t>() : *value;
}

std::vector<double> NodeCall::numbers(std::string_view name) {
  const auto* value = attribute_as<std::vector<float>>(name, "floats");
  return value == nullptr ? std::vector<double>() : std::vector<double>(value->begin(), value->end());
}

std::vector<std::string> NodeCall::texts(std::string_view name) {
  const auto* value = attribute_as<std::vector<std::string>>(name, "strings");
  return value == nullptr ? std::vector<std::string>() : *value;
}

Result<HostTensor> NodeCall::tensor(std::string_view name) {
  const auto* value = attribute_as<Tensor>(name, "a tensor");
  TESSERA_TRY(status());
  if (value == nullptr) return error("attribute '", name, "' is missing");
  if (!value->unusable.empty()) return unsupported("attribute '", name, "': ", value->unusable);
  return value->value;
}

Result<const Graph*> NodeCall::graph(std::string_view name) {
  const auto* value = attribute_as<std::vector<Graph>>(name, "a graph");
  TESSERA_TRY(status());
  if (value == nullptr) return error("attribute '", name, "' is missing");
  return &(*value)[0];
}

Result<Dtype> NodeCall::dtype(std::string_view name, Dtype otherwise) {
  if (attribute(name) == nullptr) return otherwise;
  const std::int64_t number = integer(name, 0);
  TESSERA_TRY(status());
  constexpr Dtype by_number[] = {Dtype::f32, Dtype::f32, Dtype::u8,  Dtype::i8,      Dtype::u16, Dtype::i16,
                                 Dtype::i32, Dtype::i64, Dtype::f32, Dtype::boolean, Dtype::f16, Dtype::f64,
                                 Dtype::u32, Dtype::u64, Dtype::f32, Dtype::f32,     Dtype::bf16};
  if (number < 1 || number > 16 || number == 8 || number == 14 || number == 15)
    return unsupported("attribute '", name, "' asks for element type ", number, ", which no tensor here has");
  return by_number[number];
}

// ---- what mappings often need

Value NodeCall::vector_of(std::span<const std::int64_t> integers) {
  return target.tensor(tensor_of(Dtype::i64, {static_cast<std::int64_t>(integers.size())}, integers));
}

Result<std::int64_t> NodeCall::axis(std::int64_t value, std::size_t rank) const {
  const auto axes = static_cast<std::int64_t>(rank);
  if (value < -axes || value >= axes) return error("axis ", value, " is outside [", -axes, ", ", axes, ")");
  return value < 0 ? value + axes : value;
}

Result<std::vector<std::int64_t>> NodeCall::numbers_of_shape(Value value) const {
  TESSERA_TRY(status());
  const auto numbers = ir::constant_shape(value.shape());
  if (!numbers) return unsupported("the sizes of ", value.type(), " must be numbers");
  return std::vector<std::int64_t>(numbers->begin(), numbers->end());
}

std::vector<std::int64_t> tessera::onnx::axes_from(std::size_t first, std::size_t rank) {
  std::vector<std::int64_t> out;
  for (std::size_t i = first; i < rank; ++i) out.push_back(static_cast<std::int64_t>(i));
  return out;
}

// ---- operators that a card has

namespace {

using Key = std::pair<std::string_view, std::string_view>;

/// Before version 7 the second operand is broadcast only where asked, and from `axis` on.
Value old_broadcast(NodeCall& node, Value a, Value b) {
  const bool is_asked = node.flag("broadcast", false);
  const std::int64_t axis = node.integer("axis", -1);
  if (!a || !b || !is_asked || node.attribute("axis") == nullptr) return b;
  const auto rank = static_cast<std::int64_t>(a.rank()), own = static_cast<std::int64_t>(b.rank());
  const std::int64_t first = axis < 0 ? axis + rank : axis;
  if (first < 0 || first + own > rank) return b;  // what is wrong with it, the op itself says
  Shape shape = b.shape();
  for (std::int64_t i = first + own; i < rank; ++i) shape.push_back(1);
  return reshape(b, shape);
}

/// The attributes that the card and the node call by one name.
Result<op::Attributes> common_attributes(NodeCall& node, const op::Card& card) {
  op::Attributes out;
  for (const op::AttributeSpec& spec : card.attributes) {
    if (node.attribute(spec.name) == nullptr) continue;
    const std::string name(spec.name);
    switch (spec.kind) {
      case op::AttributeKind::integer:
        out.set(name, node.integer(spec.name, 0));
        break;
      case op::AttributeKind::boolean:
        out.set(name, node.flag(spec.name, false));
        break;
      case op::AttributeKind::number:
        out.set(name, node.number(spec.name, 0));
        break;
      case op::AttributeKind::text:
        out.set(name, node.text(spec.name, ""));
        break;
      case op::AttributeKind::integers:
        out.set(name, node.integers(spec.name));
        break;
      default:
        return node.unsupported("attribute '", spec.name, "' has no meaning here");
    }
  }
  TESSERA_TRY(node.status());
  return out;
}

const std::map<std::string_view, const op::Card*>& cards_by_onnx_name() {
  static const auto& all = *[] {  // never destroyed
    auto out = std::make_unique<std::map<std::string_view, const op::Card*>>();
    for (const op::Card* card : op::all_cards())
      if (!card->onnx.type.empty()) out->emplace(card->onnx.type, card);
    return out.release();
  }();
  return all;
}

Result<Items> map_by_card(NodeCall& node) {
  const op::Card& card = *cards_by_onnx_name().at(node.node.op);
  Values inputs = node.all();
  TESSERA_TRY(node.status());
  if (node.opset < 7 && card.traits.elementwise && inputs.size() == 2)
    inputs[1] = old_broadcast(node, inputs[0], inputs[1]);
  const auto attributes = TESSERA_TRY(common_attributes(node, card));
  const Values results = node.b.call_all(card.name, inputs, attributes);
  return Items(results.begin(), results.end());
}

const std::multimap<Key, const Mapping*>& mappings() {
  static const auto& all = *[] {  // never destroyed
    auto out = std::make_unique<std::multimap<Key, const Mapping*>>();
    for (const auto table :
         {attention_mappings(), control_mappings(), detection_mappings(), elementwise_mappings(),
          grid_mappings(), indexing_mappings(), microsoft_mappings(), network_mappings(),
          quantised_mappings(), recurrent_mappings(), reduction_mappings(), resampling_mappings(),
          sequence_mappings(), shape_mappings(), signal_mappings()})
      for (const Mapping& mapping : table) out->emplace(Key{mapping.domain, mapping.op}, &mapping);
    return out.release();
  }();
  return all;
}

/// Cards whose attributes have other names or defaults than the operator's have mappings in the tables; these
/// operators did not exist in the domain's own set up to the version that is known here.
bool is_plain(const op::Card& card) {
  return card.name != "attention" && card.name != "rms_norm" && card.name != "group_norm";
}

}  // namespace

std::vector<Mapping> tessera::onnx::all_mappings() {
  std::vector<Mapping> out;
  for (const auto& [key, mapping] : mappings()) out.push_back(*mapping);
  for (const auto& [name, card] : cards_by_onnx_name())
    if (is_plain(*card) && mappings().count({{}, name}) == 0) out.push_back({.op = name});
  return out;
}

MappingFunction tessera::onnx::find_mapping(std::string_view domain, std::string_view op,
                                            std::int64_t opset) {
  const Mapping* best = nullptr;
  const auto [begin, end] = mappings().equal_range({domain, op});
  for (auto at = begin; at != end; ++at)
    if (at->second->since <= opset && (best == nullptr || best->since < at->second->since)) best = at->second;
  if (best != nullptr) return best->map;
  if (!domain.empty()) return nullptr;
  const auto card = cards_by_onnx_name().find(op);
  return card != cards_by_onnx_name().end() && is_plain(*card->second) ? &map_by_card : nullptr;
}

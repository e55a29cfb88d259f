#include "tessera/onnx/function_target.h"

#include <algorithm>

#include "tessera/onnx/value_target.h"
#include "tessera/op/reference.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

/// Larger results are computed when the program runs, not kept in it.
constexpr std::int64_t max_folded_elements = 1 << 14;
/// Each is a value that the host waits for.
constexpr std::int64_t max_learned = 16;
/// Shapes are short; longer integer tensors are data.
constexpr std::int64_t max_sizes = 1024;

bool is_small(const op::ValueTypes& types, std::int64_t limit) {
  return std::all_of(types.begin(), types.end(), [&](const op::ValueType& type) {
    const auto count = ir::element_count(type.shape);
    return count && *count <= limit;
  });
}

bool has_numbers_only(const op::Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries())
    if (const auto* shape = std::get_if<Shape>(&value); shape != nullptr && !ir::constant_shape(*shape))
      return false;
  return true;
}

/// Ops whose results are elements of their inputs of type T, whatever those are.
bool only_moves(const op::Card& card) {
  constexpr std::string_view others[] = {"concat", "gather", "identity", "split", "tile"};
  return card.traits.view || std::find(std::begin(others), std::end(others), card.name) != std::end(others);
}

/// Integer arithmetic as sizes do it. Division rounds down: a size is not negative.
std::optional<Dim> combine(std::string_view op, const Dim& a, const Dim& b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "minimum") return min(a, b);
  if (op == "maximum") return max(a, b);
  const bool is_positive = b.is_constant() && b.value() > 0;
  if (op == "floor_div" && is_positive) return floor_div(a, b);
  if (op == "mod" && is_positive) return floor_mod(a, b);
  if (op == "div" && is_positive && ir::provably_at_least(a, Dim(0))) return floor_div(a, b);
  return std::nullopt;
}

/// Whether a comparison of two sizes holds, where it does not depend on what they are.
std::optional<bool> decided(std::string_view op, const Dim& a, const Dim& b) {
  if (op == "eq" || op == "ne") {
    if (ir::provably_equal(a, b)) return op == "eq";
    if (ir::provably_different(a, b)) return op == "ne";
  }
  if (op == "gt" || op == "le") {
    if (ir::provably_at_least(a, b + Dim(1))) return op == "gt";
    if (ir::provably_at_least(b, a)) return op == "le";
  }
  if (op == "lt" || op == "ge") {
    if (ir::provably_at_least(b, a + Dim(1))) return op == "lt";
    if (ir::provably_at_least(a, b)) return op == "ge";
  }
  return std::nullopt;
}

/// Of elements that are one for all, or one each.
template <class T>
const T& element(const std::vector<T>& elements, std::size_t i) {
  return elements[elements.size() == 1 ? 0 : i];
}

}  // namespace

Value FunctionTarget::tensor(HostTensor elements) {
  const std::span<const std::int64_t> shape(elements.shape().begin(), elements.shape().end());
  const op::ValueType type{elements.dtype(), ir::shape_of(shape)};
  auto owner = std::make_shared<const HostTensor>(elements);
  const Bytes bytes({owner->array().data, owner->byte_size()}, owner);
  const Value out = import(ir::dense(ir::tensor_type(type.dtype, type.shape), bytes), type);
  elements_.emplace(out.id, std::move(elements));
  return out;
}

Value FunctionTarget::sizes_vector(std::span<const Dim> sizes) {
  const Shape shape(sizes.begin(), sizes.end());
  if (const auto numbers = ir::constant_shape(shape))
    return tensor(tensor_of(Dtype::i64, {static_cast<std::int64_t>(numbers->size())},
                            std::span<const std::int64_t>(numbers->begin(), numbers->end())));
  op::Values parts;
  for (const Dim& size : sizes) parts.push_back(reshape(extent(size), Shape{Dim(1)}));
  const Value out = call("concat", parts, {{"axis", 0}});
  if (out) sizes_[out.id] = Sizes(sizes.begin(), sizes.end());
  return out;
}

std::optional<HostTensor> FunctionTarget::elements(Value value) {
  if (const auto at = elements_.find(value.id); at != elements_.end()) return at->second;
  const auto at = sizes_.find(value.id);
  const auto shape = ir::constant_shape(value.shape());
  if (at == sizes_.end() || !shape) return std::nullopt;
  const auto numbers = ir::constant_shape(Shape(at->second.begin(), at->second.end()));
  if (!numbers) return std::nullopt;
  return tensor_of(value.dtype(), *shape, std::span<const std::int64_t>(numbers->begin(), numbers->end()));
}

std::optional<std::vector<Dim>> FunctionTarget::sizes(Value value) {
  if (const auto at = sizes_.find(value.id); at != sizes_.end()) return at->second;
  const auto known = ir::is_integer(value.dtype()) ? elements(value) : std::nullopt;
  if (!known || known->size() > max_sizes) return std::nullopt;
  const auto integers = integers_of(*known);
  return Sizes(integers.begin(), integers.end());
}

std::optional<std::vector<Dim>> FunctionTarget::learned_sizes(Value value) {
  if (auto known = sizes(value)) return known;
  const auto count = ir::element_count(value.shape());
  if (body_depth_ != 0 || value.rank() > 1 || !count || *count > max_learned ||
      !ir::is_integer(value.dtype()))
    return std::nullopt;
  const Value integers = value.dtype() == Dtype::i64 ? value : cast(value, Dtype::i64);
  Sizes out;
  for (std::int64_t i = 0; i < *count; ++i) {
    const Value one = value.rank() == 0 ? integers : reshape(slice(integers, 0, i, i + 1), {});
    if (!one) return std::nullopt;
    learned_.push_back(ir::size_symbol(cat("k", learned_.size())));
    adopt(ir::assign({learned_.back()}, ir::call("identity", {expr(one)}, {}, node_), node_));
    out.emplace_back(learned_.back());
  }
  sizes_[value.id] = out;
  return out;
}

std::vector<Ref<ir::Var>> FunctionTarget::visible_sizes() const {
  std::vector<Ref<ir::Var>> out = size_symbols();
  out.insert(out.end(), learned_.begin(), learned_.end());
  return out;
}

Value FunctionTarget::emit_constant(double value, Dtype dtype) {
  const Value out = IrBuilder::emit_constant(value, dtype);
  elements_.emplace(out.id, tensor_of(dtype, {}, std::span<const double>(&value, 1)));
  return out;
}

Value FunctionTarget::emit_extent(const Dim& size) {
  const Value out = IrBuilder::emit_extent(size);
  sizes_[out.id] = {size};
  return out;
}

std::optional<std::vector<HostTensor>> FunctionTarget::folded(const op::Card& card,
                                                              std::span<const Value> inputs,
                                                              const op::Attributes& attributes,
                                                              const op::ValueTypes& types) {
  if (card.traits.random || !is_small(types, max_folded_elements) || !has_numbers_only(attributes))
    return std::nullopt;
  std::vector<HostTensor> known;
  std::vector<op::Array> arrays;
  for (Value input : inputs) {
    auto one = elements(input);
    if (!one) return std::nullopt;
    known.push_back(*std::move(one));
    arrays.push_back(known.back().array());
  }
  auto results = op::run_reference(card, arrays, attributes);
  if (!results) return std::nullopt;  // what is wrong with it shows when the program runs
  return *std::move(results);
}

std::optional<std::vector<FunctionTarget::Sizes>> FunctionTarget::moved(const op::Card& card,
                                                                        std::span<const Value> inputs,
                                                                        const op::Attributes& attributes) {
  // The op is run on the numbers of the sizes in a list instead of on the sizes.
  Sizes list;
  std::vector<HostTensor> numbered;
  std::vector<op::Array> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const op::Input& spec = card.inputs[std::min(i, card.inputs.size() - 1)];
    const auto shape = ir::constant_shape(inputs[i].shape());
    if (!shape) return std::nullopt;
    if (spec.type == "T") {
      const auto own = sizes(inputs[i]);
      if (!own) return std::nullopt;
      std::vector<std::int64_t> numbers;
      for (const Dim& size : *own) {
        numbers.push_back(static_cast<std::int64_t>(list.size()));
        list.push_back(size);
      }
      numbered.push_back(tensor_of(Dtype::i64, *shape, std::span<const std::int64_t>(numbers)));
    } else {
      auto known = elements(inputs[i]);
      if (!known) return std::nullopt;
      numbered.push_back(*std::move(known));
    }
  }
  for (const HostTensor& one : numbered) arrays.push_back(one.array());
  const auto results = op::run_reference(card, arrays, attributes);
  if (!results) return std::nullopt;
  std::vector<Sizes> out;
  for (const HostTensor& result : *results) {
    out.emplace_back();
    for (const std::int64_t number : integers_of(result))
      out.back().push_back(list[static_cast<std::size_t>(number)]);
  }
  return out;
}

std::optional<FunctionTarget::Sizes> FunctionTarget::combined(const op::Card& card,
                                                              std::span<const Value> inputs,
                                                              const op::ValueType& type) {
  if (inputs.size() != 2) return std::nullopt;
  const auto a = sizes(inputs[0]), b = sizes(inputs[1]);
  const auto count = ir::element_count(type.shape);
  if (!a || !b || !count || type.rank() > 1) return std::nullopt;
  Sizes out;
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto size = combine(card.name, element(*a, at), element(*b, at));
    if (!size) return std::nullopt;
    out.push_back(*size);
  }
  return out;
}

std::optional<FunctionTarget::Sizes> FunctionTarget::chosen(std::span<const Value> inputs,
                                                            const op::ValueType& type) {
  const auto conditions = elements(inputs[0]);
  const auto count = ir::element_count(type.shape);
  if (!conditions || !count || type.rank() > 1) return std::nullopt;
  const auto holds = integers_of(*conditions);
  const auto a = sizes(inputs[1]), b = sizes(inputs[2]);
  if (!a || !b) return std::nullopt;
  Sizes out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i)
    out.push_back(element(element(holds, i) != 0 ? *a : *b, i));
  return out;
}

std::optional<HostTensor> FunctionTarget::decided_comparison(const op::Card& card,
                                                             std::span<const Value> inputs,
                                                             const op::ValueTypes& types) {
  if (inputs.size() != 2 || types.size() != 1 || types[0].dtype != Dtype::boolean || types[0].rank() > 1 ||
      !is_small(types, max_sizes) || !ir::is_integer(inputs[0].dtype()))
    return std::nullopt;
  const auto a = sizes(inputs[0]), b = a ? sizes(inputs[1]) : std::nullopt;
  const auto shape = ir::constant_shape(types[0].shape);
  if (!b || !shape) return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(op::element_count(*shape)); ++i) {
    const auto holds = decided(card.name, element(*a, i), element(*b, i));
    if (!holds) return std::nullopt;
    out.push_back(*holds ? 1 : 0);
  }
  return tensor_of(Dtype::boolean, *shape, std::span<const std::int64_t>(out));
}

std::optional<std::vector<FunctionTarget::Sizes>> FunctionTarget::symbolic(const op::Card& card,
                                                                           std::span<const Value> inputs,
                                                                           const op::Attributes& attributes,
                                                                           const op::ValueTypes& types) {
  const bool are_indices = std::all_of(types.begin(), types.end(), [](const op::ValueType& type) {
    return type.dtype == Dtype::i64 || type.dtype == Dtype::i32;
  });
  if (!are_indices || inputs.empty() || !is_small(types, max_sizes) || !has_numbers_only(attributes))
    return std::nullopt;
  if (only_moves(card)) return moved(card, inputs, attributes);
  std::optional<Sizes> one;
  if (card.name == "cast" && ir::is_integer(inputs[0].dtype()))
    one = sizes(inputs[0]);
  else if (card.name == "where")
    one = chosen(inputs, types[0]);
  else
    one = combined(card, inputs, types[0]);
  if (!one) return std::nullopt;
  return std::vector<Sizes>{*std::move(one)};
}

std::optional<FunctionTarget::SizePair> FunctionTarget::compared(const op::Card& card,
                                                                 std::span<const Value> inputs,
                                                                 const op::ValueTypes& types) {
  if (types.size() != 1 || types[0].dtype != Dtype::boolean || !is_small(types, 1)) return std::nullopt;
  if (card.name == "eq") {
    const auto a = sizes(inputs[0]), b = sizes(inputs[1]);
    if (!a || !b || a->size() != 1 || b->size() != 1) return std::nullopt;
    return SizePair{(*a)[0], (*b)[0]};
  }
  const bool keeps = only_moves(card) || card.name == "cast";
  const auto known = keeps && inputs.size() == 1 ? equalities_.find(inputs[0].id) : equalities_.end();
  return known == equalities_.end() ? std::nullopt : std::optional(known->second);
}

Result<op::Values> FunctionTarget::emit(const op::Card& card, std::span<const Value> inputs,
                                        op::Attributes attributes, op::ValueTypes types) {
  TESSERA_TRY(budget_.take_call(card, inputs, attributes, types));
  if (auto known = folded(card, inputs, attributes, types)) {
    op::Values out;
    for (HostTensor& result : *known) out.push_back(tensor(std::move(result)));
    return out;
  }
  if (auto known = decided_comparison(card, inputs, types)) return op::Values{tensor(*std::move(known))};
  const auto sizes = symbolic(card, inputs, attributes, types);
  const auto pair = compared(card, inputs, types);
  op::Values out = TESSERA_TRY(IrBuilder::emit(card, inputs, std::move(attributes), std::move(types)));
  if (sizes)
    for (std::size_t i = 0; i < out.size(); ++i) sizes_[out[i].id] = (*sizes)[i];
  if (pair) equalities_.insert_or_assign(out[0].id, *pair);
  return out;
}

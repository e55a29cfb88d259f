#include "tessera/kernel/region_builder.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::kernel;
using op::CallInfo;
using op::Card;
using op::Dim;
using op::Shape;
using op::Value;
using op::Values;
using op::ValueType;
using op::ValueTypes;

namespace {

/// The opcode of a reduction whose combine is one operation of its two arguments.
std::optional<ScalarOpcode> combining_opcode(const op::ReductionBody& body, Dtype dtype) {
  const ir::ExprRef a = ir::variable("a", ir::scalar_type(dtype)),
                    b = ir::variable("b", ir::scalar_type(dtype));
  const ir::ExprRef expr = body.on_scalar.combine(ir::Scalar(a), ir::Scalar(b)).expr(dtype);
  const auto* op = ir::as<ir::ScalarOp>(expr);
  if (op == nullptr || op->operands.size() != 2 || op->operands[0] != a || op->operands[1] != b)
    return std::nullopt;
  return ir::info(op->opcode).has(ir::opcode_trait::reduces) ? std::optional(op->opcode) : std::nullopt;
}

/// Sums and products of f32 are joined in f64, as the reference does, and finished there.
Dtype accumulator_dtype(ScalarOpcode opcode, Dtype wide) {
  const bool adds = opcode == ScalarOpcode::add || opcode == ScalarOpcode::mul;
  return adds && wide == Dtype::f32 ? Dtype::f64 : wide;
}

/// Functions that can be computed in f64 as fast as anything there (runtime/cpu/double_math.h).
bool is_wide_function(ScalarOpcode opcode) {
  switch (opcode) {
    case ScalarOpcode::exp:
    case ScalarOpcode::exp2:
    case ScalarOpcode::expm1:
    case ScalarOpcode::log:
    case ScalarOpcode::log2:
    case ScalarOpcode::log1p:
    case ScalarOpcode::tanh:
      return true;
    default:
      return false;
  }
}

/// Whether a formula is more than one operation and one of them is such a function: what is rounded on the
/// way adds up, and may pass the range of f32.
bool adds_up_roundings(const ir::Expr& formula) {
  std::size_t operations = 0;
  bool has_function = false;
  for (const ir::Node* node : ir::post_order(formula))
    if (const auto* op = ir::as<ir::ScalarOp>(*node)) {
      ++operations;
      has_function = has_function || is_wide_function(op->opcode);
    }
  return has_function && operations > 1;
}

}  // namespace

Error tessera::kernel::not_fusible(std::string message) {
  return Error(ErrorCode::unsupported, std::move(message));
}

// ---- values and axes

Value RegionBuilder::add(ValueType type, Entry entry) {
  entries_.push_back(std::move(entry));
  return add_value(std::move(type));
}

Value RegionBuilder::input(ValueType type) {
  Entry entry;
  entry.view = InputView::whole(input_count_++, type.rank());
  return add(std::move(type), std::move(entry));
}

Value RegionBuilder::scalar(const ir::Expr& expr, Dtype dtype) {
  auto value = body_.expression(expr, [&](const ir::Expr& leaf) -> std::optional<ValueId> {
    const auto* var = ir::as<ir::Var>(leaf);
    if (var == nullptr || ir::scalar_dtype(leaf) != Dtype::i64) return std::nullopt;
    return extent_of(Dim(ir::ExprRef(var)));
  });
  if (!value) return fail(std::move(value).error());
  Entry entry;
  entry.value = *value;
  return add({dtype, {}}, std::move(entry));
}

Value RegionBuilder::emit_constant(double value, Dtype dtype) {
  ir::ExprRef constant;
  if (ir::is_float(dtype))
    constant = ir::float_const(value, dtype);
  else if (dtype == Dtype::boolean)
    constant = ir::bool_const(value != 0);
  else
    constant = ir::scalar_cast(dtype, ir::float_const(value, Dtype::f64));  // saturates
  return scalar(*constant, dtype);
}

Value RegionBuilder::emit_extent(const Dim& size) {
  if (size.is_constant()) return scalar(*ir::int_const(size.value()), Dtype::i64);
  return scalar(*size.expr(), Dtype::i64);
}

RegionBuilder::AxisId RegionBuilder::new_axis(const Dim& size) {
  if (size == Dim(1)) return no_axis;
  axes_.push_back({static_cast<AxisId>(axes_.size()), size});
  return axes_.back().parent;
}

SmallVector<RegionBuilder::AxisId, 4> RegionBuilder::new_axes(const Shape& shape) {
  SmallVector<AxisId, 4> out;
  for (const Dim& dim : shape) out.push_back(new_axis(dim));
  return out;
}

RegionBuilder::AxisId RegionBuilder::root(AxisId axis) {
  while (axes_[axis].parent != axis) {
    axes_[axis].parent = axes_[axes_[axis].parent].parent;
    axis = axes_[axis].parent;
  }
  return axis;
}

RegionBuilder::AxisId RegionBuilder::joined(AxisId a, AxisId b) {
  if (a == no_axis || b == no_axis) return a == no_axis ? b : a;
  const AxisId first = std::min(root(a), root(b)), second = std::max(root(a), root(b));
  axes_[second].parent = first;
  if (axes_[second].size.is_constant()) axes_[first].size = axes_[second].size;
  return first;
}

/// Aligned at the last axis, as broadcasting does.
Result<void> RegionBuilder::join_axes(std::span<const AxisId> from, SmallVector<AxisId, 4>& to) {
  if (from.size() > to.size()) return not_fusible("an operand has more axes than the result");
  const std::size_t lead = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) to[lead + i] = joined(to[lead + i], from[i]);
  return {};
}

/// The draft's axis is resolved when the iteration space is known.
ValueId RegionBuilder::extent_of(const Dim& size) {
  for (AxisId i = 0; i < axes_.size(); ++i)
    if (axes_[i].size == size) return body_.extent(i);
  axes_.push_back({static_cast<AxisId>(axes_.size()), size});
  return body_.extent(axes_.back().parent);
}

Result<ValueId> RegionBuilder::element(Value value) {
  Entry& entry = entries_[value.id];
  if (entry.reshaped) return not_fusible("a reshaped value is used inside the region");
  if (entry.value != no_value) return entry.value;
  entry.axes = new_axes(value.shape());
  loads_.push_back({*entry.view, value.dtype(), entry.axes});
  entry.value = body_.load(static_cast<std::uint32_t>(loads_.size() - 1), value.dtype());
  return entry.value;
}

ir::Scalar RegionBuilder::stand_in(ValueId value) {
  stand_ins_.emplace_back(ir::variable("v", ir::scalar_type(wide_dtype(body_.dtype(value)))), value);
  return ir::Scalar(ir::ExprRef(stand_ins_.back().first));
}

Result<ValueId> RegionBuilder::formula(const ir::Scalar& scalar, Dtype result) {
  const ir::ExprRef expr = scalar.expr(wide_dtype(result));
  const ValueId value = TESSERA_TRY(body_.expression(*expr, [&](const ir::Expr& leaf) {
    for (const auto& [var, id] : stand_ins_)
      if (static_cast<const ir::Expr*>(var.get()) == &leaf) return std::optional(id);
    return std::optional<ValueId>();
  }));
  stand_ins_.clear();
  return body_.dtype(value) == wide_dtype(result) ? value : body_.cast(value, result);
}

ValueId RegionBuilder::stored(ValueId value, Dtype dtype, std::span<const Value> inputs) {
  const bool is_half = dtype == Dtype::f16 || dtype == Dtype::bf16;
  const bool keeps = std::all_of(inputs.begin(), inputs.end(), [&](Value input) {
    return input.dtype() == dtype || !ir::is_float(input.dtype());
  });
  return is_half && depth_ > 0 && keeps ? value : body_.cast(value, dtype);
}

// ---- calls

Result<Values> RegionBuilder::emit(const Card& card, std::span<const Value> inputs, op::Attributes attributes,
                                   ValueTypes types) {
  ValueTypes input_types;
  for (Value input : inputs) input_types.push_back(input.type());
  const CallInfo call(card, input_types, attributes, &assumptions_);
  std::optional<Entry> entry;
  if (card.pointwise != nullptr)
    entry = TESSERA_TRY(pointwise(card, inputs, types[0]));
  else if (card.reduction != nullptr)
    entry = TESSERA_TRY(reduction(call, inputs[0], types[0]));
  else if (card.indexed != nullptr)
    entry = TESSERA_TRY(indexed(call, inputs, types[0]));
  else if (card.view != nullptr)
    entry = TESSERA_TRY(view(call, inputs[0], types[0]));
  if (entry) return Values{add(std::move(types[0]), *std::move(entry))};
  if (card.decompose == nullptr)
    return not_fusible(cat(card.name, ": has no element formula, and no decomposition into ops that do"));
  return decomposed(call, inputs);
}

Result<Values> RegionBuilder::decomposed(const CallInfo& call, std::span<const Value> inputs) {
  ++depth_;
  Values out = call.card().decompose(*this, call, inputs);
  --depth_;
  TESSERA_TRY(status());
  for (Value value : out) {
    Entry& entry = entries_[value.id];
    if (entry.value != no_value) entry.value = stored(entry.value, value.dtype(), {});
  }
  return out;
}

bool RegionBuilder::is_widened(const Card& card, std::span<const Value> inputs, const ValueType& type) const {
  if (accuracy_ != Accuracy::precise || type.dtype != Dtype::f32) return false;
  std::vector<ir::Scalar> operands;
  for (Value input : inputs) {
    if (input.dtype() != Dtype::f32) return false;
    operands.emplace_back(ir::ExprRef(ir::variable("v", ir::scalar_type(Dtype::f32))));
  }
  return adds_up_roundings(*card.pointwise->scalar(operands).expr(Dtype::f32));
}

Result<RegionBuilder::Entry> RegionBuilder::pointwise(const Card& card, std::span<const Value> inputs,
                                                      const ValueType& type) {
  Entry out;
  out.axes = SmallVector<AxisId, 4>(type.rank(), no_axis);
  const bool widens = is_widened(card, inputs, type);
  std::vector<ir::Scalar> operands;
  for (Value input : inputs) {
    const ValueId given = TESSERA_TRY(element(input));
    operands.push_back(stand_in(widens ? body_.cast(given, Dtype::f64) : given));
    TESSERA_TRY(join_axes(entries_[input.id].axes, out.axes));
  }
  const ValueId value =
      TESSERA_TRY(formula(card.pointwise->scalar(operands), widens ? Dtype::f64 : type.dtype));
  out.value = stored(value, type.dtype, inputs);
  return out;
}

Result<RegionBuilder::Entry> RegionBuilder::indexed(const CallInfo& call, std::span<const Value> inputs,
                                                    const ValueType& type) {
  Entry out;
  out.axes = new_axes(type.shape);
  std::vector<ir::Scalar> operands, places;
  for (Value input : inputs) {
    operands.push_back(stand_in(TESSERA_TRY(element(input))));
    TESSERA_TRY(join_axes(entries_[input.id].axes, out.axes));
  }
  ir::Scalar number{ir::ExprRef(ir::int_const(0))};
  for (AxisId axis : out.axes) {
    const ir::Scalar place =
        axis == no_axis ? ir::Scalar(ir::ExprRef(ir::int_const(0))) : stand_in(body_.place(axis));
    if (axis != no_axis) number = number * stand_in(body_.extent(axis)) + place;
    places.push_back(place);
  }
  const ir::Scalar element = call.card().indexed(call, {number, places}, operands);
  out.value = stored(TESSERA_TRY(formula(element, type.dtype)), type.dtype, inputs);
  return out;
}

Result<RegionBuilder::Entry> RegionBuilder::reduction(const CallInfo& call, Value input,
                                                      const ValueType& type) {
  const op::ReductionBody& body = *call.card().reduction;
  const ValueId whole = TESSERA_TRY(element(input));
  const Dtype wide = wide_dtype(input.dtype());
  const auto opcode = combining_opcode(body, wide);
  if (!opcode) return not_fusible(cat(call.card().name, ": is not combined by one operation"));
  const auto axes = TESSERA_TRY(call.axes("axes", input.rank()));
  Entry out;
  SmallVector<AxisId, 4> reduced;
  const SmallVector<AxisId, 4> all = entries_[input.id].axes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (is_reduced && all[i] != no_axis) reduced.push_back(all[i]);
    if (!is_reduced) out.axes.push_back(all[i]);
    if (is_reduced && call.flag("keepdims")) out.axes.push_back(no_axis);
  }
  const ValueId mapped = TESSERA_TRY(formula(body.on_scalar.map(stand_in(whole)), wide));
  const Dtype accumulator = accumulator_dtype(*opcode, wide);
  ValueId total = body_.cast(mapped, accumulator);
  if (!reduced.empty()) {
    const auto known = std::find(reductions_.begin(), reductions_.end(), reduced);
    const auto number = static_cast<std::uint32_t>(known - reductions_.begin());
    if (known == reductions_.end()) reductions_.push_back(reduced);
    // A decomposition takes care of what has no elements itself.
    total = body_.reduction(*opcode, mapped, number, accumulator, body.needs_elements && depth_ == 0);
  } else if (*opcode == ScalarOpcode::add && ir::is_float(wide)) {  // one element is a sum too: 0 + -0.0 is 0
    total = TESSERA_TRY(formula(body.on_scalar.combine(body.on_scalar.init(), stand_in(total)), accumulator));
  }
  ir::Scalar count{ir::ExprRef(ir::int_const(1))};
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    const ir::Scalar size = stand_in(body_.extent(reduced[i]));
    count = i == 0 ? size : count * size;
  }
  const ir::Scalar as_number(ir::scalar_cast(accumulator, count.expr(Dtype::i64)));
  const ValueId value =
      TESSERA_TRY(formula(body.on_scalar.finish(stand_in(total), as_number), wide_dtype(type.dtype)));
  out.value = stored(value, type.dtype, {&input, 1});
  return out;
}

// ---- views

Result<RegionBuilder::Entry> RegionBuilder::view(const CallInfo& call, Value input, const ValueType& type) {
  const ViewMap map = view_map(call);
  const Entry& source = entries_[input.id];
  Entry out;
  if (map.kind == ViewKind::affine && source.view) {
    out.view = source.view;
    if (out.view->compose(map, type.rank())) return out;
  }
  if (map.kind == ViewKind::affine && !source.view && !source.reshaped)
    return view_of_computed(map, input, type);
  if (map.kind != ViewKind::same_order)
    return not_fusible(cat(call.card().name, ": cannot be written as an affine map of indices"));
  if (!source.view) {
    out.reshaped = source.reshaped.value_or(input.id);
    return out;
  }
  if (!source.view->is_whole() || source.view->is_reshaped)
    return not_fusible(cat(call.card().name, ": a reshape of a view"));
  out.view = InputView::whole(source.view->argument, type.rank());
  out.view->is_reshaped = true;
  for (const Dim& dim : type.shape) out.view->seen_as.push_back(dim.is_constant() ? dim.value() : -1);
  if (std::count(out.view->seen_as.begin(), out.view->seen_as.end(), -1) > 1)
    return not_fusible(cat(call.card().name, ": several sizes of ", type, " are symbols"));
  return out;
}

/// Axes in another order, new ones, and without those of size 1; what is computed stays where it is.
Result<RegionBuilder::Entry> RegionBuilder::view_of_computed(const ViewMap& map, Value input,
                                                             const ValueType& type) {
  const Entry& source = entries_[input.id];
  Entry out;
  out.value = source.value;
  out.axes = SmallVector<AxisId, 4>(type.rank(), no_axis);
  for (const Start& start : map.starts)
    if (start.value != 0 || start.from_end || !start.whole) return not_fusible("a part of a computed value");
  std::vector<bool> used(source.axes.size(), false);
  for (const Term& term : map.terms) {
    if (term.step != 1 || used[term.array_axis] || out.axes[term.axis] != no_axis)
      return not_fusible("a view of a computed value that moves its elements");
    used[term.array_axis] = true;
    out.axes[term.axis] = source.axes[term.array_axis];
  }
  for (std::size_t i = 0; i < type.rank(); ++i)
    if (out.axes[i] == no_axis) out.axes[i] = new_axis(type.shape[i]);
  return out;
}

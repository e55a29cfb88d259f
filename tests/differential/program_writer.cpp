#include "tests/differential/program_writer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/base/text.h"
#include "tessera/compile/constants.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tests/support/compare.h"

using namespace tessera;
using namespace tessera::differential;
using ir::Dtype;
using op::Value;
using op::ValueType;

namespace {

constexpr std::int64_t most_elements = 600;
/// Of a result that goes on: the largest number, and how wide its bounds may be beside that.
constexpr double largest_followed = 0x1p20;
constexpr double widest_followed = 0x1p-4;

bool is_small(const ir::Shape& shape) {
  const auto count = ir::element_count(shape);
  return !count || *count <= most_elements;
}

/// Ops whose results jump where operands change little, or are no floats although operands are.
bool has_jumps(const op::Card& card, std::span<const Value> inputs, const op::ValueTypes& results) {
  static const std::set<std::string_view> jumping{"ceil", "floor", "floor_div", "fmod",
                                                  "mod",  "round", "sign",      "trunc",
                                                  "sort", "topk",  "max_pool",  "own_split"};
  const bool from_floats =
      std::any_of(inputs.begin(), inputs.end(), [](Value v) { return ir::is_float(v.dtype()); });
  const bool to_others =
      std::any_of(results.begin(), results.end(), [](const auto& type) { return !ir::is_float(type.dtype); });
  return from_floats && (to_others || jumping.count(card.name) != 0);
}

template <class F>
void substitute(ir::Shape& shape, F&& symbol) {
  for (ir::Dim& dim : shape) dim = ir::substitute(dim, symbol);
}

const Size* find_size(const Scope& scope, const ir::Var& var) {
  for (const Size& size : scope.sizes)
    if (size.var->name == var.name) return &size;
  return nullptr;
}

auto symbols_of(const Scope& scope) {
  return [&](const ir::Var& var) -> std::optional<ir::Dim> {
    const Size* size = find_size(scope, var);
    return size == nullptr ? std::nullopt : std::optional(ir::simplified(ir::ExprRef(size->var)));
  };
}

auto numbers_of(const Scope& scope) {
  return [&](const ir::Var& var) -> std::optional<ir::Dim> {
    const Size* size = find_size(scope, var);
    return size == nullptr || !size->number ? std::nullopt : std::optional(ir::Dim(*size->number));
  };
}

bool mentions_learned(const ValueType& type, const Scope& scope) {
  bool out = false;
  for (ir::Dim dim : type.shape)
    (void)ir::substitute(dim, [&](const ir::Var& var) -> std::optional<ir::Dim> {
      const Size* size = find_size(scope, var);
      out = out || (size != nullptr && size->is_learned);
      return std::nullopt;
    });
  return out;
}

}  // namespace

Dtype ProgramWriter::any_dtype(op::DtypeSet set) {
  std::vector<Dtype> list;
  for (const Dtype dtype : ir::all_dtypes())
    if (set.contains(dtype)) list.push_back(dtype);
  // Half of all values have one dtype, so that they meet.
  if (random_.one_in(2) && set.contains(Dtype::f32)) return Dtype::f32;
  return list.empty() ? Dtype::f32 : random_.any(list);
}

// ---- sizes

void ProgramWriter::add_size(Scope& scope, const std::string& name, std::int64_t number) {
  (void)scope.builder.size(name);
  scope.sizes.push_back({scope.builder.size_symbols().back(), number});
  out_.sizes.push_back(number);
}

void ProgramWriter::hand_sizes(const Scope& from, Scope& to) {
  for (const Size& size : from.sizes) {
    (void)to.builder.size(size.var->name);
    to.sizes.push_back({to.builder.size_symbols().back(), size.number, size.is_learned});
  }
}

std::vector<ir::ExprRef> ProgramWriter::handed_sizes(const Scope& scope) {
  std::vector<ir::ExprRef> out;
  for (const Size& size : scope.sizes) out.emplace_back(size.var);
  return out;
}

ValueType ProgramWriter::in_scope(ValueType type, const Scope& scope) {
  substitute(type.shape, symbols_of(scope));
  return type;
}

op::Attributes ProgramWriter::in_scope(op::Attributes attributes, const Scope& scope) {
  for (auto& [name, entry] : attributes.mutable_entries())
    if (auto* shape = std::get_if<ir::Shape>(&entry)) substitute(*shape, symbols_of(scope));
  return attributes;
}

std::optional<ValueType> ProgramWriter::with_numbers(ValueType type, const Scope& scope) {
  substitute(type.shape, numbers_of(scope));
  return ir::constant_shape(type.shape) ? std::optional(type) : std::nullopt;
}

// ---- operands

Value ProgramWriter::input(Scope& scope, const op::HostTensor& tensor, const ValueType& type) {
  out_.inputs.push_back(tensor);
  const Value out = scope.builder.parameter(cat("x", out_.inputs.size()), type);
  set_tensor(scope, out, tensor);
  return out;
}

Value ProgramWriter::constant(Scope& scope, const op::HostTensor& tensor) {
  const Value out =
      scope.builder.import(compiler::dense_constant(tensor), {tensor.dtype(), ir::shape_of(tensor.shape())});
  set_tensor(scope, out, tensor);
  return out;
}

Value ProgramWriter::leaf(Scope& scope, const ValueType& type, double low, double high) {
  if (type.rank() == 0 && random_.one_in(2)) return scalar_leaf(scope, type.dtype, low, high);
  const bool is_symbolic = !ir::constant_shape(type.shape);
  const auto numbers = with_numbers(type, scope);
  if (is_symbolic && (!scope.is_outer || !numbers || mentions_learned(type, scope)))
    return call(scope, "broadcast_to", {scalar_leaf(scope, type.dtype, low, high)}, {{"shape", type.shape}});
  const auto tensor = random_.tensor(*numbers, low, high, !follows());
  const bool is_input = scope.is_outer && (is_symbolic || !random_.one_in(3));
  return is_input ? input(scope, tensor, type) : constant(scope, tensor);
}

Value ProgramWriter::scalar_leaf(Scope& scope, Dtype dtype, double low, double high) {
  const bool may_change = ir::is_float(dtype) || dtype == Dtype::i64 || dtype == Dtype::i32;
  const auto tensor = random_.tensor({dtype, {}}, low, high, false);
  Value out;
  if (may_change && random_.one_in(2)) {
    slots_.push_back({ir::is_float(dtype), low, high});
    const double first = fixture::doubles(tensor)[0];
    const auto slot = static_cast<std::uint32_t>(out_.first_parameters.size());
    out_.first_parameters.push_back(first);
    out = scope.builder.import(ir::param(slot, dtype, first), {dtype, {}});
  } else {
    const auto dense = compiler::dense_constant(tensor);
    out =
        scope.builder.import(compiler::constant_operand(compiler::constant_element(*dense, 0)), {dtype, {}});
  }
  set_tensor(scope, out, tensor);
  return out;
}

double ProgramWriter::slot_number(const SlotRange& range) {
  const double number = random_.number(range.low, range.high);
  return range.is_float ? number : std::floor(number);
}

void ProgramWriter::set_second_parameters() {
  for (const SlotRange& range : slots_) out_.second_parameters.push_back(slot_number(range));
}

Value ProgramWriter::number(Scope& scope, double number, Dtype dtype) {
  const Value out = scope.builder.constant(number, dtype);
  op::HostTensor tensor = value_or_throw(op::HostTensor::allocate(dtype, {}));
  op::storer<double>(dtype)(tensor.array().data, 0, 1, 1, &number);
  set_tensor(scope, out, std::move(tensor));
  return out;
}

Value ProgramWriter::value(Scope& scope, const ValueType& type, double low, double high, Operands operands) {
  std::vector<Value> same, near;
  for (Value v : scope.pool) {
    if (operands == Operands::exact && !is_exact(scope, v)) continue;
    if (v.type() == type) same.push_back(v);
    if (v.dtype() == type.dtype && v.shape() != type.shape) near.push_back(v);
  }
  if (!same.empty() && !random_.one_in(4)) return random_.any(same);
  if (!near.empty() && random_.one_in(2)) {
    const Value v = random_.any(near);
    for (const char* op : {"reshape", "broadcast_to"})
      if (Value out = call(scope, op, {v}, {{"shape", type.shape}})) return out;
  }
  return leaf(scope, type, low, high);
}

// ---- calls

Value ProgramWriter::call(Scope& scope, std::string_view op, std::vector<Value> inputs,
                          op::Attributes attributes) {
  const auto results = call_all(scope, op, std::move(inputs), std::move(attributes));
  return results.empty() ? Value() : results[0];
}

op::Values ProgramWriter::call_all(Scope& scope, std::string_view op, std::vector<Value> inputs,
                                   op::Attributes attributes) {
  const op::Card& card = *op::find_card(op);
  op::ValueTypes types;
  for (const Value input : inputs) {
    if (!input) return {};
    types.push_back(input.type());
  }
  const auto complete = op::complete_attributes(card, attributes);
  if (!complete) return {};
  const auto results = op::infer(card, types, *complete);
  if (!results ||
      !std::all_of(results->begin(), results->end(), [](const auto& type) { return is_small(type.shape); }))
    return {};
  std::optional<Results> tensors;
  if (follows()) {
    const auto exact = [&](Value v) { return is_exact(scope, v); };
    if (has_jumps(card, inputs, *results) && !std::all_of(inputs.begin(), inputs.end(), exact)) return {};
    tensors = followed_call(scope, card, inputs, *complete);
    if (!tensors) return {};
  }
  const op::Values out = scope.builder.call_all(op, inputs, std::move(attributes));
  for (std::size_t i = 0; tensors && i < out.size(); ++i) set_tensor(scope, out[i], (*tensors)[i]);
  return out;
}

op::Values ProgramWriter::write_nonzero(Scope& scope, Value of) {
  const op::Card& card = *op::find_card("nonzero");
  std::optional<Results> tensors;
  if (follows() && !(is_exact(scope, of) && (tensors = followed_call(scope, card, {&of, 1}, {})))) return {};
  const ValueType type{Dtype::i64, {ir::product(of.shape()), static_cast<std::int64_t>(of.rank())}};
  const std::string name = cat("k", ++learned_);
  const auto places = ir::variable(cat("places", learned_), op::ir_type(type));
  const auto count = ir::variable(name, ir::scalar_type(Dtype::i64));
  scope.builder.adopt(ir::assign({places, count}, ir::call("nonzero", {scope.builder.expr(of)})));
  const Value all = scope.builder.import(places, type);
  Size size{count, std::nullopt, true};
  if (tensors) {
    set_tensor(scope, all, (*tensors)[0]);
    size.number = (*tensors)[1].values<std::int64_t>()[0];
  }
  scope.sizes.push_back(size);
  const Value rows =
      call(scope, "slice", {all}, {{"starts", ir::Shape{0}}, {"stops", ir::Shape{ir::simplified(count)}}});
  return {rows, call(scope, "gather_nd", {of, rows})};
}

void ProgramWriter::keep(Scope& scope, const op::Values& values) {
  for (const Value v : values)
    if (v) scope.pool.push_back(v);
}

// ---- following

const op::HostTensor* ProgramWriter::tensor_of(const Scope& scope, Value value) const {
  const auto found = tensors_.find(scope.builder.expr(value).get());
  return found == tensors_.end() ? nullptr : &found->second.tensor;
}

void ProgramWriter::set_tensor(const Scope& scope, Value value, op::HostTensor tensor) {
  const ir::ExprRef& expr = scope.builder.expr(value);
  if (follows()) tensors_.insert_or_assign(expr.get(), Followed{expr, std::move(tensor)});
}

bool ProgramWriter::is_exact(const Scope& scope, Value value) const {
  if (!follows()) return true;
  const op::HostTensor* tensor = tensor_of(scope, value);
  return tensor != nullptr && wide_.known(tensor->array()).is_exact();
}

op::HostTensor ProgramWriter::as_carried(const op::HostTensor& tensor) {
  op::HostTensor out = fixture::converted(tensor, tensor.dtype());
  if (!ir::is_float(out.dtype())) return out;
  Bounded known = wide_.known(tensor.array());
  for (Interval& bound : known.bounds) bound = rounded(bound, 1, precision_of(out.dtype()));
  wide_.remember(out, std::move(known));
  return out;
}

bool ProgramWriter::is_judged(const Results& results) const {
  for (const op::HostTensor& result : results) {
    const Bounded known = wide_.known(result.array());
    if (!ir::is_float(result.dtype()) && !known.is_exact()) return false;
    if (!ir::is_float(result.dtype())) continue;
    double largest = 1;
    for (const Interval& bound : known.bounds) {
      if (bound.may_be_nan || !(bound.magnitude() <= largest_followed)) return false;
      largest = std::max(largest, bound.magnitude());
    }
    for (const Interval& bound : known.bounds)
      if (bound.high - bound.low > widest_followed * largest) return false;
  }
  return true;
}

std::optional<Results> ProgramWriter::followed_call(const Scope& scope, const op::Card& card,
                                                    std::span<const Value> inputs,
                                                    const op::Attributes& attributes) {
  std::vector<op::Array> arrays;
  for (const Value input : inputs) {
    const op::HostTensor* tensor = tensor_of(scope, input);
    if (tensor == nullptr) return std::nullopt;
    arrays.push_back(tensor->array());
  }
  op::Attributes numbers = attributes;
  for (auto& [name, entry] : numbers.mutable_entries())
    if (auto* shape = std::get_if<ir::Shape>(&entry)) substitute(*shape, numbers_of(scope));
  auto results = wide_.run(card, arrays, numbers);
  return results && is_judged(*results) ? std::optional(*std::move(results)) : std::nullopt;
}

bool ProgramWriter::follow_last(Scope& scope, const std::vector<Value>& operands, const op::Values& results) {
  if (!follows()) return true;
  const auto& statement = scope.builder.statements().back();
  auto draft = std::make_unique<ir::Function>();
  std::vector<op::HostTensor> inputs;
  std::vector<std::int64_t> sizes;
  for (const Size& size : scope.sizes) {
    draft->dims.push_back(size.var);
    sizes.push_back(size.number.value_or(0));
  }
  std::set<const ir::Var*> seen;
  for (const Value operand : operands) {
    const auto* var = ir::as<ir::Var>(scope.builder.expr(operand));
    if (var == nullptr || !seen.insert(var).second) continue;
    draft->params.emplace_back(var);
    inputs.push_back(*tensor_of(scope, operand));
  }
  draft->body = {statement};
  draft->results.assign(statement->targets.begin(), statement->targets.end());
  const auto run =
      op::interpret(*ir::seal(std::move(draft)), inputs,
                    {.run_call = [&](const auto& card, auto in,
                                     const auto& attributes) { return wide_.run(card, in, attributes); }},
                    sizes);
  if (!run || !is_judged(*run)) {
    (void)scope.builder.cut(scope.builder.statements().size() - 1);
    return false;
  }
  for (std::size_t i = 0; i < results.size(); ++i) set_tensor(scope, results[i], (*run)[i]);
  return true;
}

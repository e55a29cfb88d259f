#include "tests/differential/wide_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/ir/walk.h"
#include "tessera/op/body.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tests/differential/element_formula.h"
#include "tests/support/compare.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using namespace tessera::differential;
using op::Dtype;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Of a sum besides one for each term: what is scaled, joined and added behind it.
constexpr double units_of_sums = 8;

// ---- what kind of op it is

enum class Growth : std::uint8_t {
  elements,  ///< a formula of the elements at one place
  moves,     ///< elements change places
  rises,     ///< no result is less if no operand is; rounded once, or an element of an operand
  places,    ///< tells where elements are
  adds,      ///< sums of products of elements: no term is subtracted
  parts,     ///< a composite
  unknown,
};

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Growth growth_of_scatter(const op::Attributes& attributes) {
  const auto* reduction = attributes.find("reduction");
  const std::string text = reduction == nullptr ? "none" : std::get<std::string>(*reduction);
  if (text == "add" || text == "mul") return Growth::adds;
  return text == "max" || text == "min" ? Growth::rises : Growth::moves;
}

Growth growth_of(const op::Card& card, const op::Attributes& attributes) {
  const std::string_view name = card.name;
  if (card.pointwise != nullptr) return Growth::elements;
  if (is_any_of(name, {"scatter_elements", "scatter_nd"})) return growth_of_scatter(attributes);
  if (is_any_of(name, {"max", "min", "all", "any", "sort", "topk", "max_pool", "own_affine"}))
    return Growth::rises;
  if (is_any_of(name, {"argmax", "argmin", "nonzero"}) || card.traits.random) return Growth::places;
  if (is_any_of(name, {"sum", "mean", "l1_norm", "l2_norm", "prod", "cumsum", "cumprod", "matmul", "conv",
                       "conv_transpose", "conv_weight_gradient", "einsum", "avg_pool", "avg_pool_gradient",
                       "arange"}))
    return Growth::adds;
  const bool is_own = name.starts_with("own_");  // custom_ops.h
  if (card.view != nullptr || card.T.contains(Dtype::boolean) || is_own) return Growth::moves;
  return card.decompose != nullptr ? Growth::parts : Growth::unknown;
}

/// Sums whose terms have factors that are not 1, or more factors than operands.
bool has_other_factors(const op::Card& card, const op::Attributes& attributes) {
  if (is_any_of(card.name, {"mean", "l2_norm", "prod", "cumprod", "avg_pool", "avg_pool_gradient"}))
    return true;
  const auto* reduction = attributes.find("reduction");
  return reduction != nullptr && std::get<std::string>(*reduction) == "mul";
}

// ---- tensors

op::HostTensor f64_tensor(const op::Extents& shape, const std::vector<double>& values) {
  return op::HostTensor::of<double>(Dtype::f64, shape, values);
}

/// Floats as f64.
op::HostTensor widened(const op::HostTensor& tensor) {
  return ir::is_float(tensor.dtype()) ? fixture::converted(tensor, Dtype::f64) : tensor;
}

op::Attributes widened(const op::Attributes& attributes) {
  op::Attributes out = attributes;
  for (auto& [name, value] : out.mutable_entries())
    if (auto* dtype = std::get_if<Dtype>(&value); dtype != nullptr && ir::is_float(*dtype))
      *dtype = Dtype::f64;
  return out;
}

op::HostTensor copy_of(const op::Array& array) {
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(array.dtype, array.shape()));
  op::copy_elements(array, out.array());
  return out;
}

/// A bound of each element as a tensor that an op takes: of floats f64, of truth values such. Integers stay.
op::HostTensor tensor_of(const Bounded& from, const std::function<double(const Interval&, double)>& f) {
  const Dtype dtype = from.value.dtype();
  if (!ir::is_float(dtype) && dtype != Dtype::boolean) return from.value;
  const auto values = fixture::doubles(from.value);
  std::vector<double> out;
  for (std::size_t k = 0; k < values.size(); ++k) out.push_back(f(from.bounds[k], values[k]));
  return fixture::converted(f64_tensor(from.value.shape(), out), dtype);
}

/// The call on something made of each operand.
Result<Results> run_on(const op::Card& card, std::span<const Bounded> inputs,
                       const op::Attributes& attributes,
                       const std::function<double(const Interval&, double)>& f) {
  Results held;
  for (const Bounded& input : inputs) held.push_back(tensor_of(input, f));
  std::vector<op::Array> arrays;
  for (const op::HostTensor& tensor : held) arrays.push_back(tensor.array());
  return op::run_reference(card, arrays, attributes);
}

double radius(const Interval& bound, double value) {
  return bound.has_numbers() && !bound.may_be_nan ? std::max(bound.high - value, value - bound.low)
                                                  : infinity;
}

bool is_exact(std::span<const Bounded> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Bounded& input) { return input.is_exact(); });
}

/// Whether what says places and sizes is exact.
bool has_exact_integers(std::span<const Bounded> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Bounded& input) {
    return ir::is_float(input.value.dtype()) || input.value.dtype() == Dtype::boolean || input.is_exact();
  });
}

using Call = WideRun::Call;
using Bounds = WideRun::Bounds;

std::size_t size_of(const op::HostTensor& tensor) { return static_cast<std::size_t>(tensor.size()); }

Bounds all_open(const Results& results) {
  Bounds out;
  for (const op::HostTensor& result : results) out.emplace_back(size_of(result), anything());
  return out;
}

Bounds all_exact(const Results& results) {
  Bounds out;
  for (const op::HostTensor& result : results) out.push_back(exact_tensor(result).bounds);
  return out;
}

// ---- places and orders

std::vector<Interval> between(const op::HostTensor& low, const op::HostTensor& high,
                              const op::HostTensor* may_be_nan) {
  const auto lows = fixture::doubles(low), highs = fixture::doubles(high);
  const auto nans = may_be_nan == nullptr ? std::vector<double>(lows.size()) : fixture::doubles(*may_be_nan);
  std::vector<Interval> out;
  for (std::size_t k = 0; k < lows.size(); ++k) out.push_back({lows[k], highs[k], nans[k] != 0});
  return out;
}

/// An op that gives some of its operand's elements, by the lowest they may be and the highest.
Result<Bounds> moved(const Call& call, Growth growth) {
  if (is_exact(call.inputs)) return all_exact(call.narrow);
  const bool any_nan = std::any_of(call.inputs.begin(), call.inputs.end(), [](const Bounded& input) {
    return std::any_of(input.bounds.begin(), input.bounds.end(), [](const auto& x) { return x.may_be_nan; });
  });
  if (!has_exact_integers(call.inputs) || (any_nan && growth == Growth::rises)) return all_open(call.narrow);
  const auto at = [&](const auto& f) { return run_on(call.card, call.inputs, call.attributes, f); };
  const Results low = TESSERA_TRY(at([](const Interval& x, double) { return x.low; }));
  const Results high = TESSERA_TRY(at([](const Interval& x, double) { return x.high; }));
  Results nan;
  if (any_nan) nan = TESSERA_TRY(at([](const Interval& x, double) { return x.may_be_nan ? 1.0 : 0.0; }));
  Bounds out = all_open(call.narrow);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Dtype dtype = call.narrow[i].dtype();
    if (!ir::is_float(dtype) && dtype != Dtype::boolean) continue;
    out[i] = between(low[i], high[i], any_nan ? &nan[i] : nullptr);
    if (growth == Growth::rises && ir::is_float(dtype))
      for (Interval& bound : out[i]) bound = stored(bound, precision_of(dtype));
  }
  return out;
}

// ---- sums of products

/// The largest power of two of which all elements are multiples, at most 1.
double grid_of(const Bounded& input) {
  double grid = 1;
  for (const double value : fixture::doubles(input.value)) {
    if (value == 0 || !std::isfinite(value)) continue;
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    const auto digits = static_cast<std::uint64_t>(std::abs(std::ldexp(fraction, 53)));
    grid = std::min(grid, std::ldexp(1.0, exponent - 53 + std::countr_zero(digits)));
  }
  return grid;
}

/// What every term of the sums is a multiple of, if no correct way to add them rounds; else 0.
double common_grid(const Call& call) {
  if (!is_exact(call.inputs) || has_other_factors(call.card, call.attributes)) return 0;
  double out = 1;
  for (const Bounded& input : call.inputs)
    if (ir::is_float(input.value.dtype())) out *= grid_of(input);
  return out;
}

/// How many terms a sum has, at most, and what else is rounded in it.
Result<double> roundings_of_sum(const Call& call, const op::HostTensor& result) {
  const auto ones = TESSERA_TRY(
      run_on(call.card, call.inputs, call.attributes, [](const Interval&, double) { return 1.0; }));
  double out = 0;
  for (const double count : fixture::doubles(ones[0])) out = std::max(out, count);
  std::size_t largest = 0;
  for (const Bounded& input : call.inputs) largest = std::max(largest, input.bounds.size());
  const std::size_t along = largest / std::max<std::size_t>(1, size_of(result));
  return units_of_sums + out + static_cast<double>(along);
}

Result<Bounds> summed(const Call& call, const op::HostTensor& value) {
  const Dtype dtype = call.narrow[0].dtype();
  if (!ir::is_float(dtype)) return is_exact(call.inputs) ? all_exact(call.narrow) : all_open(call.narrow);
  if (!has_exact_integers(call.inputs)) return all_open(call.narrow);
  const auto at = [&](const auto& f) { return run_on(call.card, call.inputs, call.attributes, f); };
  const auto sizes = TESSERA_TRY(at([](const Interval&, double v) { return std::abs(v); }));
  const auto most = TESSERA_TRY(at([](const Interval& x, double v) { return std::abs(v) + radius(x, v); }));
  const Precision &computing = computing_precision(dtype), &own = precision_of(dtype);
  const double units = TESSERA_TRY(roundings_of_sum(call, value)), grid = common_grid(call);
  const bool has_root = call.card.name == "l2_norm";
  const double room = has_root ? std::sqrt(computing.largest) : computing.largest;
  const double lost = units * (has_root ? std::sqrt(computing.smallest) : computing.smallest);
  const auto values = fixture::doubles(value), lows = fixture::doubles(sizes[0]),
             highs = fixture::doubles(most[0]);
  Bounds out(1);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const bool is_exact = grid > 0 && lows[k] * own.unit <= grid && highs[k] <= own.largest;
    const double error = highs[k] - lows[k] + units * computing.unit * highs[k] + lost;
    if (is_exact)
      out[0].push_back(exactly(values[k]));
    else
      out[0].push_back(highs[k] < room ? stored(around(values[k], error), own) : anything());
  }
  return out;
}

// ---- elements

/// The offsets of the elements of an operand that meet those of the result.
std::vector<std::int64_t> broadcast_offsets(const op::Extents& from, const op::Extents& to) {
  const op::Layout layout = op::broadcast_layout(op::contiguous(from), to);
  std::vector<std::int64_t> out;
  op::for_each_offset<1>(to, {&layout}, [&](const auto& offsets) { out.push_back(offsets[0]); });
  return out;
}

Interval converted(const Interval& from, double given, Dtype to) {
  if (ir::is_float(to)) return stored(from, precision_of(to));
  if (from.is_exact()) return exactly(given);
  if (from.may_be_nan) return anything();
  if (to == Dtype::boolean) return from.low <= 0 && from.high >= 0 ? Interval{0, 1} : exactly(1);
  const double low = std::trunc(from.low);
  return std::isfinite(low) && low == std::trunc(from.high) ? exactly(low) : anything();
}

Bounds cast_elements(const Call& call) {
  const Dtype from = call.inputs[0].value.dtype(), to = call.narrow[0].dtype();
  const auto given = fixture::doubles(call.narrow[0]);
  Bounds out(1);
  for (std::size_t k = 0; k < given.size(); ++k) {
    Interval x = call.inputs[0].bounds[k];
    if (!ir::is_float(from) && std::abs(x.low) > 0x1p53) x = rounded(x, 1, precision_of(Dtype::f64));
    out[0].push_back(converted(x, given[k], to));
  }
  return out;
}

bool takes_intervals(const Call& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(), [](const Bounded& input) {
    return ir::is_float(input.value.dtype()) || input.value.dtype() == Dtype::boolean;
  });
}

/// Each element of the result by `f` of those of the operands there.
std::vector<Interval> elementwise(const Call& call,
                                  const std::function<Interval(std::span<const Interval>, std::size_t)>& f) {
  const op::HostTensor& result = call.narrow[0];
  std::vector<std::vector<std::int64_t>> offsets;
  for (const Bounded& input : call.inputs)
    offsets.push_back(broadcast_offsets(input.value.shape(), result.shape()));
  std::vector<Interval> out, operands(call.inputs.size());
  for (std::size_t k = 0; k < size_of(result); ++k) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      operands[i] = call.inputs[i].bounds[static_cast<std::size_t>(offsets[i][k])];
    out.push_back(f(operands, k));
  }
  return out;
}

Bounds formula_elements(const Call& call) {
  const Dtype dtype = call.narrow[0].dtype();
  std::vector<Dtype> dtypes;
  for (const Bounded& input : call.inputs) dtypes.push_back(input.value.dtype());
  ElementFormula formula(call.card, dtypes);
  const Precision& computing = computing_precision(dtype);
  return {elementwise(call, [&](std::span<const Interval> x, std::size_t) {
    const Interval out = formula(x, computing);
    return ir::is_float(dtype) ? stored(out, precision_of(dtype)) : out;
  })};
}

Bounds element_bounds(const Call& call) {
  if (call.card.name == "cast") return cast_elements(call);
  if (takes_intervals(call)) return formula_elements(call);
  if (is_exact(call.inputs)) return all_exact(call.narrow);
  const auto given = fixture::doubles(call.narrow[0]);
  return {elementwise(call, [&](std::span<const Interval> x, std::size_t k) {
    const bool exact = std::all_of(x.begin(), x.end(), [](const Interval& one) { return one.is_exact(); });
    return exact ? exactly(given[k]) : anything();
  })};
}

/// What one or the other allows.
Result<Bounds> either(Result<Bounds> a, const Result<Bounds>& b) {
  if (!a || !b) return a ? b : a;
  for (std::size_t i = 0; i < a->size(); ++i)
    for (std::size_t k = 0; k < (*a)[i].size() && k < (*b)[i].size(); ++k)
      (*a)[i][k] = hull((*a)[i][k], (*b)[i][k]);
  return a;
}

/// The results with the bounds that are known of them, or with none.
std::vector<Bounded> joined(const Results& narrow, Result<Results> values, Result<Bounds> bounds) {
  bool fits = values.ok() && bounds.ok() && values->size() == narrow.size();
  for (std::size_t i = 0; fits && i < narrow.size(); ++i)
    fits = (*values)[i].shape() == narrow[i].shape() && (*bounds)[i].size() == size_of(narrow[i]);
  std::vector<Bounded> out;
  Bounds open = all_open(narrow);
  for (std::size_t i = 0; i < narrow.size(); ++i)
    out.push_back({widened(fits ? (*values)[i] : narrow[i]), std::move(fits ? (*bounds)[i] : open[i])});
  return out;
}

}  // namespace

bool Bounded::is_exact() const {
  return std::all_of(bounds.begin(), bounds.end(), [](const Interval& bound) { return bound.is_exact(); });
}

Bounded tessera::differential::exact_tensor(const op::HostTensor& tensor) {
  Bounded out{.value = widened(tensor), .bounds = {}};
  for (const double value : fixture::doubles(tensor)) out.bounds.push_back(exactly(value));
  return out;
}

Bounded WideRun::known(const op::Array& array) const {
  const auto found = array.size() == 0 ? known_.end() : known_.find(array.data);
  return found == known_.end() ? exact_tensor(copy_of(array)) : found->second.known;
}

void WideRun::remember(const op::HostTensor& tensor, Bounded known) {
  if (tensor.size() == 0) return;  // has no place of its own
  if (tensor.dtype() == Dtype::boolean)
    for (Interval& bound : known.bounds) bound = {std::max(bound.low, 0.0), std::min(bound.high, 1.0)};
  if (tensor.size() == 1 && !ir::is_float(tensor.dtype()) && !known.is_exact()) may_go_otherwise_ = true;
  known_.insert_or_assign(tensor.array().data, Entry{tensor, std::move(known)});
}

Result<Results> WideRun::run(const op::Card& card, std::span<const op::Array> arrays,
                             const op::Attributes& attributes) {
  Results narrow = TESSERA_TRY(op::run_reference(card, arrays, attributes));
  std::vector<Bounded> inputs;
  std::vector<op::Array> wide;
  for (const op::Array& array : arrays) inputs.push_back(known(array));
  for (const Bounded& input : inputs) wide.push_back(input.value.array());
  const op::Attributes as_f64 = widened(attributes);
  const Call call{card, inputs, as_f64, narrow};
  const Growth growth = growth_of(card, attributes);
  // What only takes or places exact elements rounds nothing; and random numbers of another dtype are others.
  const bool is_same = is_exact(inputs) && (growth == Growth::moves || growth == Growth::places);
  Result<Results> values = is_same ? Result<Results>(narrow) : op::run_reference(card, wide, as_f64);
  Result<Bounds> bounds = all_open(narrow);
  if (is_same)
    bounds = all_exact(narrow);
  else if (growth == Growth::elements)
    bounds = element_bounds(call);
  else if (growth == Growth::moves || growth == Growth::rises)
    bounds = moved(call, growth);
  else if (growth == Growth::adds && values)
    bounds = summed(call, (*values)[0]);
  else if (growth == Growth::parts && values)
    bounds = by_parts(call, arrays, attributes, *values);
  if (growth == Growth::elements && card.decompose != nullptr && values)
    bounds = either(std::move(bounds), by_parts(call, arrays, attributes, *values));
  auto known = joined(narrow, std::move(values), std::move(bounds));
  for (std::size_t i = 0; i < narrow.size(); ++i) remember(narrow[i], std::move(known[i]));
  return narrow;
}

/// By the parts, or as a whole: what that gives is one of the results that are right.
Result<Bounds> WideRun::by_parts(const Call& call, std::span<const op::Array> arrays,
                                 const op::Attributes& attributes, const Results& whole) {
  op::IrBuilder builder;
  op::Values values;
  op::ValueTypes types;
  Results copies;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    types.push_back({arrays[i].dtype, ir::shape_of(arrays[i].shape())});
    values.push_back(builder.parameter("x", types.back()));
    copies.push_back(copy_of(arrays[i]));
    remember(copies.back(), call.inputs[i]);
  }
  const op::Values results = call.card.decompose(builder, op::CallInfo(call.card, types, attributes), values);
  const auto function = TESSERA_TRY(builder.function("parts", results));
  const auto narrow = TESSERA_TRY(op::interpret(
      *function, copies, {.run_call = [&](const auto& part, auto operands, const auto& settings) {
        return run(part, operands, settings);
      }}));
  Bounds out;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    out.push_back(known(narrow[i].array()).bounds);
    if (out[i].size() != size_of(whole[i]) || !ir::is_float(whole[i].dtype())) continue;
    const auto values_of_whole = fixture::doubles(whole[i]);
    for (std::size_t k = 0; k < out[i].size(); ++k)
      out[i][k] = hull(out[i][k], stored(exactly(values_of_whole[k]), precision_of(call.narrow[i].dtype())));
  }
  return out;
}

// ---- the judge

namespace {

/// Whether its way through the program depends on numbers.
bool has_choices(const ir::Function& function) {
  for (const ir::Function* below : ir::functions_below(function))
    for (const auto& statement : below->body) {
      const bool is_straight = ir::is<ir::Call>(statement->value) || ir::is<ir::Tuple>(statement->value) ||
                               ir::is<ir::Item>(statement->value) || ir::is<ir::Invoke>(statement->value);
      if (!is_straight || ir::is<ir::ScalarType>(statement->targets.back()->type)) return true;
    }
  return false;
}

bool is_loose(const Interval& bound, double largest) {
  if (!bound.has_numbers()) return false;
  return !(bound.high - bound.low <= 2 * std::max(largest, 0x1p-100)) && bound.low != bound.high;
}

}  // namespace

WideJudge::WideJudge(const Program& program, std::span<const double> parameters) {
  WideRun run;
  const auto bits = fixture::slot_bits(*program.function, parameters);
  const auto results =
      op::interpret(*program.function, program.inputs,
                    {.parameters = bits,
                     .run_call = [&](const auto& card, auto inputs,
                                     const auto& attributes) { return run.run(card, inputs, attributes); }},
                    program.sizes);
  if (!results) return;
  for (const op::HostTensor& result : *results) results_.push_back(run.known(result.array()));
  is_decided_ = !run.may_go_otherwise() || !has_choices(*program.function);
}

std::optional<std::string> WideJudge::outside(const Results& got) const {
  if (!is_decided_) return std::nullopt;
  if (got.size() != results_.size()) return cat(got.size(), " results, expected ", results_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const Bounded& known = results_[i];
    if (got[i].shape() != known.value.shape())
      return cat("result ", i, " has sizes [", join(got[i].shape(), ", "), "], in f64 [",
                 join(known.value.shape(), ", "), "]");
    for (std::size_t k = 0; k < known.bounds.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      const auto value = fixture::element(got[i].array(), at),
                 wide = fixture::element(known.value.array(), at);
      const Interval& bound = known.bounds[k];
      if (!ir::is_float(value.dtype)) {
        const bool is_right = bound.is_exact() ? value.integer == wide.integer
                                               : bound.contains(static_cast<double>(value.integer));
        if (!is_right)
          return cat("element ", k, " of result ", i, " is ", value.integer, ", in f64 ", wide.integer);
      } else if (!bound.contains(value.number)) {
        return cat("element ", k, " of result ", i, " is ", value.number, ", in f64 ", wide.number,
                   ", which roundings move from ", bound.low, " to ", bound.high);
      }
    }
  }
  return std::nullopt;
}

bool WideJudge::is_vacuous() const {
  if (!is_decided_) return true;
  std::size_t elements = 0;
  for (const Bounded& known : results_) {
    double largest = 0;
    elements += known.bounds.size();
    for (const double value : fixture::doubles(known.value))
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (const Interval& bound : known.bounds)
      if (!is_loose(bound, largest)) return false;
  }
  return elements > 0;
}

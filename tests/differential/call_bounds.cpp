#include "tests/differential/call_bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "tessera/op/body.h"
#include "tests/differential/element_formula.h"
#include "tests/support/compare.h"

using namespace tessera;
using namespace tessera::differential;
using op::Dtype;

namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();
/// Of a sum besides one for each term: what is scaled, joined and added behind it.
constexpr double units_of_call_sums = 8;

// ---- what kind of op it is

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Growth growth_of_scatter(const op::Attributes& attributes) {
  const auto* reduction = attributes.find("reduction");
  const std::string text = reduction == nullptr ? "none" : std::get<std::string>(*reduction);
  if (text == "add" || text == "mul") return Growth::adds;
  return text == "max" || text == "min" ? Growth::rises : Growth::moves;
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
                                                  : no_bound;
}

/// Whether what says places and sizes is exact.
bool has_exact_integers(std::span<const Bounded> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Bounded& input) {
    return ir::is_float(input.value.dtype()) || input.value.dtype() == Dtype::boolean || input.is_exact();
  });
}

std::size_t size_of(const op::HostTensor& tensor) { return static_cast<std::size_t>(tensor.size()); }

// ---- places and orders

std::vector<Interval> between(const op::HostTensor& low, const op::HostTensor& high,
                              const op::HostTensor* may_be_nan) {
  const auto lows = fixture::doubles(low), highs = fixture::doubles(high);
  const auto nans = may_be_nan == nullptr ? std::vector<double>(lows.size()) : fixture::doubles(*may_be_nan);
  std::vector<Interval> out;
  for (std::size_t k = 0; k < lows.size(); ++k) out.push_back({lows[k], highs[k], nans[k] != 0});
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
  return units_of_call_sums + out + static_cast<double>(along);
}

// ---- elements

/// The offsets of the elements of an operand that meet those of the result.
std::vector<std::int64_t> broadcast_offsets(const op::Extents& from, const op::Extents& to) {
  const op::Layout layout = op::broadcast_layout(op::contiguous(from), to);
  std::vector<std::int64_t> out;
  op::for_each_offset<1>(to, {&layout}, [&](const auto& offsets) { out.push_back(offsets[0]); });
  return out;
}

/// As `cast` does.
op::SignedWide as_integer(double value, Dtype dtype) {
  std::byte memory[8];
  op::storer<double>(dtype)(memory, 0, 1, 1, &value);
  op::SignedWide out;
  op::loader<op::SignedWide>(dtype)(memory, 0, 1, 1, &out);
  return out;
}

Interval converted(const Interval& from, double given, Dtype to) {
  if (ir::is_float(to)) return stored(from, precision_of(to));
  if (from.is_exact()) return exactly(given);
  if (from.may_be_nan) return anything();
  if (to == Dtype::boolean) return from.low <= 0 && from.high >= 0 ? Interval{0, 1} : exactly(1);
  const auto low = as_integer(from.low, to);
  return low == as_integer(from.high, to) ? exactly(static_cast<double>(low.v)) : anything();
}

/// Integers to integers: what does not fit wraps around, and what is beyond 2^53 has no double of its own.
Interval wrapped(const Interval& from, double given, Dtype to) {
  if (from.is_exact()) return exactly(given);
  const bool fits = !from.may_be_nan && static_cast<double>(as_integer(from.low, to).v) == from.low &&
                    static_cast<double>(as_integer(from.high, to).v) == from.high;
  return fits && to != Dtype::boolean ? from : anything();
}

Bounds cast_elements(const Call& call) {
  const Dtype from = call.inputs[0].value.dtype(), to = call.narrow[0].dtype();
  const auto given = fixture::doubles(call.narrow[0]);
  Bounds out(1);
  for (std::size_t k = 0; k < given.size(); ++k) {
    Interval x = call.inputs[0].bounds[k];
    if (!ir::is_float(from) && !ir::is_float(to)) {
      out[0].push_back(wrapped(x, given[k], to));
      continue;
    }
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

}  // namespace

bool Bounded::is_exact() const {
  return std::all_of(bounds.begin(), bounds.end(), [](const Interval& bound) { return bound.is_exact(); });
}

Bounded tessera::differential::exact_tensor(const op::HostTensor& tensor) {
  Bounded out{.value = widened(tensor), .bounds = {}};
  for (const double value : fixture::doubles(tensor)) out.bounds.push_back(exactly(value));
  return out;
}

Growth tessera::differential::growth_of(const op::Card& card, const op::Attributes& attributes) {
  const std::string_view name = card.name;
  if (card.pointwise != nullptr) return Growth::elements;
  if (is_any_of(name, {"scatter_elements", "scatter_nd"})) return growth_of_scatter(attributes);
  if (is_any_of(name, {"max", "min", "all", "any", "sort", "topk", "max_pool", "own_affine"}))
    return Growth::rises;
  if (is_any_of(name, {"argmax", "argmin", "nonzero", "random_normal", "random_uniform"}))
    return Growth::places;
  if (is_any_of(name, {"sum", "mean", "l1_norm", "l2_norm", "prod", "cumsum", "cumprod", "matmul", "conv",
                       "conv_transpose", "conv_weight_gradient", "einsum", "avg_pool", "avg_pool_gradient",
                       "arange"}))
    return Growth::adds;
  const bool is_own = name.starts_with("own_");  // custom_ops.h
  if (card.view != nullptr || card.T.contains(Dtype::boolean) || is_own) return Growth::moves;
  return card.decompose != nullptr ? Growth::parts : Growth::unknown;
}

op::HostTensor tessera::differential::widened(const op::HostTensor& tensor) {
  return ir::is_float(tensor.dtype()) ? fixture::converted(tensor, Dtype::f64) : tensor;
}

op::Attributes tessera::differential::widened(const op::Attributes& attributes) {
  op::Attributes out = attributes;
  for (auto& [name, value] : out.mutable_entries())
    if (auto* dtype = std::get_if<Dtype>(&value); dtype != nullptr && ir::is_float(*dtype))
      *dtype = Dtype::f64;
  return out;
}

bool tessera::differential::is_exact(std::span<const Bounded> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const Bounded& input) { return input.is_exact(); });
}

Bounds tessera::differential::all_open(const Results& results) {
  Bounds out;
  for (const op::HostTensor& result : results) out.emplace_back(size_of(result), anything());
  return out;
}

Bounds tessera::differential::all_exact(const Results& results) {
  Bounds out;
  for (const op::HostTensor& result : results) out.push_back(exact_tensor(result).bounds);
  return out;
}

Result<Bounds> tessera::differential::moved_bounds(const Call& call, Growth growth) {
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

Result<Bounds> tessera::differential::sum_bounds(const Call& call, const op::HostTensor& value) {
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

Bounds tessera::differential::element_bounds(const Call& call) {
  if (call.card.name == "cast") return cast_elements(call);
  if (takes_intervals(call)) return formula_elements(call);
  if (is_exact(call.inputs)) return all_exact(call.narrow);
  const auto given = fixture::doubles(call.narrow[0]);
  return {elementwise(call, [&](std::span<const Interval> x, std::size_t k) {
    const bool exact = std::all_of(x.begin(), x.end(), [](const Interval& one) { return one.is_exact(); });
    return exact ? exactly(given[k]) : anything();
  })};
}

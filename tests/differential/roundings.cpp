#include "tests/differential/roundings.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tests/differential/random_values.h"
#include "tests/support/compare.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using namespace tessera::differential;
using op::Dtype;

namespace {

/// Runs that mostly suffice, and those made before a program is called wrong.
constexpr int first_runs = 3;
constexpr int most_runs = 48;
/// How many times as far as the runs lie apart an element may lie outside of them, and how many roundings.
constexpr double room = 8;
constexpr double roundings_allowed = 32;
/// By how many roundings a result is moved.
constexpr double roundings_moved = 2;

double unit_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 0x1p-52;
    case Dtype::f32:
      return 0x1p-23;
    case Dtype::f16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}

double largest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 0x1.fffffffffffffp1023;
    case Dtype::f32:
      return 0x1.fffffep127;
    case Dtype::f16:
      return 65504;
    default:
      return 0x1.fep127;
  }
}

double smallest_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 0x1p-1074;
    case Dtype::f32:
      return 0x1p-149;
    case Dtype::f16:
      return 0x1p-24;
    default:
      return 0x1p-133;
  }
}

op::HostTensor tensor_of(const std::vector<double>& values, const op::Extents& shape, Dtype dtype) {
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(dtype, shape));
  op::storer<double>(dtype)(out.array().data, 0, 1, values.size(), values.data());
  return out;
}

std::vector<double> doubles_of(const op::Array& array) {
  const op::HostTensor wide = value_or_throw(op::HostTensor::allocate(Dtype::f64, array.shape()));
  op::copy_elements(array, wide.array());
  const auto values = wide.values<double>();
  return {values.begin(), values.end()};
}

/// Ops that take any dtype only move elements; their results are exact.
bool only_moves(const op::Card& card) {
  return card.view != nullptr || card.traits.random ||
         (!card.traits.elementwise && card.T.contains(Dtype::boolean));
}

/// Whether a zero may have either sign: by parts a product may meet it before or after it is summed, a sum of
/// zeros may begin with 0 or with the first of them, and the larger of -0 and 0 is either.
bool has_open_zeros(const op::Card& card) {
  return card.traits.composite || card.traits.reduction || card.name == "relu";
}

/// Runs calls by their reference kernels and moves what they round.
class Shaker {
 public:
  explicit Shaker(std::uint64_t seed) : random_(seed) {}

  /// An op got numbers whose squares have no room in their dtype: what it gives depends on how it computes.
  [[nodiscard]] bool saw_large_numbers() const { return saw_large_numbers_; }

  /// A composite may be computed by its parts, whose roundings may count for more than one of its result.
  Result<Results> run(const op::Card& card, std::span<const op::Array> inputs,
                      const op::Attributes& attributes) {
    if (card.decompose == nullptr || random_.one_in(2)) return run_whole(card, inputs, attributes);
    Results results = TESSERA_TRY(run_by_parts(card, inputs, attributes));
    for (const op::HostTensor& result : results) set_moved(result, ir::is_float(result.dtype()));
    return results;
  }

 private:
  Result<Results> run_by_parts(const op::Card& card, std::span<const op::Array> inputs,
                               const op::Attributes& attributes) {
    op::IrBuilder builder;
    op::Values values;
    op::ValueTypes types;
    Results copies;
    for (const op::Array& input : inputs) {
      types.push_back({input.dtype, ir::shape_of(input.shape())});
      values.push_back(builder.parameter("x", types.back()));
      copies.push_back(TESSERA_TRY(op::HostTensor::allocate(input.dtype, input.shape())));
      op::copy_elements(input, copies.back().array());
      set_moved(copies.back(), moved_.count(input.data) != 0);
    }
    const op::Values results = card.decompose(builder, op::CallInfo(card, types, attributes), values);
    const auto function = TESSERA_TRY(builder.function("parts", results));
    return op::interpret(*function, copies,
                         {.run_call = [&](const auto& part, auto operands, const auto& settings) {
                           return run(part, operands, settings);
                         }});
  }

  Result<Results> run_whole(const op::Card& card, std::span<const op::Array> inputs,
                            const op::Attributes& attributes) {
    const bool rounds_inside = !only_moves(card) && card.pointwise == nullptr;
    Results held;
    std::vector<op::Array> moved(inputs.begin(), inputs.end());
    bool from_moved = false;
    for (op::Array& input : moved) {
      if (!ir::is_float(input.dtype)) continue;
      const bool is_moved = moved_.count(input.data) != 0;
      from_moved = from_moved || is_moved;
      if (rounds_inside) look_for_large_numbers(input);
      if (!rounds_inside && (!is_moved || card.pointwise == nullptr)) continue;
      held.push_back(shaken(input, 1));
      input = held.back().array();
    }
    Results results = TESSERA_TRY(op::run_reference(card, moved, attributes));
    const auto exact = card.pointwise == nullptr ? std::nullopt : run_wide(card, moved, attributes);
    for (std::size_t i = 0; i < results.size(); ++i) {
      op::HostTensor& result = results[i];
      const bool is_float = ir::is_float(result.dtype());
      bool changed = from_moved;
      if (is_float && rounds_inside) {
        result = shaken(result.array(), roundings_moved);
        changed = true;
      } else if (is_float && card.pointwise != nullptr) {
        changed = round_otherwise(result, exact ? &(*exact)[i] : nullptr) || changed;
      }
      if (is_float && has_open_zeros(card)) turn_zeros(result);
      set_moved(result, is_float && changed);
    }
    return results;
  }

  /// The call on f64, whose results show where those of smaller floats were rounded.
  std::optional<Results> run_wide(const op::Card& card, std::span<const op::Array> inputs,
                                  const op::Attributes& attributes) {
    Results held;
    std::vector<op::Array> wide(inputs.begin(), inputs.end());
    for (op::Array& input : wide) {
      if (input.dtype == Dtype::f64) return std::nullopt;
      if (!ir::is_float(input.dtype)) continue;
      held.push_back(tensor_of(doubles_of(input), input.shape(), Dtype::f64));
      input = held.back().array();
    }
    auto results = op::run_reference(card, wide, attributes);
    return results ? std::optional(*std::move(results)) : std::nullopt;
  }

  /// Whether an element was moved: one that is not what the call gives on f64.
  bool round_otherwise(op::HostTensor& result, const op::HostTensor* exact) {
    const Dtype dtype = result.dtype();
    auto values = fixture::doubles(result);
    const auto wide = exact == nullptr ? std::vector<double>() : fixture::doubles(*exact);
    bool changed = false;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const bool is_known = k < wide.size();
      if (is_known && (wide[k] == values[k] || std::isnan(wide[k]))) continue;
      changed = true;
      if (is_known && std::isinf(values[k])) {
        // A value in between may have more room than its dtype.
        if (random_.one_in(2)) values[k] = std::copysign(largest_of(dtype), values[k]);
      } else if (is_known && values[k] == 0) {
        if (random_.one_in(2)) values[k] = std::copysign(smallest_of(dtype), values[k]);
      } else {
        values[k] = shaken(values[k], dtype, roundings_moved);
      }
    }
    if (changed) result = tensor_of(values, result.shape(), dtype);
    return changed;
  }

  void look_for_large_numbers(const op::Array& array) {
    const double bound = std::sqrt(largest_of(array.dtype == Dtype::f16 ? Dtype::f32 : array.dtype)) / 64;
    for (const double value : doubles_of(array))
      saw_large_numbers_ = saw_large_numbers_ || (std::isfinite(value) && std::abs(value) > bound);
  }

  op::HostTensor shaken(const op::Array& array, double roundings) {
    auto values = doubles_of(array);
    for (double& value : values) value = shaken(value, array.dtype, roundings);
    return tensor_of(values, array.shape(), array.dtype);
  }

  void turn_zeros(op::HostTensor& tensor) {
    auto values = fixture::doubles(tensor);
    for (double& value : values)
      if (value == 0 && random_.one_in(2)) value = -value;
    tensor = tensor_of(values, tensor.shape(), tensor.dtype());
  }

  double shaken(double value, Dtype dtype, double roundings) {
    if (!std::isfinite(value) || value == 0) return value;
    const double by = (static_cast<double>(random_.below(3)) - 1) * roundings;
    const double out = value * (1 + by * unit_of(dtype));
    return std::clamp(out, -largest_of(dtype), largest_of(dtype));
  }

  void set_moved(const op::HostTensor& tensor, bool moved) {
    if (moved)
      moved_.insert(tensor.array().data);
    else
      moved_.erase(tensor.array().data);
  }

  Random random_;
  bool saw_large_numbers_ = false;
  /// Values that are not exact, by address. One that lies where a freed one did is moved for nothing.
  std::unordered_set<const std::byte*> moved_;
};

bool have_types_of(const Results& a, const Results& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.dtype() == y.dtype() && x.shape() == y.shape();
  });
}

}  // namespace

Roundings::Roundings(const Program& program, const Results& expected, std::span<const double> parameters,
                     std::uint64_t seed)
    : program_(program),
      expected_(expected),
      parameters_(fixture::slot_bits(*program.function, parameters)),
      seed_(seed) {
  for (const auto& result : expected) {
    ranges_.emplace_back(static_cast<std::size_t>(result.size()));
    for (std::size_t k = 0; k < ranges_.back().size(); ++k) {
      const double number = fixture::element(result.array(), static_cast<std::int64_t>(k)).number;
      ranges_.back()[k] = {.low = number, .high = number};
    }
  }
  add(expected);
}

std::optional<std::string> Roundings::unexplained(const Results& got) {
  for (int runs = first_runs;; runs *= 4) {
    run_until(std::min(runs, most_runs));
    auto text = first_outside(got);
    if (!text || runs >= most_runs) return text;
  }
}

void Roundings::run_until(int runs) {
  for (; runs_ < runs; ++runs_) {
    Shaker shaker(seed_ * most_runs + static_cast<std::uint64_t>(runs_));
    const auto results = op::interpret(
        *program_.function, program_.inputs,
        {.parameters = parameters_,
         .run_call = [&](const auto& card, auto inputs,
                         const auto& attributes) { return shaker.run(card, inputs, attributes); }},
        program_.sizes);
    if (results && have_types_of(*results, expected_)) add(*results);
    if (!results || !have_types_of(*results, expected_) || shaker.saw_large_numbers()) is_stable_ = false;
  }
}

void Roundings::add(const Results& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    for (std::size_t k = 0; k < ranges_[i].size(); ++k) {
      Range& range = ranges_[i][k];
      const auto at = static_cast<std::int64_t>(k);
      const auto value = fixture::element(results[i].array(), at);
      if (!ir::is_float(value.dtype)) {
        range.moved = range.moved || value.integer != fixture::element(expected_[i].array(), at).integer;
        continue;
      }
      range.has_nan = range.has_nan || std::isnan(value.number);
      range.has_minus_zero = range.has_minus_zero || (value.number == 0 && std::signbit(value.number));
      range.has_plus_zero = range.has_plus_zero || (value.number == 0 && !std::signbit(value.number));
      if (std::isnan(value.number)) continue;
      range.low = std::isnan(range.low) ? value.number : std::min(range.low, value.number);
      range.high = std::isnan(range.high) ? value.number : std::max(range.high, value.number);
    }
}

bool Roundings::allows(std::size_t i, std::size_t k, const op::ScalarValue& value) const {
  const Range& range = ranges_[i][k];
  if (!ir::is_float(value.dtype))
    return range.moved ||
           value.integer == fixture::element(expected_[i].array(), static_cast<std::int64_t>(k)).integer;
  // An element that is a number in one run and none in another may be anything.
  if (range.has_nan) return std::isnan(value.number) || !std::isnan(range.low);
  if (std::isnan(value.number)) return false;
  if (range.low == range.high)
    return value.number == range.low &&
           (value.number != 0 || (std::signbit(value.number) ? range.has_minus_zero : range.has_plus_zero));
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  const double beyond = room * (range.high - range.low) +
                        roundings_allowed * (unit_of(value.dtype) * size + smallest_of(value.dtype));
  return value.number >= range.low - beyond && value.number <= range.high + beyond;
}

std::optional<std::string> Roundings::first_outside(const Results& got) const {
  if (!is_stable_) return std::nullopt;
  if (!have_types_of(got, expected_)) return difference(expected_, got);
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t k = 0; k < ranges_[i].size(); ++k) {
      const auto value = fixture::element(got[i].array(), static_cast<std::int64_t>(k));
      if (allows(i, k, value)) continue;
      const auto expected = fixture::element(expected_[i].array(), static_cast<std::int64_t>(k));
      const Range& range = ranges_[i][k];
      return ir::is_float(value.dtype)
                 ? cat("element ", k, " of result ", i, " is ", value.number, ", expected ", expected.number,
                       ", by other roundings ", range.low, " to ", range.high)
                 : cat("element ", k, " of result ", i, " is ", value.integer, ", expected ",
                       expected.integer);
    }
  return std::nullopt;
}

// How far from its results on f64 a call may lie in other dtypes, given that of its operands: the rules of
// wide_run.h, by what kind of op it is.
#pragma once

#include <span>
#include <vector>

#include "tessera/op/card.h"
#include "tests/differential/interval.h"
#include "tests/differential/runs.h"

namespace tessera::differential {

/// A tensor of the program.
struct Bounded {
  op::HostTensor value;  ///< floats as f64, others as they are
  /// Of each element. Integers are exact, or anything.
  std::vector<Interval> bounds;

  [[nodiscard]] bool is_exact() const;
};

/// Of floats as f64, of others as they are; exact.
[[nodiscard]] Bounded exact_tensor(const op::HostTensor& tensor);

[[nodiscard]] bool is_exact(std::span<const Bounded> tensors);

/// Floats as f64; attributes that are float dtypes likewise.
[[nodiscard]] op::HostTensor widened(const op::HostTensor& tensor);
[[nodiscard]] op::Attributes widened(const op::Attributes& attributes);

/// What becomes of the errors of operands.
enum class Growth : std::uint8_t {
  elements,  ///< a formula of the elements at one place
  moves,     ///< elements change places
  rises,     ///< no result is less if no operand is; rounded once, or an element of an operand
  places,    ///< tells where elements are, or numbers that are chosen: known if the operands are
  adds,      ///< sums of products of elements: no term is subtracted
  parts,     ///< a composite
  unknown,
};
[[nodiscard]] Growth growth_of(const op::Card& card, const op::Attributes& attributes);

struct Call {
  const op::Card& card;
  std::span<const Bounded> inputs;
  const op::Attributes& attributes;  ///< as f64
  const Results& narrow;             ///< the results in the dtypes of the program
};
/// Of each result, of each element.
using Bounds = std::vector<std::vector<Interval>>;

[[nodiscard]] Bounds all_open(const Results& results);
[[nodiscard]] Bounds all_exact(const Results& results);
/// Growth::elements.
[[nodiscard]] Bounds element_bounds(const Call& call);
/// Growth::moves and Growth::rises: by the lowest that operands may be and the highest.
[[nodiscard]] Result<Bounds> moved_bounds(const Call& call, Growth growth);
/// Growth::adds: the errors of operands times the other operands, and a rounding of every term. `value` is
/// the result on f64.
[[nodiscard]] Result<Bounds> sum_bounds(const Call& call, const op::HostTensor& value);

}  // namespace tessera::differential

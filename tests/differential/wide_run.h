// A program with every float widened to f64, and how far from that a correct run in its own dtypes may lie.
//
// Inputs are exact. Every call is run by its reference kernel on f64, and an error bound follows each
// element: the formula of an element-wise op is run on intervals, operation by operation, each rounded as
// devices round it; a sum of products takes the errors of its operands times the other operands, and a
// rounding of every term; what moves or orders elements moves their bounds; a composite goes by its parts. A
// jump that an operand may lie on either side of leaves both sides open.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "tests/differential/call_bounds.h"

namespace tessera::differential {

/// An op that what decides the way of a program is given to: it changes nothing.
inline constexpr std::string_view choice_mark = "identity";

/// Runs calls as InterpreterOptions::run_call, and remembers of each result what it is on f64. Control flow
/// follows the results in their own dtypes, which are exact or not: see may_choose_otherwise().
class WideRun {
 public:
  [[nodiscard]] Result<Results> run(const op::Card& card, std::span<const op::Array> inputs,
                                    const op::Attributes& attributes);

  /// What is known of a tensor that run() gave or got.
  [[nodiscard]] Bounded known(const op::Array& array) const;
  /// Says what is known of a tensor.
  void remember(const op::HostTensor& tensor, Bounded known);
  /// Whether `choice_mark` was given something that is no float and not exact.
  [[nodiscard]] bool may_choose_otherwise() const { return may_choose_otherwise_; }
  /// Whether a size that depends on data depends on such that is not exact.
  [[nodiscard]] bool may_count_otherwise() const { return may_count_otherwise_; }

 private:
  [[nodiscard]] Result<Bounds> by_parts(const Call& call, std::span<const op::Array> arrays,
                                        const op::Attributes& attributes, const Results& whole);

  struct Entry {
    op::HostTensor tensor;  ///< held, so that nothing else gets its address
    Bounded known;
  };
  std::map<const std::byte*, Entry> known_;
  bool may_choose_otherwise_ = false;
  bool may_count_otherwise_ = false;
};

}  // namespace tessera::differential

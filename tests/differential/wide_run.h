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

#include "tests/differential/interval.h"
#include "tests/differential/program.h"
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

/// Runs calls as InterpreterOptions::run_call, and remembers of each result what it is on f64. Control flow
/// follows the results in their own dtypes, which are exact or not: see may_go_otherwise().
class WideRun {
 public:
  /// One call.
  struct Call {
    const op::Card& card;
    std::span<const Bounded> inputs;
    const op::Attributes& attributes;  ///< as f64
    const Results& narrow;             ///< the results in the dtypes of the program
  };
  /// Of each result, of each element.
  using Bounds = std::vector<std::vector<Interval>>;

  [[nodiscard]] Result<Results> run(const op::Card& card, std::span<const op::Array> inputs,
                                    const op::Attributes& attributes);

  /// What is known of a tensor that run() gave or got.
  [[nodiscard]] Bounded known(const op::Array& array) const;
  /// Says what is known of a tensor.
  void remember(const op::HostTensor& tensor, Bounded known);
  /// Whether a single integer or truth value is not exact: a condition, an index of a region or a size.
  [[nodiscard]] bool may_go_otherwise() const { return may_go_otherwise_; }

 private:
  [[nodiscard]] Result<Bounds> by_parts(const Call& call, std::span<const op::Array> arrays,
                                        const op::Attributes& attributes, const Results& whole);

  struct Entry {
    op::HostTensor tensor;  ///< held, so that nothing else gets its address
    Bounded known;
  };
  std::map<const std::byte*, Entry> known_;
  bool may_go_otherwise_ = false;
};

/// The judge of all runs of a program with these parameters.
class WideJudge {
 public:
  WideJudge(const Program& program, std::span<const double> parameters);

  /// The first element outside of its bounds.
  [[nodiscard]] std::optional<std::string> outside(const Results& got) const;
  /// Whether the bounds say nothing: each is wider than the largest number beside it is large.
  [[nodiscard]] bool is_vacuous() const;

 private:
  std::vector<Bounded> results_;
  bool is_decided_ = false;
};

}  // namespace tessera::differential

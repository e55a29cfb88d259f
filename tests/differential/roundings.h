// What a program may give where its ops round otherwise than the reference does: fused into one kernel, in
// another order, with more digits in between.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/op/interpreter.h"
#include "tests/differential/program.h"
#include "tests/differential/runs.h"

namespace tessera::differential {

/// Runs the program by the reference again and again, each time with every result that is not exact moved by
/// a few roundings of its dtype, and keeps between which numbers each element stays. Elements that no
/// rounding moves (integers, booleans, views, exact numbers) must agree bit by bit; the others may lie a few
/// times as far outside as the runs lie apart.
class Roundings {
 public:
  Roundings(const Program& program, const Results& expected, std::span<const double> parameters,
            std::uint64_t seed);

  /// The first element that is not explained by roundings, after more and more of them were tried.
  [[nodiscard]] std::optional<std::string> unexplained(const Results& got);

 private:
  struct Range {
    double low = 0, high = 0;
    bool has_nan = false;
    bool has_minus_zero = false, has_plus_zero = false;
    bool moved = false;  ///< of an element that is no float: a run gave another
  };

  void run_until(int runs);
  void add(const Results& results);
  [[nodiscard]] bool allows(std::size_t result, std::size_t element, const op::ScalarValue& value) const;
  [[nodiscard]] std::optional<std::string> first_outside(const Results& got) const;

  const Program& program_;
  const Results& expected_;
  std::vector<std::uint64_t> parameters_;
  std::uint64_t seed_;
  int runs_ = 0;
  bool is_stable_ = true;  ///< every run gave results of these shapes, from numbers of usual size
  std::vector<std::vector<Range>> ranges_;
};

}  // namespace tessera::differential

// The judge of random programs: every run must lie within the bounds of the f64 run (wide_run.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/differential/wide_run.h"

namespace tessera::differential {

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

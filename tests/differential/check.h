// One program, run in all the ways that must agree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/differential/program.h"

namespace tessera::differential {

/// Which ways to run a program, chosen by a seed.
struct Variant {
  bool exact = true;  ///< no bit may change; else passes may round otherwise, and composites are taken apart
  std::vector<std::string> disabled = {};
  std::uint64_t seed = 0;  ///< chooses the composites that are taken apart
};

[[nodiscard]] Variant random_variant(std::uint64_t seed, Numbers numbers);

struct Verdict {
  bool ran = false;  ///< the reference could run it
  std::optional<std::string> failure;
};

/// Reference, lazy tensors, compiled (with the laws of every pass), each with two sets of parameters.
[[nodiscard]] Verdict check(const Program& program, const Variant& variant);

/// The smallest program found that still fails, whatever it says.
[[nodiscard]] Program reduced(Program program, const Variant& variant);

/// A failing program as a text that read_case reads: what failed, the variant, the function, the inputs.
[[nodiscard]] std::string write_case(const Program& program, const Variant& variant,
                                     const std::string& failure);
struct Case {
  Program program;
  Variant variant;
};
[[nodiscard]] Result<Case> read_case(const std::string& text);

}  // namespace tessera::differential

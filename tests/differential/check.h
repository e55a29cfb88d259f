// One program, run in all the ways that must agree.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/differential/program.h"

namespace tessera::differential {

/// Which ways to run a program, chosen by a seed.
struct Variant {
  std::string device = "reference";
  bool exact = true;  ///< no bit may change; else passes may round otherwise, and composites are taken apart
  std::vector<std::string> disabled = {};
  std::vector<std::string> no_tiles_of = {};  ///< names of tile sources that plans do without
  std::uint64_t seed = 0;                     ///< chooses the composites that are taken apart
};

/// On a device every result may be rounded otherwise, so that whatever the reference gives is compared by
/// wide_judge.h and roundings.h.
[[nodiscard]] Variant random_variant(std::uint64_t seed, Numbers numbers, std::string device = "reference");

struct Verdict {
  bool ran = false;         ///< the reference could run it, or its error was expected
  bool is_vacuous = false;  ///< wide_judge.h says nothing about any result of the first run
  std::optional<std::string> failure;
};

/// On the reference: lazy tensors, compiled (with the laws of every pass), as a plan, each with two sets of
/// parameters. On another device: as a plan and as lazy tensors of an engine that plans at once. What fails
/// by the reference must fail there. Every result, of the reference too, must be what wide_judge.h allows.
[[nodiscard]] Verdict check(const Program& program, const Variant& variant);

/// The smallest program found that still fails, whatever it says; as it is if it does not fail every time.
[[nodiscard]] Program reduced(Program program, const Variant& variant);
/// The same for any failure: its text, or nothing. Only the first word of it has to stay.
using Failure = std::function<std::optional<std::string>(const Program& program)>;
[[nodiscard]] Program reduced(Program program, const Failure& failure);

/// A failing program as a text that read_case reads: what failed, the variant, the function, the inputs.
[[nodiscard]] std::string write_case(const Program& program, const Variant& variant,
                                     const std::string& failure);
struct Case {
  Program program;
  Variant variant;
};
[[nodiscard]] Result<Case> read_case(const std::string& text);

}  // namespace tessera::differential

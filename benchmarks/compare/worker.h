// A program that measures one side of the comparison: it takes commands on standard input, one a line, so
// that the sides can take turns.
//
//   prepare KIND WORD…   -> ok SUM SUM_OF_SIZES (of the first result), or: missing WHY
//   run COUNT            -> the seconds that COUNT runs took, and those of the processor
//   probe                -> one-way time of a cache line between two threads, in ns
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tessera::compare {

/// What is measured, prepared.
struct Workload {
  std::function<void()> run;
  /// The numbers of the first result, for comparing the sides.
  std::vector<float> first;
};

/// Makes a workload or throws std::runtime_error with the reason why this side has none.
using Prepare = std::function<Workload(const std::string& kind, std::span<const std::string> words)>;

/// Words that are whole numbers, or throws std::runtime_error.
[[nodiscard]] std::vector<std::int64_t> sizes_of(std::span<const std::string> words);

/// Serves until the input ends. The status of the program.
int serve(const Prepare& prepare);

/// Where the numbers of an array lie.
struct Spread {
  double scale = 1.0;
  double offset = 0.0;
};
/// offset + scale * u, u from -1 to 1: the same numbers in every language. `seed` tells arrays apart.
[[nodiscard]] std::vector<float> numbers(std::int64_t count, std::uint32_t seed, Spread spread = {});

}  // namespace tessera::compare

// The least cost by integer programming: an oracle for problems too large for brute force.
//
// Writes the problem as an LP file, runs `cbc` or `glpsol` on it, looks for a cycle in what comes back,
// forbids that cycle, and asks again. Shares no code with the solver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/cover/cover.h"

namespace tessera::cover {

/// Tiles that must not all be chosen.
using Conflict = std::vector<std::uint32_t>;

class IlpOracle {
 public:
  enum class Program : std::uint8_t { cbc, glpsol };

  /// The oracle, or nothing if the program is not installed.
  static std::optional<IlpOracle> find(Program program);

  /// The least cost of a valid tiling; nothing if the program did not prove it in `seconds`.
  [[nodiscard]] std::optional<double> least_cost(const Problem& problem, int seconds) const;

 private:
  struct Chosen {
    double cost = 0;
    std::vector<std::uint32_t> tiles;
  };

  explicit IlpOracle(Program program) : program_(program) {}
  [[nodiscard]] std::optional<Chosen> ask(const Problem& problem, const std::vector<Conflict>& conflicts,
                                          int seconds) const;
  [[nodiscard]] std::optional<std::string> run(const std::string& folder, int seconds) const;

  Program program_;
};

/// The problem with `conflicts` in CPLEX's LP format: variable x<i> is candidate i, y<n> is node n uncovered.
[[nodiscard]] std::string to_lp(const Problem& problem, const std::vector<Conflict>& conflicts);

/// All pairs of candidates that are disjoint and lead to each other, and all candidates that are not convex.
[[nodiscard]] std::vector<Conflict> pair_conflicts(const Problem& problem);

}  // namespace tessera::cover

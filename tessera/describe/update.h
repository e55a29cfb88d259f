// Update tiers: what it takes to bring a plan up to date, from cheapest.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera::description {

enum class Tier : std::uint8_t {
  none,       ///< nothing but content: launch
  hot,        ///< values of numbers
  warm,       ///< pointers, sizes, grids
  recapture,  ///< the calls of a captured node
  code,       ///< a kernel
  cold,       ///< structure
};
[[nodiscard]] std::string_view to_string(Tier tier);

struct UpdateReport {
  Tier tier = Tier::none;
  std::string cause;  ///< what forced this tier and no lower one; empty for none
  /// Why the plan could not be brought up to date: the last good one goes on, and the next change tries
  /// again.
  std::optional<Error> error;

  std::chrono::nanoseconds time{};
  std::uint64_t nodes = 0;        ///< whose arguments were set
  std::uint64_t captures = 0;     ///< of captured nodes
  std::uint64_t kernels = 0;      ///< loaded
  std::uint64_t programs = 0;     ///< compiled from groups of op nodes; those of equal groups go on
  std::uint64_t interpreted = 0;  ///< groups that could not be compiled: their nodes run one by one
  std::uint64_t bytes = 0;        ///< allocated
  // On a device:
  std::uint64_t patched = 0;  ///< nodes of the graph that it holds
  bool is_remade = false;     ///< that graph was made anew
  std::string driven;         ///< why the device cannot hold the steps, so that the host drives them
};

}  // namespace tessera::description

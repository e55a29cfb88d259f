// A random graph description, launched and changed again and again, against the run of its listing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::differential {

struct DescriptionVerdict {
  bool ran = false;  ///< it is valid
  int launches = 0;
  int updates = 0;
  std::optional<std::string> failure;
};

/// The description of a seed, with its op nodes one by one or compiled for the CPU. Numbers, addresses,
/// grids, kernels, captures and nodes change between launches; each update must have the tier that
/// docs/describe.md says.
[[nodiscard]] DescriptionVerdict check_description(std::uint64_t seed);

}  // namespace tessera::differential

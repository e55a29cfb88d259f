// What a launch took, as far as was asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/profiling_level.h"

namespace tessera::description {

struct BlockTime {
  std::string block;
  std::chrono::nanoseconds time{};  ///< of its nodes and of the blocks in it
  std::uint64_t runs = 0;           ///< of nodes
};

struct KernelTime {
  std::string node;
  std::chrono::nanoseconds time{};  ///< of all runs
  std::uint64_t runs = 0;
  bool is_opaque = false;   ///< a captured node: what happens inside it is one figure
  std::string joined_with;  ///< the node whose time has this one's: both are one program; empty: its own
  std::string region;       ///< on a device: the time is that of this region, with all its nodes and turns
};

struct Profile {
  ProfilingLevel level = ProfilingLevel::none;
  std::chrono::nanoseconds total{};  ///< from summary on
  std::vector<BlockTime> blocks;     ///< from per_block on, as listed; nodes without a block are under ""
  std::vector<KernelTime> kernels;   ///< per_kernel, as listed
};

}  // namespace tessera::description

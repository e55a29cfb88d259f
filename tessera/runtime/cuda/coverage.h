// Which ops run on CUDA devices, asked of their cards.
#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/op/card.h"

namespace tessera::runtime::cuda {

/// How the calls of an op run.
enum class RunsAs : std::uint8_t {
  view,     ///< by seeing its input in another way, or a copy
  kernel,   ///< by one fused kernel, alone or with others
  program,  ///< by sources of its own, or a library
  parts,    ///< by the ops it is made of, as one kernel where they can be
  nothing,  ///< not at all
};

/// "view", "kernel", …
[[nodiscard]] std::string_view to_string(RunsAs how);

[[nodiscard]] RunsAs runs_as(const op::Card& card);

}  // namespace tessera::runtime::cuda

// How closely what runs is measured: one scale for tensor code and for graphs wired by hand.
#pragma once

#include <cstdint>

namespace tessera {

enum class ProfilingLevel : std::uint8_t {
  none,        ///< nothing is measured
  summary,     ///< evaluations or launches alone
  per_block,   ///< the named scopes and blocks as well
  per_kernel,  ///< every kernel as well, also as events in time
};

}  // namespace tessera

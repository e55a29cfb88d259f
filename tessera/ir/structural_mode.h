// How two nodes are compared.
#pragma once

#include <cstdint>

namespace tessera::ir {

enum class CompareMode : std::uint8_t {
  /// A free variable equals only itself. For CSE and identity.
  strict,
  /// Free variables are matched one to one in the order they are met. For patterns and templates.
  mapping,
};

}  // namespace tessera::ir

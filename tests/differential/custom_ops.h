// Ops of the program's own for random programs: C++ functions of which the compiler knows nothing but types.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/tensor/custom.h"

namespace tessera::differential {

struct CustomOp {
  std::string name;
  std::size_t arguments = 1;
  bool is_continuous = true;  ///< a small change of an argument is a small change of the result
};

/// Those of random programs, registered when they are first asked for. They take what their types allow: some
/// any tensor, some floats, some such that have an axis.
[[nodiscard]] std::span<const CustomOp> custom_ops();

/// An op of the program's own that computes what this op of the catalogue does, with the gradient that it
/// has; null if there is none.
[[nodiscard]] const Custom* custom_twin(std::string_view op);

}  // namespace tessera::differential

// Which functions of a plan are more than a list of calls.
#pragma once

#include <algorithm>

#include "tessera/ir/function.h"

namespace tessera::runtime::cuda {

/// Whether a function has statements that decide what runs, or how often.
[[nodiscard]] inline bool has_regions(const ir::Function& function) {
  const auto is_region = [](const ir::Expr& value) {
    return ir::is<ir::IfRegion>(value) || ir::is<ir::SwitchRegion>(value) || ir::is<ir::WhileRegion>(value) ||
           ir::is<ir::ForRegion>(value) || ir::is<ir::Invoke>(value);
  };
  return std::any_of(function.body.begin(), function.body.end(),
                     [&](const auto& statement) { return is_region(*statement->value); });
}

}  // namespace tessera::runtime::cuda

// The numbers of a function's parameters as a launch takes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/ir/number_bits.h"
#include "tessera/ir/walk.h"

namespace tessera::fixture {

/// By slot. What the function does not read is as a float.
inline std::vector<std::uint64_t> slot_bits(const ir::Function& function, std::span<const double> numbers) {
  std::vector<ir::Dtype> dtypes(numbers.size(), ir::Dtype::f64);
  for (const ir::Node* node : ir::post_order(function))
    if (const auto* param = ir::as<ir::Param>(*node); param != nullptr && param->slot < dtypes.size())
      dtypes[param->slot] = param->dtype;
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < numbers.size(); ++i) out.push_back(ir::number_bits(numbers[i], dtypes[i]));
  return out;
}

}  // namespace tessera::fixture

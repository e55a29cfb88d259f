// Devices that compile kernels, for those who ask how many.
#pragma once

#include <cstddef>

namespace tessera::runtime {

/// A device that compiles the kernels it runs.
class MakesKernels {
 public:
  virtual ~MakesKernels() = default;
  /// The different ones that it holds, compiled now or by an earlier process.
  [[nodiscard]] virtual std::size_t kernel_count() const = 0;
};

}  // namespace tessera::runtime

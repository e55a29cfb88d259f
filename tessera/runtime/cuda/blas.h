// cuBLASLt, opened at run time: matrix products whose algorithm is measured once per form and remembered.
#pragma once

#include <memory>
#include <string>

#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/cuda/device_memory.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// A product with its algorithm. Immutable; any number of threads may queue it.
class BlasProduct {
 public:
  virtual ~BlasProduct() = default;
  /// `workspace` has product_workspace bytes that nothing else uses while it runs. REQUIRES, as what follows,
  /// that the context is current.
  [[nodiscard]] virtual Result<void> queue(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr workspace,
                                           const Stream& stream) const = 0;
};
using BlasProductRef = std::shared_ptr<const BlasProduct>;

/// Thread-safe.
class Blas {
 public:
  virtual ~Blas() = default;
  /// The system's library, for one device. The error says what was looked for.
  [[nodiscard]] static Result<std::unique_ptr<Blas>> open(ContextRef context,
                                                          std::shared_ptr<const Stream> stream,
                                                          std::shared_ptr<DeviceMemory> memory);

  /// The product; equal ones are one. Large ones are measured the first time, on memory of their own.
  [[nodiscard]] virtual Result<BlasProductRef> get(const Product& product) = 0;
  /// "13.1.0"
  [[nodiscard]] virtual std::string version() const = 0;
};

}  // namespace tessera::runtime::cuda

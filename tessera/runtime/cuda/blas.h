// cuBLASLt, opened at run time: matrix products whose algorithm is measured once per form and remembered.
#pragma once

#include <memory>
#include <string>

#include "tessera/runtime/code_store.h"
#include "tessera/runtime/cuda/context.h"
#include "tessera/runtime/cuda/cuda_devices.h"
#include "tessera/runtime/cuda/device_memory.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Where a product reads and writes. The workspace has as many bytes as the product says, which nothing else
/// uses while it runs; a bias is aligned to 16 bytes.
struct ProductMemory {
  CUdeviceptr a = 0, b = 0, c = 0, workspace = 0, bias = 0, added = 0;
};

/// A product with its algorithm. Any number of threads may queue it.
class BlasProduct {
 public:
  virtual ~BlasProduct() = default;
  /// REQUIRES, as what follows, that the context is current.
  [[nodiscard]] virtual Result<void> queue(const ProductMemory& memory, const Stream& stream) const = 0;
  /// What its algorithm needs: at most product_workspace.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const = 0;
};
using BlasProductRef = std::shared_ptr<const BlasProduct>;

/// What a library works with.
struct BlasDevice {
  ContextRef context;
  std::shared_ptr<const Stream> stream;
  std::shared_ptr<DeviceMemory> memory;
  const CodeStore* store = nullptr;  ///< where what was measured is kept; outlives the library
  ProductPrecision precision = ProductPrecision::full;
};

/// Thread-safe.
class Blas {
 public:
  virtual ~Blas() = default;
  /// The system's library, for one device. The error says what was looked for.
  [[nodiscard]] static Result<std::unique_ptr<Blas>> open(const BlasDevice& device);

  /// The product; equal ones are one. Large ones are measured the first time, on memory of their own, and
  /// what was found is kept for other processes. The error is `unsupported` if the library has no algorithm
  /// for it.
  [[nodiscard]] virtual Result<BlasProductRef> get(const Product& product) = 0;
  /// "13.1.0"
  [[nodiscard]] virtual std::string version() const = 0;
};

}  // namespace tessera::runtime::cuda

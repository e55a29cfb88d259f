// The GPUs of this machine. The only header of this folder that others need; it knows nothing of CUDA's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/pattern/target.h"
#include "tessera/runtime/code_store.h"
#include "tessera/runtime/cuda/body_plans.h"
#include "tessera/runtime/device.h"

namespace tessera::runtime::cuda {

/// Whether libraries of the system compute matrix products where there are some.
enum class LibraryUse : std::uint8_t { where_found, none };

/// How exact the factors of f32 products are that a library computes. With tf32 they have ten bits of
/// mantissa, which is several times as fast.
enum class ProductPrecision : std::uint8_t { full, tf32 };

struct CudaOptions {
  /// Where generated code is kept; null: in the user's cache.
  const CodeStore* store = nullptr;
  /// What the compiler may choose from, beside the libraries.
  pattern::Target target = {.name = "cuda"};
  LibraryUse libraries = LibraryUse::where_found;
  ProductPrecision products = ProductPrecision::full;
  /// Makes plans of the bodies of regions; without it the host drives those that are no single kernel.
  PlanBody plan_body = {};
};

/// How many GPUs the driver has. The error says why there is none: no driver, or no headers when this was
/// built. Asked once.
[[nodiscard]] Result<int> device_count();

/// The GPU that the driver counts as `number`. It needs NVRTC; the error says what is missing. Libraries are
/// opened on a thread beside the program.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(int number, CudaOptions options = {});

}  // namespace tessera::runtime::cuda

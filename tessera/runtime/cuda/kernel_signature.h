// The parts of a generated kernel's text around its parameters, for those who make another kernel of it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Parts of `Source::text`, which it looks at: all of them one after another are the text.
struct KernelSignature {
  std::string_view before;                   ///< what the kernel uses
  std::string_view head;                     ///< `extern "C" __global__ void … name(`
  std::vector<std::string_view> parameters;  ///< "float n0", "const char* p1"; between commas
  std::string_view body;                     ///< `) {…`, to the end

  /// "n0" of "float n0".
  [[nodiscard]] static std::string_view name_of(std::string_view parameter);
  /// "float" of "float n0".
  [[nodiscard]] static std::string_view type_of(std::string_view parameter);
};

/// Nothing if the source is not in the form of generated kernels.
[[nodiscard]] std::optional<KernelSignature> signature_of(const Source& source);

}  // namespace tessera::runtime::cuda

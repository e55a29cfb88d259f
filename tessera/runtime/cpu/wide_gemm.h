// Matrix products of numbers of 64 bits: doubles, and integers that wrap. No library has them.
#pragma once

#include <cstdint>

namespace tessera::runtime::cpu {

/// c = a · b. Strides count elements and may be any number; the columns of c lie side by side.
template <class T>
struct WideProduct {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0, a_depth = 1;
  const T* b = nullptr;
  std::int64_t b_depth = 0, b_column = 1;
  T* c = nullptr;
  std::int64_t c_row = 0;
};

/// Elements that a product needs as workspace.
inline constexpr std::int64_t wide_workspace = 4096;

/// By the instruction set of the processor.
struct WideGemm {
  void (*doubles)(const WideProduct<double>& product, double* workspace) = nullptr;
  void (*integers)(const WideProduct<std::uint64_t>& product, std::uint64_t* workspace) = nullptr;
};

}  // namespace tessera::runtime::cpu

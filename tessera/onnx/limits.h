// What a model may take.
#pragma once

#include <cstdint>

namespace tessera::onnx {

/// Budgets, checked before anything is allocated or done. The defaults are for models of any honest size.
struct Limits {
  std::int64_t file_bytes = std::int64_t{2} << 30;  ///< of a model or tensor file
  std::int64_t nodes = 2'000'000;  ///< of all graphs, with the bodies of functions where called
  std::int64_t name_bytes = 4096;  ///< of one name
  int function_depth = 64;         ///< functions that call functions
  std::int64_t elements = std::int64_t{1} << 26;     ///< of one computed tensor
  std::int64_t total_bytes = std::int64_t{4} << 30;  ///< of all computed tensors that live at once
  std::int64_t steps = 2'000'000;                    ///< nodes run, counting each iteration of a loop
  std::int64_t iterations = 100'000;                 ///< of one loop
  std::int64_t work = std::int64_t{1} << 38;         ///< multiply-adds of all calls of a run, as estimated
  double seconds = 600;  ///< of a run, looked at before each node, and inside of long calls
};

}  // namespace tessera::onnx

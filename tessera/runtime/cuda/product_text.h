// One matrix product for all that is made of them: matmul and convolutions say how an element of either side
// is found and where a sum goes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tessera/runtime/cuda/program_writer.h"

namespace tessera::runtime::cuda {

/// sum over k of a[m, k] * b[k, n], for each batch. The texts are statements that see `batch`, `rows`,
/// `columns`, `depth` and what `describe` lists.
struct TiledProduct {
  std::string name;  ///< of the op
  ir::Dtype dtype = ir::Dtype::f32;
  IndexWidth width = IndexWidth::narrow;
  std::int64_t batches = 1, rows = 0, columns = 0, depth = 0;
  std::string_view prepare;  ///< what holds for a batch
  std::string_view load_a;   ///< sets `value` of m and k
  std::string_view load_b;   ///< sets `value` of k and n
  std::string_view store;    ///< puts `sum` of m and n away
  bool a_by_depth = true;    ///< elements that follow each other in memory differ in k, else in m
  bool b_by_depth = false;   ///< the same for k and n
  std::function<void(KernelWriter&)> describe;
};

/// Sums of f16, bf16 and f32 are of f32; a depth that is cut into parts is cut by the sizes alone.
void write_product(ProgramWriter& program, const TiledProduct& product);

}  // namespace tessera::runtime::cuda

// The memory that the outputs of an executable come from: what nobody else holds any more is written again,
// so that a steady loop sees the same addresses.
#pragma once

#include <vector>

#include "tessera/runtime/memory_pool.h"

namespace tessera::engine {

/// Per output buffer the memory used in turn. One thread at a time.
class OutputRing {
 public:
  /// Forgets its memory; `outputs` buffers are given from now on.
  void reset(std::size_t outputs) {
    buffers_.clear();
    buffers_.resize(outputs);
  }

  /// Memory for an output. Of what the ring has, or new; more than `length` at a time are not kept.
  [[nodiscard]] Result<Ref<runtime::Buffer>> take(std::size_t output, std::int64_t bytes,
                                                  runtime::MemoryPool& pool) {
    std::vector<Ref<runtime::Buffer>>& ring = buffers_[output];
    for (const Ref<runtime::Buffer>& buffer : ring)
      if (buffer->unique()) return buffer->begin_write(), buffer;
    Ref<runtime::Buffer> fresh = TESSERA_TRY(pool.allocate(static_cast<std::size_t>(bytes)));
    if (ring.size() < length) ring.push_back(fresh);
    return fresh;
  }

  [[nodiscard]] const std::vector<std::vector<Ref<runtime::Buffer>>>& buffers() const { return buffers_; }

 private:
  static constexpr std::size_t length = 4;

  std::vector<std::vector<Ref<runtime::Buffer>>> buffers_;
};

}  // namespace tessera::engine

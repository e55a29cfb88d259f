// DLPack: tensors shared with other libraries without a copy, in host memory and in that of a GPU.
#pragma once

#include <cstdint>

#include "tessera/tensor/create.h"

// The two structures of the DLPack 0.8 standard, declared here so that no header of it is needed.
extern "C" {
struct DLManagedTensor;
}

namespace tessera {

/// Whose work on the shared memory has to be in order with the engine's. Streams are numbered as in the
/// `__dlpack__` protocol: a handle of CUDA, 1 for its legacy default stream, 2 for that of the thread.
struct DlpackOptions {
  static constexpr std::intptr_t default_stream = 1;
  static constexpr std::intptr_t no_stream = -1;  ///< the caller cares for the order

  std::shared_ptr<engine::Engine> engine = {};  ///< null: the default engine; of an import
  std::intptr_t stream = default_stream;        ///< of a tensor on a device; elsewhere it means nothing
};

/// A tensor that shares the memory; nobody writes to it while it is shared. Takes the DLPack tensor over: its
/// deleter is called when nobody uses the memory any more, or at once if this throws. What the engine does
/// with the memory comes behind what `stream`, the producer's, has been given; the host does not wait. The
/// deleter is called when the device is done with the memory. Memory of the host is copied to an engine whose
/// device has its own.
Tensor from_dlpack(DLManagedTensor* tensor, const DlpackOptions& options = {}, Here here = {});

/// A DLPack tensor that shares the (computed) value; the receiver calls its deleter. What `stream`, the
/// receiver's, is given from now on comes behind the computation, and what the engine does with the memory
/// after the deleter comes behind what the stream was given before; the stream has to live until then.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& tensor, const DlpackOptions& options = {},
                                         Here here = {});

}  // namespace tessera

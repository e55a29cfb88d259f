// DLPack: tensors shared with other libraries without a copy.
#pragma once

#include "tessera/tensor/create.h"

// The two structures of the DLPack 0.8 standard, declared here so that no header of it is needed.
extern "C" {
struct DLManagedTensor;
}

namespace tessera {

/// A tensor that shares the memory. Takes the DLPack tensor over: its deleter is called when nobody uses the
/// memory any more, or at once if this throws. CPU memory only.
Tensor from_dlpack(DLManagedTensor* tensor, const CreateOptions& options = {}, Here here = {});

/// A DLPack tensor that shares the (computed) value; the receiver calls its deleter.
[[nodiscard]] DLManagedTensor* to_dlpack(const Tensor& tensor, Here here = {});

}  // namespace tessera

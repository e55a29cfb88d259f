// Where the elements of a stored tensor are.
#pragma once

#include "tessera/op/array.h"
#include "tessera/runtime/buffer.h"

namespace tessera::runtime {

struct Storage {
  Ref<Buffer> buffer;
  op::Layout layout;

  [[nodiscard]] op::Array array(ir::Dtype dtype) const { return {dtype, layout, buffer->data()}; }
};

}  // namespace tessera::runtime

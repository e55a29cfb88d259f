// Where the elements of a stored tensor are.
#pragma once

#include "tessera/base/slot_memory.h"
#include "tessera/op/array.h"
#include "tessera/runtime/buffer.h"

namespace tessera::runtime {

struct Storage {
  Ref<Buffer> buffer;
  op::Layout layout;

  // Every evaluation makes some and gives up as many.
  static void* operator new(std::size_t bytes) { return SlotMemory::allocate(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { SlotMemory::free(memory, bytes); }

  [[nodiscard]] op::Array array(ir::Dtype dtype) const { return {dtype, layout, buffer->data()}; }
};

}  // namespace tessera::runtime

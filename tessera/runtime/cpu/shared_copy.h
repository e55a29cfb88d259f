// Copies of elements that the threads of a pool share.
#pragma once

#include <span>

#include "tessera/op/array.h"
#include "tessera/runtime/cpu/thread_pool.h"

namespace tessera::runtime::cpu {

struct SharedCopy {
  op::Array from, to;
};

/// op::copy_elements() of several arrays over all threads, each cut along the first axis that can be.
/// REQUIRES that no array overlaps one that is written to, or is the same as its copy.
void copy_shared(std::span<const SharedCopy> copies, ThreadPool& threads);
void copy_shared(const op::Array& from, const op::Array& to, ThreadPool& threads);

}  // namespace tessera::runtime::cpu

// A copy of elements that the threads of a pool share.
#pragma once

#include "tessera/op/array.h"
#include "tessera/runtime/cpu/thread_pool.h"

namespace tessera::runtime::cpu {

/// op::copy_elements() over all threads, cut along the first axis that can be. REQUIRES arrays that do not
/// overlap, or are the same.
void copy_shared(const op::Array& from, const op::Array& to, ThreadPool& threads);

}  // namespace tessera::runtime::cpu

// What libraries do once takes milliseconds: it is begun while a function is compiled, for what the function
// will need.
#pragma once

#include <cstdint>
#include <future>

#include "tessera/ir/function.h"

namespace tessera::runtime::cpu {

/// Whether code of kernels may be stored already, or must be made.
enum class KernelCode : std::uint8_t { may_be_stored, to_be_made };

/// On a thread of its own, that ends with what comes back: opens oneDNN if the function has ops that are
/// costly, and has it make its code for products of bytes if some of them give i32; opens LLVM if code must
/// be made and the function has sums and the like, which kernels compute. Not valid if there is nothing to
/// do, or no thread to be had.
[[nodiscard]] std::future<void> start_early(const ir::Function& function, KernelCode code);

}  // namespace tessera::runtime::cpu

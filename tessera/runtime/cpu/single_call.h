// Calls that run one by one, without a plan: by a library, or by the precompiled loops of the interpreter.
// Nothing is compiled for them.
#pragma once

#include "tessera/runtime/cpu/library_call.h"

namespace tessera::runtime::cpu {

/// What single calls need of their device.
struct SingleCallContext {
  ThreadPool& threads;
  Libraries& libraries;
};

/// Whether it ran: calls that are small, or have neither a library nor a formula, do not.
[[nodiscard]] Result<bool> run_single_call(const op::CallInfo& call, std::span<const op::Array> inputs,
                                           std::span<const op::Array> results, SingleCallContext context);

/// Whether a library computed it.
[[nodiscard]] Result<bool> run_by_library(const op::CallInfo& call, std::span<const op::Array> inputs,
                                          std::span<const op::Array> results, SingleCallContext context);

}  // namespace tessera::runtime::cpu

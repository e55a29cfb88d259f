// Writing one function out inside another.
#pragma once

#include <functional>
#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/ir_builder.h"

namespace tessera::autodiff {

/// Writes the statements of `callee` into `builder`, with variables of their own, and gives its results.
/// `dims` and `args` stand for its sizes and parameters; an argument may be empty if the callee does not use
/// it.
[[nodiscard]] op::Values inline_call(op::IrBuilder& builder, const ir::Function& callee,
                                     std::span<const ir::ExprRef> dims, std::span<const op::Value> args);

/// Whether a call of this function stays a call.
using KeepsCall = std::function<bool(const ir::Function& callee)>;

/// The function with calls of other functions written out, tuples that it made itself taken apart, and
/// variables that only stand for others replaced by them. The function itself if there is none of these.
[[nodiscard]] ir::FunctionRef flattened(const ir::FunctionRef& function, const KeepsCall& keeps_call);

}  // namespace tessera::autodiff

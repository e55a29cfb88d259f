// Matrix products as calls of a library.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/call_info.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Whether a call of the op, or its parts, may be products of a library: opening one takes time.
[[nodiscard]] bool may_be_product(const op::Card& card);

/// The program of a `matmul` of floats, by products and by copies of operands that do not lie as a library
/// needs them. Nothing for other ops, other dtypes and batches that are not made of few regular ones.
[[nodiscard]] std::optional<StepProgram> library_product(const op::CallInfo& call,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results);

/// The program of ops that are a product with what the library does to its result (product_chain.h); nothing
/// if they are not, or for what `library_product` has nothing.
[[nodiscard]] std::optional<StepProgram> library_chain(const ir::Function& ops,
                                                       std::span<const op::Array> inputs,
                                                       std::span<const op::Array> results);

/// The bytes that the library's algorithm for a product needs.
using WorkspaceOf = std::function<std::int64_t(const Product&)>;

/// Gives the products of a program, which are made with all that an algorithm may need, what theirs do.
void fit_workspaces(StepProgram& program, const WorkspaceOf& bytes_of);

}  // namespace tessera::runtime::cuda

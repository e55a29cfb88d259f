// What every writer of recorded nodes as statements of the IR needs.
#pragma once

#include "tessera/engine/node.h"
#include "tessera/ir/function.h"
#include "tessera/op/ir_builder.h"

namespace tessera::engine {

/// The caller's line of a node.
[[nodiscard]] ir::Span span_of(const Node& node);

/// Appends a call of `callee`, which has the results of `node`.
[[nodiscard]] op::Values append_invoke(op::IrBuilder& builder, const Node& node,
                                       const ir::FunctionRef& callee, const op::Values& inputs);

}  // namespace tessera::engine

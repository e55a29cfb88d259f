// Rewriting a graph bottom-up. Nodes are immutable: what changes is built anew, what does not stays the same
// object.
#pragma once

#include <functional>

#include "tessera/ir/function.h"
#include "tessera/ir/type.h"

namespace tessera::ir {

/// What takes the place of a node whose children are rewritten already: itself, or another node that may
/// stand in the same field.
using RewriteRule = std::function<NodeRef(const NodeRef&)>;

/// Applies `rule` to every node once, children first. Returns `root` itself if nothing changed.
[[nodiscard]] NodeRef rewrite(const NodeRef& root, const RewriteRule& rule);

/// The same for a function.
[[nodiscard]] FunctionRef rewrite(const FunctionRef& root, const RewriteRule& rule);

/// Replaces uses of variables. `value_of` returns null for those that stay. Definitions are not touched.
[[nodiscard]] NodeRef replace_variables(const NodeRef& root,
                                        const std::function<ExprRef(const Var&)>& value_of);

/// A type with its size symbols replaced, its dimensions in normal form.
[[nodiscard]] TypeRef substitute(const TypeRef& type,
                                 const std::function<std::optional<Dim>(const Var&)>& value_of);

}  // namespace tessera::ir

// A matrix product with what a library does to its result before storing it: a bias, another array that is
// added, an activation.
#pragma once

#include <optional>

#include "tessera/base/small_vector.h"
#include "tessera/pattern/graph.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

struct ProductChain {
  SmallVector<pattern::NodeId, 4> nodes;  ///< in their order; the first is the product
  Product::Finish finish;
  // Values of the graph, or `none`.
  pattern::ValueId bias = pattern::none;   ///< one number per column
  pattern::ValueId added = pattern::none;  ///< of the type of the result
};

/// The longest chain that begins at a node; nothing if no library computes the node itself. Its first nodes
/// are a chain too, however many.
[[nodiscard]] std::optional<ProductChain> product_chain(const pattern::Graph& graph, pattern::NodeId node);

/// The chain that all nodes of the graph are.
[[nodiscard]] std::optional<ProductChain> product_chain(const pattern::Graph& graph);

}  // namespace tessera::runtime::cuda

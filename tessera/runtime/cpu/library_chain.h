// What a library computes at once: a matrix product, a convolution or a pooling, with the element-wise ops
// behind it that it can finish while the result is at hand, and a scale of an operand before it. A product of
// integers takes the bytes that its right operand is made of. A product, the softmax of its rows and a
// product of that are an attention. Where others read a product, too, what is updated by it follows all the
// same, as weights less their gradient, and both are results.
#pragma once

#include <optional>

#include "tessera/base/small_vector.h"
#include "tessera/kernel/kernel.h"
#include "tessera/op/card.h"
#include "tessera/pattern/graph.h"
#include "tessera/runtime/cpu/epilogue.h"

namespace tessera::runtime::cpu {

enum class LibraryOp : std::uint8_t {
  matmul,
  integer_matmul,
  convolution,
  integer_convolution,
  max_pool,
  avg_pool,
  attention,
  half_matmul,        ///< of 16-bit floats
  slice_convolution,  ///< over three axes, or of 16-bit floats: of its slices in f32
};

/// The op of f32 on other numbers, if libraries have it: i32, f16 and bf16.
[[nodiscard]] std::optional<LibraryOp> op_of(LibraryOp op, ir::Dtype dtype);
/// How libraries compute a convolution of arrays of this rank and dtype, if they do.
[[nodiscard]] std::optional<LibraryOp> convolution_of(std::size_t rank, ir::Dtype dtype);

struct LibraryChain {
  LibraryOp op = LibraryOp::matmul;
  /// The product, what is behind it in order, what is before it from the last to the first.
  SmallVector<pattern::NodeId, 6> nodes;
  Epilogue epilogue;
  // Values of the graph, or `none`.
  pattern::ValueId bias = pattern::none;  ///< of an addition; a convolution may have one of its own
  pattern::ValueId residual = pattern::none;
  pattern::ValueId scale = pattern::none;
  bool divides = false;  ///< by the scale
  bool negates = false;  ///< the scale, which is 1 if there is none
  /// The operand of the product, and what it is before it is scaled, if the scale is not behind the product.
  std::uint32_t scaled_operand = pattern::none;
  pattern::ValueId unscaled = pattern::none;
  /// Of integers: what the right operand is made of, and the number that is taken from it.
  pattern::ValueId narrow = pattern::none;
  std::int32_t zero = 0;
  /// Of an attention: what its weights sum up, where its softmax is among the nodes, and whether the heads of
  /// its result are joined behind each query.
  pattern::ValueId values = pattern::none;
  std::uint32_t softmax = pattern::none;
  bool joins_heads = false;
  const op::Card* activation = nullptr;  ///< of an epilogue by card
};

/// The longest chain that begins at a node; nothing if no library computes the node itself. Its first nodes
/// are a chain too, however many, but for those that end with the softmax of an attention or with the scale
/// of a product that is kept. A chain that keeps its product is not always convex. A precise one ends before
/// activations that a library computes less exactly.
[[nodiscard]] std::optional<LibraryChain> chain_from(const pattern::Graph& graph, pattern::NodeId node,
                                                     kernel::Accuracy accuracy = kernel::Accuracy::usual);

}  // namespace tessera::runtime::cpu

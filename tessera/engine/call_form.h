// How a call of few operands is recorded when nothing has to be inferred.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "tessera/engine/node.h"

namespace tessera::engine {

/// Of a call whose tensors need no conversion and whose result has a low rank. It holds for operands of the
/// same types, whatever their values, but for numbers that do not fit the dtype they are used in.
struct CallForm {
  static constexpr std::size_t max_operands = Node::inline_inputs;
  static constexpr std::size_t max_rank = 6;

  struct Type {
    Dtype dtype = Dtype::f32;
    std::uint8_t rank = 0;
    TypeNumber number = no_type_number;
    std::array<std::int64_t, max_rank> dims = {};  ///< 0 behind the rank
  };
  const op::Card* card = nullptr;
  Type result;
  bool tracks_gradient = false;                        ///< if an operand does
  bool converts_numbers = false;                       ///< not all are floats that are used as floats
  std::array<Dtype, max_operands> number_dtypes = {};  ///< by operand, of numbers that are converted
  std::shared_ptr<const op::Attributes> attributes;    ///< complete; null: none

  CallForm() = default;
  /// REQUIRES at most `max_rank` sizes.
  CallForm(const op::Card& called, Dtype dtype, std::span<const std::int64_t> sizes,
           std::shared_ptr<const op::Attributes> complete);
};

/// The number of a node's type, which it carries from then on; none if there are no more.
[[nodiscard]] inline TypeNumber number_of_type(Node& node) {
  TypeNumber out = node.type_number.load(std::memory_order_relaxed);
  if (out != no_type_number) [[likely]]
    return out;
  out = type_number(node.dtype, node.shape());
  node.type_number.store(out, std::memory_order_relaxed);
  return out;
}

}  // namespace tessera::engine

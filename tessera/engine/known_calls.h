// Calls that were recorded before with operands of the same types, so that nothing has to be inferred again:
// programs record the same few hundred calls over and over.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/engine/node.h"

namespace tessera::engine {

struct Operand;

/// A call of few operands of low rank whose operands needed no conversion and whose numbers are floats.
/// Everything else is not kept.
struct KnownCall {
  static constexpr std::size_t max_operands = Node::inline_inputs, max_rank = 6;

  struct Type {
    Dtype dtype = Dtype::f32;
    std::uint8_t rank = 0;
    std::array<std::int64_t, max_rank> dims = {};  ///< 0 behind the rank
  };
  const op::Card* card = nullptr;
  std::uint8_t count = 0;
  std::uint8_t numbers = 0;  ///< a bit per operand that is a number
  std::array<Type, max_operands> operands;
  Type result;
  bool tracks_gradient = false;                      ///< if an operand does
  op::Attributes given;                              ///< attributes as they were given
  std::shared_ptr<const op::Attributes> attributes;  ///< complete; null: none

  [[nodiscard]] bool serves(const op::Card& other, std::span<const Operand> operands,
                            const op::Attributes& attributes) const;
};

/// Of one thread. Four calls share a set; one more replaces the oldest of them. There are as many sets as
/// keep the calls of a training step apart, some hundreds; their memory is taken with the first call.
class KnownCalls {
 public:
  /// The call, or null.
  [[nodiscard]] const KnownCall* find(const op::Card& card, std::span<const Operand> operands,
                                      const op::Attributes& attributes);
  /// Remembers what was inferred, if it is simple enough: the attributes as given, and complete.
  void add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
           std::shared_ptr<const op::Attributes> complete, const op::ValueType& result);

 private:
  using Set = std::array<KnownCall, 4>;  ///< the newest first
  static constexpr unsigned set_bits = 8;
  [[nodiscard]] Set& set_of(const op::Card& card, std::span<const Operand> operands,
                            const op::Attributes& attributes);
  std::vector<Set> sets_;
};

}  // namespace tessera::engine

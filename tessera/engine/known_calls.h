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

/// What a call of few operands is found by: what is called, and on which types.
struct CallTypes {
  static constexpr std::size_t max_operands = Node::inline_inputs;

  const op::Card* card = nullptr;
  std::array<std::uint32_t, 1 + max_operands> types =
      {};  ///< how many operands, their types; none for numbers

  bool operator==(const CallTypes&) const = default;
  [[nodiscard]] std::uint32_t count() const { return types[0]; }
};
using AttributeEntries = std::span<const op::Attributes::Entry>;

/// A call whose operands needed no conversion, whose numbers are floats and whose result has a low rank.
/// Everything else is not kept.
struct KnownCall {
  static constexpr std::size_t max_rank = 6;

  struct Type {
    Dtype dtype = Dtype::f32;
    std::uint8_t rank = 0;
    TypeNumber number = no_type_number;
    std::array<std::int64_t, max_rank> dims = {};  ///< 0 behind the rank
  };
  CallTypes types;
  Type result;
  bool tracks_gradient = false;                      ///< if an operand does
  op::Attributes given;                              ///< attributes as they were given
  std::shared_ptr<const op::Attributes> attributes;  ///< complete; null: none
};

/// Of one thread. Four calls share a set; one more replaces the oldest of them. There are as many sets as
/// keep the calls of a training step apart, some hundreds; their memory is taken with the first call.
class KnownCalls {
 public:
  /// The call, or null.
  [[nodiscard]] const KnownCall* find(const op::Card& card, std::span<const Operand> operands,
                                      AttributeEntries attributes);
  /// Remembers what was inferred, if it is simple enough: the attributes as given, and complete.
  void add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
           std::shared_ptr<const op::Attributes> complete, const op::ValueType& result);

 private:
  using Set = std::array<KnownCall, 4>;  ///< the newest first
  static constexpr unsigned set_bits = 8;
  [[nodiscard]] Set& set_of(const CallTypes& types, AttributeEntries attributes);
  std::vector<Set> sets_;
};

}  // namespace tessera::engine

// Calls that were recorded before with operands of the same types, so that nothing has to be inferred again:
// programs record the same few hundred calls over and over.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/engine/call_form.h"

namespace tessera::engine {

struct Operand;

/// What a call of few operands is found by: what is called, and on which types.
struct CallTypes {
  const op::Card* card = nullptr;
  /// How many operands and the type of the first, the types of the second and the third; none for numbers.
  /// Two in a word: what was just written in halves is slow to read as a whole.
  std::uint64_t first = 0, others = 0;

  bool operator==(const CallTypes& other) const {
    return card == other.card && first == other.first && others == other.others;
  }
};
using AttributeEntries = std::span<const op::Attributes::Entry>;

struct KnownCall {
  CallTypes types;
  CallForm form;
  op::Attributes given;  ///< attributes as they were given
};

/// Of one thread. Four calls share a set; one more replaces the oldest of them. There are as many sets as
/// keep the calls of a training step apart, some hundreds; their memory is taken with the first call.
class KnownCalls {
 public:
  /// How the call is recorded, or null.
  [[nodiscard]] const CallForm* find(const op::Card& card, std::span<const Operand> operands,
                                     AttributeEntries attributes);
  /// Remembers what was inferred, if it is simple enough: the attributes as given, and complete.
  void add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
           std::shared_ptr<const op::Attributes> complete, const op::ValueType& result);

 private:
  using Set = std::array<KnownCall, 4>;  ///< the newest first
  static constexpr unsigned set_bits = 8;
  std::vector<Set> sets_;
};

}  // namespace tessera::engine

// Calls that were recorded before with operands of the same types, so that nothing has to be inferred again:
// programs record the same few hundred calls over and over.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/engine/call_form.h"
#include "tessera/engine/recent_sets.h"

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

/// Of one thread. There are as many sets as keep the calls of a training step apart, some hundreds.
class KnownCalls {
 public:
  /// How the call is recorded, or null.
  [[nodiscard]] const CallForm* find(const op::Card& card, std::span<const Operand> operands,
                                     AttributeEntries attributes) const;
  /// Remembers what was inferred, if it is simple enough: the attributes as given, and complete.
  void add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
           std::shared_ptr<const op::Attributes> complete, const op::ValueType& result);

 private:
  RecentSets<KnownCall, 8> calls_;
};

}  // namespace tessera::engine

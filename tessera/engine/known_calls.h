// Calls that were recorded before with operands of the same types, so that nothing has to be inferred again:
// programs record the same few hundred calls over and over.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/engine/call_form.h"
#include "tessera/engine/operand.h"
#include "tessera/engine/recent_sets.h"

namespace tessera::engine {

/// What a call of few operands is found by: what is called, and on which types.
struct CallTypes {
  /// Stands for an integer, where a float has no type number: no type has it.
  static constexpr TypeNumber integer = ~TypeNumber{0};

  const op::Card* card = nullptr;
  /// How many operands and the type of the first, the types of the second and the third; none for numbers.
  /// Two in a word: what was just written in halves is slow to read as a whole.
  std::uint64_t first = 0, others = 0;

  /// Whether it is a call that is kept; its types then stand here.
  template <std::size_t count>
  [[nodiscard]] bool set(const op::Card& called, std::span<const Operand, count> operands);

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
  /// How the call is recorded, or null. The number of operands is best known when this is compiled.
  template <std::size_t count>
  [[nodiscard]] const CallForm* find(const op::Card& card, std::span<const Operand, count> operands,
                                     AttributeEntries attributes = {}) const;
  /// Remembers what was inferred, if it is simple enough: the attributes as given, and complete; the dtypes
  /// that numbers are used in, by operand.
  void add(const op::Card& card, std::span<const Operand> operands, std::span<const Dtype> number_dtypes,
           op::Attributes given, std::shared_ptr<const op::Attributes> complete, const op::ValueType& result);

 private:
  static std::uint64_t hash_of(const CallTypes& call, AttributeEntries attributes) {
    const std::uint64_t hash =
        mixed(mixed(reinterpret_cast<std::uint64_t>(call.card) >> 4, call.first), call.others);
    return attributes.empty() ? hash : hash_with(hash, attributes);
  }
  static std::uint64_t hash_with(std::uint64_t hash, AttributeEntries attributes);
  static bool are_same(AttributeEntries a, AttributeEntries b);

  RecentSets<KnownCall, 8> calls_;
};

template <std::size_t count>
inline bool CallTypes::set(const op::Card& called, std::span<const Operand, count> operands) {
  if (operands.size() > CallForm::max_operands) return false;
  card = &called;
  first = operands.size();
  others = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    const TypeNumber type = operand.node != nullptr ? number_of_type(*operand.node)
                            : operand.is_float      ? no_type_number
                                                    : integer;
    if (type == no_type_number && operand.node != nullptr) return false;
    const std::uint64_t word = std::uint64_t{type} << (i == 1 ? 0 : 32);
    (i == 0 ? first : others) |= word;
  }
  return true;
}

template <std::size_t count>
inline const CallForm* KnownCalls::find(const op::Card& card, std::span<const Operand, count> operands,
                                        AttributeEntries attributes) const {
  CallTypes types;
  if (!types.set(card, operands)) return nullptr;
  const KnownCall* const known = calls_.find(hash_of(types, attributes), [&](const KnownCall& call) {
    if (!(call.types == types)) return false;
    return attributes.empty() ? call.given.empty() : are_same(call.given.entries(), attributes);
  });
  return known == nullptr ? nullptr : &known->form;
}

}  // namespace tessera::engine

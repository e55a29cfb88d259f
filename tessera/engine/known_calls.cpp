#include "tessera/engine/known_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "tessera/engine/record.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// None if it is no call that is kept.
inline std::optional<CallTypes> types_of(const op::Card& card, std::span<const Operand> operands) {
  if (operands.size() > CallForm::max_operands) return std::nullopt;
  CallTypes out{&card, operands.size()};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    const TypeNumber type = operand.node == nullptr ? no_type_number : number_of_type(*operand.node);
    if (type == no_type_number && !(operand.node == nullptr && operand.is_float)) return std::nullopt;
    const std::uint64_t word = std::uint64_t{type} << (i == 1 ? 0 : 32);
    (i == 0 ? out.first : out.others) |= word;
  }
  return out;
}

/// Floats are the same if their bits are.
bool is_same(const ir::AttributeValue& a, const ir::AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using V = std::decay_t<decltype(value)>;
        const V& other = *std::get_if<V>(&b);
        if constexpr (std::is_same_v<V, double>)
          return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other);
        else if constexpr (std::is_same_v<V, std::vector<double>>)
          return value.size() == other.size() &&
                 (value.empty() ||
                  std::memcmp(value.data(), other.data(), value.size() * sizeof(double)) == 0);
        else
          return value == other;
      },
      a);
}

bool are_same(AttributeEntries a, AttributeEntries b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && is_same(x.second, y.second);
  });
}

/// Of the numbers in it; what else there is differs seldom.
std::uint64_t hash_of(std::uint64_t hash, const ir::AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return mixed(hash, static_cast<std::uint64_t>(*number));
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
    for (const std::int64_t number : *numbers) hash = mixed(hash, static_cast<std::uint64_t>(number));
  if (const auto* shape = std::get_if<ir::Shape>(&value))
    for (const ir::Dim& dim : *shape)
      hash = mixed(hash, dim.is_constant() ? static_cast<std::uint64_t>(dim.value()) : 0);
  return hash;
}

inline std::uint64_t hash_of(const CallTypes& call, AttributeEntries attributes) {
  std::uint64_t hash = mixed(reinterpret_cast<std::uint64_t>(call.card) >> 4, call.first);
  hash = mixed(hash, call.others);
  for (const auto& [name, value] : attributes) hash = hash_of(hash, value);
  return hash;
}

}  // namespace

const CallForm* KnownCalls::find(const op::Card& card, std::span<const Operand> operands,
                                 AttributeEntries attributes) const {
  if (calls_.empty()) return nullptr;
  const auto types = types_of(card, operands);
  if (!types) return nullptr;
  const KnownCall* const known = calls_.find(hash_of(*types, attributes), [&](const KnownCall& call) {
    return call.types == *types && are_same(call.given.entries(), attributes);
  });
  return known == nullptr ? nullptr : &known->form;
}

void KnownCalls::add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
                     std::shared_ptr<const op::Attributes> complete, const op::ValueType& result) {
  const auto sizes = ir::constant_shape(result.shape);
  const auto types = types_of(card, operands);
  if (!types || !sizes || sizes->size() > CallForm::max_rank) return;
  const std::uint64_t hash = hash_of(*types, given.entries());
  calls_.add(hash, {*types, CallForm(card, result.dtype, *sizes, std::move(complete)), std::move(given)});
}

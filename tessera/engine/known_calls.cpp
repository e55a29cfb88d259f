#include "tessera/engine/known_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

using namespace tessera;
using namespace tessera::engine;

namespace {

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

/// Of the numbers in it; what else there is differs seldom.
std::uint64_t hash_of_value(std::uint64_t hash, const ir::AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return mixed(hash, static_cast<std::uint64_t>(*number));
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value))
    for (const std::int64_t number : *numbers) hash = mixed(hash, static_cast<std::uint64_t>(number));
  if (const auto* shape = std::get_if<ir::Shape>(&value))
    for (const ir::Dim& dim : *shape)
      hash = mixed(hash, dim.is_constant() ? static_cast<std::uint64_t>(dim.value()) : 0);
  return hash;
}

}  // namespace

bool KnownCalls::are_same(AttributeEntries a, AttributeEntries b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && is_same(x.second, y.second);
  });
}

std::uint64_t KnownCalls::hash_with(std::uint64_t hash, AttributeEntries attributes) {
  for (const auto& [name, value] : attributes) hash = hash_of_value(hash, value);
  return hash;
}

void KnownCalls::add(const op::Card& card, std::span<const Operand> operands,
                     std::span<const Dtype> number_dtypes, op::Attributes given,
                     std::shared_ptr<const op::Attributes> complete, const op::ValueType& result) {
  const auto sizes = ir::constant_shape(result.shape);
  CallTypes types;
  if (!types.set(card, operands) || !sizes || sizes->size() > CallForm::max_rank) return;
  const std::uint64_t hash = hash_of(types, given.entries());
  CallForm form(card, result.dtype, *sizes, std::move(complete));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].node != nullptr) continue;
    form.number_dtypes[i] = number_dtypes[i];
    form.converts_numbers |= !operands[i].is_float || !ir::is_float(number_dtypes[i]);
  }
  calls_.add(hash, {types, std::move(form), std::move(given)});
}

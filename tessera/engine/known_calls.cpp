#include "tessera/engine/known_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tessera/engine/record.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

TypeNumber number_of(Node& node) {
  TypeNumber out = node.type_number.load(std::memory_order_relaxed);
  if (out != no_type_number) [[likely]]
    return out;
  out = type_number(node.dtype, node.shape());
  node.type_number.store(out, std::memory_order_relaxed);
  return out;
}

/// False if it is no call that is kept.
inline bool find_types(const op::Card& card, std::span<const Operand> operands, CallTypes& out) {
  if (operands.size() > CallTypes::max_operands) return false;
  out.card = &card;
  out.types[0] = static_cast<std::uint32_t>(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    const TypeNumber type = operand.node == nullptr ? no_type_number : number_of(*operand.node);
    if (type == no_type_number && !(operand.node == nullptr && operand.is_float)) return false;
    out.types[1 + i] = type;
  }
  return true;
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

std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  return (hash ^ number) * 0x9e3779b97f4a7c15ULL;
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

}  // namespace

KnownCalls::Set& KnownCalls::set_of(const CallTypes& call, AttributeEntries attributes) {
  const auto pair = [&](std::size_t i) { return call.types[i] | std::uint64_t{call.types[i + 1]} << 32; };
  std::uint64_t hash = mixed(reinterpret_cast<std::uint64_t>(call.card) >> 4, pair(0));
  hash = mixed(hash, pair(2));
  for (const auto& [name, value] : attributes) hash = hash_of(hash, value);
  return sets_[hash >> (64 - set_bits)];
}

const KnownCall* KnownCalls::find(const op::Card& card, std::span<const Operand> operands,
                                  AttributeEntries attributes) {
  CallTypes types;
  if (sets_.empty() || !find_types(card, operands, types)) return nullptr;
  for (const KnownCall& call : set_of(types, attributes))
    if (call.types == types && are_same(call.given.entries(), attributes)) return &call;
  return nullptr;
}

void KnownCalls::add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
                     std::shared_ptr<const op::Attributes> complete, const op::ValueType& result) {
  const auto sizes = ir::constant_shape(result.shape);
  CallTypes types;
  if (!find_types(card, operands, types) || !sizes || sizes->size() > KnownCall::max_rank) return;
  if (sets_.empty()) sets_.resize(std::size_t{1} << set_bits);
  Set& set = set_of(types, given.entries());
  KnownCall call{.types = types,
                 .result = {.dtype = result.dtype,
                            .rank = static_cast<std::uint8_t>(sizes->size()),
                            .number = type_number(result.dtype, *sizes)},
                 .tracks_gradient = ir::is_float(result.dtype) && card.no_gradient.empty(),
                 .given = std::move(given),
                 .attributes = std::move(complete)};
  std::copy(sizes->begin(), sizes->end(), call.result.dims.begin());
  std::move_backward(set.begin(), set.end() - 1, set.end());
  set.front() = std::move(call);
}

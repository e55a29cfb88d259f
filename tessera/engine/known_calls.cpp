#include "tessera/engine/known_calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tessera/engine/record.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

bool has_type(const Node& node, const KnownCall::Type& type) {
  if (node.dtype != type.dtype || node.rank != type.rank) return false;
  bool same = true;
  if (node.rank <= Node::inline_dims) {  // both are 0 behind the rank
    for (std::size_t d = 0; d < Node::inline_dims; ++d) same &= node.dims[d] == type.dims[d];
    return same;
  }
  return std::equal(type.dims.begin(), type.dims.begin() + node.rank, node.shape().begin());
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

bool are_same(const op::Attributes& a, const op::Attributes& b) {
  return std::equal(
      a.entries().begin(), a.entries().end(), b.entries().begin(), b.entries().end(),
      [](const auto& x, const auto& y) { return x.first == y.first && is_same(x.second, y.second); });
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

bool KnownCall::serves(const op::Card& other, std::span<const Operand> given_operands,
                       const op::Attributes& given_attributes) const {
  if (card != &other || count != given_operands.size()) return false;
  for (std::size_t i = 0; i < given_operands.size(); ++i) {
    const Operand& operand = given_operands[i];
    const bool is_number = (numbers >> i & 1) != 0;
    if (is_number ? operand.node != nullptr || !operand.is_float
                  : operand.node == nullptr || !has_type(*operand.node, operands[i]))
      return false;
  }
  return are_same(given, given_attributes);
}

KnownCalls::Set& KnownCalls::set_of(const op::Card& card, std::span<const Operand> operands,
                                    const op::Attributes& attributes) {
  std::uint64_t hash = reinterpret_cast<std::uint64_t>(&card) >> 4;
  for (const Operand& operand : operands) {
    if (operand.node == nullptr) continue;
    const Node& node = *operand.node;
    const auto dim = [&](std::size_t d) { return static_cast<std::uint64_t>(node.dims[d]); };
    hash = (hash ^ node.rank ^ static_cast<std::uint64_t>(node.dtype) << 8 ^ dim(0) << 16) *
           0x9e3779b97f4a7c15ULL;
    hash = (hash ^ dim(1) ^ dim(2) << 24 ^ dim(3) << 48) * 0x9fb21c651e98df25ULL;
  }
  for (const auto& [name, value] : attributes.entries()) hash = hash_of(hash, value);
  return sets_[hash >> (64 - set_bits)];
}

const KnownCall* KnownCalls::find(const op::Card& card, std::span<const Operand> operands,
                                  const op::Attributes& attributes) {
  if (sets_.empty() || operands.size() > KnownCall::max_operands) return nullptr;
  for (const KnownCall& call : set_of(card, operands, attributes))
    if (call.serves(card, operands, attributes)) return &call;
  return nullptr;
}

void KnownCalls::add(const op::Card& card, std::span<const Operand> operands, op::Attributes given,
                     std::shared_ptr<const op::Attributes> complete, const op::ValueType& result) {
  const auto numbers = ir::constant_shape(result.shape);
  if (operands.size() > KnownCall::max_operands || !numbers || numbers->size() > KnownCall::max_rank) return;
  if (sets_.empty()) sets_.resize(std::size_t{1} << set_bits);
  Set& set = set_of(card, operands, given);
  KnownCall call{.card = &card,
                 .count = static_cast<std::uint8_t>(operands.size()),
                 .given = std::move(given),
                 .attributes = std::move(complete)};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Node* node = operands[i].node;
    if (node == nullptr) {
      if (!operands[i].is_float) return;
      call.numbers |= static_cast<std::uint8_t>(1U << i);
      continue;
    }
    if (node->rank > KnownCall::max_rank) return;
    call.operands[i] = {node->dtype, node->rank, {}};
    std::copy_n(node->shape().begin(), node->rank, call.operands[i].dims.begin());
  }
  call.result = {result.dtype, static_cast<std::uint8_t>(numbers->size()), {}};
  std::copy(numbers->begin(), numbers->end(), call.result.dims.begin());
  call.tracks_gradient = ir::is_float(result.dtype) && card.no_gradient.empty();
  std::move_backward(set.begin(), set.end() - 1, set.end());
  set.front() = std::move(call);
}

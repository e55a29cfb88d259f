#include "tessera/engine/known_calls.h"

#include <algorithm>
#include <utility>

#include "tessera/engine/record.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// Dimensions behind the rank are 0 on both sides.
bool has_type(const Node& node, const KnownCall::Type& type) {
  bool same = node.dtype == type.dtype && node.rank == type.rank;
  for (std::size_t d = 0; d < Node::inline_dims; ++d) same &= node.dims[d] == type.dims[d];
  return same;
}

}  // namespace

bool KnownCall::serves(const op::Card& other, std::span<const Operand> given) const {
  if (card != &other || count != given.size()) return false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool is_number = (numbers >> i & 1) != 0;
    if (is_number ? given[i].node != nullptr || !given[i].is_float
                  : given[i].node == nullptr || !has_type(*given[i].node, operands[i]))
      return false;
  }
  return true;
}

std::size_t KnownCalls::place_of(const op::Card& card, std::span<const Operand> operands) {
  std::uint64_t hash = reinterpret_cast<std::uint64_t>(&card) >> 4;
  for (const Operand& operand : operands) {
    if (operand.node == nullptr) continue;
    const Node& node = *operand.node;
    const auto dim = [&](std::size_t d) { return static_cast<std::uint64_t>(node.dims[d]); };
    hash = (hash ^ node.rank ^ static_cast<std::uint64_t>(node.dtype) << 8 ^ dim(0) << 16) *
           0x9e3779b97f4a7c15ULL;
    hash = (hash ^ dim(1) ^ dim(2) << 24 ^ dim(3) << 48) * 0x9fb21c651e98df25ULL;
  }
  return hash >> 56;
}
static_assert(sizeof(std::size_t) == 8);

const KnownCall* KnownCalls::find(const op::Card& card, std::span<const Operand> operands) {
  if (operands.size() > KnownCall::max_operands) return nullptr;
  const std::size_t place = place_of(card, operands);
  if (calls_[place].serves(card, operands)) return &calls_[place];
  const KnownCall& other = calls_[beside(place)];
  return other.serves(card, operands) ? &other : nullptr;
}

void KnownCalls::add(const op::Card& card, std::span<const Operand> operands,
                     const op::Attributes& attributes, const op::ValueType& result) {
  const auto numbers = ir::constant_shape(result.shape);
  if (operands.size() > KnownCall::max_operands || !numbers || numbers->size() > Node::inline_dims) return;
  KnownCall call{
      .card = &card, .count = static_cast<std::uint8_t>(operands.size()), .attributes = attributes};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Node* node = operands[i].node;
    if (node == nullptr) {
      if (!operands[i].is_float) return;
      call.numbers |= static_cast<std::uint8_t>(1U << i);
      continue;
    }
    if (node->rank > Node::inline_dims) return;
    call.operands[i] = {node->dtype, node->rank, {}};
    std::copy_n(node->dims, node->rank, call.operands[i].dims.begin());
  }
  call.result = {result.dtype, static_cast<std::uint8_t>(numbers->size()), {}};
  std::copy(numbers->begin(), numbers->end(), call.result.dims.begin());
  call.tracks_gradient = ir::is_float(result.dtype) && card.no_gradient.empty();
  const std::size_t place = place_of(card, operands);
  calls_[beside(place)] = std::exchange(calls_[place], std::move(call));
}

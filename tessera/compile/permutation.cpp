#include "tessera/compile/permutation.h"

using namespace tessera;
using namespace tessera::compile;

std::optional<Permutation> tessera::compile::permutation_of(const ir::Call& transpose, std::size_t rank) {
  const auto* given = transpose.attrs.get<Permutation>("permutation");
  const auto signed_rank = static_cast<std::int64_t>(rank);
  Permutation out = given == nullptr ? Permutation() : *given;
  if (out.empty())  // reversed
    for (std::int64_t axis = signed_rank; axis-- > 0;) out.push_back(axis);
  if (out.size() != rank) return std::nullopt;
  for (std::int64_t& axis : out) {
    axis += axis < 0 ? signed_rank : 0;
    if (axis < 0 || axis >= signed_rank) return std::nullopt;
  }
  return out;
}

Permutation tessera::compile::composed(const Permutation& first, const Permutation& second) {
  Permutation out;
  for (std::int64_t axis : second) out.push_back(first[static_cast<std::size_t>(axis)]);
  return out;
}

bool tessera::compile::is_identity(const Permutation& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

bool tessera::compile::keeps_order(const Permutation& permutation, const ir::Shape& shape) {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (shape[i] == ir::Dim(1)) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  return true;
}

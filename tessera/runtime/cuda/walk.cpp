#include "tessera/runtime/cuda/walk.h"

#include <algorithm>
#include <cstdlib>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::int64_t small_limit = std::int64_t{1} << 30;

/// Whether an axis continues the one before it in every array.
bool continues(const Walk& walk, const std::vector<op::Extents>& strides, std::size_t axis,
               std::int64_t size) {
  for (std::size_t k = 0; k < strides.size(); ++k)
    if (walk.strides[k].back() != strides[k][axis] * size) return false;
  return true;
}

}  // namespace

bool Walk::is_small() const { return points() <= small_limit && reaches_little(); }

bool Walk::reaches_little() const {
  return std::all_of(strides.begin(), strides.end(), [&](const op::Extents& steps) {
    std::int64_t reach = 0;
    for (std::size_t a = 0; a < rank(); ++a) {
      if (std::abs(steps[a]) > small_limit || shape[a] > small_limit) return false;
      reach += std::abs(steps[a]) * std::max<std::int64_t>(shape[a] - 1, 0);
      if (reach > small_limit) return false;
    }
    return true;
  });
}

Walk runtime::cuda::joined_walk(const op::Extents& shape, const std::vector<op::Extents>& strides) {
  Walk out;
  out.strides.resize(strides.size());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    const bool joins = !out.shape.empty() && continues(out, strides, axis, shape[axis]);
    if (joins)
      out.shape.back() *= shape[axis];
    else
      out.shape.push_back(shape[axis]);
    for (std::size_t k = 0; k < strides.size(); ++k) {
      if (joins)
        out.strides[k].back() = strides[k][axis];
      else
        out.strides[k].push_back(strides[k][axis]);
    }
  }
  if (out.shape.empty()) {
    out.shape.push_back(1);
    for (op::Extents& steps : out.strides) steps.push_back(0);
  }
  return out;
}

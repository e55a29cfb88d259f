#include "tessera/op/families/indices.h"

using namespace tessera;
using namespace tessera::op;

Result<std::vector<std::int64_t>> tessera::op::resolve_indices(const CallInfo& call, const Array& indices,
                                                               std::span<const IndexedAxis> axes) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(indices.size()));
  copy_elements(indices, {Dtype::i64, contiguous(indices.shape()), reinterpret_cast<std::byte*>(out.data())});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto& [axis, size] = axes[i % axes.size()];
    if (out[i] < -size || out[i] >= size)
      return call.element_error("index ", out[i], " is outside [", -size, ", ", size, ") for axis ", axis,
                                " of size ", size);
    if (out[i] < 0) out[i] += size;
  }
  return out;
}

Result<void> tessera::op::check_element_indices(const CallInfo& call) {
  const Shape &x = call.input(0).shape, &indices = call.input(1).shape;
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), x.size()));
  if (x.size() != indices.size())
    return call.error("'x' has rank ", x.size(), ", 'indices' has rank ", indices.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i != axis && provably_at_least(indices[i], x[i] + 1))
      return call.error("axis ", i, " of 'indices' has size ", indices[i], ", more than 'x', which has ",
                        x[i]);
  return {};
}

Result<IndexRows> tessera::op::index_rows(const CallInfo& call, std::size_t batch_axes) {
  const Shape &x = call.input(0).shape, &indices = call.input(1).shape;
  if (indices.empty()) return call.error("'indices' has rank 0, at least 1 is needed");
  if (!indices.back().is_constant())
    return call.error("the last axis of 'indices' has size ", indices.back(), ", which must be a number");
  IndexRows out;
  out.depth = static_cast<std::size_t>(indices.back().value());
  if (out.depth > x.size() - batch_axes)
    return call.error("the rows of 'indices' name ", out.depth, " axes, 'x' has ", x.size() - batch_axes);
  out.rows = Shape(indices.begin(), indices.end() - 1);
  out.part = Shape(x.begin() + batch_axes + out.depth, x.end());
  return out;
}

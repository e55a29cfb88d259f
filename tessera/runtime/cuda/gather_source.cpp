#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/families/indices.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/gather.h"
#include "tessera/runtime/cuda/op_programs.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view gather_body = R"(
    I from = place_of(at, size, from_step);
    const Index* const row = indices + place_of(at, size, row_step);
    if (find(row, step, extent, axis_step, place_of(at, size, number_step), status, from))
      y[place_of(at, size, to_step)] = x[from];
)";

/// How many elements of the last axis go at once: those that lie side by side and have one row of indices.
std::int64_t elements_at_once(const Walk& walk, const Gather& gather) {
  const std::size_t last = walk.rank() - 1;
  const std::int64_t bytes = gather.x.element_bytes();
  if (walk.strides[0][last] != 1 || walk.strides[1][last] != 1 || walk.strides[2][last] != 0) return 1;
  std::int64_t unit = std::min(gather.x.alignment, gather.y.alignment);
  const auto fits = [&](std::int64_t elements) { return elements * bytes % unit == 0; };
  const auto all_fit = [&] {
    for (std::size_t a = 0; a < last; ++a)
      if (!fits(walk.strides[0][a]) || !fits(walk.strides[1][a])) return false;
    return fits(walk.shape[last]) &&
           std::all_of(gather.named.strides.begin(), gather.named.strides.end(), fits);
  };
  while (unit > bytes && !all_fit()) unit /= 2;
  return std::max<std::int64_t>(unit / bytes, 1);
}

/// x and the result count in units of several elements.
void count_in_units(Walk& walk, op::Extents& axis_strides, std::int64_t elements) {
  walk.shape.back() /= elements;
  for (std::size_t k : {0, 1})
    for (std::size_t a = 0; a + 1 < walk.rank(); ++a) walk.strides[k][a] /= elements;
  for (std::int64_t& stride : axis_strides) stride /= elements;
}

void write(ProgramWriter& program, const op::CallInfo& call, const Gather& gather) {
  const Memory status = program.status({std::string(call.card().name), gather.named.axes});
  if (gather.y.size() == 0) return write_index_check(program, gather.indices, gather.named, status);
  if (auto launch = gather_from_held_rows(call.card().name, gather, status, program.limits()))
    return program.add(*std::move(launch));
  Walk walk = joined_walk(gather.y.shape, {gather.from, gather.y.strides, gather.rows, gather.numbers});
  NamedAxes named = gather.named;
  const std::int64_t elements = elements_at_once(walk, gather);
  count_in_units(walk, named.strides, elements);
  KernelWriter kernel(
      cat("tessera_", call.card().name), width_of(walk, named),
      unit_text(elements * gather.x.element_bytes()) + index_text(gather.indices, named.axes.size()));
  kernel.pointer("const T", "x", gather.x.memory).pointer("T", "y", gather.y.memory);
  kernel.pointer("const Index", "indices", gather.indices.memory).pointer("Status", "status", status);
  kernel.walk(walk, std::vector<std::string_view>{"from_step", "to_step", "row_step", "number_step"});
  kernel.integer("step", named.index_step).integers("extent", named.sizes());
  kernel.integers("axis_step", named.strides).prelude(place_text());
  program.add(std::move(kernel).launch_items(gather_body, walk.points()));
}

op::Extents dense_strides(const op::Extents& shape) { return op::contiguous(shape).strides; }

}  // namespace

IndexWidth runtime::cuda::width_of(const Walk& walk, const NamedAxes& named) {
  Walk all = walk;
  for (const auto& [axis, size] : named.axes) all.shape.push_back(std::max<std::int64_t>(size, 1));
  for (std::size_t k = 0; k < all.strides.size(); ++k)
    for (const std::int64_t stride : named.strides) all.strides[k].push_back(k == 0 ? stride : 0);
  Walk reach{all.shape, {all.strides[0]}};
  // The points of x are not visited; only how far they lie counts.
  return walk.is_small() && (op::element_count(walk.shape) == 0 || reach.reaches_little())
             ? IndexWidth::narrow
             : IndexWidth::wide;
}

Result<void> runtime::cuda::write_gather(const op::CallInfo& call, ProgramWriter& program) {
  Gather out{program.input(0), program.input(1), program.result(0)};
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), out.x.rank()));
  const std::size_t behind = axis + out.indices.rank();
  const op::Extents numbers = dense_strides(out.indices.shape);
  for (std::size_t i = 0; i < out.y.rank(); ++i) {
    const bool by_index = i >= axis && i < behind;
    out.from.push_back(by_index ? 0 : out.x.strides[i < axis ? i : i - behind + axis + 1]);
    out.rows.push_back(by_index ? out.indices.strides[i - axis] : 0);
    out.numbers.push_back(by_index ? numbers[i - axis] : 0);
  }
  out.named = {{{axis, out.x.shape[axis]}}, {out.x.strides[axis]}, false, 0};
  out.batch_axes = axis;
  write(program, call, out);
  return {};
}

Result<void> runtime::cuda::write_gather_elements(const op::CallInfo& call, ProgramWriter& program) {
  Gather out{program.input(0), program.input(1), program.result(0)};
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), out.x.rank()));
  out.named = {{{axis, out.x.shape[axis]}}, {out.x.strides[axis]}, false, 0};
  out.from = out.x.strides;
  out.from[axis] = 0;
  out.rows = out.indices.strides;
  out.numbers = dense_strides(out.indices.shape);
  out.batch_axes = axis;
  write(program, call, out);
  return {};
}

Result<void> runtime::cuda::write_gather_nd(const op::CallInfo& call, ProgramWriter& program) {
  Gather out{program.input(0), program.input(1), program.result(0)};
  const auto batch = static_cast<std::size_t>(call.integer("batch_dims"));
  const op::IndexRows rows = TESSERA_TRY(op::index_rows(call, batch));
  const op::Extents numbers = dense_strides(op::extents_of(rows.rows));
  for (std::size_t i = 0; i < out.y.rank(); ++i) {
    const bool is_part = i >= numbers.size();
    out.from.push_back(is_part     ? out.x.strides[i - numbers.size() + batch + rows.depth]
                       : i < batch ? out.x.strides[i]
                                   : 0);
    out.rows.push_back(is_part ? 0 : out.indices.strides[i]);
    out.numbers.push_back(is_part ? 0 : numbers[i]);
  }
  out.batch_axes = batch;
  out.named.has_rows = true;
  out.named.index_step = out.indices.strides.back();
  for (std::size_t i = 0; i < rows.depth; ++i) {
    out.named.axes.push_back({batch + i, out.x.shape[batch + i]});
    out.named.strides.push_back(out.x.strides[batch + i]);
  }
  write(program, call, out);
  return {};
}

// ---- one_hot

namespace {

constexpr std::string_view one_hot_body = R"(
    I hot = 0;
    const Index* const row = indices + place_of(at, size, row_step);
    if (find(row, 0, extent, axis_step, place_of(at, size, number_step), status, hot))
      y[at] = hot == place_of(at, size, place_step) ? on[0] : off[0];
)";

}  // namespace

Result<void> runtime::cuda::write_one_hot(const op::CallInfo& call, ProgramWriter& program) {
  const Operand indices = program.input(0), y = program.result(0);
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), y.rank()));
  const NamedAxes named{{{axis, y.shape[axis]}}, {1}, false, 0};
  const Memory status = program.status({std::string(call.card().name), named.axes});
  if (y.size() == 0) {
    write_index_check(program, indices, named, status);
    return {};
  }
  op::Extents rows = indices.strides, numbers = dense_strides(indices.shape), places(y.rank(), 0);
  rows.insert(rows.begin() + axis, 0);
  numbers.insert(numbers.begin() + axis, 0);
  places[axis] = 1;
  const Walk walk = joined_walk(y.shape, {rows, numbers, places});
  KernelWriter kernel("tessera_one_hot", width_of(walk),
                      unit_text(y.element_bytes()) + index_text(indices, 1));
  kernel.pointer("const T", "on", program.input(1).memory).pointer("const T", "off", program.input(2).memory);
  kernel.pointer("T", "y", y.memory).pointer("const Index", "indices", indices.memory);
  kernel.pointer("Status", "status", status);
  kernel.walk(walk, std::vector<std::string_view>{"row_step", "number_step", "place_step"});
  kernel.integers("extent", named.sizes()).integers("axis_step", named.strides).prelude(place_text());
  program.add(std::move(kernel).launch_items(one_hot_body, walk.points()));
  return {};
}

// Writing at indices. Where an index appears twice, updates follow each other in the order of the indices:
// without a reduction each target remembers the last update it has, with one the updates are sorted by their
// targets and each target takes its own in their order. So results do not depend on which thread comes first.
// Indices of which no two can name the same target need none of that.
#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/families/indices.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/sort_source.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Updates of one target are joined in pieces of this many.
constexpr std::int64_t piece = 64;

/// Each row of indices names a target, a part of the result of `part` elements without gaps.
struct Scatter {
  std::string op;
  Operand indices, updates, y;
  op::Extents rows;          ///< the shape of the rows
  op::Extents row_steps;     ///< of the indices
  op::Extents bases;         ///< of the target, where it does not depend on the indices
  op::Extents update_steps;  ///< of the updates, by axis of the rows, then of the part
  op::Extents part_shape;
  NamedAxes named;  ///< strides count targets
  std::int64_t targets = 0;
  std::int64_t part = 1;
  bool are_distinct = false;  ///< no two rows name the same target, whatever the indices are
  std::string reduction;

  [[nodiscard]] std::int64_t count() const { return op::element_count(rows); }
  /// The dtype that counts targets, with one number left over.
  [[nodiscard]] ir::Dtype target_dtype() const {
    return targets < (std::int64_t{1} << 31) ? ir::Dtype::u32 : ir::Dtype::u64;
  }
  [[nodiscard]] ir::Dtype number_dtype() const {
    return count() < (std::int64_t{1} << 31) ? ir::Dtype::u32 : ir::Dtype::u64;
  }
  [[nodiscard]] Walk update_walk() const {
    op::Extents shape = rows;
    for (const std::int64_t size : part_shape) shape.push_back(size);
    return joined_walk(shape, {update_steps});
  }
};

constexpr std::string_view target_body = R"(
    I target = place_of(at, size, base_step);
    const Index* const row = indices + place_of(at, size, row_step);
    const bool is_inside = find(row, step, extent, axis_step, at, status, target);
    targets[at] = is_inside ? (Target)target : ~(Target)0;
)";

constexpr std::string_view last_text = R"(
    if (is_inside) atomicMax(&last[target], (Number)at + 1u);
)";

constexpr std::string_view replace_body = R"(
    const I row = at / part, element = at % part;
    const Target target = targets[row];
    if (target != ~(Target)0 && last[target] == (Number)row + 1u)
      y[(I)target * part + element] = updates[place_of(at, size, update_step)];
)";

constexpr std::string_view distinct_body = R"(
    I target = place_of(at, size, base_step);
    const Index* const row = indices + place_of(at, size, row_step);
    if (!find(row, step, extent, axis_step, at, status, target)) continue;
    y[target] = finish(y[target], updates[place_of(at, size, update_step)]);
)";

// The same for each element of the result, whether a row names it or not: nothing is copied first.
constexpr std::string_view whole_body = R"(
    I target = 0;
    T value = x[place_of(at, size, from_step)];
    const Index* const row = indices + place_of(at, size, row_step);
    if (find(row, step, extent, axis_step, place_of(at, size, number_step), status, target) &&
        target == place_of(at, size, place_step))
      value = finish(value, updates[place_of(at, size, update_step)]);
    y[at] = value;
)";

// The pieces that begin in the middle of the updates of a target: their updates together.
constexpr std::string_view piece_body = R"(
    const I number = at / part + 1, element = at % part, first = number * 64;
    const K target = keys[first];
    if (target == ~(K)0 || keys[first - 1] != target) continue;
    W sum = widen(updates[place_of((I)order[first] * part + element, size, update_step)]);
    for (I i = first + 1; i < first + 64 && i < count && keys[i] == target; ++i)
      sum = combine(sum, widen(updates[place_of((I)order[i] * part + element, size, update_step)]));
    pieces[number * part + element] = sum;
)";

constexpr std::string_view combine_body = R"(
    const I first = at / part, element = at % part;
    const K target = keys[first];
    if (target == ~(K)0 || (first > 0 && keys[first - 1] == target)) continue;
    T* const to = y + (I)target * part + element;
    W sum = widen(*to);
    I i = first;
    do {
      sum = combine(sum, widen(updates[place_of((I)order[i] * part + element, size, update_step)]));
      ++i;
    } while (i < count && keys[i] == target && i % 64 != 0);
    for (; i < count && i % 64 == 0 && keys[i] == target; i += 64)
      sum = combine(sum, pieces[i / 64 * part + element]);
    *to = narrow(sum);
)";

/// The target of each row, in scratch memory; `last` is where each target remembers its last row, if asked
/// to.
Operand write_targets(ProgramWriter& program, const Scatter& s, const Memory& status, const Memory* last) {
  Operand targets = program.scratch(s.target_dtype(), {s.count()});
  const Walk walk = joined_walk(s.rows, {s.row_steps, s.bases});
  KernelWriter kernel(last != nullptr ? "tessera_scatter_last" : "tessera_scatter_targets", IndexWidth::wide,
                      index_text(s.indices, s.named.axes.size()));
  kernel.prelude(cat("typedef ", stored_type(targets.dtype), " Target;\ntypedef ",
                     stored_type(s.number_dtype()), " Number;\n"));
  kernel.pointer("const Index", "indices", s.indices.memory).pointer("Status", "status", status);
  kernel.pointer("Target", "targets", targets.memory);
  if (last != nullptr) kernel.pointer("Number", "last", *last);
  kernel.walk(walk, std::vector<std::string_view>{"row_step", "base_step"}).prelude(place_text());
  kernel.integer("step", s.named.index_step).integers("extent", s.named.sizes());
  kernel.integers("axis_step", s.named.strides);
  program.add(std::move(kernel).launch_items(cat(target_body, last != nullptr ? last_text : ""), s.count()));
  return targets;
}

void write_replacement(ProgramWriter& program, const Scatter& s, const Memory& status) {
  const auto bytes = static_cast<std::int64_t>(ir::size_of(s.number_dtype()));
  const Memory last = program.scratch(s.targets * bytes);
  program.clear(last, s.targets * bytes);
  const Operand targets = write_targets(program, s, status, &last);
  if (s.part == 0) return;
  KernelWriter kernel("tessera_scatter", IndexWidth::wide,
                      cat(unit_text(s.y.element_bytes()), "typedef ", stored_type(targets.dtype),
                          " Target;\ntypedef ", stored_type(s.number_dtype()), " Number;\n"));
  kernel.pointer("const Target", "targets", targets.memory).pointer("const Number", "last", last);
  kernel.pointer("const T", "updates", s.updates.memory).pointer("T", "y", s.y.memory);
  kernel.walk(s.update_walk(), std::vector<std::string_view>{"update_step"}).prelude(place_text());
  kernel.integer("part", s.part);
  program.add(std::move(kernel).launch_items(replace_body, s.count() * s.part));
}

/// The function of the device's that joins two values.
std::string_view joining_function(const Scatter& s) {
  static constexpr std::pair<std::string_view, std::string_view> functions[] = {
      {"add", "add"}, {"mul", "mul"}, {"max", "maximum"}, {"min", "minimum"}};
  const auto* const function = std::find_if(std::begin(functions), std::end(functions),
                                            [&](const auto& f) { return f.first == s.reduction; });
  return function->second;
}

/// `T` and `T finish(T, T)`: what an element becomes by its update.
std::string finish_text(const Scatter& s) {
  if (s.reduction == "none")
    return cat(unit_text(s.y.element_bytes()),
               "__device__ inline T finish(T, T update) { return update; }\n");
  return cat(element_text(s.y.dtype, Precision::wide),
             "__device__ inline T finish(T a, T b) { return narrow(", joining_function(s),
             "(widen(a), widen(b))); }\n");
}

/// Each row writes its element at once.
void write_distinct(ProgramWriter& program, const Scatter& s, const Memory& status) {
  KernelWriter kernel("tessera_scatter_distinct", IndexWidth::wide,
                      index_text(s.indices, s.named.axes.size()) + finish_text(s));
  kernel.pointer("const Index", "indices", s.indices.memory).pointer("Status", "status", status);
  kernel.pointer("const T", "updates", s.updates.memory).pointer("T", "y", s.y.memory);
  kernel.walk(joined_walk(s.rows, {s.row_steps, s.bases, s.update_steps}),
              std::vector<std::string_view>{"row_step", "base_step", "update_step"});
  kernel.prelude(place_text());
  kernel.integer("step", s.named.index_step).integers("extent", s.named.sizes());
  kernel.integers("axis_step", s.named.strides);
  program.add(std::move(kernel).launch_items(distinct_body, s.count()));
}

/// Whether every element of the result has one row that may name it, along the one axis that is named.
bool has_row_of_each(const Scatter& s) {
  if (!s.are_distinct || s.y.size() == 0 || s.rows.size() != s.y.rank()) return false;
  for (std::size_t a = 0; a < s.rows.size(); ++a)
    if (a != s.named.axes[0].axis && s.rows[a] != s.y.shape[a]) return false;
  return true;
}

/// The result from its input and the updates in one kernel.
void write_whole(ProgramWriter& program, const Scatter& s, const Memory& status) {
  const Operand x = program.input(0);
  const std::size_t axis = s.named.axes[0].axis;
  op::Extents rows = s.row_steps, updates = s.update_steps, numbers = op::contiguous(s.rows).strides;
  op::Extents places(s.y.rank(), 0);
  rows[axis] = updates[axis] = numbers[axis] = 0;
  places[axis] = 1;
  const Walk walk = joined_walk(s.y.shape, {x.strides, rows, updates, numbers, places});
  KernelWriter kernel("tessera_scatter_whole", width_of(walk), index_text(s.indices, 1) + finish_text(s));
  kernel.pointer("const T", "x", x.memory).pointer("T", "y", s.y.memory);
  kernel.pointer("const Index", "indices", s.indices.memory).pointer("Status", "status", status);
  kernel.pointer("const T", "updates", s.updates.memory);
  kernel.walk(walk, std::vector<std::string_view>{"from_step", "row_step", "update_step", "number_step",
                                                  "place_step"});
  kernel.prelude(place_text());
  kernel.integer("step", 0).integers("extent", s.named.sizes()).integers("axis_step", op::Extents{1});
  program.add(std::move(kernel).launch_items(whole_body, walk.points()));
}

Launch combining_kernel(const Scatter& s, std::string entry, const SortedRows& sorted, const Memory& pieces,
                        std::string_view body, std::int64_t items) {
  KernelWriter kernel(std::move(entry), IndexWidth::wide, element_text(s.y.dtype, Precision::wide));
  kernel.prelude(cat("__device__ inline W combine(W a, W b) { return ", joining_function(s),
                     "(a, b); }\ntypedef ", stored_type(s.target_dtype()), " K;\ntypedef ",
                     sorted.order_type(), " N;\n"));
  kernel.pointer("const K", "keys", sorted.keys).pointer("const N", "order", sorted.order);
  kernel.pointer("const T", "updates", s.updates.memory).pointer("T", "y", s.y.memory);
  kernel.pointer("W", "pieces", pieces);
  kernel.walk(s.update_walk(), std::vector<std::string_view>{"update_step"}).prelude(place_text());
  kernel.integer("part", s.part).integer("count", s.count());
  return std::move(kernel).launch_items(body, items);
}

void write_combination(ProgramWriter& program, const Scatter& s, const Memory& status) {
  const Operand targets = write_targets(program, s, status, nullptr);
  if (s.part == 0) return;
  const SortedRows sorted =
      write_sorted_rows(program, targets, rows_along(targets, targets, 0), SortOrder::ascending);
  const std::int64_t pieces = (s.count() + piece - 1) / piece;
  const Memory sums = program.scratch(pieces * s.part * 8);
  if (pieces > 1)
    program.add(
        combining_kernel(s, "tessera_scatter_pieces", sorted, sums, piece_body, (pieces - 1) * s.part));
  program.add(combining_kernel(s, "tessera_scatter_combine", sorted, sums, combine_body, s.count() * s.part));
}

void write(ProgramWriter& program, const Scatter& s) {
  const bool is_copied = !program.is_in_place(0, 0);
  if (is_copied && has_row_of_each(s)) return write_whole(program, s, program.status({s.op, s.named.axes}));
  if (is_copied) program.copy(program.input(0), s.y);
  if (s.count() == 0) return;
  const Memory status = program.status({s.op, s.named.axes});
  if (s.are_distinct)
    write_distinct(program, s, status);
  else if (s.reduction == "none")
    write_replacement(program, s, status);
  else
    write_combination(program, s, status);
}

Scatter begin(const op::CallInfo& call, const ProgramWriter& program) {
  Scatter out;
  out.op = std::string(call.card().name);
  out.indices = program.input(1);
  out.updates = program.input(2);
  out.y = program.result(0);
  out.reduction = call.text("reduction");
  out.update_steps = out.updates.strides;
  return out;
}

}  // namespace

Result<void> runtime::cuda::write_scatter_elements(const op::CallInfo& call, ProgramWriter& program) {
  Scatter s = begin(call, program);
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), s.y.rank()));
  const op::Extents strides = op::contiguous(s.y.shape).strides;
  s.rows = s.indices.shape;
  s.row_steps = s.indices.strides;
  s.bases = strides;
  s.bases[axis] = 0;
  s.named = {{{axis, s.y.shape[axis]}}, {strides[axis]}, false, 0};
  s.targets = s.y.size();
  s.are_distinct = s.rows[axis] == 1;
  write(program, s);
  return {};
}

Result<void> runtime::cuda::write_scatter_nd(const op::CallInfo& call, ProgramWriter& program) {
  Scatter s = begin(call, program);
  const op::IndexRows rows = TESSERA_TRY(op::index_rows(call, 0));
  s.rows = op::extents_of(rows.rows);
  s.part_shape = op::extents_of(rows.part);
  s.part = op::element_count(s.part_shape);
  s.row_steps = op::Extents(s.indices.strides.begin(), s.indices.strides.end() - 1);
  s.bases = op::Extents(s.rows.size(), 0);
  s.named.has_rows = true;
  s.named.index_step = s.indices.strides.back();
  const op::Extents named(s.y.shape.begin(), s.y.shape.begin() + rows.depth);
  s.named.strides = op::contiguous(named).strides;
  for (std::size_t i = 0; i < rows.depth; ++i) s.named.axes.push_back({i, s.y.shape[i]});
  s.targets = op::element_count(named);
  write(program, s);
  return {};
}

#include "tessera/runtime/cuda/program_writer.h"

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/early_start.h"
#include "tessera/runtime/cuda/element_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// What is larger is a copy of the driver's. In a graph that takes longer to begin than a kernel, and nothing
/// can start early beside it.
constexpr std::int64_t most_bytes_by_kernel = 1 << 20;

Operand operand_of(const op::Array& array, Memory::Kind kind, std::uint32_t index) {
  const auto bytes = static_cast<std::int64_t>(ir::size_of(array.dtype));
  const auto address =
      reinterpret_cast<std::uintptr_t>(array.data) + static_cast<std::uintptr_t>(array.layout.offset * bytes);
  std::int64_t alignment = 16;
  while (address % static_cast<std::uintptr_t>(alignment) != 0) alignment /= 2;
  return {{kind, index, array.layout.offset * bytes},
          array.dtype,
          array.layout.shape,
          array.layout.strides,
          alignment};
}

/// How many bytes can be copied at once: the last axis lies without gaps in both arrays, and everything
/// begins at a multiple of them.
std::int64_t unit_bytes(const Walk& walk, const Operand& from, const Operand& to) {
  const std::int64_t bytes = from.element_bytes();
  const std::size_t last = walk.rank() - 1;
  if (walk.strides[0][last] != 1 || walk.strides[1][last] != 1) return bytes;
  std::int64_t unit = std::min({std::int64_t{16}, from.alignment, to.alignment});
  const auto fits = [&](std::int64_t elements) { return elements * bytes % unit == 0; };
  const auto all_fit = [&] {
    for (std::size_t a = 0; a < last; ++a)
      if (!fits(walk.strides[0][a]) || !fits(walk.strides[1][a])) return false;
    return fits(walk.shape[last]);
  };
  while (unit > bytes && !all_fit()) unit /= 2;
  return std::max(unit, bytes);
}

/// The walk in units of several elements.
Walk in_units(Walk walk, std::int64_t elements) {
  if (elements == 1) return walk;
  walk.shape.back() /= elements;
  for (op::Extents& steps : walk.strides)
    for (std::size_t a = 0; a + 1 < steps.size(); ++a) steps[a] /= elements;
  return walk;
}

constexpr std::string_view copy_body = R"(
    I rest = at, from = 0, to = 0;
    for (int a = R - 1; a >= 0; --a) {
      const I place = a == 0 ? rest : rest % size[a];
      rest /= size[a];
      from += place * from_step[a];
      to += place * to_step[a];
    }
    y[to] = x[from];
)";

/// From this size on two axes are worth tiles: a warp reads and writes whole lines of memory.
constexpr std::int64_t copied_tile = 32;

/// The axis along which elements lie side by side in the first array, if they lie so along the last in the
/// second alone.
std::optional<std::size_t> turned_axis(const Walk& walk) {
  const std::size_t last = walk.rank() - 1;
  if (walk.strides[1][last] != 1 || walk.strides[0][last] == 1 || walk.shape[last] < copied_tile)
    return std::nullopt;
  for (std::size_t axis = 0; axis < last; ++axis)
    if (walk.strides[0][axis] == 1 && walk.shape[axis] >= copied_tile) return axis;
  return std::nullopt;
}

/// The walk without two axes, of which the second is the last one.
Walk without_axes(Walk walk, std::size_t axis) {
  const auto drop = [axis](op::Extents& values) {
    values.pop_back();
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(axis));
    if (values.empty()) values.push_back(0);
  };
  for (op::Extents& steps : walk.strides) drop(steps);
  drop(walk.shape);
  if (walk.shape[0] == 0) walk.shape[0] = 1;
  return walk;
}

/// A warp reads along one axis and writes along the other, by way of a tile in shared memory.
constexpr std::string_view turned_body = R"(
  __shared__ T tile[32][33];
  const int lane = (int)threadIdx.x & 31, line = (int)threadIdx.x >> 5;
  for (I number = (I)blockIdx.x; number < tiles; number += (I)gridDim.x) {
    I rest = number / tiles_along, from = 0, to = 0;
    const I along = (number - rest * tiles_along) * 32, across = rest % tiles_across * 32;
    rest /= tiles_across;
    for (int a = R - 1; a >= 0; --a) {
      const I place = a == 0 ? rest : rest % size[a];
      rest /= size[a];
      from += place * from_step[a];
      to += place * to_step[a];
    }
    for (int k = line; k < 32; k += 8)
      if (along + k < size_along && across + lane < size_across)
        tile[k][lane] = x[from + (along + k) * from_along + across + lane];
    __syncthreads();
    for (int k = line; k < 32; k += 8)
      if (along + lane < size_along && across + k < size_across)
        y[to + (across + k) * to_across + along + lane] = tile[lane][k];
    __syncthreads();
  }
)";

Launch turned_copy(const Walk& walk, std::size_t across, const Operand& from, const Operand& to) {
  const std::size_t along = walk.rank() - 1;
  const auto tiles = [&](std::size_t axis) { return (walk.shape[axis] + copied_tile - 1) / copied_tile; };
  const Walk others = without_axes(walk, across);
  const std::int64_t count = tiles(along) * tiles(across) * others.points();
  KernelWriter kernel("tessera_turned_copy", width_of(walk), unit_text(from.element_bytes()));
  kernel.pointer("const T", "x", from.memory).pointer("T", "y", to.memory);
  kernel.walk(others, std::vector<std::string_view>{"from_step", "to_step"});
  kernel.integer("size_along", walk.shape[along]).integer("size_across", walk.shape[across]);
  kernel.integer("from_along", walk.strides[0][along]).integer("to_across", walk.strides[1][across]);
  kernel.integer("tiles_along", tiles(along)).integer("tiles_across", tiles(across)).integer("tiles", count);
  return std::move(kernel).launch(turned_body, std::min(count, most_walking_blocks));
}

}  // namespace

// ---- kernels

KernelWriter::KernelWriter(std::string entry, IndexWidth width, std::string prelude)
    : entry_(std::move(entry)),
      prelude_(cat("typedef ", width == IndexWidth::narrow ? "int" : "long long", " I;\n", prelude)) {}

void KernelWriter::parameter(std::string text, Argument argument) {
  parameters_ += (arguments_.empty() ? "" : ", ") + text;
  arguments_.push_back(argument);
}

KernelWriter& KernelWriter::pointer(std::string_view type, std::string_view name, const Memory& memory) {
  parameter(cat(type, "* ", name), {.kind = Argument::Kind::memory, .memory = memory});
  return *this;
}

KernelWriter& KernelWriter::integer(std::string_view name, std::int64_t value) {
  parameter(cat("long long ", name, "_"), {.bits = static_cast<std::uint64_t>(value)});
  variables_ += cat("  const I ", name, " = (I)", name, "_;\n");
  return *this;
}

KernelWriter& KernelWriter::integers(std::string_view name, std::span<const std::int64_t> values) {
  std::string list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    parameter(cat("long long ", name, "_", i), {.bits = static_cast<std::uint64_t>(values[i])});
    list += cat(i == 0 ? "" : ", ", "(I)", name, "_", i);
  }
  variables_ += cat("  const I ", name, "[] = {", values.empty() ? "0" : list, "};\n");
  return *this;
}

KernelWriter& KernelWriter::walk(const Walk& walk, std::span<const std::string_view> names) {
  prelude_ += cat("enum { R = ", walk.rank(), " };\n");
  integers("size", walk.shape);
  for (std::size_t k = 0; k < names.size(); ++k) integers(names[k], walk.strides[k]);
  return *this;
}

KernelWriter& KernelWriter::prelude(std::string_view text) {
  prelude_ += text;
  return *this;
}

KernelWriter& KernelWriter::most_threads(std::int64_t threads) {
  bounds_ = cat("__launch_bounds__(", threads, ") ");
  return *this;
}

Launch KernelWriter::launch(std::string_view body, std::int64_t blocks, std::int64_t threads,
                            std::int64_t shared_bytes) && {
  std::string text = cat(begin_text(), prelude_, "extern \"C\" __global__ void ", bounds_, entry_, "(",
                         parameters_, ") {\n  start_next();\n  begin_kernel();\n", variables_, body, "}\n");
  Launch out;
  out.source = std::make_shared<const Source>(
      Source{.text = std::move(text), .entry = std::move(entry_), .waits = true});
  out.grid.x = static_cast<std::uint32_t>(blocks);
  out.block.x = static_cast<std::uint32_t>(threads);
  out.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  out.arguments = std::move(arguments_);
  return out;
}

Launch KernelWriter::launch_items(std::string_view body, std::int64_t items) && {
  integer("items", items);
  const std::string loop =
      cat("  for (I at = (I)(blockIdx.x * blockDim.x + threadIdx.x); at < items; at += (I)(gridDim.x * "
          "blockDim.x)) {",
          body, "  }\n");
  const std::int64_t blocks = std::min((items + block_threads - 1) / block_threads, most_walking_blocks);
  Launch out = std::move(*this).launch(loop, blocks);
  Source source = *out.source;
  source.walks = true;
  out.source = std::make_shared<const Source>(std::move(source));
  return out;
}

// ---- programs

Operand ProgramWriter::input(std::uint32_t i) const { return operand_of(inputs_[i], Memory::Kind::input, i); }

Operand ProgramWriter::result(std::uint32_t i) const {
  return operand_of(results_[i], Memory::Kind::result, i);
}

bool ProgramWriter::is_in_place(std::uint32_t input, std::uint32_t result) const {
  return inputs_[input].data == results_[result].data && inputs_[input].data != nullptr &&
         inputs_[input].layout == results_[result].layout;
}

Memory ProgramWriter::scratch(std::int64_t bytes) {
  program_.scratch_bytes.push_back(bytes);
  return {Memory::Kind::scratch, static_cast<std::uint32_t>(program_.scratch_bytes.size() - 1), 0};
}

Operand ProgramWriter::scratch(ir::Dtype dtype, const op::Extents& shape) {
  const op::Layout layout = op::contiguous(shape);
  const std::int64_t bytes = op::element_count(shape) * static_cast<std::int64_t>(ir::size_of(dtype));
  return {scratch(bytes), dtype, layout.shape, layout.strides, 16};
}

Memory ProgramWriter::status(IndexCheck check) {
  program_.checks.push_back(std::move(check));
  return {Memory::Kind::status, static_cast<std::uint32_t>(program_.checks.size() - 1), 0};
}

void ProgramWriter::clear(const Memory& to, std::int64_t bytes) {
  if (bytes > 0) add({.kind = Launch::Kind::clear, .to = to, .bytes = bytes});
}

void ProgramWriter::copy(const Operand& from, const Operand& to) {
  const std::int64_t count = to.size(), bytes = to.element_bytes();
  if (count == 0) return;
  if (from.is_contiguous() && to.is_contiguous() && count * bytes > most_bytes_by_kernel) {
    add({.kind = Launch::Kind::copy, .to = to.memory, .from = from.memory, .bytes = count * bytes});
    return;
  }
  const Walk elements = joined_walk(to.shape, {from.strides, to.strides});
  if (const auto axis = turned_axis(elements)) return add(turned_copy(elements, *axis, from, to));
  const std::int64_t unit = unit_bytes(elements, from, to);
  const Walk walk = in_units(elements, unit / bytes);
  KernelWriter kernel("tessera_copy", width_of(walk), unit_text(unit));
  kernel.pointer("const T", "x", from.memory).pointer("T", "y", to.memory);
  kernel.walk(walk, std::vector<std::string_view>{"from_step", "to_step"});
  add(std::move(kernel).launch_items(copy_body, walk.points()));
}

Operand ProgramWriter::dense(const Operand& from) {
  if (from.is_contiguous()) return from;
  Operand out = scratch(from.dtype, from.shape);
  copy(from, out);
  return out;
}

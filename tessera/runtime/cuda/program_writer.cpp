#include "tessera/runtime/cuda/program_writer.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/early_start.h"
#include "tessera/runtime/cuda/element_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

// Enough for every device; beyond it each thread takes several items.
constexpr std::int64_t most_walking_blocks = 65536;

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

Launch KernelWriter::launch(std::string_view body, std::int64_t blocks, std::int64_t threads,
                            std::int64_t shared_bytes) && {
  std::string text = cat(begin_text(), prelude_, "extern \"C\" __global__ void ", entry_, "(", parameters_,
                         ") {\n  begin_kernel();\n", variables_, body, "}\n");
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

// Parts at positions that are values: each thread reads where the part begins, brings it inside and copies.
#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/op/families/parts.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view start_text = R"(
__device__ inline I start(long long at, I extent, I low, I high) {
  if (at < 0) at += extent;
  return at < (long long)low ? low : at > (long long)high ? high : (I)at;
}
)";

/// A part of `whole` that begins at positions, and the operand that has its elements.
struct MovingCopy {
  Operand whole, other;
  std::vector<op::MovingPart> parts;
  std::vector<Operand> positions;
  bool is_read = true;  ///< the part is read; else the other one is

  [[nodiscard]] op::Extents part_strides() const {
    op::Extents out = whole.strides;
    for (const op::MovingPart& part : parts)
      if (part.count.value() > 1) out[part.axis] *= part.step;
    return out;
  }
  /// From one position to the next.
  [[nodiscard]] op::Extents position_strides() const {
    op::Extents out;
    for (const op::MovingPart& part : parts) out.push_back(whole.strides[part.axis]);
    return out;
  }
};

/// How many elements of the last axis go at once: they lie side by side, and so do all that a part can begin
/// with.
std::int64_t elements_of_unit(const MovingCopy& copy, const Walk& walk) {
  const std::size_t last = walk.rank() - 1;
  const std::int64_t bytes = copy.whole.element_bytes();
  if (walk.strides[0][last] != 1 || walk.strides[1][last] != 1) return 1;
  std::int64_t unit = std::min(copy.whole.alignment, copy.other.alignment);
  const auto fits = [&](std::int64_t elements) { return elements * bytes % unit == 0; };
  const auto all_fit = [&] {
    for (std::size_t a = 0; a < last; ++a)
      if (!fits(walk.strides[0][a]) || !fits(walk.strides[1][a])) return false;
    const op::Extents steps = copy.position_strides();
    return fits(walk.shape[last]) && std::all_of(steps.begin(), steps.end(), fits);
  };
  while (unit > bytes && !all_fit()) unit /= 2;
  return std::max<std::int64_t>(unit / bytes, 1);
}

void write_copy(ProgramWriter& program, const MovingCopy& copy) {
  if (copy.other.size() == 0) return;
  Walk walk = joined_walk(copy.other.shape, {copy.part_strides(), copy.other.strides});
  const bool is_narrow = walk.is_small() && joined_walk(copy.whole.shape, {copy.whole.strides}).is_small();
  const std::int64_t unit = elements_of_unit(copy, walk);
  walk.shape.back() /= unit;
  for (op::Extents& steps : walk.strides)
    for (std::size_t a = 0; a + 1 < steps.size(); ++a) steps[a] /= unit;
  KernelWriter kernel("tessera_moving_copy", is_narrow ? IndexWidth::narrow : IndexWidth::wide,
                      unit_text(unit * copy.whole.element_bytes()));
  kernel.pointer(copy.is_read ? "const T" : "T", "whole", copy.whole.memory);
  kernel.pointer(copy.is_read ? "T" : "const T", "other", copy.other.memory);
  op::Extents sizes, lows, highs, steps = copy.position_strides();
  std::string body = "    I part = 0;\n";
  for (std::size_t k = 0; k < copy.parts.size(); ++k) {
    const op::MovingPart& part = copy.parts[k];
    kernel.pointer(cat("const ", stored_type(copy.positions[k].dtype)), cat("position_", k),
                   copy.positions[k].memory);
    sizes.push_back(copy.whole.shape[part.axis]);
    lows.push_back(part.low.value());
    highs.push_back(part.high.value());
    steps[k] /= unit;
    body += cat("    part += start((long long)*position_", k, ", extent[", k, "], low[", k, "], high[", k,
                "]) * position_step[", k, "];\n");
  }
  body += "    part += place_of(at, size, part_step);\n    const I rest = place_of(at, size, other_step);\n";
  body += copy.is_read ? "    other[rest] = whole[part];\n" : "    whole[part] = other[rest];\n";
  kernel.walk(walk, std::vector<std::string_view>{"part_step", "other_step"});
  kernel.integers("extent", sizes).integers("low", lows).integers("high", highs);
  kernel.integers("position_step", steps).prelude(place_text()).prelude(start_text);
  program.add(std::move(kernel).launch_items(body, walk.points()));
}

std::vector<Operand> positions_of(const op::CallInfo& call, const ProgramWriter& program) {
  std::vector<Operand> out;
  for (std::size_t i = op::first_position(call); i < call.inputs().size(); ++i)
    out.push_back(program.input(static_cast<std::uint32_t>(i)));
  return out;
}

}  // namespace

Result<void> runtime::cuda::write_slice_at(const op::CallInfo& call, ProgramWriter& program) {
  auto parts = TESSERA_TRY(op::moving_parts(call));
  write_copy(program,
             {program.input(0), program.result(0), std::move(parts), positions_of(call, program), true});
  return {};
}

Result<void> runtime::cuda::write_update_slice_at(const op::CallInfo& call, ProgramWriter& program) {
  auto parts = TESSERA_TRY(op::moving_parts(call));
  const Operand y = program.result(0);
  if (!program.is_in_place(0, 0)) program.copy(program.input(0), y);
  write_copy(program, {y, program.input(1), std::move(parts), positions_of(call, program), false});
  return {};
}

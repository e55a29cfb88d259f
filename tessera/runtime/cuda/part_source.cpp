#include "tessera/op/families/parts.h"
#include "tessera/runtime/cuda/op_programs.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// The part of an operand that a layout of its elements names.
Operand part_of(Operand whole, const op::Layout& part) {
  const std::int64_t bytes = part.offset * whole.element_bytes();
  whole.memory.byte += bytes;
  while (bytes % whole.alignment != 0) whole.alignment /= 2;
  whole.shape = part.shape;
  whole.strides = part.strides;
  return whole;
}

}  // namespace

Result<void> runtime::cuda::write_concat(const op::CallInfo& call, ProgramWriter& program) {
  const Operand y = program.result(0);
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), y.rank()));
  std::int64_t begin = 0;
  for (std::uint32_t k = 0; k < call.inputs().size(); ++k) {
    const Operand x = program.input(k);
    program.copy(x, part_of(y, op::part_of({y.shape, y.strides, 0}, axis, begin, x.shape[axis])));
    begin += x.shape[axis];
  }
  return {};
}

Result<void> runtime::cuda::write_update_slice(const op::CallInfo& call, ProgramWriter& program) {
  const Operand y = program.result(0);
  if (!program.is_in_place(0, 0)) program.copy(program.input(0), y);
  const op::Layout part = TESSERA_TRY(op::updated_part(call, {y.shape, y.strides, 0}));
  program.copy(program.input(1), part_of(y, part));
  return {};
}

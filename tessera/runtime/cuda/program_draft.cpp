#include "tessera/runtime/cuda/program_draft.h"

#include <algorithm>

#include "tessera/runtime/cuda/placeholder.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

std::byte* scratch_placeholder(std::size_t index) { return placeholder_in(step_scratch_area, index, 0); }

}  // namespace

ProgramArray ProgramDraft::scratch(op::Dtype dtype, const op::Extents& shape) {
  const std::size_t index = out_.scratch_bytes.size();
  const op::Array array{dtype, op::contiguous(shape), scratch_placeholder(index)};
  out_.scratch_bytes.push_back(array.size() * static_cast<std::int64_t>(ir::size_of(dtype)));
  return {array, {Memory::Kind::scratch, static_cast<std::uint32_t>(index), 0}};
}

void ProgramDraft::add(StepProgram part, std::span<const ProgramArray> inputs,
                       std::span<const ProgramArray> results) {
  const auto scratch = static_cast<std::uint32_t>(out_.scratch_bytes.size());
  const auto checks = static_cast<std::uint32_t>(out_.checks.size());
  const auto place = [&](Memory& memory) {
    if (memory.kind == Memory::Kind::scratch) memory.index += scratch;
    if (memory.kind == Memory::Kind::status) memory.index += checks;
    if (memory.kind != Memory::Kind::input && memory.kind != Memory::Kind::result) return;
    const auto& list = memory.kind == Memory::Kind::input ? inputs : results;
    const std::int64_t byte = memory.byte;
    memory = list[memory.index].memory;
    memory.byte += byte;
  };
  for (Launch& launch : part.launches) {
    for (Argument& argument : launch.arguments)
      if (argument.kind == Argument::Kind::memory) place(argument.memory);
    if (launch.kind == Launch::Kind::clear || launch.kind == Launch::Kind::copy) place(launch.to);
    if (launch.kind == Launch::Kind::copy) place(launch.from);
    out_.launches.push_back(std::move(launch));
  }
  for (const std::int64_t bytes : part.scratch_bytes) out_.scratch_bytes.push_back(bytes);
  for (IndexCheck& check : part.checks) out_.checks.push_back(std::move(check));
}

bool ProgramDraft::can_become_result(const ProgramArray& from, std::size_t i) const {
  const op::Array& to = results_[i];
  const std::int64_t bytes = to.size() * static_cast<std::int64_t>(ir::size_of(to.dtype));
  const bool is_whole = from.memory.kind == Memory::Kind::scratch && from.memory.byte == 0 &&
                        out_.scratch_bytes[from.memory.index] == bytes &&
                        from.array.layout == op::contiguous(to.shape()) && to.layout.is_contiguous();
  const auto address = reinterpret_cast<std::uintptr_t>(to.at(to.layout.offset));
  const bool lies_in_input = std::any_of(inputs_.begin(), inputs_.end(),
                                         [&](const op::Array& input) { return input.data == to.data; });
  return is_whole && address % 16 == 0 && !lies_in_input;
}

void ProgramDraft::become_result(const ProgramArray& from, std::size_t i) {
  const op::Array& to = results_[i];
  const std::int64_t begin = to.layout.offset * static_cast<std::int64_t>(ir::size_of(to.dtype));
  const auto move = [&](Memory& memory) {
    if (memory.kind == Memory::Kind::scratch && memory.index == from.memory.index)
      memory = {Memory::Kind::result, static_cast<std::uint32_t>(i), begin + memory.byte};
  };
  for (Launch& launch : out_.launches) {
    for (Argument& argument : launch.arguments)
      if (argument.kind == Argument::Kind::memory) move(argument.memory);
    move(launch.to);
    move(launch.from);
  }
  out_.scratch_bytes[from.memory.index] = 0;
}

std::vector<op::Array> tessera::runtime::cuda::arrays_of(std::span<const ProgramArray> list) {
  std::vector<op::Array> out;
  for (const ProgramArray& one : list) out.push_back(one.array);
  return out;
}

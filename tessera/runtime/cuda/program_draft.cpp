#include "tessera/runtime/cuda/program_draft.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Stands for the address of a scratch memory, far from all that a step is given.
std::byte* placeholder(std::size_t index) {
  return reinterpret_cast<std::byte*>((std::uint64_t{0x70} << 56) + (std::uint64_t{index} << 42));
}

}  // namespace

ProgramArray ProgramDraft::scratch(op::Dtype dtype, const op::Extents& shape) {
  const std::size_t index = out_.scratch_bytes.size();
  const op::Array array{dtype, op::contiguous(shape), placeholder(index)};
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
    place(launch.to);
    place(launch.from);
    out_.launches.push_back(std::move(launch));
  }
  for (const std::int64_t bytes : part.scratch_bytes) out_.scratch_bytes.push_back(bytes);
  for (IndexCheck& check : part.checks) out_.checks.push_back(std::move(check));
}

std::vector<op::Array> tessera::runtime::cuda::arrays_of(std::span<const ProgramArray> list) {
  std::vector<op::Array> out;
  for (const ProgramArray& one : list) out.push_back(one.array);
  return out;
}

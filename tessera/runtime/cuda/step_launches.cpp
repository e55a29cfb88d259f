#include "tessera/runtime/cuda/step_launches.h"

#include "tessera/runtime/cuda/device_memory.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

std::uint64_t address_in(const StepMemory& of, const Memory& memory) {
  switch (memory.kind) {
    case Memory::Kind::input:
      return device_address(of.inputs[memory.index].data + memory.byte);
    case Memory::Kind::result:
      return device_address(of.results[memory.index].data + memory.byte);
    case Memory::Kind::scratch:
      return device_address(of.scratch[memory.index] + memory.byte);
    case Memory::Kind::status:
      break;
  }
  return device_address(of.status + memory.index * sizeof(Status) + memory.byte);
}

BoundLaunch bound_launch(const cuda::Launch& launch, const StepMemory& memory) {
  BoundLaunch out{.kind = bound_kind(launch.kind), .captured = launch.captured};
  out.waits_itself = launch.kind == cuda::Launch::Kind::kernel && launch.source->waits;
  out.grid = launch.grid;
  out.block = launch.block;
  out.shared_bytes = launch.shared_bytes;
  out.bytes = static_cast<std::size_t>(launch.bytes);
  for (const Argument& argument : launch.arguments)
    out.values.push_back(argument.kind == Argument::Kind::memory ? address_in(memory, argument.memory)
                                                                 : argument.bits);
  if (out.kind != BoundLaunch::Kind::clear && out.kind != BoundLaunch::Kind::copy) return out;
  out.values = {address_in(memory, launch.to)};
  if (launch.kind == cuda::Launch::Kind::copy) out.values.push_back(address_in(memory, launch.from));
  return out;
}

}  // namespace

std::vector<BoundLaunch> tessera::runtime::cuda::bound_launches(const ReadyProgram& ready,
                                                                const StepMemory& memory) {
  std::vector<BoundLaunch> out;
  for (std::size_t i = 0; i < ready.program.launches.size(); ++i) {
    if (is_empty(ready.program.launches[i])) continue;
    out.push_back(bound_launch(ready.program.launches[i], memory));
    out.back().function = ready.functions[i];
    out.back().product = ready.products[i];
  }
  return out;
}

// Programs for the op nodes of a description: the compiler's passes and tiling, run as plans on a device.
//
//   const auto compiler = make_op_compiler(*find_device("cpu"));
//   auto graph = HostGraph::create(description, kernels, {.compiler = compiler});
#pragma once

#include <memory>

#include "tessera/compile/plan_function.h"
#include "tessera/describe/op_program.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// What groups of op nodes are compiled with, unless somebody says otherwise: no bit changes.
[[nodiscard]] inline compiler::PlanOptions exact_plans() {
  return {.pipeline = {.passes = {.floats = compiler::FloatRules::exact}}};
}

/// Programs keep the device and have memory from one pool.
[[nodiscard]] std::shared_ptr<description::OpCompiler> make_op_compiler(
    std::shared_ptr<runtime::Device> device, compiler::PlanOptions options = exact_plans());

/// A plan whose sizes are numbers as a program, with memory from `pool`. Fails with code `memory`, before any
/// is taken, if it would hold more than `memory` bytes.
[[nodiscard]] Result<std::shared_ptr<description::OpProgram>> load_op_program(
    const std::shared_ptr<runtime::Device>& device, const plan::PlanRef& plan,
    const std::shared_ptr<runtime::MemoryPool>& pool, std::uint64_t memory);

}  // namespace tessera::engine

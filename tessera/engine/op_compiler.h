// Programs for the op nodes of a description: the compiler's passes and tiling, run as plans on a device.
//
//   HostGraph::create(description, kernels, {.compiler = make_op_compiler(*find_device("cpu"))});
#pragma once

#include <memory>

#include "tessera/compile/plan_function.h"
#include "tessera/describe/op_program.h"
#include "tessera/runtime/device.h"

namespace tessera::engine {

/// Programs keep the device and have memory from one pool.
[[nodiscard]] std::shared_ptr<description::OpCompiler> make_op_compiler(
    std::shared_ptr<runtime::Device> device,
    compiler::PlanOptions options = {.pipeline = {.passes = {.floats = compiler::FloatRules::exact}}});

}  // namespace tessera::engine

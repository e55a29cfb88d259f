// An ONNX model as plans on an engine: one program where the model can be written as a function, or one for
// each value of its flags, the inputs that are one boolean: models of decoders choose by such a flag whether
// there are words before, and have other shapes then.
#pragma once

#include "tessera/engine/plan_runner.h"
#include "tessera/onnx/import.h"

namespace tessera {

/// Takes the required inputs of the model, of any size that it has a name for. Programs for the values of
/// flags are made when they first run. Fails with code `unsupported`, saying why, if the model has loops that
/// its data end, branches of other shapes by other values than flags, or sizes that no plan can learn.
/// REQUIRES that the engine lives as long as the runner.
[[nodiscard]] Result<engine::PlanRunner> plan_model(const onnx::Model& model, engine::Engine& engine,
                                                    const onnx::Limits& limits = {});

}  // namespace tessera

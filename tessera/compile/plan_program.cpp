#include "tessera/compile/plan_program.h"

#include "tessera/base/text.h"
#include "tessera/compile/cut_sizes.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/walk.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

Result<void> add_inputs(const ir::Function& function, plan::Program& program) {
  for (const auto& param : function.params) {
    const auto type = op::value_type(*param->type);
    if (!type) return Error(ErrorCode::unsupported, cat("input '", ir::describe(*param), "' is a tuple"));
    program.inputs.push_back(*type);
  }
  return {};
}

/// The dtype of each slot, in whatever part it is read.
void add_parameters(const ir::Function& function, plan::Program& program) {
  for (const ir::Node* node : ir::post_order(function))
    if (const auto* param = ir::as<ir::Param>(*node)) {
      if (program.parameters.size() <= param->slot)
        program.parameters.resize(param->slot + 1, op::Dtype::f32);
      program.parameters[param->slot] = param->dtype;
    }
}

}  // namespace

Result<PlannedProgram> compiler::plan_program(const ir::FunctionRef& function, const pattern::Target& target,
                                              const PlanOptions& options) {
  PlannedProgram out;
  out.program.dims = function->dims;
  TESSERA_TRY(add_inputs(*function, out.program));
  add_parameters(*function, out.program);
  CutFunction cut = TESSERA_TRY(cut_at_learned_sizes(function));
  for (CutPart& part : cut.parts) {
    out.parts.push_back(TESSERA_TRY(plan_function(part.function, target, options)));
    out.program.parts.push_back({out.parts.back().plan, std::move(part.inputs), std::move(part.learned)});
  }
  out.program.outputs = std::move(cut.outputs);
  return out;
}

#include "tessera/compile/plan_program.h"

#include "tessera/base/text.h"
#include "tessera/compile/cut_sizes.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/walk.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// Values that no plan takes or gives: all of them in one error, each with its line.
Result<void> check_no_tuples(const ir::Function& function) {
  std::vector<Error> wrong;
  const auto check = [&](const ir::Expr& value, std::string_view what) {
    const auto* var = ir::as<ir::Var>(value);
    if (var == nullptr || op::value_type(*var->type)) return;
    wrong.push_back(Error(ErrorCode::unsupported, cat(what, " '", ir::describe(*var), "' is a tuple"),
                          var->span().resolve()));
  };
  for (const auto& param : function.params) check(*param, "input");
  for (const ir::ExprRef& result : function.results) check(*result, "result");
  if (wrong.empty()) return {};
  Error first = std::move(wrong.front());
  for (std::size_t i = 1; i < wrong.size(); ++i) (void)std::move(first).note(wrong[i].to_text());
  return first;
}

void add_inputs(const ir::Function& function, plan::Program& program) {
  for (const auto& param : function.params) program.inputs.push_back(*op::value_type(*param->type));
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
  TESSERA_TRY(check_valid(*function));
  TESSERA_TRY(check_no_tuples(*function));
  out.program.dims = function->dims;
  add_inputs(*function, out.program);
  add_parameters(*function, out.program);
  CutFunction cut = TESSERA_TRY(cut_at_learned_sizes(function));
  for (CutPart& part : cut.parts) {
    out.parts.push_back(TESSERA_TRY(plan_valid_function(part.function, target, options)));
    out.program.parts.push_back({out.parts.back().plan, std::move(part.inputs), std::move(part.learned)});
  }
  out.program.outputs = std::move(cut.outputs);
  return out;
}

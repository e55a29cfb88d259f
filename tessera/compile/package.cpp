#include "tessera/compile/package.h"

#include "tessera/base/text.h"
#include "tessera/ir/number_bits.h"
#include "tessera/ir/walk.h"

using namespace tessera;

plan::Package compiler::package(const ir::Function& function, std::vector<plan::Program> programs,
                                std::string device, PackageOptions options) {
  plan::Package out;
  out.device = std::move(device);
  out.inputs = std::move(options.inputs);
  out.flags = std::move(options.flags);
  if (out.inputs.empty()) {
    for (const auto& param : function.params) out.inputs.push_back(param->name);
    out.inputs.resize(out.inputs.size() - options.states.size());
  }
  out.states = std::move(options.states);
  out.blocks = std::move(options.blocks);
  out.outputs = std::move(options.outputs);
  for (std::size_t i = out.outputs.size(); i < function.results.size(); ++i) {
    const auto* var = ir::as<ir::Var>(*function.results[i]);
    out.outputs.push_back(var == nullptr || var->name.empty() ? cat("out", i) : var->name);
  }
  out.parameters.resize(programs.front().parameters.size());
  for (const ir::Node* node : ir::post_order(function))
    if (const auto* param = ir::as<ir::Param>(*node); param != nullptr && param->slot < out.parameters.size())
      out.parameters[param->slot] = ir::number_bits(param->value, param->dtype);
  out.programs = std::move(programs);
  return out;
}

#include "tessera/engine/tuning_cover.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "tessera/compile/lower.h"
#include "tessera/compile/pipeline.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

using Statements = std::vector<std::uint32_t>;

bool has(std::span<const std::uint32_t> statements, std::uint32_t statement) {
  return std::binary_search(statements.begin(), statements.end(), statement);
}

/// Some statements of a function as a function: what they read of the others is given to it, what others
/// read of them it gives.
class PartWriter {
 public:
  explicit PartWriter(const ir::Function& function) : function_(function) {
    out_.name = function.name;
    out_.dims = function.dims;
    for (const auto& dim : function.dims) known_.insert(dim.get());
  }

  ir::FunctionRef write(std::span<const std::uint32_t> statements) && {
    for (const std::uint32_t statement : statements) {
      const auto& assign = function_.body[statement];
      ir::for_each_use(*assign->value, [&](const ir::Var& var) { add_parameter(var); });
      for (const auto& target : assign->targets) known_.insert(target.get());
      out_.body.push_back(assign);
    }
    std::unordered_set<const ir::Var*> read;
    const auto note = [&](const ir::Var& var) { read.insert(&var); };
    for (std::uint32_t i = 0; i < function_.body.size(); ++i)
      if (!has(statements, i)) ir::for_each_use(*function_.body[i]->value, note);
    for (const ir::ExprRef& result : function_.results) ir::for_each_use(*result, note);
    for (const auto& assign : out_.body)
      for (const auto& target : assign->targets)
        if (read.count(target.get()) != 0) out_.results.push_back(target);
    return ir::function(std::move(out_));
  }

 private:
  void add_parameter(const ir::Var& var) {
    if (known_.insert(&var).second) out_.params.push_back(Ref<ir::Var>(const_cast<ir::Var*>(&var)));
  }

  const ir::Function& function_;
  ir::FunctionParts out_;
  std::unordered_set<const ir::Var*> known_;
};

}  // namespace

Result<plan::PlanRef> tessera::engine::plan_of(const ir::Function& function,
                                               const compiler::TiledFunction& tiled) {
  plan::Plan plan = TESSERA_TRY(compiler::lower(function, tiled));
  for (const compiler::Pass& pass : compiler::all_passes())
    if (const auto* run = std::get_if<compiler::PlanPass>(&pass.run)) (*run)(plan);
  return plan::PlanRef(std::make_shared<const plan::Plan>(std::move(plan)));
}

std::vector<std::uint32_t> tessera::engine::where_they_differ(const compiler::TiledFunction& a,
                                                              const compiler::TiledFunction& b) {
  std::set<Statements> known;
  for (const compiler::TiledPart& part : b.parts) known.insert(part.statements);
  Statements out;
  for (const compiler::TiledPart& part : a.parts)
    if (known.count(part.statements) == 0)
      out.insert(out.end(), part.statements.begin(), part.statements.end());
  std::sort(out.begin(), out.end());
  return out;
}

Result<plan::PlanRef> tessera::engine::plan_of_part(const ir::Function& function,
                                                    const compiler::TiledFunction& tiled,
                                                    std::span<const std::uint32_t> statements) {
  compiler::TiledFunction out;
  for (const compiler::TiledPart& part : tiled.parts) {
    if (!has(statements, part.statements[0])) continue;
    compiler::TiledPart& copy = out.parts.emplace_back(part);
    for (std::uint32_t& statement : copy.statements)
      statement = static_cast<std::uint32_t>(
          std::lower_bound(statements.begin(), statements.end(), statement) - statements.begin());
  }
  return plan_of(*PartWriter(function).write(statements), out);
}

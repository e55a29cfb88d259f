#include "tessera/autodiff/fold_sums.h"

#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;

namespace {

class FoldSums {
 public:
  ir::FunctionRef run(const ir::FunctionRef& function) {
    const auto count = [&](const ir::Var& var) { ++uses_[var]; };
    for (const auto& statement : function->body) ir::for_each_use(*statement->value, count);
    for (const auto& result : function->results) ir::for_each_use(*result, count);
    std::vector<Ref<ir::Assign>> body;
    bool changed = false;
    for (const auto& statement : function->body) {
      body.push_back(folded(statement));
      changed = changed || body.back() != statement;
      if (const auto* call = ir::as<ir::Call>(*body.back()->value)) calls_[*statement->targets[0]] = call;
    }
    if (!changed) return function;
    auto draft = std::make_unique<ir::Function>(*function);
    draft->body = std::move(body);
    return ir::seal(std::move(draft));
  }

 private:
  Ref<ir::Assign> folded(const Ref<ir::Assign>& statement) {
    const auto* sum = ir::as<ir::Call>(*statement->value);
    if (sum == nullptr || sum->op != "add" || sum->args.size() != 2) return statement;
    for (std::size_t i : {1U, 0U}) {
      const ir::Call* scatter = scatter_into_zeros(*sum->args[i]);
      if (scatter == nullptr || op::operand_type(*sum->args[0]) != op::operand_type(*sum->args[1])) continue;
      auto draft = std::make_unique<ir::Call>(*scatter);
      draft->args[0] = sum->args[1 - i];
      return ir::assign(statement->targets, ir::seal(std::move(draft)), statement->span());
    }
    return statement;
  }

  /// The call that gives `operand`, if it adds updates to zeros and nothing else uses it.
  const ir::Call* scatter_into_zeros(const ir::Expr& operand) {
    const ir::Call* call = call_of(operand);
    if (call == nullptr || (call->op != "scatter_nd" && call->op != "scatter_elements")) return nullptr;
    const auto* reduction = call->attrs.get<std::string>("reduction");
    const bool adds = reduction != nullptr && *reduction == "add";
    const ir::Call* zeros = call_of(*call->args[0]);
    if (!adds || zeros == nullptr || zeros->op != "full" || uses_[operand] != 1) return nullptr;
    const auto* value = ir::as<ir::FloatConst>(*zeros->args[0]);
    return value != nullptr && value->value == 0 ? call : nullptr;
  }

  const ir::Call* call_of(const ir::Expr& operand) {
    const ir::Call** known = ir::is<ir::Var>(operand) ? calls_.find(operand) : nullptr;
    return known == nullptr ? nullptr : *known;
  }

  ir::NodeTable<std::size_t> uses_;
  ir::NodeTable<const ir::Call*> calls_;
};

}  // namespace

ir::FunctionRef tessera::autodiff::fold_sums(const ir::FunctionRef& function) {
  return FoldSums().run(function);
}

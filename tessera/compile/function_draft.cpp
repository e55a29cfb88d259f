#include "tessera/compile/function_draft.h"

#include "tessera/compile/purity.h"
#include "tessera/ir/dead_code.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::compiler;

const ir::ExprRef& FunctionDraft::operand(const ir::ExprRef& operand) {
  if (!any_replaced_ || !ir::is<ir::Var>(operand)) return operand;
  const ir::ExprRef* value = replaced_.find(*operand);
  return value == nullptr ? operand : *value;
}

Ref<ir::Assign> FunctionDraft::current(const Ref<ir::Assign>& statement) {
  builder_.at(statement->span());
  if (!any_replaced_ || !statement->value->has_variables()) return statement;
  ir::ExprRef value = ir::visit_node(*statement->value, [&]<class N>(const N& node) -> ir::ExprRef {
    if constexpr (N::node_kind == ir::NodeKind::var) {
      return operand(statement->value);
    } else if constexpr (N::node_kind < ir::NodeKind::call || N::node_kind > ir::NodeKind::for_region) {
      return statement->value;  // scalars are never replaced
    } else {
      bool found = false;
      ir::for_each_child(node, [&](const ir::Node& child) {
        found = found || (ir::is<ir::Var>(child) && replaced_.find(child) != nullptr);
      });
      if (!found) return statement->value;
      auto draft = std::make_unique<N>(node);
      ir::transform_children(*draft, [&]<class T>(const Ref<T>& child) -> Ref<T> {
        if constexpr (std::is_same_v<T, ir::Expr>) {
          return operand(child);
        } else {
          return child;
        }
      });
      return ir::seal(std::move(draft));
    }
  });
  if (value == statement->value) return statement;
  return ir::assign(statement->targets, std::move(value), statement->span());
}

void FunctionDraft::keep(const Ref<ir::Assign>& statement) {
  all_kept_ = all_kept_ && kept_ < function_->body.size() && function_->body[kept_] == statement;
  ++kept_;
  builder_.adopt(statement);
}

void FunctionDraft::replace(const ir::Var& target, ir::ExprRef value) {
  replaced_[target] = std::move(value);
  any_replaced_ = true;
}

void FunctionDraft::forget(const ir::Var& target) {
  if (ir::ExprRef* value = replaced_.find(target)) *value = nullptr;
}

const ir::Assign* FunctionDraft::definition(const ir::Expr& operand) {
  const auto& statements = builder_.statements();
  for (; defined_ < statements.size(); ++defined_)
    for (const auto& target : statements[defined_]->targets)
      definitions_[*target] = statements[defined_].get();
  if (!ir::is<ir::Var>(operand)) return nullptr;
  const ir::Assign** known = definitions_.find(operand);
  return known == nullptr ? nullptr : *known;
}

const ir::Call* FunctionDraft::call_of(const ir::Expr& operand) {
  const ir::Assign* statement = definition(operand);
  return statement == nullptr || statement->targets.size() != 1 ? nullptr
                                                                : ir::as<ir::Call>(statement->value);
}

const ir::Call* FunctionDraft::call_of(const ir::Expr& operand, std::string_view op) {
  const ir::Call* call = call_of(operand);
  return call != nullptr && call->op == op ? call : nullptr;
}

op::Value FunctionDraft::value(const ir::ExprRef& operand) {
  auto type = op::operand_type(*operand);
  return type ? builder_.import(operand, *std::move(type)) : op::Value{};
}

ir::FunctionRef FunctionDraft::finish() {
  // What was written without being used by anything is no change.
  if (!any_replaced_ && all_kept_ && kept_ == function_->body.size()) return function_;
  auto draft = std::make_unique<ir::Function>(*function_);
  draft->body = builder_.statements();
  for (ir::ExprRef& result : draft->results) result = operand(result);
  return ir::without_dead_code(ir::seal(std::move(draft)), is_pure);
}

UseCounts::UseCounts(const ir::Function& function) {
  const auto count = [&](const ir::Var& var) { ++counts_[var]; };
  for (const auto& statement : function.body) ir::for_each_use(*statement->value, count);
  for (const auto& result : function.results) ir::for_each_use(*result, count);
}

op::ValueTypes tessera::compiler::operand_types(const ir::Call& call) {
  op::ValueTypes out;
  out.reserve(call.args.size());
  for (const auto& arg : call.args) {
    auto type = op::operand_type(*arg);
    if (!type) return {};
    out.push_back(*std::move(type));
  }
  return out;
}

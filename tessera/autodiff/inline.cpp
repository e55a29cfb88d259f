#include "tessera/autodiff/inline.h"

#include <algorithm>

#include "tessera/ir/dim.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/rewrite.h"
#include "tessera/ir/seal.h"

using namespace tessera;
using namespace tessera::autodiff;

namespace {

enum class Targets : bool { keep, renew };

/// Copies the statements of one function to a list, with its variables replaced.
class Copy {
 public:
  Copy(std::vector<Ref<ir::Assign>>& out, const KeepsCall& keeps_call, Targets targets)
      : out_(out), keeps_call_(keeps_call), targets_(targets) {}

  void set(const ir::Var& var, ir::ExprRef value) { values_[var] = std::move(value); }

  std::vector<ir::ExprRef> run(const ir::Function& function) {
    for (const auto& statement : function.body) copy(*statement);
    std::vector<ir::ExprRef> results;
    for (const auto& result : function.results) results.push_back(operand(result));
    return results;
  }

 private:
  void copy(const ir::Assign& statement) {
    const ir::Expr& value = *statement.value;
    if (const auto* invoke = ir::as<ir::Invoke>(value); invoke != nullptr && !keeps_call_(*invoke->callee))
      return write_out(*invoke, statement);
    if (ir::is<ir::Var>(value)) return set(*statement.targets[0], operand(statement.value));
    if (const auto* item = ir::as<ir::Item>(value))
      if (const ir::ExprRef* element = element_of(*item)) return set(*statement.targets[0], *element);
    ir::ExprRef copied = with_new_operands(statement.value);
    if (const auto* tuple = ir::as<ir::Tuple>(copied)) tuples_[*statement.targets[0]] = tuple->elements;
    std::vector<Ref<ir::Var>> targets;
    for (const auto& target : statement.targets) targets.push_back(new_target(target));
    out_.push_back(ir::assign(std::move(targets), std::move(copied), statement.span()));
  }

  void write_out(const ir::Invoke& invoke, const ir::Assign& statement) {
    const ir::Function& callee = *invoke.callee;
    Copy inner(out_, keeps_call_, Targets::renew);
    for (std::size_t i = 0; i < callee.dims.size(); ++i) inner.set(*callee.dims[i], operand(invoke.dims[i]));
    for (std::size_t i = 0; i < callee.params.size(); ++i)
      inner.set(*callee.params[i], operand(invoke.args[i]));
    const auto results = inner.run(callee);
    for (std::size_t i = 0; i < results.size(); ++i) set(*statement.targets[i], results[i]);
  }

  const ir::ExprRef* element_of(const ir::Item& item) {
    const auto* var = ir::as<ir::Var>(item.tuple);
    const auto* elements = var == nullptr ? nullptr : tuples_.find(*var);
    return elements == nullptr ? nullptr : &(*elements)[item.index];
  }

  Ref<ir::Var> new_target(const Ref<ir::Var>& target) {
    if (targets_ == Targets::keep && !target->type->has_variables()) return target;
    ir::TypeRef type = ir::substitute(target->type, [&](const ir::Var& var) { return size(var); });
    if (targets_ == Targets::keep && type == target->type) return target;
    Ref<ir::Var> out = ir::variable(target->name, std::move(type), target->span());
    set(*target, out);
    return out;
  }

  std::optional<ir::Dim> size(const ir::Var& var) {
    const ir::ExprRef* value = values_.find(var);
    return value == nullptr ? std::nullopt : std::optional(ir::simplified(*value));
  }

  ir::ExprRef operand(const ir::ExprRef& expr) {
    if (!expr->has_variables()) return expr;
    if (const auto* var = ir::as<ir::Var>(expr)) {
      const ir::ExprRef* value = values_.find(*var);
      return value == nullptr ? expr : *value;
    }
    const ir::NodeRef out = ir::replace_variables(expr, [&](const ir::Var& var) {
      const ir::ExprRef* value = values_.find(var);
      return value == nullptr ? ir::ExprRef() : *value;
    });
    return ir::ExprRef(static_cast<const ir::Expr*>(out.get()));
  }

  /// Bodies of regions are closed: only what is handed to them changes.
  ir::ExprRef with_new_operands(const ir::ExprRef& expr) {
    return ir::visit_node(*expr, [&]<class N>(const N& node) -> ir::ExprRef {
      if constexpr (N::node_kind < ir::NodeKind::call || N::node_kind > ir::NodeKind::for_region) {
        return operand(expr);
      } else {
        auto draft = std::make_unique<N>(node);
        ir::transform_children(*draft, [&]<class T>(const Ref<T>& child) -> Ref<T> {
          if constexpr (std::is_same_v<T, ir::Expr>) {
            return operand(child);
          } else {
            return child;
          }
        });
        if constexpr (std::is_same_v<N, ir::Call>) normalize_sizes(*draft);
        return ir::seal(std::move(draft));
      }
    });
  }

  static void normalize_sizes(ir::Call& call) {
    for (auto& [name, value] : call.attrs.mutable_entries())
      if (auto* shape = std::get_if<ir::Shape>(&value))
        for (ir::Dim& dim : *shape)
          if (!dim.is_constant()) dim = ir::simplified(dim.expr());
  }

  std::vector<Ref<ir::Assign>>& out_;
  const KeepsCall& keeps_call_;
  Targets targets_;
  ir::NodeTable<ir::ExprRef> values_;
  ir::NodeTable<std::vector<ir::ExprRef>> tuples_;
};

}  // namespace

op::Values tessera::autodiff::inline_call(op::IrBuilder& builder, const ir::Function& callee,
                                          std::span<const ir::ExprRef> dims,
                                          std::span<const op::Value> args) {
  std::vector<Ref<ir::Assign>> statements;
  const KeepsCall keep_all = [](const ir::Function&) { return true; };
  Copy copy(statements, keep_all, Targets::renew);
  for (std::size_t i = 0; i < callee.dims.size(); ++i) copy.set(*callee.dims[i], dims[i]);
  for (std::size_t i = 0; i < callee.params.size(); ++i)
    if (args[i]) copy.set(*callee.params[i], builder.expr(args[i]));
  const auto results = copy.run(callee);
  for (auto& statement : statements) builder.adopt(std::move(statement));
  op::Values out;
  for (const auto& result : results)
    out.push_back(builder.import(result, op::operand_type(*result).value_or(op::ValueType{})));
  return out;
}

ir::FunctionRef tessera::autodiff::flattened(const ir::FunctionRef& function, const KeepsCall& keeps_call) {
  const auto is_plain = [&](const Ref<ir::Assign>& statement) {
    const ir::Expr& value = *statement->value;
    if (const auto* invoke = ir::as<ir::Invoke>(value)) return keeps_call(*invoke->callee);
    return !ir::is<ir::Tuple>(value) && !ir::is<ir::Item>(value) && !ir::is<ir::Var>(value);
  };
  if (std::all_of(function->body.begin(), function->body.end(), is_plain)) return function;
  auto draft = std::make_unique<ir::Function>(*function);
  draft->body.clear();
  draft->results = Copy(draft->body, keeps_call, Targets::keep).run(*function);
  return ir::seal(std::move(draft));
}

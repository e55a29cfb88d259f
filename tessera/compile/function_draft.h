// The function that a pass writes: the statements of another one, in order, with operands replaced on the way
// and new statements between them.
//
//   FunctionDraft draft(function);
//   for (const auto& statement : function->body) {
//     const auto current = draft.current(statement);
//     if (const ir::ExprRef simpler = simplified(current, draft.builder()))
//       draft.replace(*current->targets[0], simpler);
//     else
//       draft.keep(current);
//   }
//   return draft.finish();
#pragma once

#include <string_view>

#include "tessera/ir/function.h"
#include "tessera/ir/node_table.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"

namespace tessera::compiler {

class FunctionDraft {
 public:
  /// REQUIRES that `function` lives as long as this.
  explicit FunctionDraft(const ir::FunctionRef& function) : function_(function) {}

  /// What stands for an operand of the old function.
  [[nodiscard]] const ir::ExprRef& operand(const ir::ExprRef& operand);
  /// A statement of the old function with its operands replaced; itself if none is.
  [[nodiscard]] Ref<ir::Assign> current(const Ref<ir::Assign>& statement);
  /// Adds a statement.
  void keep(const Ref<ir::Assign>& statement);
  /// Uses of `target` mean `value` from here on; the statement that binds it is left out. REQUIRES the type
  /// of `target`, which is a tensor or a tuple.
  void replace(const ir::Var& target, ir::ExprRef value);
  /// Frees what stands for a target that nothing uses any more.
  void forget(const ir::Var& target);

  /// The call that gives `operand`, if it is the only result of one.
  [[nodiscard]] const ir::Call* call_of(const ir::Expr& operand);
  /// The same if it is a call of this op.
  [[nodiscard]] const ir::Call* call_of(const ir::Expr& operand, std::string_view op);
  /// The statement that binds `operand`, or null.
  [[nodiscard]] const ir::Assign* definition(const ir::Expr& operand);

  /// Writes new statements, where the draft stands.
  [[nodiscard]] op::IrBuilder& builder() { return builder_; }
  /// An operand as a value of the builder; empty if it is a tuple.
  [[nodiscard]] op::Value value(const ir::ExprRef& operand);

  /// The new function without what nothing uses any more; the old one if nothing was replaced.
  [[nodiscard]] ir::FunctionRef finish();

 private:
  const ir::FunctionRef& function_;
  op::IrBuilder builder_;
  ir::NodeTable<ir::ExprRef> replaced_;
  ir::NodeTable<const ir::Assign*> definitions_;
  std::size_t defined_ = 0;  ///< statements of the builder whose targets are in `definitions_`
  std::size_t kept_ = 0;     ///< statements that were kept as they are, from the first on
  bool all_kept_ = true;
  bool any_replaced_ = false;
};

/// How often each variable of a function is used by its statements and results.
class UseCounts {
 public:
  explicit UseCounts(const ir::Function& function);
  [[nodiscard]] std::uint32_t of(const ir::Expr& operand) {
    const std::uint32_t* count = counts_.find(operand);
    return count == nullptr ? 0 : *count;
  }
  /// Takes one use away; what is left.
  std::uint32_t take(const ir::Expr& operand) {
    std::uint32_t* count = counts_.find(operand);
    return count == nullptr || *count == 0 ? 0 : --*count;
  }

 private:
  ir::NodeTable<std::uint32_t> counts_;
};

/// The types of a call's operands; empty if one is a tuple.
[[nodiscard]] op::ValueTypes operand_types(const ir::Call& call);

}  // namespace tessera::compiler

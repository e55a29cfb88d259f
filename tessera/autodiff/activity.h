// Which values depend on chosen parameters in a way that a gradient can flow through: along floats, through
// ops that have a gradient.
#pragma once

#include <vector>

#include "tessera/ir/function.h"
#include "tessera/ir/node_table.h"
#include "tessera/op/value_type.h"

namespace tessera::autodiff {

[[nodiscard]] bool is_float_value(const ir::Type& type);
/// Of an operand; empty if it is neither an array nor a scalar.
[[nodiscard]] op::ValueType type_of(const ir::Expr& operand);
/// `offset` plus the places of the flags that are set.
[[nodiscard]] std::vector<std::size_t> where_true(const std::vector<bool>& flags, std::size_t offset = 0);

class Activity {
 public:
  void set(const ir::Var& var, bool active) { active_[var] = active; }
  /// Of a variable, or of a scalar expression with variables.
  [[nodiscard]] bool of(const ir::Expr& operand);
  [[nodiscard]] std::vector<bool> of(const std::vector<ir::ExprRef>& operands);
  /// Which targets of a statement are active.
  [[nodiscard]] std::vector<bool> of_targets(const ir::Assign& statement);
  /// Sets the targets of a statement to that.
  void follow(const ir::Assign& statement);

 private:
  std::vector<bool> results(const ir::Expr& value, std::size_t count);
  bool any(const std::vector<ir::ExprRef>& operands);

  ir::NodeTable<bool> active_;
};

/// Which results of a function are active if these parameters are.
[[nodiscard]] std::vector<bool> active_results(const ir::Function& function,
                                               const std::vector<bool>& active_parameters);

/// Which carried values of a loop are active: initially, or after some iteration. `lead` is the number of
/// parameters of the body before the carried values.
[[nodiscard]] std::vector<bool> active_carried(const ir::Function& body, std::size_t lead,
                                               std::vector<bool> inits, const std::vector<bool>& captures);

}  // namespace tessera::autodiff

// The gradient of one loop. Going forwards, the loop keeps the carried values that its gradient reads, one
// row per iteration; going backwards, another loop takes the rows from the last to the first.
//
// A `while` counts its iterations and has as many rows as its limit; a `for` has as many as it counts.
#pragma once

#include "tessera/autodiff/activity.h"
#include "tessera/autodiff/rules.h"
#include "tessera/op/ir_builder.h"

namespace tessera::autodiff {

class LoopGradient {
 public:
  /// For a statement of `builder`'s function whose value is a `for` or a `while`.
  LoopGradient(op::IrBuilder& builder, const ir::Assign& statement, const Rules& rules);

  /// Writes the statement into the builder, so that it keeps what the gradient needs.
  [[nodiscard]] Result<void> forward(Activity& activity);
  /// Writes the loop that goes backwards, from the gradients of the targets (empty where there is none).
  /// Gives those of the initial values, then those of the captures, empty where nothing flows.
  [[nodiscard]] Result<op::Values> backward(std::span<const op::Value> target_gradients);

 private:
  [[nodiscard]] Result<void> differentiate_body(Activity& activity);
  [[nodiscard]] Result<void> set_rows();
  void count_for(const ir::Expr& count);
  [[nodiscard]] Result<ir::FunctionRef> keeping_body() const;
  [[nodiscard]] Result<ir::FunctionRef> backward_body() const;
  [[nodiscard]] ir::FunctionRef keeping_condition(const ir::Function& condition) const;
  [[nodiscard]] ir::ExprRef keeping_loop(const ir::FunctionRef& body, std::vector<ir::ExprRef> inits) const;
  op::Value row_argument(op::IrBuilder& b, std::size_t param, op::Value index, const op::Values& rows) const;

  [[nodiscard]] op::ValueType param_type(std::size_t param) const;
  [[nodiscard]] op::ValueType kept_type(const op::ValueType& type, const ir::Dim& rows) const;
  [[nodiscard]] ir::Dim inner_rows() const;
  void adopt_sizes(op::IrBuilder& b) const;
  [[nodiscard]] std::vector<ir::ExprRef> region_dims() const;
  [[nodiscard]] bool has_known_count() const { return for_ != nullptr && rows_.is_constant(); }
  [[nodiscard]] bool reads(std::size_t param) const { return read_[param]; }

  op::IrBuilder& builder_;
  const ir::Assign& statement_;
  const Rules& rules_;
  const ir::ForRegion* for_ = nullptr;
  const ir::WhileRegion* while_ = nullptr;
  const ir::Function* body_ = nullptr;
  const std::vector<ir::ExprRef>* inits_ = nullptr;
  const std::vector<ir::ExprRef>* captures_ = nullptr;
  const std::vector<ir::ExprRef>* dims_ = nullptr;
  std::size_t lead_ = 0;  ///< parameters of the body before the carried values

  std::vector<std::size_t> carried_;   ///< the active carried values
  std::vector<std::size_t> captured_;  ///< the active captures
  ir::FunctionRef gradient_;           ///< of the body: of these from those of the active carried values
  std::vector<bool> read_;             ///< which parameters of the body its gradient reads
  std::vector<std::size_t> kept_;      ///< the carried values among them
  op::Values rows_of_;                 ///< what was kept of each
  op::Value count_;                    ///< the number of iterations that ran
  ir::Dim rows_;                       ///< the number of rows, where the loop stands
  Ref<ir::Var> rows_symbol_;           ///< the same inside the bodies, unless it is constant
};

}  // namespace tessera::autodiff

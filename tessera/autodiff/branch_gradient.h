// The gradient of one `if` or `switch`. Going forwards, the body that runs also gives what its gradient reads
// of it; going backwards, the gradient of the same body takes that. So a body runs once, however deep it
// stands in others. Of values of one type, the bodies share one place.
#pragma once

#include "tessera/autodiff/activity.h"
#include "tessera/autodiff/reverse.h"
#include "tessera/autodiff/rules.h"
#include "tessera/op/ir_builder.h"

namespace tessera::autodiff {

class BranchGradient {
 public:
  /// For a statement of `builder`'s function whose value is an `if` or a `switch`.
  BranchGradient(op::IrBuilder& builder, const ir::Assign& statement, const Rules& rules);

  /// Writes the statement into the builder, so that it keeps what the gradient needs.
  [[nodiscard]] Result<void> forward(Activity& activity);
  /// Writes the region that goes backwards, from the gradients of the targets (empty where there is none).
  /// Gives those of the captures, empty where nothing flows.
  [[nodiscard]] Result<op::Values> backward(std::span<const op::Value> target_gradients);

 private:
  static constexpr std::size_t unused = static_cast<std::size_t>(-1);

  void share_places();
  [[nodiscard]] op::ValueType with_sizes_of(std::size_t body, const op::ValueType& type) const;
  [[nodiscard]] op::ValueType where_it_stands(const op::ValueType& type) const;
  [[nodiscard]] Result<ir::FunctionRef> keeping_body(std::size_t body) const;
  [[nodiscard]] ir::FunctionRef backward_body(std::size_t body) const;
  [[nodiscard]] ir::ExprRef region(std::vector<ir::FunctionRef> bodies,
                                   std::vector<ir::ExprRef> captures) const;

  op::IrBuilder& builder_;
  const ir::Assign& statement_;
  const Rules& rules_;
  std::vector<ir::FunctionRef> bodies_;
  const std::vector<ir::ExprRef>* captures_ = nullptr;
  const std::vector<ir::ExprRef>* dims_ = nullptr;

  std::vector<std::size_t> wrt_;                 ///< the active captures
  std::vector<std::size_t> seeds_;               ///< the active targets
  std::vector<Halves> halves_;                   ///< of each body
  op::ValueTypes places_;                        ///< what is kept, in the sizes of the first body
  std::vector<std::vector<std::size_t>> holds_;  ///< per body and place: which kept value, or unused
  op::Values kept_;                              ///< the places, where the region stands
};

}  // namespace tessera::autodiff

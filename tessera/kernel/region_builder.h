// Writes calls of ops into the body of a kernel. An op::Builder, so that a card without a formula of its own
// is written by its decomposition.
//
// Every value has axes of the draft; where two values meet in an element-wise op their axes become one. What
// is left in the end is the iteration space.
#pragma once

#include <optional>
#include <vector>

#include "tessera/kernel/body_draft.h"
#include "tessera/kernel/input_view.h"
#include "tessera/op/body.h"
#include "tessera/op/builder.h"

namespace tessera::kernel {

/// Why something cannot be part of a fused region.
[[nodiscard]] Error not_fusible(std::string message);

class RegionBuilder final : public op::Builder {
 public:
  using AxisId = std::uint32_t;
  static constexpr AxisId no_axis = ~AxisId{0};

  explicit RegionBuilder(Accuracy accuracy = Accuracy::usual) : accuracy_(accuracy) {}

  op::Value input(op::ValueType type);
  /// A scalar expression as an operand: a constant, a parameter, arithmetic of them and of sizes.
  op::Value scalar(const ir::Expr& expr, op::Dtype dtype);

  /// The kernel that computes these values. REQUIRES status().
  [[nodiscard]] Result<Kernel> finish(std::span<const op::Value> results);

 protected:
  Result<op::Values> emit(const op::Card& card, std::span<const op::Value> inputs, op::Attributes attributes,
                          op::ValueTypes types) override;
  op::Value emit_constant(double value, op::Dtype dtype) override;
  op::Value emit_extent(const op::Dim& size) override;
  op::Assumptions* assumptions() override { return &assumptions_; }

 private:
  friend class KernelWriter;

  struct Entry {
    std::optional<InputView> view;          ///< of an input that is not loaded yet, or will be again
    std::optional<std::uint32_t> reshaped;  ///< another value in row-major order: can only be a result
    ValueId value = no_value;
    SmallVector<AxisId, 4> axes;  ///< by axis of the tensor; none where its size is 1
  };
  struct Axis {
    AxisId parent = 0;
    op::Dim size;
  };
  /// An operand of a load: its array's index is `view` of the axes.
  struct Load {
    InputView view;
    op::Dtype dtype;
    SmallVector<AxisId, 4> axes;
  };

  op::Value add(op::ValueType type, Entry entry);
  AxisId new_axis(const op::Dim& size);
  AxisId root(AxisId axis);
  AxisId joined(AxisId a, AxisId b);
  SmallVector<AxisId, 4> new_axes(const op::Shape& shape);
  /// The scalar that stands for an element; loads it.
  [[nodiscard]] Result<ValueId> element(op::Value value);
  [[nodiscard]] Result<void> join_axes(std::span<const AxisId> from, SmallVector<AxisId, 4>& to);
  ValueId extent_of(const op::Dim& size);
  [[nodiscard]] Result<ValueId> formula(const ir::Scalar& scalar, op::Dtype result);
  /// Whether an op is computed in f64 and rounded once.
  [[nodiscard]] bool is_widened(const op::Card& card, std::span<const op::Value> inputs,
                                const op::ValueType& type) const;
  /// A value as its tensor stores it. Inside of a decomposition floats are not rounded to 16 bits.
  ValueId stored(ValueId value, op::Dtype dtype, std::span<const op::Value> inputs);
  Result<op::Values> decomposed(const op::CallInfo& call, std::span<const op::Value> inputs);

  Result<Entry> pointwise(const op::Card& card, std::span<const op::Value> inputs, const op::ValueType& type);
  Result<Entry> reduction(const op::CallInfo& call, op::Value input, const op::ValueType& type);
  Result<Entry> indexed(const op::CallInfo& call, std::span<const op::Value> inputs,
                        const op::ValueType& type);
  Result<Entry> view(const op::CallInfo& call, op::Value input, const op::ValueType& type);
  Result<Entry> view_of_computed(const ViewMap& map, op::Value input, const op::ValueType& type);
  /// A variable that stands for an instruction in a formula.
  ir::Scalar stand_in(ValueId value);

  const Accuracy accuracy_;
  BodyDraft body_;
  std::vector<Entry> entries_;  ///< by the id of the value
  std::vector<Axis> axes_;
  std::vector<Load> loads_;
  std::vector<SmallVector<AxisId, 4>> reductions_;  ///< the axes of each
  std::vector<std::pair<Ref<ir::Var>, ValueId>> stand_ins_;
  std::uint32_t input_count_ = 0;
  std::uint32_t depth_ = 0;  ///< of decompositions that are being written
  op::Assumptions assumptions_;
};

}  // namespace tessera::kernel

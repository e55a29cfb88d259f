// Writes the calls of a builder as recorded nodes: gradients of tensors are tensors.
#pragma once

#include <array>
#include <vector>

#include "tessera/engine/record.h"
#include "tessera/op/builder.h"

namespace tessera::detail {

class NodeBuilder : public op::Builder {
 public:
  /// What is recorded belongs to this caller.
  explicit NodeBuilder(std::shared_ptr<engine::Engine> engine, engine::Caller caller = {})
      : engine_(std::move(engine)), caller_(caller) {}

  /// A value that is there. Null: a scalar operand, `scalar`.
  op::Value import(engine::NodeRef node);
  op::Value import_scalar(engine::ScalarBits scalar, ir::Dtype dtype);
  /// The node of a value; a number becomes one.
  [[nodiscard]] engine::NodeRef node(op::Value value);
  /// Gives the node of a value up that is not used again.
  void forget(op::Value value) { known_[value.id] = {}; }
  /// How many values there were so far; they are numbered in order.
  [[nodiscard]] std::size_t value_count() const { return known_.size(); }
  /// A value as an operand: its node, or the number it is.
  [[nodiscard]] engine::Operand operand(std::uint32_t value) const {
    const Known& known = known_[value];
    return known.node ? engine::Operand::of(known.node.get()) : known.number;
  }

  /// A call that was written, by the numbers of its values; the first result of several.
  struct WrittenCall {
    SmallVector<std::uint32_t, 4> inputs;
    std::uint32_t result = 0;
  };
  /// From now on what is written is listed here; null: no longer.
  void list_calls(std::vector<WrittenCall>* calls) { calls_ = calls; }

 protected:
  Result<op::Values> emit(const op::Card& card, std::span<const op::Value> inputs, op::Attributes attributes,
                          op::ValueTypes types) override;
  Result<op::Value> emit_like(const op::Card& card, std::span<const op::Value> inputs,
                              op::Value like) override;
  op::Value emit_known(const op::Card& card, std::span<const op::Value> inputs,
                       const op::Attributes& attributes) override;
  op::Value emit_constant(double value, ir::Dtype dtype) override;
  op::Value emit_extent(const op::Dim& size) override;
  void set_caller(engine::Caller caller) { caller_ = caller; }

 private:
  struct Known {
    engine::NodeRef node;  ///< empty: a number
    engine::Operand number;
  };
  using Operands = SmallVector<engine::Operand, 4>;

  [[nodiscard]] Operands operands_of(std::span<const op::Value> inputs) const;
  op::Value add_value_of(engine::Node& node);
  void list(std::span<const op::Value> inputs, op::Value result);

  std::shared_ptr<engine::Engine> engine_;
  engine::Caller caller_;
  /// A value of each of the last types, by the lowest bits of their numbers: gradients have few types, and
  /// one is made once.
  struct Typed {
    engine::TypeNumber type = engine::no_type_number;
    op::Value value;
  };
  std::array<Typed, 16> typed_;
  std::vector<Known> known_;
  std::vector<WrittenCall>* calls_ = nullptr;
};

}  // namespace tessera::detail

// What the gradients of a call record, as it was recorded before: a training step takes the gradients of the
// same few calls over and over, and their rules look at shapes, types and attributes anew each time.
//
// A script holds for every call of the same op, attributes and types. It leaves out what only gradients need
// that nobody wants. Rules that do more than to record simple calls are not remembered, and are run; nor are
// those that look at what the gradient they are given is the gradient of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/tensor/node_builder.h"

namespace tessera::detail {

/// A call of one result whose gradients are asked for, and what they depend on beside the values.
class GradientQuestion {
 public:
  static constexpr std::size_t max_inputs = engine::CallForm::max_operands;

  /// None if such a call is not remembered. `dy` is the gradient of its result; bit i of `wanted` says that
  /// the gradient of input i is wanted.
  static std::optional<GradientQuestion> of(engine::Node& call, engine::Node* dy, std::uint32_t wanted);

  /// Whether one script answers both.
  [[nodiscard]] bool is_like(const GradientQuestion& other) const;
  [[nodiscard]] std::uint64_t hash() const;
  /// The inputs, the result, and its gradient.
  [[nodiscard]] std::span<const engine::Operand> given() const { return {given_.data(), count_ + 2}; }
  [[nodiscard]] engine::Node* dy() const { return given_[count_ + 1].node; }
  [[nodiscard]] std::size_t input_count() const { return count_; }
  [[nodiscard]] bool wants(std::size_t input) const { return (wanted_ >> input & 1) != 0; }
  /// Keeps what it is compared by, and none of the values.
  void forget_values() { given_ = {}; }

 private:
  std::array<engine::Operand, max_inputs + 2> given_;
  const op::Card* card_ = nullptr;
  std::shared_ptr<const op::Attributes> attributes_;       ///< calls that were recorded alike share them
  std::array<engine::TypeNumber, max_inputs> types_ = {};  ///< none for numbers
  std::uint32_t count_ = 0;
  std::uint32_t wanted_ = 0;
  std::uint32_t same_ = 0;  ///< which of the given are one node
};

class GradientScript {
 public:
  using Gradients = std::array<engine::NodeRef, GradientQuestion::max_inputs>;

  /// What a rule recorded: the values it was given, as those of the question, the calls it wrote, and the
  /// gradients it found. None if it cannot be recorded again from these alone.
  static std::optional<GradientScript> of(const GradientQuestion& question, const NodeBuilder& builder,
                                          std::span<const op::Value> given,
                                          std::span<const NodeBuilder::WrittenCall> calls,
                                          std::span<const op::Value> gradients);

  /// Records it again: the wanted gradients, where one flows. False if that is not possible.
  [[nodiscard]] bool record(const GradientQuestion& question, engine::Caller caller, Gradients& out) const;
  /// The part of input i that the gradient of the result is the gradient of; null if its gradient is none of
  /// a part (op::PartGradient).
  [[nodiscard]] const std::shared_ptr<const op::ValuePart>& part(std::size_t i) const { return parts_[i]; }

 private:
  /// Where an operand comes from.
  struct Place {
    enum class Kind : std::uint8_t { none, given, step, number };
    Kind kind = Kind::none;
    std::uint32_t index = 0;  ///< of the given, or of the step
    engine::Operand number;
  };
  struct Step {
    engine::CallForm form;
    std::array<Place, engine::CallForm::max_operands> operands;
    std::uint32_t count = 0;
  };
  class Reader;

  [[nodiscard]] bool read_gradient(std::size_t i, op::Value gradient, const Reader& reader);
  void drop_unwanted();

  std::vector<Step> steps_;
  std::array<Place, GradientQuestion::max_inputs> gradients_;
  std::array<std::shared_ptr<const op::ValuePart>, GradientQuestion::max_inputs> parts_;
};

/// The scripts this thread knows. A question they have no answer for is asked again with `add`.
[[nodiscard]] const GradientScript* find_script(const GradientQuestion& question);
void add_script(GradientQuestion question, GradientScript script);

}  // namespace tessera::detail

// Where an imported model is written: into an IR function (function_target.h), or straight into values, each
// call run by the reference as it comes (value_target.h). Mappings of operators (mapping.h) are written once
// and do not know which; they may ask for the elements of a value, which the first knows only of constants
// and of what follows from shapes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/onnx/model.h"
#include "tessera/op/builder.h"

namespace tessera::onnx {

using op::Dim;
using op::Shape;
using op::Value;

class Target {
 public:
  virtual ~Target() = default;

  [[nodiscard]] virtual op::Builder& builder() = 0;
  /// A value of known elements.
  virtual Value tensor(HostTensor elements) = 0;
  /// An i64 vector of sizes, which may be symbolic.
  virtual Value sizes_vector(std::span<const Dim> sizes) = 0;

  /// The elements of a value, if they are known.
  [[nodiscard]] virtual std::optional<HostTensor> elements(Value value) = 0;
  /// The elements of an i64 or i32 value in row-major order, if each is a number or an expression of sizes.
  [[nodiscard]] virtual std::optional<std::vector<Dim>> sizes(Value value) = 0;

  /// The same of a value whose elements are sizes, none negative, also where the program computes them: then
  /// they become symbols that are learned when it runs.
  [[nodiscard]] virtual std::optional<std::vector<Dim>> learned_sizes(Value value) { return sizes(value); }

  // Code that runs as often as the program finds out: only a target that does not run it at once needs these.

  /// The carried values after `body` was run for 0 … count-1 with the values of the run before.
  using LoopBody = std::function<Result<op::Values>(Value index, const op::Values& carried)>;
  [[nodiscard]] virtual Result<op::Values> loop(const Dim& count, const op::Values& carried,
                                                const LoopBody& body);
  /// What one of two bodies gives. Both must give values of the same types.
  using BranchBody = std::function<Result<op::Values>()>;
  [[nodiscard]] virtual Result<op::Values> branch(Value condition, const BranchBody& then,
                                                  const BranchBody& otherwise);

  /// Where what is written next comes from: line `line` of the model, a node.
  virtual void at_node(std::uint32_t line) = 0;
  /// A mark of everything written so far.
  [[nodiscard]] virtual std::size_t mark() const = 0;

  // Which values are needed: names hold what they stand for. What nobody holds may be forgotten.

  /// One name more stands for the value.
  virtual void hold(Value value) = 0;
  /// One name less.
  virtual void release(Value value) = 0;
  /// Forgets a value that nobody holds.
  virtual void forget_unheld(Value value) = 0;
  /// Forgets all values written since `mark` that nobody holds.
  virtual void forget_unheld_since(std::size_t mark) = 0;
};

}  // namespace tessera::onnx

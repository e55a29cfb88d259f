// Plan: the compiled program as data. Values are in single-assignment form; their sizes are expressions over
// the plan's size symbols, so that one plan serves every batch size.
//
// Steps stand in an order in which they can run. What must wait for what follows from the values they read
// alone; a runtime may run independent steps side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/kernel/kernel.h"
#include "tessera/op/call_info.h"

namespace tessera::plan {

using ValueId = std::uint32_t;
using StepId = std::uint32_t;

enum class ValueKind : std::uint8_t {
  input,      ///< given at each launch
  parameter,  ///< a number, given at each launch
  constant,   ///< known when the plan was made
  size,       ///< a number that follows from the sizes
  computed,
};

struct Value {
  ValueKind kind = ValueKind::computed;
  op::ValueType type;       ///< sizes are expressions over Plan::dims
  std::uint32_t index = 0;  ///< which input, parameter or constant; of a computed one: the step
  op::Dim size = 0;         ///< of a size

  static constexpr auto fields() {
    return std::tuple{usual("kind", &Value::kind), usual("type", &Value::type), usual("index", &Value::index),
                      usual("size", &Value::size)};
  }
};

enum class StepKind : std::uint8_t {
  call,      ///< one op
  function,  ///< a region, or a function that is called
  copy,      ///< the result is the input, in memory of its own
  kernel,    ///< a fused part of the program; `function` has its ops
  library,   ///< ops that a library of the device computes at once; `function` has them and says which it is
};

/// A result that takes the memory of an input that nobody reads after it.
struct InPlace {
  std::uint32_t result = 0;  ///< by position in the step
  std::uint32_t input = 0;

  bool operator==(const InPlace&) const = default;
  static constexpr auto fields() {
    return std::tuple{usual("result", &InPlace::result), usual("input", &InPlace::input)};
  }
};

struct Step {
  StepKind kind = StepKind::call;
  const op::Card* card = nullptr;  ///< of a call
  op::Attributes attributes;       ///< of a call; complete, sizes may be symbolic
  ir::FunctionRef function;        ///< of a function; of a kernel or library: the ops it stands for
  std::shared_ptr<const kernel::Kernel> kernel;
  std::vector<ValueId> inputs;
  std::vector<ValueId> results;
  std::vector<InPlace> in_place;  ///< in_place.h says which may be
  ir::Span span;

  static constexpr auto fields() {
    return std::tuple{usual("kind", &Step::kind),
                      usual("card", &Step::card),
                      usual("attributes", &Step::attributes),
                      usual("function", &Step::function),
                      usual("kernel", &Step::kernel),
                      usual("inputs", &Step::inputs),
                      usual("results", &Step::results),
                      usual("in_place", &Step::in_place),
                      ignore("span", &Step::span)};
  }
  /// "matmul", "while": for people.
  [[nodiscard]] std::string_view name() const;
};

struct Plan {
  std::vector<Ref<ir::Var>> dims;
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<op::Dtype> parameters;  ///< the dtype of each slot
  std::vector<op::HostTensor> constants;
  /// What was assumed about the symbols.
  std::vector<std::pair<op::Dim, op::Dim>> equal_sizes;

  static constexpr auto fields() {
    return std::tuple{usual("dims", &Plan::dims),           usual("values", &Plan::values),
                      usual("steps", &Plan::steps),         usual("inputs", &Plan::inputs),
                      usual("outputs", &Plan::outputs),     usual("parameters", &Plan::parameters),
                      usual("constants", &Plan::constants), usual("equal_sizes", &Plan::equal_sizes)};
  }
};

using PlanRef = std::shared_ptr<const Plan>;

/// One line per step.
[[nodiscard]] std::string to_text(const Plan& plan);

/// The steps that must be done before each: the producers of what it reads, ascending.
[[nodiscard]] std::vector<std::vector<StepId>> dependencies(const Plan& plan);
/// The level of each step: 0 if it waits for none, else one more than the highest it waits for. Steps of one
/// level are independent.
[[nodiscard]] std::vector<std::uint32_t> levels(const Plan& plan);

}  // namespace tessera::plan

// Softmax, its logarithm, and the loss that is made of it.
#include "tessera/op/families/softmax.h"

#include "tessera/op/by_parts.h"
#include "tessera/op/families/make.h"
#include "tessera/op/wide_buffer.h"

using namespace tessera;
using namespace tessera::op;

namespace {

// ---- softmax and log_softmax

Result<ValueTypes> infer_softmax(const CallInfo& call) {
  TESSERA_TRY(call.axis(call.integer("axis"), call.input(0).rank()));
  return ValueTypes{call.input(0)};
}

template <void (*of_row)(const Row&)>
Result<void> run_softmax(const CallInfo& call, std::span<const Array> inputs,
                         std::span<const Array> results) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), inputs[0].rank()));
  auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  if (x.size() > 0) for_each_row(x.data(), inputs[0].shape(), axis, of_row);
  x.store(results[0]);
  return {};
}

std::vector<std::int64_t> softmax_axes(const CallInfo& call) { return {call.integer("axis")}; }

/// The elements relative to the largest of their row. An axis without elements has no largest.
Value shifted(Builder& b, const CallInfo& call, Value x) {
  const std::size_t axis = value_or_throw(call.axis(call.integer("axis"), x.rank()));
  if (x.shape()[axis] == Dim(0)) return x;
  return x - b.call("max", {x}, {{"axes", softmax_axes(call)}, {"keepdims", true}});
}

Values decompose_softmax(Builder& b, const CallInfo& call, std::span<const Value> x) {
  const Value powers = unary("exp", shifted(b, call, x[0]));
  return {powers / sum(powers, softmax_axes(call), true)};
}

Values decompose_log_softmax(Builder& b, const CallInfo& call, std::span<const Value> x) {
  const Value relative = shifted(b, call, x[0]);
  return {relative - unary("log", sum(unary("exp", relative), softmax_axes(call), true))};
}

Values gradient_softmax(GradientCall& g) {
  return {g.y() * (g.dy() - sum(g.dy() * g.y(), softmax_axes(g.info), true))};
}

Values gradient_log_softmax(GradientCall& g) {
  return {g.dy() - unary("exp", g.y()) * sum(g.dy(), softmax_axes(g.info), true)};
}

// ---- cross_entropy

/// The axis of the classes: 1, or 0 for a single case.
std::size_t class_axis(const ValueType& logits) { return logits.rank() == 1 ? 0 : 1; }

Result<void> check_targets(const CallInfo& call) {
  const ValueType &logits = call.input(0), &targets = call.input(1);
  if (logits.rank() == 0)
    return call.error("'logits' (", logits, ") has rank 0, expected an axis of classes");
  const std::size_t axis = class_axis(logits);
  if (targets.rank() + 1 != logits.rank())
    return call.error("'targets' (", targets, ") has rank ", targets.rank(), ", expected ", logits.rank() - 1,
                      ": the axes of 'logits' (", logits, ") without axis ", axis);
  for (std::size_t i = 0; i < targets.rank(); ++i) {
    const std::size_t other = i < axis ? i : i + 1;
    TESSERA_TRY(call.unify(
        logits.shape[other], targets.shape[i],
        cat("axis ", other, " of 'logits' (", logits, ") and axis ", i, " of 'targets' (", targets, ")")));
  }
  return {};
}

Result<ValueTypes> infer_cross_entropy(const CallInfo& call) {
  TESSERA_TRY(check_targets(call));
  const ValueType& logits = call.input(0);
  if (call.has_input(2)) {
    const ValueType& weight = call.input(2);
    if (weight.rank() != 1)
      return call.error("'weight' (", weight, ") has rank ", weight.rank(), ", expected 1");
    TESSERA_TRY(call.unify(
        logits.shape[class_axis(logits)], weight.shape[0],
        cat("axis ", class_axis(logits), " of 'logits' (", logits, ") and 'weight' (", weight, ")")));
  }
  const std::string& reduction = call.text("reduction");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return call.error("'reduction' is \"", reduction, "\", expected \"mean\", \"sum\" or \"none\"");
  return ValueTypes{{logits.dtype, reduction == "none" ? call.input(1).shape : Shape()}};
}

/// The loss of each target, and what the targets that count weigh together.
struct Losses {
  WideBuffer<double> each;
  double weight = 0;
};

Result<Losses> losses_of(const CallInfo& call, std::span<const Array> inputs) {
  auto x = TESSERA_TRY(WideBuffer<double>::load(inputs[0]));
  const auto targets = TESSERA_TRY(WideBuffer<SignedWide>::load(inputs[1]));
  Losses out{TESSERA_TRY(WideBuffer<double>::zeros(targets.size()))};
  WideBuffer<double> weights;
  if (inputs.size() > 2) weights = TESSERA_TRY(WideBuffer<double>::load(inputs[2]));
  const std::size_t axis = class_axis(call.input(0));
  const std::int64_t classes = inputs[0].shape()[axis], ignored = call.integer("ignore_index");
  std::int64_t at = 0, wrong = -1;
  if (targets.size() == 0) return out;
  for_each_row(x.data(), inputs[0].shape(), axis, [&](const Row& row) {
    const std::int64_t target = targets[at++].v;
    if (target == ignored) return;
    if (target < 0 || target >= classes) {
      if (wrong < 0) wrong = at - 1;
      return;
    }
    log_softmax_row(row);
    const double weight = inputs.size() > 2 ? weights[target] : 1;
    out.each[at - 1] = -weight * row[target];
    out.weight += weight;
  });
  if (wrong >= 0)
    return call.element_error("'targets' has ", targets[wrong].v, " as element ", wrong,
                              ", expected a class from 0 to ", classes - 1, " or ", ignored, " to ignore it");
  return out;
}

Result<void> run_cross_entropy(const CallInfo& call, std::span<const Array> inputs,
                               std::span<const Array> results) {
  auto losses = TESSERA_TRY(losses_of(call, inputs));
  const std::string& reduction = call.text("reduction");
  if (reduction == "none") {
    losses.each.store(results[0]);
    return {};
  }
  auto total = TESSERA_TRY(WideBuffer<double>::zeros(1));
  for (double loss : losses.each) total[0] += loss;
  if (reduction == "mean") total[0] /= losses.weight;
  total.store(results[0]);
  return {};
}

/// The targets that count, and all targets as indices: 0 where one is ignored. A negative one is made too
/// large, because gathers would count it from the end.
struct Targets {
  Value counts, indices;
};

Targets checked_targets(Builder& b, const CallInfo& call, Value targets, const Dim& classes) {
  const Value zero = b.constant(0, targets.dtype());
  const Value ignored = b.constant(static_cast<double>(call.integer("ignore_index")), targets.dtype());
  const Value counts = b.call("ne", {targets, ignored});
  const Value beyond = cast(b.extent(classes), targets.dtype());
  return {counts, where(counts, where(b.call("lt", {targets, zero}), beyond, targets), zero)};
}

Values decompose_cross_entropy(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  const Value logits = inputs[0];
  const std::size_t axis = class_axis(logits.type());
  const auto signed_axis = static_cast<std::int64_t>(axis);
  const Targets targets = checked_targets(b, call, inputs[1], logits.shape()[axis]);
  Shape one_class = logits.shape();
  one_class[axis] = 1;
  const Value rows = b.call("log_softmax", {logits}, {{"axis", signed_axis}});
  const Value picked =
      b.call("gather_elements", {rows, reshape(targets.indices, one_class)}, {{"axis", signed_axis}});
  Value losses = -reshape(picked, inputs[1].shape());
  Value weights = full(b, 1, {logits.dtype(), inputs[1].shape()});
  if (inputs.size() > 2) {
    weights = b.call("gather", {inputs[2], targets.indices});
    losses = losses * weights;
  }
  // Not by a factor of 0: an ignored loss may be infinite.
  const Value zero = b.constant(0, logits.dtype());
  losses = where(targets.counts, losses, zero);
  const std::string& reduction = call.text("reduction");
  if (reduction == "none") return {losses};
  const Value total = unary("sum", losses);
  if (reduction == "sum") return {total};
  return {total / unary("sum", where(targets.counts, weights, zero))};
}

// ---- cards

constexpr AttributeSpec softmax_attributes[] = {{.name = "axis", .integer = -1}};
constexpr Input cross_entropy_inputs[] = {
    {"logits"}, {"targets", "index"}, {"weight", "T", InputKind::optional}};
constexpr AttributeSpec cross_entropy_attributes[] = {
    {.name = "reduction", .kind = AttributeKind::text, .text = "mean"},
    {.name = "ignore_index", .integer = -100},
};

constexpr Card softmax_family[] = {
    {.name = "cross_entropy",
     .summary = "-log of the softmax of `logits` along axis 1 (0 if it is the only one) at the classes "
                "`targets`, times the weight of the class; the mean divides by the weights; a target "
                "`ignore_index` counts nothing",
     .inputs = cross_entropy_inputs,
     .attributes = cross_entropy_attributes,
     .traits = {.composite = true},
     .onnx = {"SoftmaxCrossEntropyLoss"},
     .spellings = "CrossEntropyLoss",
     .oracle = "torch:nn.functional.cross_entropy",
     .infer = infer_cross_entropy,
     .reference = run_cross_entropy,
     .gradient = gradient_by_parts,
     .decompose = decompose_cross_entropy},
    {.name = "log_softmax",
     .summary = "log of the softmax along an axis, without overflow",
     .inputs = input_x,
     .attributes = softmax_attributes,
     .traits = {.composite = true},
     .onnx = {"LogSoftmax"},
     .spellings = "_log_softmax",
     .oracle = "torch:log_softmax",
     .infer = infer_softmax,
     .reference = run_softmax<log_softmax_row>,
     .gradient = gradient_log_softmax,
     .decompose = decompose_log_softmax},
    {.name = "softmax",
     .summary = "exponentials divided by their sum along an axis, without overflow",
     .inputs = input_x,
     .attributes = softmax_attributes,
     .traits = {.composite = true},
     .onnx = {"Softmax"},
     .spellings = "_softmax",
     .oracle = "torch:softmax",
     .infer = infer_softmax,
     .reference = run_softmax<softmax_row>,
     .gradient = gradient_softmax,
     .decompose = decompose_softmax},
};

}  // namespace

std::span<const Card> tessera::op::softmax_cards() { return softmax_family; }

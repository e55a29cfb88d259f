// Gradients of the caller's own, and values that are computed again for the gradient. Inside a region both
// become calls of traced functions with rules about them (autodiff/rules.h).
#include <algorithm>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/tensor/backward.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/trace.h"
#include "tessera/tensor/tracking.h"

using namespace tessera;
using namespace tessera::detail;
using engine::Node;
using engine::NodeRef;
using engine::thread_state;

namespace {

/// While it lives, this thread takes the random numbers that begin at a state once more.
class Replay {
 public:
  explicit Replay(engine::Engine::RandomState state) : state_(state), before_(thread_state.replay) {
    thread_state.replay = &state_;
  }
  ~Replay() { thread_state.replay = before_; }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

 private:
  engine::Engine::RandomState state_;
  engine::Engine::RandomState* before_;
};

/// While it lives, nothing is tracked; the tracked tensors that are used are known.
class CaptureScope {
 public:
  CaptureScope() : before_(thread_state.captured) { thread_state.captured = &nodes_; }
  ~CaptureScope() { thread_state.captured = before_; }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  /// Each once, without the arguments of the function, and without what was tracked only for a gradient
  /// inside.
  [[nodiscard]] std::vector<Tensor> captured(const std::vector<Tensor>& arguments) const {
    std::unordered_set<const Node*> seen;
    for (const Tensor& argument : arguments) seen.insert(argument.node());
    std::vector<Tensor> out;
    for (const NodeRef& node : nodes_)
      if (node->is(Node::tracks_gradient) && seen.insert(node.get()).second) out.push_back(tensor_of(node));
    return out;
  }
  void add(const Tensor& tensor) {
    if (tensor.is_tracked()) nodes_.push_back(NodeRef::share(tensor.node()));
  }

 private:
  NoGrad no_grad_;
  std::vector<NodeRef>* before_;
  std::vector<NodeRef> nodes_;
};

bool is_tracing() { return thread_state.trace_depth > 0; }

void check_arguments(std::string_view function, const std::vector<Tensor>& xs, Here here) {
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (xs[i].is_empty()) fail(here, cat(function, ": argument ", i, " is empty"));
}

Tensor value_of(std::string_view function, const TensorFunction& f, const std::vector<Tensor>& xs,
                Here here) {
  Tensor y = f(xs);
  if (y.is_empty()) fail(here, cat(function, ": the function gave an empty tensor"));
  return y;
}

op::ValueTypes types_of(const std::vector<Tensor>& tensors) {
  op::ValueTypes out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.node()->type());
  return out;
}

std::vector<std::size_t> floats_among(const std::vector<Tensor>& xs) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (ir::is_float(xs[i].dtype())) out.push_back(i);
  return out;
}

Tensor record_rule(const Tensor& y, const std::vector<Tensor>& inputs, std::shared_ptr<const CustomRule> rule,
                   Here here) {
  std::vector<Node*> nodes;
  for (const Tensor& input : inputs) nodes.push_back(input.node());
  return Tensor::adopt(engine::record_custom(y.node(), nodes, std::move(rule), caller_of(here)));
}

// ---- custom gradients

/// A function that gives its first parameter.
ir::FunctionRef first_of(const op::ValueTypes& types) {
  op::IrBuilder builder;
  op::Values parameters;
  for (const op::ValueType& type : types)
    parameters.push_back(builder.parameter(cat("p", parameters.size()), type));
  return value_or_throw(builder.function("custom_gradient", std::span(parameters).first(1)));
}

/// The rule as a function of the value, the arguments, what it captures, and the gradient of the value.
/// `inputs`, which are the arguments, become those it takes between the value and the gradient. `rules` take
/// what is known of gradients inside.
ir::FunctionRef traced_rule(const CustomRule& custom, std::vector<Tensor>& inputs, const Tensor& y,
                            autodiff::Rules& rules, Here here) {
  const std::size_t count = inputs.size();
  std::vector<Tensor> parameters{y};
  parameters.insert(parameters.end(), inputs.begin(), inputs.end());
  parameters.push_back(y);
  const Trace trace(
      y.engine(), types_of(parameters),
      [&](const std::vector<Tensor>& given) {
        const std::vector<Tensor> xs(given.begin() + 1,
                                     given.begin() + 1 + static_cast<std::ptrdiff_t>(count));
        std::vector<Tensor> found = apply_rule(custom, xs, given[0], given.back(), here), out;
        for (std::size_t i : floats_among(xs))
          out.push_back(found[i].is_empty()
                            ? zeros(xs[i].shape(), {.dtype = xs[i].dtype(), .engine = xs[i].engine()}, here)
                            : found[i]);
        return out;
      },
      here);
  std::vector<NodeRef> captures;
  trace.add_captures(captures);
  for (const NodeRef& capture : captures) inputs.push_back(tensor_of(capture));
  auto draft = std::make_unique<ir::Function>(*trace.function("custom_gradient_vjp", captures, rules));
  // From (value, arguments, gradient, captures) to (value, arguments, captures, gradient).
  const auto gradient = draft->params.begin() + static_cast<std::ptrdiff_t>(count + 1);
  std::rotate(gradient, gradient + 1, draft->params.end());
  return ir::seal(std::move(draft));
}

/// What messages call the op: by its own name if the caller made it.
std::string rule_name(const Tensor& value) {
  const op::Card* card = value.node()->card;
  return card == nullptr || op::is_in_catalogue(*card) ? "custom_gradient" : std::string(card->name);
}

Tensor with_rule(const TensorFunction& f, const GradientRule& rule, const std::vector<Tensor>& xs,
                 Here here) {
  check_arguments("custom_gradient", xs, here);
  Tensor y;
  {
    const NoGrad scope;
    y = value_of("custom_gradient", f, xs, here);
  }
  if (!ir::is_float(y.dtype())) return y;
  auto shared = std::make_shared<CustomRule>();
  shared->rule = rule;
  shared->name = rule_name(y);
  shared->arguments = xs.size();
  std::vector<Tensor> inputs = xs;
  if (is_tracing()) {
    shared->gradient = traced_rule(*shared, inputs, y, shared->rules, here);
    std::vector<Tensor> all{y};
    all.insert(all.end(), inputs.begin(), inputs.end());
    shared->function = first_of(types_of(all));
  }
  return record_rule(y, inputs, std::move(shared), here);
}

// ---- checkpoints

/// The gradients of sum(f(xs) * dy) for the arguments and for what `f` captures, each with the others held
/// fixed; empty where nothing flows.
std::vector<Tensor> computed_again(const TensorFunction& f, const std::vector<Tensor>& xs,
                                   const std::vector<Tensor>& captured, const Tensor& dy, Here here) {
  TrackingScope scope;
  const std::vector<std::size_t> floats = floats_among(xs);
  const TrackedArguments arguments(scope, xs, floats, here);
  const Tensor y = value_of("checkpoint", f, arguments.all, here);
  std::vector<Node*> targets;
  for (const Tensor& x : arguments.tracked) targets.push_back(x.node());
  for (const Tensor& x : captured) targets.push_back(x.node());
  std::vector<Tensor> out(xs.size() + captured.size());
  if (targets.empty() || !y.is_tracked()) return out;
  Backward backward(y.engine(), here, Targets::cut);
  backward.find(y.node(), targets);
  backward.run(y.node(), backward.seed_of(y, dy));
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const std::size_t at = k < floats.size() ? floats[k] : xs.size() + k - floats.size();
    if (const op::Value gradient = backward.gradient(targets[k]))
      out[at] = tensor_of(backward.node(gradient));
  }
  return out;
}

/// Numbers of its own: what other threads and inner checkpoints take does not come between.
engine::Engine::RandomState own_numbers(engine::Engine& engine) {
  constexpr std::uint64_t outermost = std::uint64_t{1} << 52, inner = std::uint64_t{1} << 32;
  return engine.take_random(thread_state.replay == nullptr ? outermost : inner);
}

Tensor computed_twice(const TensorFunction& f, const std::vector<Tensor>& xs, Here here) {
  const auto engine = xs.empty() ? engine::Engine::default_engine() : xs[0].engine();
  const auto state = own_numbers(*engine);
  Tensor y;
  std::vector<Tensor> inputs = xs;
  {
    const Replay numbers(state);
    CaptureScope captures;
    y = value_of("checkpoint", f, xs, here);
    captures.add(y);
    for (Tensor& captured : captures.captured(xs)) inputs.push_back(std::move(captured));
  }
  auto rule = std::make_shared<CustomRule>();
  rule->name = "checkpoint";
  rule->arguments = inputs.size();
  rule->rule = [f, state, count = static_cast<std::ptrdiff_t>(xs.size()), here](
                   const std::vector<Tensor>& all, const Tensor&, const Tensor& dy) {
    const Replay numbers(state);
    return computed_again(f, {all.begin(), all.begin() + count}, {all.begin() + count, all.end()}, dy, here);
  };
  return record_rule(y, inputs, std::move(rule), here);
}

/// Inside a region: a call of a traced function, which gradients write down once more.
Tensor traced_checkpoint(const TensorFunction& f, const std::vector<Tensor>& xs, Here here) {
  const auto engine = xs.empty() ? engine::Engine::default_engine() : xs[0].engine();
  const Trace trace(
      engine, types_of(xs),
      [&](const std::vector<Tensor>& given) { return std::vector{value_of("checkpoint", f, given, here)}; },
      here);
  std::vector<NodeRef> captures;
  trace.add_captures(captures);
  auto rules = std::make_shared<RegionRules>();
  const ir::FunctionRef function = trace.function("checkpoint", captures, rules->rules);
  rules->rules.checkpoint(function);
  std::vector<Node*> inputs;
  for (const Tensor& x : xs) inputs.push_back(x.node());
  for (const NodeRef& capture : captures) inputs.push_back(capture.get());
  const auto made =
      engine::record_function(function, inputs, types_of(trace.results()), std::move(rules), caller_of(here));
  return Tensor::adopt(made[0]);
}

}  // namespace

TensorFunction tessera::custom_gradient(TensorFunction f, GradientRule rule, Here here) {
  if (!f) fail(here, "custom_gradient: the function is empty");
  if (!rule) fail(here, "custom_gradient: the rule is empty");
  return [f = std::move(f), rule = std::move(rule), here](const std::vector<Tensor>& xs) {
    return with_rule(f, rule, xs, here);
  };
}

TensorFunction tessera::checkpoint(TensorFunction f, Here here) {
  if (!f) fail(here, "checkpoint: the function is empty");
  return [f = std::move(f), here](const std::vector<Tensor>& xs) {
    check_arguments("checkpoint", xs, here);
    return is_tracing() ? traced_checkpoint(f, xs, here) : computed_twice(f, xs, here);
  };
}

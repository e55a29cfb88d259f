#include "tessera/tensor/gradient.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "tessera/autodiff/gradient.h"
#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/node_builder.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using detail::NodeBuilder;
using engine::Node;
using engine::NodeRef;
using op::Value;
using op::Values;

namespace {

[[noreturn]] void fail(Here here, std::string message) {
  throw Exception(Error(ErrorCode::invalid_argument, std::move(message), detail::span_of(here)));
}

Tensor tensor_of(NodeRef node) {
  node->handles.fetch_add(1, std::memory_order_relaxed);
  return Tensor::adopt(node.detach());
}

/// What was given for one custom gradient.
struct CustomRule : engine::CustomGradient {
  GradientRule rule;
};

/// The call a node is a result of, and which result: the node itself, or the call it looks into.
std::pair<Node*, std::size_t> call_of(Node* node) {
  return node->is(Node::is_result) ? std::pair{node->inputs[0], std::size_t{node->extra->result}}
                                   : std::pair{node, std::size_t{0}};
}

/// One way back from a tensor to those it depends on.
class Backward {
 public:
  Backward(const std::shared_ptr<engine::Engine>& engine, Here here)
      : builder_(engine, detail::caller_of(here)), here_(here) {}

  /// Finds what lies between `y` and the targets, or between `y` and all leaves that need gradients, if there
  /// are none.
  void find(Node* y, std::span<Node* const> targets) {
    for (Node* target : targets) of_[target].is_target = true;
    any_leaf_ = targets.empty();
    visit(y);
  }

  void run(Node* y, Value seed) {
    add(y, seed);
    for (std::size_t i = order_.size(); i-- > 0;) {
      const auto known = of_.find(order_[i]);
      const bool has_gradient = std::any_of(known->second.gradients.begin(), known->second.gradients.end(),
                                            [](Value v) { return bool(v); });
      if (has_gradient && known->second.passes_on) through(order_[i]);
    }
  }

  NodeBuilder& builder() { return builder_; }
  /// What arrived at a node; empty if nothing did.
  Value gradient(Node* node) {
    const auto [call, result] = call_of(node);
    const auto known = of_.find(call);
    return known == of_.end() || known->second.gradients.size() <= result ? Value()
                                                                          : known->second.gradients[result];
  }
  /// The leaves that need gradients, in the order they were found.
  [[nodiscard]] const std::vector<Node*>& leaves() const { return leaves_; }

 private:
  struct Known {
    bool is_target = false;
    bool visited = false;
    bool leads = false;      ///< to a target or a leaf
    bool passes_on = false;  ///< to its inputs
    Values gradients;        ///< per result
  };

  bool is_leaf(const Node* node) const { return any_leaf_ && node->is(Node::needs_gradient); }

  /// Depth first without recursion: inputs before what uses them.
  void visit(Node* root) {
    std::vector<std::pair<Node*, bool>> stack{{call_of(root).first, false}};
    while (!stack.empty()) {
      auto [node, below_done] = stack.back();
      stack.pop_back();
      if (below_done) {
        leave(node);
        continue;
      }
      Known& known = of_[node];
      if (known.visited) continue;
      known.visited = true;
      stack.emplace_back(node, true);
      if (is_leaf(node)) continue;
      for (std::size_t i = node->input_count; i-- > 0;)
        if (Node* input = node->input(i); input != nullptr && input->is(Node::tracks_gradient))
          stack.emplace_back(call_of(input).first, false);
    }
  }

  void leave(Node* node) {
    Known& known = of_[node];
    known.leads = known.is_target || is_leaf(node);
    if (is_leaf(node)) leaves_.push_back(node);
    for (std::size_t i = 0; !is_leaf(node) && i < node->input_count; ++i) {
      Node* input = node->input(i);
      if (input == nullptr) continue;
      const auto below = of_.find(call_of(input).first), itself = of_.find(input);
      known.passes_on = known.passes_on || (below != of_.end() && below->second.leads) ||
                        (itself != of_.end() && itself->second.is_target);
    }
    known.leads = known.leads || known.passes_on;
    order_.push_back(node);
  }

  void add(Node* node, Value gradient) {
    if (!gradient) return;
    const auto [call, result] = call_of(node);
    const auto known = of_.find(call);
    if (known == of_.end() || (!known->second.leads && !of_[node].is_target)) return;
    Values& all = known->second.gradients;
    if (all.size() <= result) all.resize(result + 1);
    all[result] = all[result] ? all[result] + gradient : gradient;
  }

  void through(Node* node) {
    Values gradients = of_[node].gradients;
    if (node->extra != nullptr && node->extra->custom) return through_custom(node, gradients[0]);
    if (node->extra != nullptr && node->extra->function) return through_function(node, std::move(gradients));
    const op::Card& card = *node->card;
    if (card.gradient == nullptr) {
      if (!card.no_gradient.empty()) return;
      fail(here_, cat("op '", card.name, "' has no gradient"));
    }
    Values inputs;
    op::ValueTypes types;
    std::size_t scalars = 0;
    for (std::size_t i = 0; i < node->input_count; ++i) {
      Node* input = node->input(i);
      inputs.push_back(input != nullptr ? value_of(input)
                                        : builder_.import_scalar(node->scalar_at(scalars++),
                                                                 engine::scalar_dtype_of(*node, i)));
      types.push_back(inputs.back().type());
    }
    const op::CallInfo info(card, types, node->attributes());
    const Values results = results_of(node);
    gradients.resize(results.size());
    op::GradientCall call(builder_, info, inputs, results, gradients);
    const Values of_inputs = card.gradient(call);
    status();
    for (std::size_t i = 0; i < of_inputs.size() && i < node->input_count; ++i)
      if (node->input(i) != nullptr) add(node->input(i), of_inputs[i]);
  }

  void through_custom(Node* node, Value gradient) {
    std::vector<Tensor> xs;
    for (std::size_t i = 1; i < node->input_count; ++i)
      xs.push_back(tensor_of(NodeRef::share(node->input(i))));
    const auto& rule = static_cast<const CustomRule&>(*node->extra->custom).rule;
    const auto of_xs =
        rule(xs, tensor_of(NodeRef::share(node->input(0))), tensor_of(builder_.node(gradient)));
    if (of_xs.size() != xs.size())
      fail(here_, cat("a custom gradient gave ", of_xs.size(), " gradients for ", xs.size(), " arguments"));
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (of_xs[i].is_empty()) continue;
      if (of_xs[i].shape() != xs[i].shape() || of_xs[i].dtype() != xs[i].dtype())
        fail(here_, cat("a custom gradient of type ", of_xs[i].node()->type(),
                        " was given for an argument of type ", xs[i].node()->type()));
      add(xs[i].node(), builder_.import(NodeRef::share(of_xs[i].node())));
    }
  }

  /// The gradient of a traced function is a traced function.
  void through_function(Node* node, Values gradients) {
    const ir::FunctionRef& function = node->extra->function;
    std::vector<std::size_t> wrt;
    for (std::size_t i : autodiff::float_parameters(*function))
      if (const auto known = of_.find(call_of(node->input(i)).first); known != of_.end()) wrt.push_back(i);
    if (wrt.empty()) return;
    auto derived = autodiff::vjp(function, wrt);
    if (!derived) throw Exception(std::move(derived).error().at(detail::span_of(here_)));
    std::vector<NodeRef> kept;
    std::vector<Node*> inputs;
    for (std::size_t i = 0; i < node->input_count; ++i) inputs.push_back(node->input(i));
    const Values results = results_of(node);
    gradients.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!ir::is_float(results[k].dtype())) continue;
      kept.push_back(builder_.node(gradients[k] ? gradients[k] : op::zeros_like(results[k])));
      inputs.push_back(kept.back().get());
    }
    op::ValueTypes types;
    for (std::size_t i : wrt) types.push_back(node->input(i)->type());
    const auto made = engine::record_function(*derived, inputs, types, detail::caller_of(here_));
    for (std::size_t k = 0; k < made.size(); ++k) {
      made[k]->handles.store(0, std::memory_order_relaxed);
      add(node->input(wrt[k]), builder_.import(NodeRef::adopt(made[k])));
    }
  }

  Value value_of(Node* node) {
    const auto [at, is_new] = values_.try_emplace(node);
    if (is_new) at->second = builder_.import(NodeRef::share(node));
    return at->second;
  }

  /// All results of a call; those nobody holds are made again.
  Values results_of(Node* call) {
    if (call->extra == nullptr || call->extra->results.empty()) return {value_of(call)};
    Values out{value_of(call)};
    for (std::size_t k = 1; k < call->extra->results.size(); ++k)
      out.push_back(
          builder_.import(NodeRef::adopt(engine::record_result(call, k, detail::caller_of(here_)))));
    return out;
  }

  void status() {
    if (auto status = builder_.status(); !status)
      throw Exception(std::move(status).error().at(detail::span_of(here_)));
  }

  NodeBuilder builder_;
  Here here_;
  bool any_leaf_ = false;
  std::unordered_map<Node*, Known> of_;
  std::unordered_map<Node*, Value> values_;
  std::vector<Node*> order_;
  std::vector<Node*> leaves_;
};

Value seed_of(NodeBuilder& builder, const Tensor& y, const Tensor& dy, Here here) {
  if (!ir::is_float(y.dtype()))
    fail(here, cat("the gradient of a ", y.node()->type(), " was asked for: it is no float"));
  if (!dy.is_empty()) {
    if (dy.shape() != y.shape() || dy.dtype() != y.dtype())
      fail(here, cat("the gradient of a ", y.node()->type(), " cannot be a ", dy.node()->type()));
    return builder.import(NodeRef::share(dy.node()));
  }
  if (y.size() != 1)
    fail(here, cat("the gradient of a ", y.node()->type(),
                   " needs to know the gradient of each element: only one of one element does not"));
  return op::full(builder, 1, y.node()->type());
}

/// A tensor of the same value that is tracked.
Tensor tracked_alias(const Tensor& x, Here here) {
  static const op::Card& identity = detail::card("identity");
  const Tensor out = detail::call(identity, detail::CallOperands().add(Operand(x, here)));
  out.node()->set(Node::tracks_gradient);
  out.node()->set(Node::gradient_source);
  return out;
}

/// Arguments that are tracked for a while. What was recorded with them forgets afterwards that it was, unless
/// something else tracks it: otherwise nothing that came of a gradient could ever be let go.
class TrackedArguments {
 public:
  TrackedArguments(const std::vector<Tensor>& xs, const std::vector<std::size_t>& wrt, Here here)
      : arguments(xs) {
    for (std::size_t i : wrt) {
      if (i >= xs.size()) fail(here, cat("there is no argument ", i, ": ", xs.size(), " were given"));
      if (xs[i].is_empty()) fail(here, cat("argument ", i, " is empty"));
      if (!ir::is_float(xs[i].dtype()))
        fail(here,
             cat("the gradient of argument ", i, " was asked for: ", xs[i].node()->type(), " is no float"));
      arguments[i] = tracked_alias(xs[i], here);
      tracked.push_back(arguments[i]);
    }
  }

  /// Of these results and everything below.
  void forget(std::vector<Tensor> results) {
    for (const Tensor& x : tracked) x.node()->clear(Node::gradient_source);
    for (const Tensor& x : tracked)
      if (!x.node()->inputs[0] || !x.node()->inputs[0]->is(Node::tracks_gradient))
        x.node()->clear(Node::tracks_gradient);
    std::unordered_map<Node*, bool> done;
    std::vector<std::pair<Node*, bool>> stack;
    for (const Tensor& result : results) stack.emplace_back(result.node(), false);
    while (!stack.empty()) {
      auto [node, below_done] = stack.back();
      stack.pop_back();
      if (!node->is(Node::tracks_gradient) || node->is(Node::needs_gradient) ||
          node->is(Node::gradient_source))
        continue;
      if (!below_done) {
        if (!done.emplace(node, true).second) continue;
        stack.emplace_back(node, true);
        for (std::size_t i = 0; i < node->input_count; ++i)
          if (Node* input = node->input(i)) stack.emplace_back(input, false);
        continue;
      }
      bool tracks = false;
      for (std::size_t i = 0; i < node->input_count; ++i)
        tracks = tracks || (node->input(i) != nullptr && node->input(i)->is(Node::tracks_gradient));
      if (!tracks) node->clear(Node::tracks_gradient);
    }
  }

  std::vector<Tensor> arguments;
  std::vector<Tensor> tracked;
};

std::vector<std::size_t> all_of(const std::vector<Tensor>& xs, std::vector<std::size_t> wrt) {
  if (wrt.empty())
    for (std::size_t i = 0; i < xs.size(); ++i) wrt.push_back(i);
  return wrt;
}

/// Gradients inside are wanted, whatever is around.
class WithGrad {
 public:
  WithGrad() : before_(engine::thread_state.gradient_enabled) {
    engine::thread_state.gradient_enabled = true;
  }
  ~WithGrad() { engine::thread_state.gradient_enabled = before_; }
  WithGrad(const WithGrad&) = delete;
  WithGrad& operator=(const WithGrad&) = delete;

 private:
  bool before_;
};

ValueAndGradients pulled_back(const TensorFunction& f, const std::vector<Tensor>& xs,
                              const std::vector<std::size_t>& wrt, const Tensor& dy, Here here) {
  const WithGrad scope;
  TrackedArguments tracked(xs, wrt, here);
  ValueAndGradients out;
  out.value = f(tracked.arguments);
  if (out.value.is_empty()) fail(here, "the function gave an empty tensor");
  out.gradients = gradients(out.value, tracked.tracked, dy, here);
  std::vector<Tensor> results = out.gradients;
  results.push_back(out.value);
  tracked.forget(std::move(results));
  return out;
}

}  // namespace

std::vector<Tensor> tessera::gradients(const Tensor& y, const std::vector<Tensor>& xs, const Tensor& dy,
                                       Here here) {
  if (y.is_empty()) fail(here, "the gradient of an empty tensor was asked for");
  Backward backward(y.engine(), here);
  std::vector<Node*> targets;
  for (const Tensor& x : xs) {
    if (x.is_empty()) fail(here, "the gradient for an empty tensor was asked for");
    if (!x.is_tracked())
      fail(here, cat("the gradient for a tensor that is not tracked was asked for: ", x.node()->type(),
                     " does not require one"));
    targets.push_back(x.node());
  }
  const Value seed = seed_of(backward.builder(), y, dy, here);
  if (!targets.empty() && y.is_tracked()) {
    backward.find(y.node(), targets);
    backward.run(y.node(), seed);
  }
  std::vector<Tensor> out;
  for (const Tensor& x : xs) {
    const Value gradient = backward.gradient(x.node());
    out.push_back(gradient ? tensor_of(backward.builder().node(gradient))
                           : zeros(x.shape(), {.dtype = x.dtype(), .engine = x.engine()}, here));
  }
  return out;
}

std::function<ValueAndGradients(const std::vector<Tensor>&)> tessera::value_and_grad(
    TensorFunction f, std::vector<std::size_t> wrt, Here here) {
  return [f = std::move(f), wrt = std::move(wrt), here](const std::vector<Tensor>& xs) {
    return pulled_back(f, xs, all_of(xs, wrt), {}, here);
  };
}

std::function<std::vector<Tensor>(const std::vector<Tensor>&)> tessera::grad(TensorFunction f,
                                                                             std::vector<std::size_t> wrt,
                                                                             Here here) {
  return [f = value_and_grad(std::move(f), std::move(wrt), here)](const std::vector<Tensor>& xs) {
    return f(xs).gradients;
  };
}

std::function<Tensor(const Tensor&)> tessera::grad(std::function<Tensor(const Tensor&)> f, Here here) {
  return [f = std::move(f), here](const Tensor& x) {
    return pulled_back([&](const std::vector<Tensor>& xs) { return f(xs[0]); }, {x}, {0}, {}, here)
        .gradients[0];
  };
}

ValueAndGradients tessera::vjp(const TensorFunction& f, const std::vector<Tensor>& xs, const Tensor& dy,
                               Here here) {
  return pulled_back(f, xs, all_of(xs, {}), dy, here);
}

ValueAndTangent tessera::jvp(const TensorFunction& f, const std::vector<Tensor>& xs,
                             const std::vector<Tensor>& tangents, Here here) {
  if (xs.size() != tangents.size())
    fail(here, cat(tangents.size(), " tangents were given for ", xs.size(), " arguments"));
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (xs[i].is_empty() || tangents[i].is_empty() || tangents[i].shape() != xs[i].shape() ||
        tangents[i].dtype() != xs[i].dtype())
      fail(here, cat("tangent ", i, " is not of the type of argument ", i));
  // The gradient is linear in dy: its own gradient with respect to dy, pulled back by the tangents, is the
  // tangent.
  const WithGrad scope;
  ValueAndTangent out;
  TrackedArguments arguments(xs, all_of(xs, {}), here);
  out.value = f(arguments.arguments);
  TrackedArguments weights(
      {zeros(out.value.shape(), {.dtype = out.value.dtype(), .engine = out.value.engine()}, here)}, {0},
      here);
  const auto back = gradients(out.value, arguments.tracked, weights.tracked[0], here);
  Tensor all;
  for (std::size_t i = 0; i < back.size(); ++i) {
    const Tensor part = sum(back[i] * tangents[i]);
    all = all.is_empty() ? part : all + part;
  }
  out.tangent = all.is_empty() ? weights.arguments[0] : gradients(all, weights.tracked, {}, here)[0];
  weights.forget({out.value, out.tangent});
  arguments.forget({out.value, out.tangent});
  return out;
}

namespace {

/// The value of `f`, whose gradient is `rule`'s affair.
Tensor with_rule(const TensorFunction& f, std::shared_ptr<const CustomRule> rule,
                 const std::vector<Tensor>& xs) {
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (xs[i].is_empty())
      throw Exception(Error(ErrorCode::invalid_argument, cat("argument ", i, " is empty")));
  Tensor y;
  {
    const NoGrad scope;
    y = f(xs);
  }
  if (y.is_empty()) throw Exception(Error(ErrorCode::invalid_argument, "the function gave an empty tensor"));
  std::vector<Node*> inputs;
  for (const Tensor& x : xs) inputs.push_back(x.node());
  return Tensor::adopt(engine::record_custom(y.node(), inputs, std::move(rule), {}));
}

/// While it lives, this thread takes the random numbers that begin at a state once more.
class Replay {
 public:
  explicit Replay(engine::Engine::RandomState state) : state_(state), before_(engine::thread_state.replay) {
    engine::thread_state.replay = &state_;
  }
  ~Replay() { engine::thread_state.replay = before_; }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

 private:
  engine::Engine::RandomState state_;
  engine::Engine::RandomState* before_;
};

std::vector<Tensor> computed_again(const TensorFunction& f, const std::vector<Tensor>& xs, const Tensor& dy) {
  std::vector<std::size_t> floats;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (ir::is_float(xs[i].dtype())) floats.push_back(i);
  std::vector<Tensor> out(xs.size());
  if (floats.empty()) return out;
  const auto found = pulled_back(f, xs, floats, dy, Here());
  for (std::size_t k = 0; k < floats.size(); ++k) out[floats[k]] = found.gradients[k];
  return out;
}

}  // namespace

TensorFunction tessera::custom_gradient(TensorFunction f, GradientRule rule) {
  auto shared = std::make_shared<CustomRule>();
  shared->rule = std::move(rule);
  return [f = std::move(f), shared](const std::vector<Tensor>& xs) { return with_rule(f, shared, xs); };
}

TensorFunction tessera::checkpoint(TensorFunction f) {
  return [f = std::move(f)](const std::vector<Tensor>& xs) {
    const auto& engine = xs.empty() || xs[0].is_empty() ? engine::Engine::default_engine() : xs[0].engine();
    // Numbers of its own: what other threads and inner checkpoints take does not come between.
    constexpr std::uint64_t outermost = std::uint64_t{1} << 52, inner = std::uint64_t{1} << 32;
    const auto state = engine->take_random(engine::thread_state.replay == nullptr ? outermost : inner);
    auto rule = std::make_shared<CustomRule>();
    rule->rule = [f, state](const std::vector<Tensor>& arguments, const Tensor&, const Tensor& dy) {
      const Replay scope(state);
      return computed_again(f, arguments, dy);
    };
    const Replay scope(state);
    return with_rule(f, std::move(rule), xs);
  };
}

NoGrad::NoGrad() : before_(engine::thread_state.gradient_enabled) {
  engine::thread_state.gradient_enabled = false;
}
NoGrad::~NoGrad() { engine::thread_state.gradient_enabled = before_; }

// ---- what tensors can do themselves

namespace {

/// Several threads may leave gradients at one tensor. Not the engine's lock: code of the user may run under
/// this one.
std::recursive_mutex& gradient_mutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

}  // namespace

Tensor& Tensor::requires_grad(Here here) {
  if (node_ == nullptr) fail(here, "an empty tensor was used");
  if (!ir::is_float(dtype()))
    fail(here, cat("a tensor of type ", node_->type(), " has no gradient: it is no float"));
  if (node_->is(Node::needs_gradient)) return *this;
  // A value of its own, so that other handles to this one do not begin to track.
  static const op::Card& card = detail::card("stop_gradient");
  Tensor leaf = detail::call(card, detail::CallOperands().add(Operand(*this, here)));
  leaf.node()->set(Node::needs_gradient);
  leaf.node()->set(Node::tracks_gradient);
  *this = std::move(leaf);
  return *this;
}

bool Tensor::is_tracked() const { return node_ != nullptr && node_->is(Node::tracks_gradient); }

void Tensor::backward(Here here) const { backward(Tensor(), here); }

void Tensor::backward(const Tensor& dy, Here here) const {
  if (node_ == nullptr) fail(here, "an empty tensor was used");
  if (!is_tracked()) fail(here, "backward() was asked of a tensor that depends on none that requires_grad()");
  if (engine::thread_state.trace_depth > 0)
    fail(here, "backward() cannot be asked for while a region is traced");
  const NoGrad scope;
  Backward backward(engine(), here);
  backward.find(node_, {});
  backward.run(node_, seed_of(backward.builder(), *this, dy, here));
  const std::lock_guard lock(gradient_mutex());
  for (Node* leaf : backward.leaves()) {
    const Value gradient = backward.gradient(leaf);
    if (!gradient) continue;
    NodeRef found = backward.builder().node(gradient);
    Node*& kept = leaf->more().gradient;
    if (kept != nullptr) {
      const Tensor sum = tensor_of(NodeRef::share(kept)) + tensor_of(found);
      found = NodeRef::share(sum.node());
      engine::release(kept);
    }
    // Kept like a handle: an evaluation of it is stored.
    kept = found.detach();
  }
}

Tensor Tensor::grad(Here here) const {
  if (node_ == nullptr) fail(here, "an empty tensor was used");
  if (!node_->is(Node::needs_gradient))
    fail(here, "grad() was asked of a tensor that does not require_grad()");
  const std::lock_guard lock(gradient_mutex());
  if (node_->extra == nullptr || node_->extra->gradient == nullptr)
    return zeros(shape(), {.dtype = dtype(), .engine = engine()}, here);
  return tensor_of(NodeRef::share(node_->extra->gradient));
}

void Tensor::zero_grad() {
  const std::lock_guard lock(gradient_mutex());
  if (node_ == nullptr || node_->extra == nullptr || node_->extra->gradient == nullptr) return;
  engine::release(std::exchange(node_->extra->gradient, nullptr));
}

#include "tessera/tensor/gradient.h"

#include <mutex>

#include "tessera/base/forked_child.h"
#include "tessera/base/text.h"
#include "tessera/tensor/backward.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/tracking.h"

using namespace tessera;
using detail::Backward;
using detail::fail;
using detail::node_of;
using detail::tensor_of;
using detail::TrackedArguments;
using detail::TrackingScope;
using engine::Node;
using engine::NodeRef;
using op::Value;

namespace {

std::vector<std::size_t> all_of(const std::vector<Tensor>& xs, std::vector<std::size_t> wrt) {
  if (wrt.empty())
    for (std::size_t i = 0; i < xs.size(); ++i) wrt.push_back(i);
  return wrt;
}

template <class F>
F given(F f, std::string_view function, Here here) {
  if (!f) fail(here, cat(function, ": the function is empty"));
  return f;
}

Tensor zeros_like(const Tensor& x, Here here) {
  return zeros(x.shape(), {.dtype = x.dtype(), .engine = x.engine()}, here);
}

ValueAndGradients pulled_back(const TensorFunction& f, const std::vector<Tensor>& xs,
                              const std::vector<std::size_t>& wrt, const Tensor& dy, Here here) {
  TrackingScope scope;
  const TrackedArguments arguments(scope, xs, wrt, here);
  ValueAndGradients out;
  out.value = f(arguments.all);
  node_of(out.value, "the value of the function", here);
  out.gradients = gradients(out.value, arguments.tracked, dy, here);
  return out;
}

}  // namespace

std::vector<Tensor> tessera::gradients(const Tensor& y, const std::vector<Tensor>& xs, const Tensor& dy,
                                       Here here) {
  node_of(y, "gradients: argument 0", here);
  Backward backward(y.engine(), here);
  std::vector<Node*> targets;
  for (const Tensor& x : xs) {
    if (x.is_empty()) fail(here, cat("gradients: tensor ", targets.size(), " of argument 1 is empty"));
    if (!x.is_tracked())
      fail(here, cat("the gradient for a tensor that is not tracked was asked for: ", x.node()->type(),
                     " does not require one"));
    targets.push_back(x.node());
  }
  const Value seed = backward.seed_of(y, dy);
  if (!targets.empty() && y.is_tracked()) {
    backward.find(y.node(), targets);
    backward.run(y.node(), seed);
  }
  std::vector<Tensor> out;
  for (const Tensor& x : xs) {
    const Value gradient = backward.gradient(x.node());
    out.push_back(gradient ? tensor_of(backward.node(gradient)) : zeros_like(x, here));
  }
  return out;
}

std::function<ValueAndGradients(const std::vector<Tensor>&)> tessera::value_and_grad(
    TensorFunction f, std::vector<std::size_t> wrt, Here here) {
  return [f = given(std::move(f), "value_and_grad", here), wrt = std::move(wrt),
          here](const std::vector<Tensor>& xs) { return pulled_back(f, xs, all_of(xs, wrt), {}, here); };
}

std::function<std::vector<Tensor>(const std::vector<Tensor>&)> tessera::grad(TensorFunction f,
                                                                             std::vector<std::size_t> wrt,
                                                                             Here here) {
  return [f = value_and_grad(std::move(f), std::move(wrt), here)](const std::vector<Tensor>& xs) {
    return f(xs).gradients;
  };
}

std::function<Tensor(const Tensor&)> tessera::grad(std::function<Tensor(const Tensor&)> f, Here here) {
  return [f = given(std::move(f), "grad", here), here](const Tensor& x) {
    return pulled_back([&](const std::vector<Tensor>& xs) { return f(xs[0]); }, {x}, {0}, {}, here)
        .gradients[0];
  };
}

ValueAndGradients tessera::vjp(const TensorFunction& f, const std::vector<Tensor>& xs, const Tensor& dy,
                               Here here) {
  return pulled_back(given(f, "vjp", here), xs, all_of(xs, {}), dy, here);
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
  TrackingScope scope;
  ValueAndTangent out;
  const TrackedArguments arguments(scope, xs, all_of(xs, {}), here);
  out.value = given(f, "jvp", here)(arguments.all);
  node_of(out.value, "the value of the function", here);
  const Tensor weight = scope.tracked(zeros_like(out.value, here), here);
  const auto back = gradients(out.value, arguments.tracked, weight, here);
  Tensor all;
  for (std::size_t i = 0; i < back.size(); ++i) {
    const Tensor part = sum(back[i] * tangents[i]);
    all = all.is_empty() ? part : all + part;
  }
  out.tangent = all.is_empty() ? zeros_like(out.value, here) : gradients(all, {weight}, {}, here)[0];
  return out;
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

Tensor& Tensor::requires_grad(Here here) & {
  node_of(*this, "requires_grad", here);
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
  node_of(*this, "backward", here);
  if (!is_tracked()) fail(here, "backward() was asked of a tensor that depends on none that requires_grad()");
  if (engine::thread_state.trace_depth > 0)
    fail(here, "backward() cannot be asked for while a region is traced");
  const NoGrad scope;
  Backward backward(engine(), here);
  backward.find(node_, {});
  backward.run(node_, backward.seed_of(*this, dy));
  check_no_forked_child();
  const std::lock_guard lock(gradient_mutex());
  for (Node* leaf : backward.leaves()) {
    const Value gradient = backward.gradient(leaf);
    if (!gradient) continue;
    NodeRef found = backward.node(gradient);
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
  node_of(*this, "grad", here);
  if (!node_->is(Node::needs_gradient))
    fail(here, "grad() was asked of a tensor that does not require_grad()");
  check_no_forked_child();
  const std::lock_guard lock(gradient_mutex());
  if (node_->extra == nullptr || node_->extra->gradient == nullptr) return zeros_like(*this, here);
  return tensor_of(NodeRef::share(node_->extra->gradient));
}

Tensor Tensor::requires_grad(Here here) && {
  requires_grad(here);
  return std::move(*this);
}

void Tensor::zero_grad() & {
  check_no_forked_child();
  const std::lock_guard lock(gradient_mutex());
  if (node_ == nullptr || node_->extra == nullptr || node_->extra->gradient == nullptr) return;
  engine::release(std::exchange(node_->extra->gradient, nullptr));
}

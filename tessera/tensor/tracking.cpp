#include "tessera/tensor/tracking.h"

#include "tessera/base/text.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using namespace tessera::detail;
using engine::Node;
using engine::NodeRef;
using engine::thread_state;

namespace {

bool has_tracked_input(const Node& node) {
  for (std::size_t i = 0; i < node.input_count; ++i)
    if (const Node* input = node.input(i); input != nullptr && input->is(Node::tracks_gradient)) return true;
  return false;
}

}  // namespace

TrackingScope::TrackingScope()
    : enabled_before_(thread_state.gradient_enabled), outer_(thread_state.tracked) {
  thread_state.gradient_enabled = true;
  thread_state.tracked = &nodes_;
}

TrackingScope::~TrackingScope() {
  thread_state.gradient_enabled = enabled_before_;
  thread_state.tracked = outer_;
  const auto goes_on = [&](Node& node) {
    if (enabled_before_ && has_tracked_input(node)) return true;
    node.clear(Node::tracks_gradient);
    return false;
  };
  for (const NodeRef& source : sources_) {
    source->clear(Node::gradient_source);
    goes_on(*source);
  }
  for (NodeRef& node : nodes_) {
    if (node->is(Node::needs_gradient) || node->is(Node::gradient_source) || !goes_on(*node)) continue;
    try {
      if (outer_ != nullptr) outer_->push_back(std::move(node));
    } catch (const std::bad_alloc&) {
      // It stays tracked: that costs memory later, and changes no value.
    }
  }
}

Tensor TrackingScope::tracked(const Tensor& x, Here here) {
  static const op::Card& identity = card("identity");
  Tensor out = call(identity, CallOperands().add(Operand(x, here)));
  sources_.push_back(NodeRef::share(out.node()));
  out.node()->set(Node::tracks_gradient);
  out.node()->set(Node::gradient_source);
  return out;
}

TrackedArguments::TrackedArguments(TrackingScope& scope, const std::vector<Tensor>& xs,
                                   const std::vector<std::size_t>& wrt, Here here)
    : all(xs) {
  for (std::size_t i : wrt) {
    if (i >= xs.size()) fail(here, cat("there is no argument ", i, ": ", xs.size(), " were given"));
    if (xs[i].is_empty())
      fail(here, cat("the gradient of argument ", i, " was asked for: it is an empty tensor"));
    const Node& node = *xs[i].node();
    if (!ir::is_float(node.dtype))
      fail(here, cat("the gradient of argument ", i, " was asked for: ", node.type(), " is no float"));
    all[i] = scope.tracked(xs[i], here);
    tracked.push_back(all[i]);
  }
}

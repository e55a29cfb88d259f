#include "tessera/engine/evaluation.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/engine/record.h"
#include "tessera/op/call_info.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

constexpr std::uint32_t not_a_step = 0xffffffff;

template <class F>
void for_each_input(const Node& node, F&& f) {
  for (std::size_t i = 0; i < node.input_count; ++i)
    if (Node* input = node.input(i)) f(input);
}

/// A call with several results keeps all of them; one of them is looked up, not computed.
bool has_stored_results(const Node& node) {
  return node.extra != nullptr && !node.extra->stored_results.empty();
}

Extents extents_of(const Node& node) { return {node.shape().begin(), node.shape().end()}; }

}  // namespace

Result<void> Evaluation::run(std::span<Node* const> asked) {
  {
    std::unique_lock lock(engine_.mutex_);
    do {
      unclaim();
      claim(asked);
    } while (wait_for_others(lock));
    if (steps_.empty()) return {};
  }
  auto computed = compute();
  const std::lock_guard lock(engine_.mutex_);
  if (computed) publish();
  unclaim();
  engine_.evaluated_.notify_all();
  return computed;
}

// ---- what is needed

void Evaluation::claim(std::span<Node* const> asked) {
  epoch_ = engine_.next_epoch();
  for (Node* node : asked) visit(node);
  for (Step& step : steps_) {
    step.node->set(Node::claimed);
    retain(step.node);
    for_each_input(*step.node, [&](Node* input) {
      if (input->epoch == epoch_ && input->index != not_a_step) ++steps_[input->index].uses;
    });
  }
  for (Step& step : steps_) step.uses_left = step.uses;
  for (Node* node : asked)
    if (node->epoch == epoch_ && node->index != not_a_step) steps_[node->index].asked = true;
}

/// Depth first with an explicit stack; a node becomes a step after all its inputs have.
void Evaluation::visit(Node* root) {
  std::vector<std::pair<Node*, bool>> stack{{root, false}};
  while (!stack.empty()) {
    auto& [node, below_done] = stack.back();
    if (below_done) {
      Node* done = node;
      stack.pop_back();
      done->index = static_cast<std::uint32_t>(steps_.size());
      steps_.push_back({.node = done});
      continue;
    }
    if (node->epoch == epoch_) {
      stack.pop_back();
      continue;
    }
    node->epoch = epoch_;
    node->index = not_a_step;
    if (node->is_stored()) {
      stack.pop_back();
    } else if (node->is(Node::claimed)) {
      others_.push_back(NodeRef::share(node));
      stack.pop_back();
    } else {
      below_done = true;
      const Node* current = node;  // the stack may move
      const std::size_t first = stack.size();
      for_each_input(*current, [&](Node* input) {
        // What a computed call with several results is needed for is there already.
        if (input->epoch != epoch_ && !(current->is(Node::is_result) && has_stored_results(*input)))
          stack.emplace_back(input, false);
      });
      std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
    }
  }
}

void Evaluation::unclaim() {
  for (Step& step : steps_) {
    step.node->clear(Node::claimed);
    given_up_.push_back(step.node);
  }
  finished_.push_back(std::move(steps_));
  steps_.clear();
}

/// True if something was waited for: what is needed may be different now.
bool Evaluation::wait_for_others(std::unique_lock<std::mutex>& lock) {
  if (others_.empty()) return false;
  // Our own claims are given back first: the others may fail, and then somebody must be free to take over.
  unclaim();
  engine_.evaluated_.wait(lock, [&] {
    return std::none_of(others_.begin(), others_.end(),
                        [](const NodeRef& node) { return node->is(Node::claimed) && !node->is_stored(); });
  });
  others_.clear();
  return true;
}

// ---- computing

Result<void> Evaluation::compute() {
  for (Step& step : steps_) {
    auto done = compute(step);
    if (!done) {
      SourceSpan at{step.node->file == nullptr ? "" : step.node->file, step.node->line, 0};
      return std::move(done).error().at(std::move(at));
    }
    for_each_input(*step.node, [&](Node* input) { used(input); });
  }
  return {};
}

Result<void> Evaluation::compute(Step& step) {
  Node& node = *step.node;
  if (node.is(Node::is_result)) {
    Node* call = node.inputs[0];
    const bool here = call->epoch == epoch_ && call->index != not_a_step;
    const auto& results = here ? steps_[call->index].results : call->extra->stored_results;
    step.results.push_back(results[node.extra->result]);
    return {};
  }
  if (node.card == nullptr) return Error(ErrorCode::internal, "a leaf without storage was asked for");
  return compute_call(step);
}

Result<void> Evaluation::compute_call(Step& step) {
  Node& node = *step.node;
  std::vector<op::Array> inputs;
  op::ValueTypes types;
  const std::size_t scalar_bytes = 8;
  std::size_t scalars = 0;
  std::vector<std::byte> memory(node.input_count * scalar_bytes);
  for (std::size_t i = 0; i < node.input_count; ++i) {
    if (Node* input = node.input(i)) {
      const Storage storage = value_of(input);
      inputs.push_back(storage.array(input->dtype));
      types.push_back(input->type());
      continue;
    }
    const Dtype dtype = scalar_dtype_of(node, i);
    std::byte* at = memory.data() + scalars * scalar_bytes;
    const ScalarBits bits = node.scalar_at(scalars++);
    if (ir::is_float(dtype)) {
      const double value = bits.as_float();
      op::storer<double>(dtype)(at, 0, 1, 1, &value);
    } else {
      const op::SignedWide value = bits.as_integer();
      op::storer<op::SignedWide>(dtype)(at, 0, 1, 1, &value);
    }
    inputs.push_back({dtype, op::contiguous({}), at});
    types.push_back({dtype, {}});
  }
  const op::CallInfo call(*node.card, types, node.attributes());
  if (node.card->view != nullptr) {
    if (const auto layout = node.card->view(call, inputs[0].layout)) {
      step.results.push_back({value_of(node.input(0)).buffer, *layout});
      ++done_.views;
      return {};
    }
  }
  std::vector<op::Array> results;
  const auto add_result = [&](Dtype dtype, const Extents& shape) -> Result<void> {
    const auto bytes = static_cast<std::size_t>(op::element_count(shape)) * ir::size_of(dtype);
    Storage storage{TESSERA_TRY(engine_.allocate(bytes)), op::contiguous(shape)};
    std::fill_n(storage.buffer->data(), bytes, std::byte{0});
    results.push_back(storage.array(dtype));
    step.results.push_back(std::move(storage));
    return {};
  };
  if (node.extra != nullptr && !node.extra->results.empty()) {
    for (const op::ValueType& type : node.extra->results)
      TESSERA_TRY(add_result(type.dtype, *ir::constant_shape(type.shape)));
  } else {
    TESSERA_TRY(add_result(node.dtype, extents_of(node)));
  }
  ++done_.kernels;
  return engine_.device_->run(call, inputs, results);
}

Storage Evaluation::value_of(Node* node) {
  if (node->epoch == epoch_ && node->index != not_a_step) return steps_[node->index].results[0];
  return *node->storage.load(std::memory_order_acquire);
}

/// A value that no later step needs and nobody keeps is given up at once.
void Evaluation::used(Node* node) {
  if (node->epoch != epoch_ || node->index == not_a_step) return;
  Step& step = steps_[node->index];
  if (--step.uses_left > 0 || step.asked) return;
  // References of steps here, and the one this evaluation holds; more mean that somebody else may ask later.
  const std::uint32_t held = node->refs.load(std::memory_order_acquire);
  if (held <= step.uses + 1) step.results.clear();
}

// ---- storing

void Evaluation::publish() {
  for (Step& step : steps_)
    if (!step.results.empty()) keep(step);
  // Inputs are dropped after everything is stored.
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Node& node = *steps_[i].node;
    const bool watched = std::any_of(engine_.watched_.begin(), engine_.watched_.end(),
                                     [&](Component* c) { return c->root() == node.component->root(); });
    if (node.is_stored() && !node.is(Node::tracks_gradient) && !watched) take_inputs(node, given_up_);
  }
  engine_.statistics_.kernels += done_.kernels;
  engine_.statistics_.views += done_.views;
  ++engine_.statistics_.evaluations;
}

void Evaluation::keep(Step& step) {
  Node& node = *step.node;
  const bool wanted = step.asked || node.refs.load(std::memory_order_acquire) > step.uses + 1;
  if (!wanted) return;
  if (step.results.size() > 1) node.more().stored_results = step.results;
  node.storage.store(new Storage(step.results[0]), std::memory_order_release);
}

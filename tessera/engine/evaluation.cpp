#include "tessera/engine/evaluation.h"

#include <algorithm>
#include <new>

#include "tessera/base/text.h"
#include "tessera/engine/record.h"
#include "tessera/op/call_info.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

template <class F>
void for_each_input(const Node& node, F&& f) {
  for (std::size_t i = 0; i < node.input_count; ++i)
    if (Node* input = node.input(i)) f(input);
}

/// A call with several results keeps all of them; one of them is looked up, not computed.
bool has_stored_results(const Node& node) {
  return node.extra != nullptr && !node.extra->stored_results.empty();
}

/// The scalars of a call as arrays of rank 0.
class ScalarMemory {
 public:
  explicit ScalarMemory(const Node& node) : node_(node), memory_(node.input_count) {}

  /// The next scalar, which is operand `i`.
  op::Array next(std::size_t i) {
    const Dtype dtype = scalar_dtype_of(node_, i);
    auto* at = reinterpret_cast<std::byte*>(&memory_[count_]);
    const ScalarBits bits = node_.scalar_at(count_++);
    if (ir::is_float(dtype)) {
      const double value = bits.as_float();
      op::storer<double>(dtype)(at, 0, 1, 1, &value);
    } else {
      const op::SignedWide value = bits.as_integer();
      op::storer<op::SignedWide>(dtype)(at, 0, 1, 1, &value);
    }
    return {dtype, op::contiguous({}), at};
  }

 private:
  const Node& node_;
  std::vector<std::uint64_t> memory_;
  std::size_t count_ = 0;
};

/// What `work` returns, or what it throws as an error: what was claimed must be given back in any case.
template <class F>
Result<void> contained(F&& work) {
  try {
    return work();
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "no memory for an evaluation");
  } catch (const std::exception& exception) {
    return Error(ErrorCode::internal, exception.what());
  }
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
  auto computed = contained([&] { return compute(); });
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
    for (std::size_t i = 0; i < step.node->input_count; ++i) {
      step.from.push_back(step_of(step.node->input(i)));
      if (step.from.back() != stored) ++steps_[step.from.back()].uses;
    }
  }
  for (Step& step : steps_) step.uses_left = step.uses;
  for (Node* node : asked)
    if (const std::uint32_t index = step_of(node); index != stored) steps_[index].asked = true;
}

/// REQUIRES the lock.
std::uint32_t Evaluation::step_of(const Node* node) const {
  return node != nullptr && node->epoch == epoch_ ? node->index : stored;
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
    node->index = stored;
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
    for (std::uint32_t from : step.from)
      if (from != stored) used(steps_[from]);
  }
  return {};
}

Result<void> Evaluation::compute(Step& step) {
  Node& node = *step.node;
  if (node.is(Node::is_result)) {
    const auto& results =
        step.from[0] != stored ? steps_[step.from[0]].results : node.inputs[0]->extra->stored_results;
    step.results.push_back(results[node.extra->result]);
    return {};
  }
  if (node.is(Node::placeholder))
    return Error(ErrorCode::invalid_argument, "a value of a traced region was asked for outside of it");
  if (node.card == nullptr) return Error(ErrorCode::internal, "a leaf without storage was asked for");
  return node.extra != nullptr && node.extra->function ? compute_function(step) : compute_call(step);
}

Result<void> Evaluation::compute_call(Step& step) {
  Node& node = *step.node;
  ScalarMemory scalars(node);
  std::vector<op::Array> inputs;
  op::ValueTypes types;
  for (std::size_t i = 0; i < node.input_count; ++i) {
    const Node* input = node.input(i);
    inputs.push_back(input == nullptr ? scalars.next(i) : operand(step, i).array(input->dtype));
    types.push_back(input == nullptr ? op::ValueType{inputs.back().dtype, {}} : input->type());
  }
  const op::CallInfo call(*node.card, types, node.attributes());
  if (node.card->view != nullptr) {
    if (const auto layout = node.card->view(call, inputs[0].layout)) {
      step.results.push_back({operand(step, 0).buffer, *layout});
      ++done_.views;
      return {};
    }
  }
  std::vector<op::Array> results;
  TESSERA_TRY(allocate_results(step, results));
  ++done_.kernels;
  return engine_.device_->run(call, inputs, results);
}

Result<void> Evaluation::compute_function(Step& step) {
  const Node& node = *step.node;
  std::vector<op::HostTensor> inputs;
  for (std::size_t i = 0; i < node.input_count; ++i) {
    const op::Array from = operand(step, i).array(node.input(i)->dtype);
    inputs.push_back(TESSERA_TRY(op::HostTensor::allocate(from.dtype, from.shape())));
    op::copy_elements(from, inputs.back().array());
  }
  const auto values = TESSERA_TRY(op::interpret(*node.extra->function, inputs));
  std::vector<op::Array> results;
  TESSERA_TRY(allocate_results(step, results));
  for (std::size_t i = 0; i < results.size(); ++i) op::copy_elements(values[i].array(), results[i]);
  ++done_.kernels;
  return {};
}

Result<void> Evaluation::allocate_results(Step& step, std::vector<op::Array>& arrays) {
  const Node& node = *step.node;
  const auto add = [&](Dtype dtype, const Extents& shape) -> Result<void> {
    const auto bytes = static_cast<std::size_t>(op::element_count(shape)) * ir::size_of(dtype);
    Storage storage{TESSERA_TRY(engine_.allocate(bytes)), op::contiguous(shape)};
    std::fill_n(storage.buffer->data(), bytes, std::byte{0});
    arrays.push_back(storage.array(dtype));
    step.results.push_back(std::move(storage));
    return {};
  };
  if (node.extra == nullptr || node.extra->results.empty()) return add(node.dtype, extents_of(node));
  for (const op::ValueType& type : node.extra->results)
    TESSERA_TRY(add(type.dtype, *ir::constant_shape(type.shape)));
  return {};
}

const Storage& Evaluation::operand(const Step& step, std::size_t i) const {
  if (step.from[i] != stored) return steps_[step.from[i]].results[0];
  return *step.node->input(i)->storage.load(std::memory_order_acquire);
}

/// A value that no later step needs and nobody keeps is given up at once.
void Evaluation::used(Step& step) {
  if (--step.uses_left > 0 || step.asked) return;
  // References of steps here, and the one this evaluation holds; more mean that somebody else may ask later.
  if (step.node->refs.load(std::memory_order_acquire) <= step.uses + 1) step.results.clear();
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
    // A leaf of gradients ends the way back; what it was made from is not needed.
    const bool way_back = node.is(Node::tracks_gradient) && !node.is(Node::needs_gradient);
    if (node.is_stored() && !way_back && !watched) take_inputs(node, given_up_);
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

#include "tessera/engine/needed.h"

#include <numeric>

#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

std::uint32_t find(std::vector<std::uint32_t>& parent, std::uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

/// Whether results of a call may be computed another time: one of several, of an op that is not costly. A
/// gradient will need them all.
bool can_stay_lazy(const Node& node) {
  if (node.card == nullptr || node.extra == nullptr || node.extra->results.size() < 2) return false;
  const op::Traits& traits = node.card->traits;
  return !traits.costly && !traits.random && !traits.data_dependent && !node.is(Node::tracks_gradient) &&
         op::is_in_catalogue(*node.card);
}

}  // namespace

void Needed::clear() {
  steps_.clear();
  from_.clear();
  keep_.clear();
  asked_.clear();
  components_.clear();
  stack_.clear();
  others.clear();
}

void Needed::collect(std::span<Node* const> roots, std::uint32_t epoch) {
  clear();
  for (Node* root : roots)
    if (root->epoch != epoch && enter(root, epoch)) walk(root, epoch);
  keep_.resize(steps_.size());
  asked_.reserve(roots.size());
  // Nothing fails from here on. More references than uses here: a handle, or a call that may be asked for
  // later.
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    Node& node = *steps_[i].node;
    node.claimed = true;
    keep_[i] = node.refs.load(std::memory_order_acquire) > steps_[i].uses ? held : dropped;
    if (keep_[i] == dropped) continue;
    if (can_stay_lazy(node))
      leave_lazy(i);
    else
      hold_for_gradient(i);
  }
  for (Node* root : roots) {
    if (root->index == stored || keep_[root->index] == asked) continue;
    keep_[root->index] = asked;
    asked_.push_back(root->index);
    hold_for_gradient(root->index);
  }
}

/// A result on the way of a gradient stays with its call, which has to be there when the gradient comes.
void Needed::hold_for_gradient(std::uint32_t step) {
  const Node& node = *steps_[step].node;
  if (!node.is(Node::is_result) || !node.is(Node::tracks_gradient)) return;
  if (const std::uint32_t call = from(step)[0]; call != stored && !must_keep(call)) keep_[call] = held;
}

/// A call that is held has results that nobody asked for: they stay lazy, and what they would be computed
/// from is held in their place.
void Needed::leave_lazy(std::uint32_t step) {
  keep_[step] = spare;
  for (const std::uint32_t operand : from(step))
    if (operand != stored && keep_[operand] == dropped) keep_[operand] = held;
}

/// Marks a node that was not met before; whether it is to be computed here.
inline bool Needed::enter(Node* node, std::uint32_t epoch) {
  node->epoch = epoch;
  node->index = stored;
  if (node->is_stored()) return false;
  if (node->claimed || node->is(Node::is_result)) [[unlikely]]
    return enter_claimed_or_result(node);
  return true;
}

bool Needed::enter_claimed_or_result(Node* node) {
  if (node->claimed) {
    others.push_back(NodeRef::share(node));
    return false;
  }
  if (!node->inputs[0]->is_stored()) return true;
  // One of several results of a call that was computed: it only has to be looked up.
  node->storage.store(new Storage(node->inputs[0]->extra->stored_results[node->extra->result]),
                      std::memory_order_release);
  return false;
}

/// Depth first with a stack of its own; a node becomes a step after all its operands have.
void Needed::walk(Node* root, std::uint32_t epoch) {
  Frame at{root, 0};
  for (;;) {
    if (at.next < at.node->input_count) {
      Node* const input = at.node->input(at.next++);
      if (input == nullptr || input->epoch == epoch || !enter(input, epoch)) continue;
      stack_.push(at);
      at = {input, 0};
      continue;
    }
    add_step(at.node);
    if (stack_.empty()) return;
    at = stack_.pop();
  }
}

/// Its operands have been met: those without an index of their own are stored.
inline void Needed::add_step(Node* node) {
  node->index = static_cast<std::uint32_t>(steps_.size());
  std::uint32_t* out = from_.make_room(node->input_count);
  steps_.push({node, 0, static_cast<std::uint32_t>(from_.size())});
  for (std::size_t i = 0; i < node->input_count; ++i) {
    const Node* input = node->input(i);
    const std::uint32_t step = input != nullptr ? input->index : stored;
    *out++ = step;
    if (step != stored) ++steps_[step].uses;
  }
  from_.end_at(out);
}

const std::vector<std::vector<std::uint32_t>>& Needed::components() {
  if (asked_.size() < 2) return components_;
  std::vector<std::uint32_t> parent(steps_.size());
  std::iota(parent.begin(), parent.end(), 0);
  std::size_t count = steps_.size();
  for (std::uint32_t s = 0; s < steps_.size(); ++s)
    for (const std::uint32_t operand : from(s)) {
      if (operand == stored) continue;
      // Operands come before their users: nothing stands above this step yet.
      const std::uint32_t root = find(parent, operand);
      count -= root != s;
      parent[root] = s;
    }
  if (count == 1) return components_;
  std::vector<std::uint32_t> number(steps_.size(), stored);
  for (std::uint32_t s = 0; s < steps_.size(); ++s) {
    const std::uint32_t root = find(parent, s);
    if (number[root] == stored) {
      number[root] = static_cast<std::uint32_t>(components_.size());
      components_.emplace_back();
    }
    components_[number[root]].push_back(s);
  }
  return components_;
}

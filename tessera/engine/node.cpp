#include "tessera/engine/node.h"

#include "tessera/base/check.h"
#include "tessera/base/checked.h"
#include "tessera/base/forked_child.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// Gives up references; whether they were the last. Who sees that all are its own need not count them down:
/// nobody else can take one more.
bool were_last(Node* node, std::uint32_t count = 1) {
  return node->refs.load(std::memory_order_acquire) == count ||
         node->refs.fetch_sub(count, std::memory_order_acq_rel) == count;
}

/// Nodes that nobody holds any more. An input that many of them share is given up once for all: counting down
/// what threads share takes longer than freeing a node.
class DeadNodes {
 public:
  explicit DeadNodes(Node* first) : first_(first) { first->next_dead = nullptr; }

  /// The next one, null at the end.
  Node* next() {
    if (first_ == nullptr) give_up_shared();
    return first_ == nullptr ? nullptr : std::exchange(first_, first_->next_dead);
  }
  void give_up(Node* input) {
    if (input->refs.load(std::memory_order_acquire) == 1) return add(input);
    if (input != shared_) give_up_shared();
    shared_ = input;
    ++shared_count_;
  }

 private:
  void add(Node* node) { node->next_dead = std::exchange(first_, node); }
  void give_up_shared() {
    Node* const node = std::exchange(shared_, nullptr);
    if (node != nullptr && were_last(node, std::exchange(shared_count_, 0))) add(node);
  }

  Node* first_;
  Node* shared_ = nullptr;
  std::uint32_t shared_count_ = 0;
};

template <class F>
void for_each_input(Node& node, F&& f) {
  for (std::size_t i = 0; i < node.input_count && i < Node::inline_inputs; ++i)
    if (node.inputs[i] != nullptr) f(node.inputs[i]);
  if (node.extra == nullptr) return;
  for (Node* input : node.extra->inputs)
    if (input != nullptr) f(input);
}

void destroy(Node* node) {
  delete node->storage.load(std::memory_order_relaxed);
  if (node->extra != nullptr && node->extra->gradient != nullptr) release(node->extra->gradient);
  if (node->extra != nullptr)
    for (Storage* storage : node->extra->retired) delete storage;
  delete node->extra;
  if (node->owns_component) node->component->release();
  delete node;
}

}  // namespace

void NodeNumbers::take_batch() {
  constexpr std::uint64_t batch = 4096;
  static std::atomic<std::uint64_t> next_batch{1};
  next_ = next_batch.fetch_add(1, std::memory_order_relaxed) * batch;
  end_ = next_ + batch;
}

std::int64_t Node::element_count() const {
  const auto count = checked_product(shape());
  TESSERA_CHECK(count.has_value(), "the number of elements overflows");
  return *count;
}

op::ValueType Node::type() const { return {dtype, ir::shape_of(shape())}; }

const op::Attributes& Node::attributes() const {
  static const auto& none = *new op::Attributes;  // never destroyed
  return extra == nullptr || extra->attributes == nullptr ? none : *extra->attributes;
}

void Node::set_shape(std::span<const std::int64_t> shape) {
  rank = static_cast<std::uint8_t>(shape.size());
  if (shape.size() <= inline_dims)
    std::copy(shape.begin(), shape.end(), dims);
  else
    more().dims = Extents(shape.begin(), shape.end());
}

void tessera::engine::release(Node* node) {
  if (!were_last(node) || is_forked_child()) return;
  DeadNodes dead(node);
  while (Node* const at = dead.next()) {
    for_each_input(*at, [&](Node* input) { dead.give_up(input); });
    destroy(at);
  }
}

void tessera::engine::take_inputs(Node& node, std::vector<Node*>& out) {
  for_each_input(node, [&](Node* input) { out.push_back(input); });
  if (!node.owns_component) node.component->retain();
  node.owns_component = true;
  node.card = nullptr;
  node.input_count = 0;
  std::fill(std::begin(node.inputs), std::end(node.inputs), nullptr);
  node.clear(Node::is_result);
  if (node.extra == nullptr) return;
  node.extra->inputs.clear();
}

#include "tessera/engine/node.h"

#include "tessera/base/check.h"
#include "tessera/base/checked.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

bool last_reference(Node* node) { return node->refs.fetch_sub(1, std::memory_order_acq_rel) == 1; }

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
  if (node->component != nullptr) node->component->release();
  delete node;
}

}  // namespace

std::uint64_t tessera::engine::next_node_id() {
  // Threads take numbers in batches, so that recording does not share a counter.
  constexpr std::uint64_t batch = 4096;
  static std::atomic<std::uint64_t> next_batch{1};
  thread_local std::uint64_t next = 0, end = 0;
  if (next == end) {
    next = next_batch.fetch_add(1, std::memory_order_relaxed) * batch;
    end = next + batch;
  }
  return next++;
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
  if (!last_reference(node)) return;
  node->next_dead = nullptr;
  for (Node* dead = node; dead != nullptr;) {
    Node* const at = std::exchange(dead, dead->next_dead);
    for_each_input(*at, [&](Node* input) {
      if (last_reference(input)) input->next_dead = std::exchange(dead, input);
    });
    destroy(at);
  }
}

void tessera::engine::take_inputs(Node& node, std::vector<Node*>& out) {
  for_each_input(node, [&](Node* input) { out.push_back(input); });
  node.card = nullptr;
  node.input_count = 0;
  std::fill(std::begin(node.inputs), std::end(node.inputs), nullptr);
  node.clear(Node::is_result);
  if (node.extra == nullptr) return;
  node.extra->inputs.clear();
}

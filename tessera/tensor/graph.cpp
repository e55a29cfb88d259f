#include "tessera/tensor/graph.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "tessera/base/forked_child.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/engine/record.h"
#include "tessera/ir/describe.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using engine::Node;

namespace {

/// Of this process, so that ids of two processes differ.
std::uint64_t process_id_half() {
  static const std::uint64_t half =
      hash_text(cat(reinterpret_cast<std::uintptr_t>(&process_id_half), "/",
                    std::chrono::steady_clock::now().time_since_epoch().count()))
          .high |
      1;
  return half;
}

NodeId id_of(const Node& node) { return {process_id_half(), node.id}; }

Tensor handle_to(Node& node) {
  engine::retain(&node);
  return Tensor::adopt(&node);
}

template <class F>
void for_each_input(const Node& node, F&& f) {
  for (std::size_t i = 0; i < node.input_count; ++i)
    if (Node* input = node.input(i)) f(input);
}

std::string attribute_text(const Node& node) {
  if (node.card == nullptr) return "";  // what an evaluated node was once is not said of the leaf it is now
  std::vector<std::string> parts;
  std::size_t scalars = 0;
  for (std::size_t i = 0; i < node.input_count; ++i)
    if (node.input(i) == nullptr) {
      const auto bits = node.scalar_at(scalars++);
      const auto& inputs = node.card->inputs;
      const auto& spec = inputs[std::min(i, inputs.size() - 1)];
      const bool is_float = ir::is_float(engine::scalar_dtype_of(node, i));
      parts.push_back(cat(spec.name, "=", is_float ? cat(bits.as_float()) : cat(bits.as_integer())));
    }
  for (const auto& [name, value] : node.attributes().entries())
    parts.push_back(cat(name, "=", ir::describe(value)));
  return join(parts, ", ");
}

NodeInfo info_of(const Node& node, const engine::Engine& engine) {
  NodeInfo out{.id = id_of(node), .dtype = node.dtype, .shape = {node.shape().begin(), node.shape().end()}};
  if (node.card != nullptr) out.op = node.card->name;
  if (node.is(Node::is_result)) out.op = cat("result ", node.extra->result);
  out.attributes = attribute_text(node);
  for (std::size_t i = 0; i < node.input_count; ++i)
    out.inputs.push_back(node.input(i) == nullptr ? NodeId{} : id_of(*node.input(i)));
  out.evaluated = node.is_stored();
  out.block = node.block == 0 ? "" : engine.block_name(node.block);
  out.file = node.file == nullptr ? "" : node.file;
  out.line = node.line;
  return out;
}

}  // namespace

/// What several copies of a Graph share, and what the engine's other graphs are found by.
struct Graph::State {
  explicit State(engine::NodeRef root) : handle(std::move(root)) {
    const std::lock_guard lock(registry().mutex);
    registry().states.push_back(this);
    component()->touch();
  }
  ~State() {
    if (is_forked_child()) return;
    const std::lock_guard lock(registry().mutex);
    auto& states = registry().states;
    states.erase(std::find(states.begin(), states.end(), this));
    component()->touch();
  }

  engine::GraphHandle handle;

  [[nodiscard]] Node* root() const { return handle.root().get(); }
  [[nodiscard]] engine::Component* component() const { return root()->component->root(); }
  [[nodiscard]] engine::Engine& engine() const { return *root()->component->engine(); }

  /// The nodes of this graph and of all that were joined with it, each after its inputs.
  [[nodiscard]] std::vector<engine::NodeRef> order();
  /// The node of this number, or null.
  [[nodiscard]] engine::NodeRef find(std::uint64_t id);

 private:
  struct Registry {
    std::mutex mutex;
    std::vector<State*> states;
  };
  static Registry& registry() {
    static auto* all = new Registry;
    return *all;
  }

  /// Brings `nodes_` up to date. REQUIRES the registry's lock, under which the nodes stay alive: graphs that
  /// hold them leave the registry first, and as long as this one lives evaluation drops no inputs.
  void walk();

  engine::Component* walked_ = nullptr;  ///< where `nodes_` come from, and its version
  std::uint32_t version_ = 0;
  std::vector<Node*> nodes_;                              ///< in order
  std::unordered_map<std::uint64_t, std::size_t> by_id_;  ///< filled by the first lookup
};

namespace {

/// What the roots stand for, in any order, each once; oldest first. REQUIRES the engine's lock.
std::vector<Node*> reachable(const std::vector<engine::NodeRef>& roots, std::uint32_t epoch) {
  std::vector<Node*> found;
  const auto add = [&](Node* node) {
    if (node->epoch == epoch) return;
    node->epoch = epoch;
    found.push_back(node);
  };
  for (const engine::NodeRef& root : roots) add(root.get());
  for (std::size_t i = 0; i < found.size(); ++i) for_each_input(*found[i], add);
  std::sort(found.begin(), found.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  return found;
}

/// Kahn: a node is ready when all its inputs stand in the order. Ready nodes leave oldest first. REQUIRES the
/// engine's lock.
std::vector<Node*> sorted(const std::vector<Node*>& found) {
  std::vector<std::uint32_t> waiting(found.size(), 0), first(found.size() + 1, 0);
  for (std::uint32_t i = 0; i < found.size(); ++i) found[i]->index = i;
  for (const Node* node : found) for_each_input(*node, [&](const Node* input) { ++first[input->index + 1]; });
  for (std::size_t i = 0; i < found.size(); ++i) first[i + 1] += first[i];
  std::vector<std::uint32_t> users(first.back()), next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < found.size(); ++i)
    for_each_input(*found[i], [&](const Node* input) {
      users[next[input->index]++] = i;
      ++waiting[i];
    });
  std::vector<std::uint32_t> ready;
  ready.reserve(found.size());
  for (std::uint32_t i = 0; i < found.size(); ++i)
    if (waiting[i] == 0) ready.push_back(i);
  for (std::size_t k = 0; k < ready.size(); ++k)
    for (std::uint32_t u = first[ready[k]]; u < first[ready[k] + 1]; ++u)
      if (--waiting[users[u]] == 0) ready.push_back(users[u]);
  std::vector<Node*> out;
  out.reserve(found.size());
  for (std::uint32_t i : ready) out.push_back(found[i]);
  return out;
}

}  // namespace

void Graph::State::walk() {
  engine::Component* const now = component();
  const std::uint32_t version = now->version();
  if (walked_ == now && version_ == version) return;
  std::vector<engine::NodeRef> roots;
  for (const State* state : registry().states)
    if (state->component() == now) roots.push_back(state->handle.root());
  by_id_.clear();
  const std::lock_guard lock(engine().mutex());
  nodes_ = sorted(reachable(roots, engine().next_epoch()));
  walked_ = now;
  version_ = version;
}

std::vector<engine::NodeRef> Graph::State::order() {
  check_no_forked_child();
  const std::lock_guard lock(registry().mutex);
  walk();
  std::vector<engine::NodeRef> out;
  out.reserve(nodes_.size());
  for (Node* node : nodes_) out.push_back(engine::NodeRef::share(node));
  return out;
}

engine::NodeRef Graph::State::find(std::uint64_t id) {
  check_no_forked_child();
  const std::lock_guard lock(registry().mutex);
  walk();
  if (by_id_.empty())
    for (std::size_t i = 0; i < nodes_.size(); ++i) by_id_.emplace(nodes_[i]->id, i);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? engine::NodeRef() : engine::NodeRef::share(nodes_[found->second]);
}

Graph Tensor::graph(Here here) const {
  detail::node_of(*this, "graph", here);
  return Graph(std::make_shared<Graph::State>(engine::NodeRef::share(node_)));
}

bool Graph::same_as(const Graph& other) const { return state_->component() == other.state_->component(); }

std::shared_ptr<engine::Engine> Graph::engine() const { return state_->root()->component->engine(); }

void Graph::merge(const Graph& other, Here here) {
  if (&state_->engine() != &other.state_->engine())
    detail::fail(here, "graphs of two engines cannot be merged");
  engine::Component::join(state_->root()->component, other.state_->root()->component);
}

std::vector<NodeInfo> Graph::nodes() const {
  std::vector<NodeInfo> out;
  for (const auto& node : state_->order()) out.push_back(info_of(*node, state_->engine()));
  return out;
}

std::vector<NodeId> Graph::topological_order() const {
  std::vector<NodeId> out;
  for (const auto& node : state_->order()) out.push_back(id_of(*node));
  return out;
}

NodeInfo Graph::node(NodeId id, Here here) const {
  return info_of(*tensor(id, here).node(), state_->engine());
}

Tensor Graph::tensor(NodeId id, Here here) const {
  const engine::NodeRef found = id.high == process_id_half() ? state_->find(id.low) : engine::NodeRef();
  if (!found)
    detail::fail(here, ErrorCode::not_found,
                 cat("the graph has no node ", Hash128{id.high, id.low}.to_hex()));
  return handle_to(*found);
}

std::vector<Tensor> Graph::tensors() const {
  std::vector<Tensor> out;
  for (const auto& node : state_->order()) out.push_back(handle_to(*node));
  return out;
}

std::vector<NodeId> Graph::outputs() const {
  const auto all = nodes();
  std::unordered_map<std::uint64_t, bool> used;
  for (const NodeInfo& node : all)
    for (const NodeId& input : node.inputs) used[input.low] = true;
  std::vector<NodeId> out;
  for (const NodeInfo& node : all)
    if (!used.contains(node.id.low)) out.push_back(node.id);
  return out;
}

std::size_t Graph::size() const { return state_->order().size(); }

std::string tessera::to_text(const NodeInfo& node) {
  std::string out =
      cat(node.op.empty() ? "leaf" : node.op, node.attributes.empty() ? "" : cat("(", node.attributes, ")"),
          ": ", node.dtype, "[", join(node.shape, ", "), "]", node.evaluated ? ", evaluated" : "");
  if (!node.block.empty()) out += cat(", in ", printable(node.block));
  if (!node.file.empty()) out += cat(", ", node.file, ":", node.line);
  return out;
}

std::string Graph::to_text() const {
  const auto all = nodes();
  std::unordered_map<std::uint64_t, std::size_t> number;
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    number[all[i].id.low] = i;
    out += cat("%", i, " = ", tessera::to_text(all[i]));
    for (std::size_t slot = 0; slot < all[i].inputs.size(); ++slot)
      if (all[i].inputs[slot].low != 0)
        out += cat(slot == 0 ? " <- " : ", ", "%", number[all[i].inputs[slot].low]);
    out += '\n';
  }
  return out;
}

std::string Graph::to_dot() const {
  const auto all = nodes();
  std::string out =
      "digraph tessera {\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\", "
      "fontsize=11];\n  edge [fontsize=9, color=gray40];\n";
  for (const NodeInfo& node : all) {
    std::string label =
        cat(node.op.empty() ? "leaf" : node.op, "\n", node.dtype, "[", join(node.shape, ", "), "]");
    if (!node.attributes.empty()) label += "\n" + shortened(node.attributes, 60);
    out += cat("  n", node.id.low, " [label=", quote(label),
               node.op.empty()  ? ", style=\"filled,rounded\", fillcolor=lightyellow"
               : node.evaluated ? ", style=\"filled,rounded\", fillcolor=lightblue"
                                : "",
               "];\n");
  }
  for (const NodeInfo& node : all)
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      if (node.inputs[slot].low != 0)
        out += cat("  n", node.inputs[slot].low, " -> n", node.id.low, " [label=\"", slot, "\"];\n");
  return out + "}\n";
}

void Graph::to_dot(const std::string& path, Here here) const {
  std::ofstream file(path);
  file << to_dot();
  file.close();
  if (!file)
    detail::fail(here, ErrorCode::io, cat("cannot write ", printable(path), ": ", std::strerror(errno)));
}

NodeId tessera::node_id(const Tensor& tensor, Here here) {
  return id_of(detail::node_of(tensor, "node_id", here));
}

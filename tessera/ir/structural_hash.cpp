#include "tessera/ir/structural_hash.h"

#include "tessera/base/stack.h"
#include "tessera/ir/scopes.h"
#include "tessera/ir/visit.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// What stands in the hash where something that is no word does. Any distinct constants do.
enum Mark : std::uint64_t {
  mark_absent = 0xa1b5e0000001,
  mark_attribute,
  mark_attributes_end,
  mark_bound,
  mark_free_strict,
  mark_free_declared,
  mark_free_mapped,
};

/// Walks in the order of the fields with an explicit stack. The hash of a node is a function of its content
/// and of what its variables mean, never of sharing or of the way it was reached. Each node that is done is
/// delivered to the frame of the node around it.
class HashWalk {
 public:
  explicit HashWalk(CompareMode mode) : mode_(mode) { frames_.push({}); }

  Hash128 run(const Node& root) {
    visit(root);
    while (!tasks_.empty()) {
      // Most of the time of a large graph goes into waiting for memory: ask early for what comes next.
      if (const Task* next = tasks_.peek(look_ahead); next != nullptr && next->step == Step::visit)
        known_.prefetch(*next->node);
      step(tasks_.pop());
    }
    return frames_.back().head.finish();
  }

 private:
  enum class Step : std::uint8_t { visit, define, bind, finish, finish_free };
  struct Task {
    const Node* node;
    Step step;
  };
  struct Known {
    Hash128 hash;
    Scopes::Stamp stamp;
  };
  /// A node whose parts are being hashed.
  struct Frame {
    Hasher head;
    VariableUse use;
  };

  /// Hashes the plain fields into the frame and queues the nodes below.
  struct Collector {
    Hasher head;
    std::vector<Task>& below;

    void field(std::uint8_t, FieldKind, bool) {}
    void element(std::uint32_t) {}
    void end_list(std::uint32_t size) { head.add(size); }
    void attribute(std::string_view name) { head.add(mark_attribute).add_text(name); }
    void end_attributes() { head.add(mark_attributes_end); }
    template <class T>
    void value(const T&, std::uint64_t word) {
      head.add(word);
    }
    void text(const std::string& value) { head.add_text(value); }
    void bytes(const Bytes& value) { head.add_bytes(value.span()); }
    void child(const Node& node) { below.push_back({&node, Step::visit}); }
    void define(const Var& var) { below.push_back({&var, Step::define}); }
    void absent() { head.add(mark_absent); }
  };

  void step(Task task) {
    switch (task.step) {
      case Step::visit:
        return visit(*task.node);
      case Step::define:
        return define(static_cast<const Var&>(*task.node));
      case Step::bind:
        return scopes_.bind(static_cast<const Var&>(*task.node));
      case Step::finish:
        return finish(*task.node);
      case Step::finish_free:
        return finish_free(static_cast<const Var&>(*task.node));
    }
  }

  void deliver(const Hash128& hash, VariableUse use) {
    frames_.back().head.add(hash);
    frames_.back().use.add(use);
  }

  void visit(const Node& node) {
    // The table is asked before the node is touched: in a large graph each of the two is a cache miss.
    const Known* known = known_.find(node);
    if (known != nullptr && scopes_.valid(known->stamp)) return deliver(known->hash, known->stamp.use());
    if (node.kind() == NodeKind::var) return use(static_cast<const Var&>(node));
    visit_node(node, [&](const auto& concrete) { enter(concrete); });
  }

  template <class N>
  void enter(const N& node) {
    below_.clear();
    Collector collector{Hasher(static_cast<std::uint64_t>(N::node_kind)), below_};
    visit_fields(node, collector);
    if (below_.empty() && !std::is_same_v<N, Function>)  // a leaf: cheaper to hash again than to remember
      return deliver(collector.head.finish(), {});
    frames_.push({collector.head, {}});
    tasks_.push({&node, Step::finish});
    for (std::size_t i = below_.size(); i-- > 0;) tasks_.push(below_[i]);
    if constexpr (std::is_same_v<N, Function>) scopes_.open();
  }

  void finish(const Node& node) {
    Frame frame = frames_.pop();
    if (node.kind() == NodeKind::function) {
      scopes_.close();
      frame.use.bound = false;
    }
    const Hash128 hash = frame.head.finish();
    if (cacheable(node)) known_[node] = {hash, scopes_.stamp(frame.use)};
    deliver(hash, frame.use);
  }

  /// An assignment binds in the function around it each time it is met, so it is never skipped.
  static bool cacheable(const Node& node) { return node.maybe_shared() && node.kind() != NodeKind::assign; }

  /// A definition is hashed as its type; its number follows from its position.
  void define(const Var& var) {
    tasks_.push({&var, Step::bind});
    tasks_.push({var.type.get(), Step::visit});
  }

  void use(const Var& var) {
    if (const std::uint32_t index = scopes_.bound_index(var); index != Scopes::none) {
      deliver(Hasher(mark_bound).add(index).finish(), {.bound = true});
    } else if (mode_ == CompareMode::mapping || var.declared) {
      use_by_type(var);
    } else {
      scopes_.set_free(var, 0);
      deliver(Hasher(mark_free_strict).add(var.id).finish(), {.free = true});
    }
  }

  /// A free variable that is hashed with its type: the type is hashed once, where it is met first.
  void use_by_type(const Var& var) {
    const std::uint32_t index = scopes_.free_index(var);
    if (index != Scopes::none) return deliver_free(var, index);
    frames_.push({});  // takes the type
    tasks_.push({&var, Step::finish_free});
    visit(*var.type);
  }

  void finish_free(const Var& var) {
    const auto index = static_cast<std::uint32_t>(free_types_.size());
    free_types_.push_back(frames_.pop().head.finish());
    scopes_.set_free(var, index);
    deliver_free(var, index);
  }

  void deliver_free(const Var& var, std::uint32_t index) {
    Hasher hasher(mode_ == CompareMode::mapping ? mark_free_mapped : mark_free_declared);
    if (mode_ == CompareMode::mapping)
      hasher.add(index);
    else
      hasher.add_text(var.name);
    deliver(hasher.add(free_types_[index]).finish(), {.free = true});
  }

  CompareMode mode_;
  Scopes scopes_;
  NodeTable<Known> known_;
  Stack<Task> tasks_;
  Stack<Frame> frames_;  ///< the first takes the root
  std::vector<Task> below_;
  std::vector<Hash128> free_types_;
};

}  // namespace

Hash128 tessera::ir::structural_hash(const Node& node, CompareMode mode) { return HashWalk(mode).run(node); }

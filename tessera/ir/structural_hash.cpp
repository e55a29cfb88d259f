#include "tessera/ir/structural_hash.h"

#include <unordered_map>

#include "tessera/base/stack.h"
#include "tessera/ir/scopes.h"
#include "tessera/ir/scout.h"
#include "tessera/ir/symbol_colours.h"
#include "tessera/ir/visit.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// What stands in the hash where something that is no word does. Any distinct constants do.
enum : std::uint64_t {
  mark_absent = 0xa1b5e0000001,
  mark_attribute,
  mark_attributes_end,
  mark_bound,
  mark_free_strict,
  mark_free_declared,
  mark_free_mapped,
  mark_free_coloured,
};

/// Colours that are known before a walk, for free variables that it cannot number by the order it meets them.
using KnownColours = std::unordered_map<const Var*, Hash128>;

/// Walks in the order of the fields with an explicit stack. The hash of a node is a function of its content
/// and of what its variables mean, never of sharing or of the way it was reached. Each node that is done is
/// delivered to the frame of the node around it.
class HashWalk {
 public:
  explicit HashWalk(CompareMode mode, KnownColours colours = {})
      : mode_(mode), known_colours_(std::move(colours)) {
    frames_.push({});
  }

  Hash128 run(const Node& root) {
    visit(root);
    while (!tasks_.empty()) {
      if (const Task* next = tasks_.peek(look_ahead); next != nullptr && next->step == Step::visit)
        scout_.ask(*next->node, *tasks_.back().node);
      scout_.step();
      step(tasks_.pop());
    }
    return frames_.back().head.finish();
  }

  /// Whether symbols were met first in a size where nothing says which of them comes first. Then the hash is
  /// made by a second walk that knows their colours.
  [[nodiscard]] bool has_open_sizes() const { return !open_sizes_.empty(); }
  [[nodiscard]] KnownColours colours() {
    SymbolColours refined;
    for (OpenSize& size : open_sizes_) {
      for (std::size_t i = 0; i < size.labels.size(); ++i)
        if (!size.labels[i]) size.labels[i] = number_of(*size.form.symbols()[i]);
      refined.add(size, 0);  // a set: how often a size occurs depends on what is shared
    }
    refined.refine();
    KnownColours out;
    for (const Var* var : numbered_) out.emplace(var, *free_hash(*var));
    for (std::size_t i = 0; i < refined.symbols().size(); ++i)
      out.emplace(refined.symbols()[i], Hasher(mark_free_coloured).add(refined.colours()[i]).finish());
    return out;
  }

 private:
  enum class Step : std::uint8_t { visit, define, size, bind, finish, finish_free, number_free };
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
    void size(const Expr& expr) { below.push_back({&expr, is<Var>(expr) ? Step::visit : Step::size}); }
    void absent() { head.add(mark_absent); }
  };

  void step(Task task) {
    switch (task.step) {
      case Step::visit:
        return visit(*task.node);
      case Step::define:
        return define(static_cast<const Var&>(*task.node));
      case Step::size:
        return size(static_cast<const Expr&>(*task.node));
      case Step::bind:
        return scopes_.bind(static_cast<const Var&>(*task.node));
      case Step::finish:
        return finish(*task.node);
      case Step::finish_free:
        return finish_free(static_cast<const Var&>(*task.node));
      case Step::number_free:
        return number_free(static_cast<const Var&>(*task.node));
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
    for (std::size_t i = below_.size(); i-- > 0;) {
      tasks_.push(below_[i]);
      if (i > 0 && below_[i].step == Step::visit) scout_.ask(*below_[i].node, node);
    }
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
    if (const auto hash = free_hash(var)) return deliver(*hash, {.free = true});
    tasks_.push({&var, Step::finish_free});
    begin_number(var);
  }

  void finish_free(const Var& var) { deliver(*free_hash(var), {.free = true}); }

  /// Numbers `var` once its type, which is asked for here, is hashed.
  void begin_number(const Var& var) {
    frames_.push({});  // takes the type
    tasks_.push({&var, Step::number_free});
    visit(*var.type);
  }

  void number_free(const Var& var) {
    scopes_.set_free(var, static_cast<std::uint32_t>(free_types_.size()));
    free_types_.push_back(frames_.pop().head.finish());
    numbered_.push_back(&var);
  }

  /// The hash of a free variable that goes by its type, if it is numbered.
  std::optional<Hash128> free_hash(const Var& var) {
    if (const auto known = known_colours_.find(&var); known != known_colours_.end()) {
      scopes_.set_free(var, 0);
      return known->second;
    }
    const std::uint32_t index = scopes_.free_index(var);
    if (index == Scopes::none) return std::nullopt;
    Hasher hasher(mode_ == CompareMode::mapping ? mark_free_mapped : mark_free_declared);
    if (mode_ == CompareMode::mapping)
      hasher.add(index);
    else
      hasher.add_text(var.name);
    return hasher.add(free_types_[index]).finish();
  }

  /// The expression of a dimension, by what it means and not by the order in which its symbols stand.
  ///
  /// The only free symbol of a size is numbered like one that stands alone. Two that stand together first are
  /// left open even if one of them has a number by now: whether it has may depend on what is shared.
  void size(const Expr& expr) {
    auto form = SizeForm::of(expr);
    if (!form) return visit(expr);
    std::vector<Hash128> colours;
    std::vector<const Var*> open;
    std::size_t free_count = 0;
    VariableUse use;
    for (const Var* var : form->symbols()) {
      const auto colour = symbol_colour(*var, use);
      if (!colour) open.push_back(var);
      if (scopes_.bound_index(*var) == Scopes::none) ++free_count;
      colours.push_back(colour.value_or(Hash128()));
    }
    const bool in_any_order = mode_ == CompareMode::strict;  // there symbols go by their names
    if (!open.empty() && (free_count == 1 || in_any_order)) {
      tasks_.push({&expr, Step::size});
      return begin_number(*open[0]);
    }
    deliver(form->hash(colours), use);
    if (!open.empty()) leave_open(*std::move(form), open);
  }

  std::optional<Hash128> symbol_colour(const Var& var, VariableUse& use) {
    if (const std::uint32_t index = scopes_.bound_index(var); index != Scopes::none) {
      use.bound = true;
      return Hasher(mark_bound).add(index).finish();
    }
    use.free = true;
    if (mode_ == CompareMode::mapping || var.declared) return free_hash(var);
    scopes_.set_free(var, 0);
    return Hasher(mark_free_strict).add(var.id).finish();
  }

  /// Keeps a size with what is known of its symbols here and now: what is bound.
  void leave_open(SizeForm form, std::span<const Var* const> open) {
    for (const Var* var : open) scopes_.set_free(*var, Scopes::open_index);
    OpenSize size{std::move(form), {}};
    for (const Var* var : size.form.symbols()) {
      const std::uint32_t index = scopes_.bound_index(*var);
      size.labels.push_back(index == Scopes::none ? std::nullopt : std::optional(bound_label | index));
    }
    open_sizes_.push_back(std::move(size));
  }

  /// The label of a free variable that has a number.
  std::optional<std::uint64_t> number_of(const Var& var) {
    const std::uint32_t index = scopes_.free_index(var);
    return index == Scopes::none ? std::nullopt : std::optional(std::uint64_t{index});
  }

  static constexpr std::uint64_t bound_label = 1ULL << 62;

  CompareMode mode_;
  Scopes scopes_;
  NodeTable<Known> known_;
  Scout<Known> scout_{known_};
  Stack<Task> tasks_;
  Stack<Frame> frames_;  ///< the first takes the root
  std::vector<Task> below_;
  std::vector<Hash128> free_types_;  ///< by number
  std::vector<const Var*> numbered_;
  KnownColours known_colours_;
  std::vector<OpenSize> open_sizes_;
};

}  // namespace

Hash128 tessera::ir::structural_hash(const Node& node, CompareMode mode) {
  HashWalk walk(mode);
  const Hash128 hash = walk.run(node);
  if (!walk.has_open_sizes()) return hash;
  return HashWalk(mode, walk.colours()).run(node);
}

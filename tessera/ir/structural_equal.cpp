#include "tessera/ir/structural_equal.h"

#include "tessera/base/result.h"
#include "tessera/base/stack.h"
#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/flat_equal.h"
#include "tessera/ir/node_classes.h"
#include "tessera/ir/scopes.h"
#include "tessera/ir/size_matching.h"
#include "tessera/ir/visit.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 60) return out + "…]";
    out += cat(out.size() > 1 ? ", " : "", quote(shortened(text, 60)));
  }
  return out + "]";
}

/// Walks two nodes side by side with an explicit stack, in the order of the fields.
///
/// A pair that was found equal is not walked again: each node on the left remembers its first partner on the
/// right, and further partners of it are joined into classes, so that the number of pairs walked is at most
/// the number of nodes of both sides even where the two share their parts differently. (An answer may be
/// remembered before it is known: the first difference ends the walk.)
class EqualWalk {
 public:
  enum class Report : bool { no, yes };
  EqualWalk(CompareMode mode, Report report) : mode_(mode), report_(report == Report::yes) { uses_.push({}); }

  bool run(const Node& a, const Node& b) {
    root_ = &a;
    bool equal = visit({&a, &b, Step::visit, 0, Scopes::none});
    while (equal && !tasks_.empty()) {
      // Most of the time of a large graph goes into waiting for memory: ask early for what comes next.
      if (const Task* next = tasks_.peek(look_ahead); next != nullptr && next->step == Step::visit)
        prefetch(*next);
      equal = step(tasks_.pop());
    }
    return equal && open_sizes_match();
  }

  [[nodiscard]] const std::optional<Mismatch>& mismatch() const { return mismatch_; }

 private:
  enum class Step : std::uint8_t { visit, define, size, bind, finish, match_free, fail };
  /// The tasks with step `finish` are the pairs whose parts are being walked, outermost first.
  struct Task {
    const Node* a;
    const Node* b;
    Step step;
    std::uint8_t field;  ///< where the pair stands in the one around it
    std::uint32_t element;
  };
  struct Partner {
    const Node* node = nullptr;
    Scopes::Stamp stamp = {};
  };

  void prefetch(const Task& task) {
    partners_.prefetch(*task.a);
    if (partners_.find(*task.a) == nullptr) __builtin_prefetch(task.b);
  }

  bool step(const Task& task) {
    switch (task.step) {
      case Step::visit:
        return visit(task);
      case Step::define:
        return define(task);
      case Step::size:
        return size(task);
      case Step::bind:
        return bind(task);
      case Step::finish:
        return finish(task);
      case Step::match_free:
        return match_free(task);
      case Step::fail:
        return false;  // the mismatch was written when the task was queued
    }
    return false;
  }

  bool visit(const Task& task) {
    const Node& a = *task.a;
    const Node& b = *task.b;
    if (known_equal(a, b))
      return true;  // first: it does not touch the nodes, which are cache misses in a large graph
    if (a.kind() != b.kind()) return fail(task, "different kind of node");
    if (a.kind() == NodeKind::var) return use(task);
    if (&a == &b && same_in_this_context(a)) return true;
    return visit_node(a, [&]<class N>(const N& left) { return enter(left, static_cast<const N&>(b), task); });
  }

  template <class N>
  bool enter(const N& a, const N& b, const Task& task) {
    below_.clear();
    PairHandler handler{*this, a, task};
    if (!visit_pairs(a, b, handler)) {
      if (!report_) return false;
      below_.push_back({nullptr, nullptr, Step::fail, 0, 0});  // after the parts that stand before it
    }
    uses_.push({});
    tasks_.push({&a, &b, Step::finish, task.field, task.element});
    for (std::size_t i = below_.size(); i-- > 0;) tasks_.push(below_[i]);
    if constexpr (std::is_same_v<N, Function>) {
      left_.open();
      right_.open();
      local_classes_.emplace_back();
    }
    return true;
  }

  /// Queues the pairs of nodes below, and describes the first plain difference.
  struct PairHandler {
    EqualWalk& walk;
    const Node& node;
    const Task& task;
    bool is_head = false;
    std::uint8_t field_index = 0;
    std::uint32_t element_index = Scopes::none;
    const std::string* attribute_name = nullptr;

    void field(std::uint8_t index, bool head) {
      field_index = index;
      is_head = head;
      element_index = Scopes::none;
      attribute_name = nullptr;
    }
    void element(std::uint32_t index) { element_index = index; }
    void attribute(const std::string& name) {
      attribute_name = &name;
      element_index = Scopes::none;
    }
    void child(const Node& x, const Node& y) {
      walk.below_.push_back({&x, &y, Step::visit, field_index, element_index});
    }
    void define(const Var& x, const Var& y) {
      walk.below_.push_back({&x, &y, Step::define, field_index, element_index});
    }
    void size(const Expr& x, const Expr& y) {
      const bool is_symbol = is<Var>(x) || is<Var>(y);  // means what is written
      walk.below_.push_back({&x, &y, is_symbol ? Step::visit : Step::size, field_index, element_index});
    }

    template <class T>
    bool differ(const T& x, const T& y) {
      if (!walk.report_) return false;
      report(text(x), text(y), attribute_name != nullptr ? "different attribute" : "different value");
      Mismatch& mismatch = *walk.mismatch_;
      if (mismatch.left == mismatch.right) mismatch.reason += ", further on than is shown";
      return false;
    }
    template <class T>
    bool only_left(const T& x) {
      if (walk.report_) report(text(x), "absent", one_sided());
      return false;
    }
    template <class T>
    bool only_right(const T& y) {
      if (walk.report_) report("absent", text(y), one_sided());
      return false;
    }

   private:
    /// Texts are quoted: one may read as something else that can stand there.
    template <class T>
    [[nodiscard]] std::string text(const T& value) const {
      if constexpr (detail::is_ref<T>) {
        return describe(static_cast<const Node&>(*value));
      } else if constexpr (std::is_same_v<T, std::string>) {
        return is_head ? describe(value) : quote(shortened(value, 60));
      } else if constexpr (std::is_same_v<T, AttributeValue>) {
        if (const auto* one = std::get_if<std::string>(&value)) return quote(shortened(*one, 60));
        if (const auto* several = std::get_if<std::vector<std::string>>(&value); several && !several->empty())
          return quoted_list(*several);
        return describe(value);
      } else if constexpr (std::is_same_v<T, double>) {
        const auto* constant = as<FloatConst>(node);
        return constant == nullptr ? describe(value) : describe_float(value, constant->dtype);
      } else {
        return describe(value);
      }
    }
    [[nodiscard]] std::string_view one_sided() const {
      if (element_index != Scopes::none) return "different number of elements";
      return attribute_name != nullptr ? "attribute on one side only" : "present on one side only";
    }
    void report(std::string left, std::string right, std::string_view reason) {
      Mismatch out{walk.path_to(task), std::move(left), std::move(right), std::string(reason)};
      if (is_head) {
        out.reason = cat("different ", field_name(node, field_index));
      } else if (attribute_name != nullptr) {
        out.path += cat(".", field_name(node, field_index), ".", *attribute_name);
        if (element_index != Scopes::none) out.path += cat("[", element_index, "]");
      } else {
        out.path += position(node, field_index, element_index);
      }
      walk.mismatch_ = std::move(out);
    }
  };

  bool finish(const Task& task) {
    VariableUse use = uses_.pop();
    if (task.a->kind() == NodeKind::function) {
      left_.close();
      right_.close();
      local_classes_.pop_back();
      use.bound = false;
    }
    if (cacheable(*task.a, *task.b)) remember(*task.a, *task.b, use);
    note_use(use);
    return true;
  }

  static bool cacheable(const Node& a, const Node& b) {
    return (a.maybe_shared() || b.maybe_shared()) && a.kind() != NodeKind::assign;
  }

  /// One object on both sides: equal unless its variables mean different things on the two sides.
  [[nodiscard]] bool same_in_this_context(const Node& node) const {
    if (!node.has_variables()) return true;
    return mode_ == CompareMode::strict && !diverged_ && node.kind() != NodeKind::assign;
  }

  bool known_equal(const Node& a, const Node& b) {
    const Partner* partner = partners_.find(a);
    if (partner == nullptr || !left_.valid(partner->stamp) || !right_.valid(partner->stamp)) return false;
    if (partner->node != &b && !in_one_class(partner->node, &b)) return false;
    note_use(partner->stamp.use());
    return true;
  }

  bool in_one_class(const Node* x, const Node* y) {
    forget_outdated_classes();
    return classes_.same(x, y) || local_classes_.back().same(x, y);
  }

  void remember(const Node& a, const Node& b, VariableUse use) {
    Partner& partner = partners_[a];
    // Both sides open, close and bind together, so that one stamp serves for both. A change of meaning on the
    // right alone makes its epoch differ, and then the stamp is never valid: slower, not wrong.
    const bool still_valid =
        partner.node != nullptr && left_.valid(partner.stamp) && right_.valid(partner.stamp);
    if (!still_valid) {
      partner = {&b, left_.stamp(use)};
      return;
    }
    forget_outdated_classes();
    (use.bound ? local_classes_.back() : classes_).join(&b, partner.node);
  }

  void forget_outdated_classes() {
    const std::uint64_t epoch = static_cast<std::uint64_t>(left_.epoch()) + right_.epoch();
    if (epoch == classes_epoch_) return;
    classes_epoch_ = epoch;
    classes_.clear();
    for (NodeClasses& local : local_classes_) local.clear();
  }

  /// The types of two definitions are compared, then the two are bound to one number.
  bool define(const Task& task) {
    const auto& a = static_cast<const Var&>(*task.a);
    const auto& b = static_cast<const Var&>(*task.b);
    tasks_.push({&a, &b, Step::bind, task.field, task.element});
    return visit_type(a, b, task);
  }

  bool bind(const Task& task) {
    left_.bind(static_cast<const Var&>(*task.a));
    right_.bind(static_cast<const Var&>(*task.b));
    diverged_ = diverged_ || task.a != task.b;
    return true;
  }

  bool visit_type(const Var& a, const Var& b, const Task& task) {
    return visit({a.type.get(), b.type.get(), Step::visit, task.field, task.element});
  }

  bool use(const Task& task) {
    const auto& a = static_cast<const Var&>(*task.a);
    const auto& b = static_cast<const Var&>(*task.b);
    const std::uint32_t x = left_.bound_index(a);
    const std::uint32_t y = right_.bound_index(b);
    if (x != y) {
      const bool both_bound = x != Scopes::none && y != Scopes::none;
      return fail(task,
                  both_bound ? "uses of different definitions" : "one is defined here, the other is free");
    }
    if (x != Scopes::none) {
      note_use({.bound = true});
      return true;
    }
    note_use({.free = true});
    return mode_ == CompareMode::strict ? same_free(task, a, b) : map_free(task, a, b);
  }

  void note_use(VariableUse use) { uses_.back().add(use); }

  bool same_free(const Task& task, const Var& a, const Var& b) {
    if (&a != &b) return fail(task, "different free variables");
    left_.set_free(a, 0);
    right_.set_free(b, 0);
    return true;
  }

  bool map_free(const Task& task, const Var& a, const Var& b) {
    const std::uint32_t x = left_.free_index(a);
    const std::uint32_t y = right_.free_index(b);
    if (x != y) return fail(task, "free variables that do not correspond one to one");
    if (x != Scopes::none) return true;
    tasks_.push({&a, &b, Step::match_free, task.field, task.element});
    return visit_type(a, b, task);
  }

  bool match_free(const Task& task) {
    const auto& a = static_cast<const Var&>(*task.a);
    const auto& b = static_cast<const Var&>(*task.b);
    // The types may have mentioned the variables' partners already only if they were free before: check
    // again.
    if (left_.free_index(a) != right_.free_index(b))
      return fail(task, "free variables that do not correspond one to one");
    left_.set_free(a, next_free_);
    right_.set_free(b, next_free_++);
    return true;
  }

  /// Two expressions of dimensions, by what they mean and not by the order in which their symbols stand.
  bool size(const Task& task) {
    const auto& a = static_cast<const Expr&>(*task.a);
    const auto& b = static_cast<const Expr&>(*task.b);
    if (&a == &b && same_in_this_context(a)) return true;
    auto x = SizeForm::of(a), y = SizeForm::of(b);
    if (!x || !y) return visit({&a, &b, Step::visit, task.field, task.element});
    OpenSize left = labelled(*std::move(x), left_);
    OpenSize right = labelled(*std::move(y), right_);
    const std::vector<const Var*> open_left = open_symbols(left), open_right = open_symbols(right);
    if (open_left.size() != open_right.size()) return fail_size(task);
    if (open_left.empty()) return words_of(left) == words_of(right) || fail_size(task);
    if (open_left.size() == 1) {  // it has no other partner: once the two are matched, the sizes are compared
      tasks_.push(task);
      return map_free({open_left[0], open_right[0], Step::visit, task.field, task.element}, *open_left[0],
                      *open_right[0]);
    }
    if (outline(left) != outline(right)) return fail_size(task);
    for (const Var* var : open_left) left_.set_free(*var, Scopes::open_index);
    for (const Var* var : open_right) right_.set_free(*var, Scopes::open_index);
    open_left_.push_back(std::move(left));
    open_right_.push_back(std::move(right));
    if (report_ && !open_mismatch_)
      open_mismatch_ = size_mismatch(task, "sizes whose symbols do not correspond one to one");
    return true;
  }

  OpenSize labelled(SizeForm form, Scopes& scopes) {
    std::vector<std::optional<std::uint64_t>> labels;
    for (const Var* var : form.symbols()) labels.push_back(label_of(*var, scopes));
    return {std::move(form), std::move(labels)};
  }

  /// Bound, free and numbered, free and itself; nothing if it is free and has no partner yet.
  std::optional<std::uint64_t> label_of(const Var& var, Scopes& scopes) {
    constexpr std::uint64_t bound_label = 1ULL << 62, free_label = 2ULL << 62;
    if (const std::uint32_t index = scopes.bound_index(var); index != Scopes::none) {
      note_use({.bound = true});
      return bound_label | index;
    }
    note_use({.free = true});
    if (mode_ == CompareMode::strict) {
      scopes.set_free(var, 0);
      return reinterpret_cast<std::uintptr_t>(&var);
    }
    const std::uint32_t index = scopes.free_index(var);
    return index == Scopes::none ? std::nullopt : std::optional(free_label | index);
  }

  static std::vector<const Var*> open_symbols(const OpenSize& size) {
    std::vector<const Var*> out;
    for (std::size_t i = 0; i < size.labels.size(); ++i)
      if (!size.labels[i]) out.push_back(size.form.symbols()[i]);
    return out;
  }

  static std::vector<std::uint64_t> words_of(const OpenSize& size) {
    std::vector<std::uint64_t> labels;
    for (const auto& label : size.labels) labels.push_back(*label);
    return size.form.words(labels);
  }

  /// What can be said of a size without knowing its open symbols.
  static Hash128 outline(const OpenSize& size) {
    std::vector<Hash128> colours;
    for (const auto& label : size.labels) colours.push_back(label ? SizeForm::colour_of(*label) : Hash128());
    return size.form.hash(colours);
  }

  /// Symbols that were met only together with others are matched when all is known about them.
  bool open_sizes_match() {
    if (open_left_.empty()) return true;
    const auto label_known = [&](std::vector<OpenSize>& sizes, Scopes& scopes) {
      for (OpenSize& size : sizes)
        for (std::size_t i = 0; i < size.labels.size(); ++i)
          if (!size.labels[i]) size.labels[i] = label_of(*size.form.symbols()[i], scopes);
    };
    label_known(open_left_, left_);
    label_known(open_right_, right_);
    if (can_match(open_left_, open_right_)) return true;
    mismatch_ = std::move(open_mismatch_);
    return false;
  }

  bool fail_size(const Task& task) {
    if (report_) mismatch_ = size_mismatch(task, "different size");
    return false;
  }

  [[nodiscard]] Mismatch size_mismatch(const Task& task, std::string_view reason) const {
    const auto text = [](const Node* node) { return to_text(Dim(ExprRef(static_cast<const Expr*>(node)))); };
    return {path_to(task), text(task.a), text(task.b), std::string(reason)};
  }

  bool fail(const Task& task, std::string_view reason) {
    if (!report_) return false;
    mismatch_ = Mismatch{path_to(task), describe(*task.a), describe(*task.b), std::string(reason)};
    const auto *a = as<Var>(*task.a), *b = as<Var>(*task.b);
    if (a != nullptr && b != nullptr && mismatch_->left == mismatch_->right) {
      mismatch_->left += cat(": ", describe(*a->type));
      mismatch_->right += cat(": ", describe(*b->type));
    }
    return false;
  }

  // Everything below serves the report of a difference.

  [[nodiscard]] std::string path_to(const Task& task) const {
    const auto* function = as<Function>(*root_);
    std::string path = function != nullptr && !function->name.empty() ? function->name
                                                                      : std::string(to_string(root_->kind()));
    const Task* around = nullptr;
    const auto add = [&](const Task& one) {
      if (around != nullptr) path += position(*around->a, one.field, one.element);
      around = &one;
    };
    tasks_.for_each([&](const Task& waiting) {
      if (waiting.step == Step::finish) add(waiting);
    });
    if (around != nullptr) add(task);
    return path;
  }

  static std::string position(const Node& parent, std::uint8_t field, std::uint32_t element) {
    std::string out = cat(".", field_name(parent, field));
    if (element != Scopes::none) out += cat("[", element, "]");
    return out;
  }

  CompareMode mode_;
  bool report_;
  bool diverged_ = false;  ///< two different variables were bound to one number
  const Node* root_ = nullptr;
  Scopes left_, right_;
  std::uint32_t next_free_ = 0;
  NodeTable<Partner> partners_;
  NodeClasses classes_;
  std::vector<NodeClasses> local_classes_{1};
  std::uint64_t classes_epoch_ = 0;
  Stack<Task> tasks_;
  Stack<VariableUse> uses_;  ///< one per task `finish`, and one for what is around the root
  std::vector<Task> below_;
  std::vector<OpenSize> open_left_, open_right_;  ///< pairs of sizes that are left for the end
  std::optional<Mismatch> open_mismatch_;         ///< of the first of them
  std::optional<Mismatch> mismatch_;
};

}  // namespace

bool tessera::ir::structural_equal(const Node& a, const Node& b, CompareMode mode) {
  if (const FlatAnswer answer = flat_equal(a, b, mode); answer != FlatAnswer::unknown)
    return answer == FlatAnswer::equal;
  return EqualWalk(mode, EqualWalk::Report::no).run(a, b);
}

std::string Mismatch::to_text() const { return cat(path, ": ", left, " ≠ ", right); }

std::optional<Mismatch> tessera::ir::first_mismatch(const Node& a, const Node& b, CompareMode mode) {
  EqualWalk walk(mode, EqualWalk::Report::yes);
  if (walk.run(a, b)) return std::nullopt;
  return walk.mismatch();
}

void tessera::ir::assert_structural_equal(const Node& a, const Node& b, CompareMode mode) {
  if (auto mismatch = first_mismatch(a, b, mode))
    throw Exception(Error(ErrorCode::invalid_argument, cat("not structurally equal at ", mismatch->to_text()))
                        .note(mismatch->reason));
}

#include "tessera/ir/flat_equal.h"

#include <array>

#include "tessera/base/stack.h"
#include "tessera/ir/node_classes.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/visit.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

bool may_bind(NodeKind kind) { return kind >= NodeKind::invoke; }

/// Pairs that were met are taken for equal: the first that is not ends the walk. As in the full comparison,
/// each node on the left remembers its first partner and further ones are joined into classes, so that the
/// number of pairs walked is at most the number of nodes of both sides.
class FlatWalk {
 public:
  explicit FlatWalk(CompareMode mode) : mode_(mode) {}

  FlatAnswer run(const Node& a, const Node& b) {
    waiting_.push({&a, &b});
    while (!waiting_.empty() || on_the_way_ > 0) {
      while (on_the_way_ < in_flight_.size() && !waiting_.empty()) send_for(waiting_.pop());
      const Pair pair = in_flight_[first_];
      first_ = (first_ + 1) % in_flight_.size();
      --on_the_way_;
      if (!visit(*pair.a, *pair.b)) return answer_;
    }
    return FlatAnswer::equal;
  }

 private:
  struct Pair {
    const Node* a;
    const Node* b;
  };

  /// Most of the time of a large graph goes into waiting for memory: it is asked for some pairs ahead.
  void send_for(const Pair& pair) {
    if (const auto* partner = partners_.find(*pair.a)) {
      __builtin_prefetch(partner);
    } else {
      __builtin_prefetch(pair.a);
      __builtin_prefetch(pair.b);
    }
    in_flight_[(first_ + on_the_way_) % in_flight_.size()] = pair;
    ++on_the_way_;
  }

  bool give_up() {
    answer_ = FlatAnswer::unknown;
    return false;
  }

  /// False if the answer is known.
  bool visit(const Node& a, const Node& b) {
    const Node** partner = partners_.find(a);
    if (partner != nullptr && (*partner == &b || classes_.same(*partner, &b))) return true;
    if (a.kind() != b.kind()) return false;
    if (a.kind() == NodeKind::var) return match(static_cast<const Var&>(a), static_cast<const Var&>(b));
    if (may_bind(a.kind())) return give_up();
    if (&a == &b && (mode_ == CompareMode::strict || !a.has_variables())) return true;
    if (partner != nullptr)
      classes_.join(*partner, &b);
    else if (a.maybe_shared() || b.maybe_shared())
      partners_[a] = &b;
    return visit_node(a, [&]<class N>(const N& left) {
      Handler handler{*this};
      if (!visit_pairs(left, static_cast<const N&>(b), handler)) return false;
      return !handler.is_symbolic || give_up();
    });
  }

  bool match(const Var& a, const Var& b) {
    if (mode_ == CompareMode::strict) return &a == &b;
    const Var** forward = partner_of_left_.find(a);
    const Var** backward = partner_of_right_.find(b);
    if (forward != nullptr || backward != nullptr)
      return forward != nullptr && backward != nullptr && *forward == &b && *backward == &a;
    partner_of_left_[a] = &b;
    partner_of_right_[b] = &a;
    waiting_.push({a.type.get(), b.type.get()});
    return true;
  }

  struct Handler {
    FlatWalk& walk;

    void field(std::uint8_t, bool) {}
    void element(std::uint32_t) {}
    void attribute(const std::string&) {}
    void child(const Node& x, const Node& y) { walk.waiting_.push({&x, &y}); }
    void define(const Var& x, const Var& y) { child(x, y); }  // only what may_bind() has definitions
    void size(const Expr& x, const Expr& y) {
      is_symbolic = is_symbolic || !is<Var>(x) || !is<Var>(y);
      child(x, y);
    }
    template <class T>
    bool differ(const T&, const T&) {
      return false;
    }
    template <class T>
    bool only_left(const T&) {
      return false;
    }
    template <class T>
    bool only_right(const T&) {
      return false;
    }
    bool is_symbolic = false;
  };

  CompareMode mode_;
  FlatAnswer answer_ = FlatAnswer::different;
  Stack<Pair> waiting_;
  std::array<Pair, 16> in_flight_ = {};  ///< a ring: `on_the_way_` pairs from `first_` on
  std::size_t first_ = 0;
  std::size_t on_the_way_ = 0;
  NodeTable<const Node*> partners_;
  NodeTable<const Var*> partner_of_left_, partner_of_right_;
  NodeClasses classes_;
};

}  // namespace

FlatAnswer tessera::ir::flat_equal(const Node& a, const Node& b, CompareMode mode) {
  return FlatWalk(mode).run(a, b);
}

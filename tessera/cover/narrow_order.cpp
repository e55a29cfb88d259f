#include <set>
#include <tuple>

#include "tessera/cover/order.h"

using namespace tessera::cover;

namespace {

/// Grows an order node by node. A node is open while it is not placed but shares a set with one that is.
class NarrowOrder {
 public:
  NarrowOrder(const Precedence& graph, std::span<const NodeSet> sets)
      : graph_(graph),
        neighbours_(neighbours(graph.size(), sets)),
        waiting_(graph.size()),
        fresh_(graph.size()),
        ready_since_(graph.size(), 0),
        stage_(graph.size(), Stage::far) {
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      waiting_[node] = static_cast<std::uint32_t>(graph.inputs[node].size());
      fresh_[node] = static_cast<std::uint32_t>(neighbours_[node].size());
    }
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t node = 0; node < graph_.size(); ++node)
      if (waiting_[node] == 0) ready_.insert(key(node));
    while (!ready_.empty()) place(std::get<3>(*ready_.begin()));
    return std::move(order_);
  }

 private:
  enum class Stage : std::uint8_t { far, open, placed };
  /// Fewest nodes brought in first, then open ones, then those that became ready last.
  using Key = std::tuple<std::uint32_t, bool, std::uint32_t, std::uint32_t>;

  static Rows neighbours(std::uint32_t count, std::span<const NodeSet> sets) {
    std::vector<Edge> pairs;
    for (const NodeSet set : sets)
      for (std::uint32_t a : set)
        for (std::uint32_t b : set)
          if (a != b) pairs.push_back({a, b});
    return {count, pairs};
  }
  [[nodiscard]] Key key(std::uint32_t node) const {
    return {fresh_[node], stage_[node] != Stage::open, ~ready_since_[node], node};
  }
  [[nodiscard]] bool is_ready(std::uint32_t node) const {
    return waiting_[node] == 0 && stage_[node] != Stage::placed;
  }

  void place(std::uint32_t node) {
    ready_.erase(key(node));
    if (stage_[node] == Stage::far) leave_far(node);
    stage_[node] = Stage::placed;
    order_.push_back(node);
    for (std::uint32_t other : neighbours_[node])
      if (stage_[other] == Stage::far) open(other);
    for (std::uint32_t consumer : graph_.outputs[node]) {
      if (--waiting_[consumer] != 0) continue;
      ready_since_[consumer] = static_cast<std::uint32_t>(order_.size());
      ready_.insert(key(consumer));
    }
  }
  void open(std::uint32_t node) {
    if (is_ready(node)) ready_.erase(key(node));
    stage_[node] = Stage::open;
    if (is_ready(node)) ready_.insert(key(node));
    leave_far(node);
  }
  /// Its neighbours would no longer bring it in.
  void leave_far(std::uint32_t node) {
    for (std::uint32_t other : neighbours_[node]) {
      const bool is_listed = is_ready(other);
      if (is_listed) ready_.erase(key(other));
      --fresh_[other];
      if (is_listed) ready_.insert(key(other));
    }
  }

  const Precedence& graph_;
  Rows neighbours_;
  std::vector<std::uint32_t> waiting_;  ///< inputs that are not placed
  std::vector<std::uint32_t> fresh_;    ///< neighbours that are far
  std::vector<std::uint32_t> ready_since_;
  std::vector<Stage> stage_;
  std::set<Key> ready_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

std::vector<std::uint32_t> tessera::cover::narrow_order(const Precedence& graph,
                                                        std::span<const NodeSet> sets) {
  return NarrowOrder(graph, sets).run();
}

// Tarjan's algorithm with an explicit stack: graphs here are as deep as a model has ops.
#include <algorithm>
#include <limits>

#include "tessera/cover/precedence.h"

using namespace tessera::cover;

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

class Tarjan {
 public:
  explicit Tarjan(const Rows& successors)
      : successors_(successors), seen_at_(successors.size(), none), low_(seen_at_), component_(seen_at_) {}

  std::vector<std::uint32_t> run() {
    for (std::uint32_t root = 0; root < successors_.size(); ++root)
      if (seen_at_[root] == none) walk_from(root);
    return std::move(component_);
  }

 private:
  struct Visit {
    std::uint32_t vertex;
    std::uint32_t next;
  };

  void walk_from(std::uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      Visit& top = path_.back();
      const auto row = successors_[top.vertex];
      if (top.next < row.size())
        follow(top.vertex, row[top.next++]);
      else
        leave();
    }
  }
  void enter(std::uint32_t vertex) {
    seen_at_[vertex] = low_[vertex] = clock_++;
    open_.push_back(vertex);
    path_.push_back({vertex, 0});
  }
  void follow(std::uint32_t from, std::uint32_t to) {
    if (seen_at_[to] == none)
      enter(to);
    else if (component_[to] == none)
      low_[from] = std::min(low_[from], seen_at_[to]);
  }
  void leave() {
    const std::uint32_t vertex = path_.back().vertex;
    path_.pop_back();
    if (!path_.empty()) low_[path_.back().vertex] = std::min(low_[path_.back().vertex], low_[vertex]);
    if (low_[vertex] != seen_at_[vertex]) return;
    for (std::uint32_t member = none; member != vertex; open_.pop_back()) {
      member = open_.back();
      component_[member] = components_;
    }
    ++components_;
  }

  const Rows& successors_;
  std::vector<std::uint32_t> seen_at_;
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> component_;
  std::vector<std::uint32_t> open_;  ///< vertices whose component is not closed yet
  std::vector<Visit> path_;
  std::uint32_t clock_ = 0;
  std::uint32_t components_ = 0;
};

}  // namespace

std::vector<std::uint32_t> tessera::cover::strong_components(const Rows& successors) {
  return Tarjan(successors).run();
}

#include "tessera/describe/scope_sort.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t most_cycles = 16;

class ScopeSorter {
 public:
  ScopeSorter(std::span<const std::uint32_t> ranks, std::span<const ScopeLink> links)
      : ranks_(ranks),
        links_(links),
        waiting_(ranks.size()),
        first_(ranks.size() + 1),
        out_links_(links.size()) {
    for (const ScopeLink& link : links) {
      ++waiting_[link.after];
      ++first_[link.before + 1];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < links.size(); ++i) out_links_[next[links[i].before]++] = i;
  }

  SortedScope run() {
    out_.levels.assign(ranks_.size(), 0);
    take_ready();
    if (out_.order.size() < ranks_.size()) {
      find_cycles();
      append_rest();
    }
    return std::move(out_);
  }

 private:
  void take_ready() {
    using Entry = std::pair<std::uint32_t, std::uint32_t>;  // rank, node
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < ranks_.size(); ++i)
      if (waiting_[i] == 0) ready.emplace(ranks_[i], i);
    while (!ready.empty()) {
      const std::uint32_t node = ready.top().second;
      ready.pop();
      out_.order.push_back(node);
      for (std::uint32_t k = first_[node]; k < first_[node + 1]; ++k) {
        const std::uint32_t next = links_[out_links_[k]].after;
        out_.levels[next] = std::max(out_.levels[next], out_.levels[node] + 1);
        if (--waiting_[next] == 0) ready.emplace(ranks_[next], next);
      }
    }
  }

  /// From a node that still waits, going back along links from others that wait must come around.
  void find_cycles() {
    std::vector<std::uint32_t> into(ranks_.size(), nothing);  // a link from a node that waits
    for (std::uint32_t i = 0; i < links_.size(); ++i)
      if (waiting_[links_[i].before] > 0 && waiting_[links_[i].after] > 0) into[links_[i].after] = i;
    std::vector<std::uint32_t> walk(ranks_.size(), nothing);
    for (std::uint32_t start = 0; start < ranks_.size() && out_.cycles.size() < most_cycles; ++start) {
      std::uint32_t at = start;
      while (into[at] != nothing && waiting_[at] > 0 && walk[at] == nothing) {
        walk[at] = start;
        at = links_[into[at]].before;
      }
      if (walk[at] == start && waiting_[at] > 0) add_cycle(at, into);
    }
  }
  void add_cycle(std::uint32_t start, const std::vector<std::uint32_t>& into) {
    std::vector<std::uint32_t> cycle;
    std::uint32_t at = start;
    do {
      cycle.push_back(into[at]);
      at = links_[into[at]].before;
    } while (at != start);
    std::reverse(cycle.begin(), cycle.end());
    out_.cycles.push_back(std::move(cycle));
  }

  void append_rest() {
    std::vector<std::uint32_t> rest;
    for (std::uint32_t i = 0; i < ranks_.size(); ++i)
      if (waiting_[i] > 0) rest.push_back(i);
    std::sort(rest.begin(), rest.end(),
              [&](std::uint32_t a, std::uint32_t b) { return ranks_[a] < ranks_[b]; });
    out_.order.insert(out_.order.end(), rest.begin(), rest.end());
  }

  std::span<const std::uint32_t> ranks_;
  std::span<const ScopeLink> links_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> first_;  // where the links out of a node begin in out_links_
  std::vector<std::uint32_t> out_links_;
  SortedScope out_;
};

}  // namespace

SortedScope tessera::description::sort_scope(std::span<const std::uint32_t> ranks,
                                             std::span<const ScopeLink> links) {
  return ScopeSorter(ranks, links).run();
}

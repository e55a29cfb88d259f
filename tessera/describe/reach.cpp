#include "tessera/describe/reach.h"

using namespace tessera;
using namespace tessera::description;

Reach::Reach(std::size_t nodes, std::span<const Link> links)
    : before_(rows_of(nodes, links, true)), after_(rows_of(nodes, links, false)), stamp_(nodes, 0) {
  constexpr std::uint64_t least = 1'000'000, per_link = 64;
  budget_ = least + per_link * (nodes + links.size());
}

Reach::Rows Reach::rows_of(std::size_t nodes, std::span<const Link> links, bool reversed) {
  Rows out{std::vector<std::uint32_t>(nodes + 1), std::vector<std::uint32_t>(links.size())};
  for (const auto& [from, to] : links) ++out.begin[(reversed ? to : from) + 1];
  for (std::size_t i = 1; i <= nodes; ++i) out.begin[i] += out.begin[i - 1];
  std::vector<std::uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  for (const auto& [from, to] : links) out.items[next[reversed ? to : from]++] = reversed ? from : to;
  return out;
}

void Reach::mark(const Rows& rows, std::span<const std::uint32_t> starts) {
  ++current_;
  open_.assign(starts.begin(), starts.end());
  while (!open_.empty() && budget_ > 0) {
    const std::uint32_t node = open_.back();
    open_.pop_back();
    for (std::uint32_t i = rows.begin[node]; i < rows.begin[node + 1] && budget_ > 0; ++i) {
      --budget_;
      const std::uint32_t next = rows.items[i];
      if (stamp_[next] == current_) continue;
      stamp_[next] = current_;
      open_.push_back(next);
    }
  }
}

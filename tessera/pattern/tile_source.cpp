#include "tessera/pattern/tile_source.h"

#include <algorithm>

using namespace tessera::pattern;

bool CandidateList::add(std::span<const NodeId> nodes, double cost, std::uint32_t kind,
                        std::span<const std::uint32_t> payload) {
  if (sets_.size() >= limits_.candidates || covered_nodes_ + nodes.size() > limits_.covered_nodes)
    return false;
  covered_nodes_ += nodes.size();
  sets_.push_back({.nodes = SmallVector<std::uint32_t, 8>(nodes), .cost = cost});
  origins_.push_back({kind, payload_.size()});
  payload_.insert(payload_.end(), payload.begin(), payload.end());
  return true;
}

void CandidateList::begin_source(std::optional<Clock::time_point> end) {
  source_begin_.push_back(sets_.size());
  end_ = part_end_ = end;
}

void CandidateList::share_time(std::size_t parts) {
  if (!end_) return;
  const auto now = Clock::now();
  part_end_ = now + (*end_ - now) / static_cast<std::int64_t>(std::clamp<std::size_t>(parts, 1, 4));
}

void CandidateList::set_incomplete(std::string why) { gaps_.push_back(std::move(why)); }

void CandidateList::set_out_of_time(std::string why) {
  was_cut_ = true;
  set_incomplete(std::move(why));
}

std::uint32_t CandidateList::source(std::size_t i) const {
  const auto after = std::ranges::upper_bound(source_begin_, i);
  return static_cast<std::uint32_t>(after - source_begin_.begin() - 1);
}

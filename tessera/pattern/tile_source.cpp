#include "tessera/pattern/tile_source.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

bool CandidateList::add(std::span<const NodeId> nodes, double cost, std::uint32_t kind,
                        std::span<const std::uint32_t> payload) {
  if (sets_.size() >= part_limits_.candidates || covered_nodes_ + nodes.size() > part_limits_.covered_nodes)
    return false;
  covered_nodes_ += nodes.size();
  sets_.push_back({.nodes = SmallVector<std::uint32_t, 8>(nodes), .cost = cost});
  origins_.push_back({kind, payload_.size()});
  payload_.insert(payload_.end(), payload.begin(), payload.end());
  return true;
}

void CandidateList::begin_source(std::uint32_t left) {
  source_begin_.push_back(sets_.size());
  source_end_ = effort_.share(end_, left);
  effort_.set_end(source_end_);
  part_limits_ = limits_;
}

void CandidateList::begin_part(std::size_t parts) {
  const auto shares = static_cast<std::uint32_t>(std::clamp<std::size_t>(parts, 1, 4));
  const auto share = [&](std::size_t used, std::size_t limit) {
    return used + (limit - used + shares - 1) / shares;
  };
  part_limits_ = {share(sets_.size(), limits_.candidates), share(covered_nodes_, limits_.covered_nodes)};
  effort_.set_end(effort_.share(source_end_, shares));
}

void CandidateList::set_incomplete(std::string why) { gaps_.push_back(std::move(why)); }

void CandidateList::set_cut(const std::string& who) {
  was_cut_ = true;
  set_incomplete(cat(who, ": the budget was used up"));
}

void CandidateList::set_full(const std::string& who) {
  if (is_short_of_effort_)
    set_cut(who);
  else
    set_incomplete(cat(who, ": there are too many candidates"));
}

std::uint32_t CandidateList::source(std::size_t i) const {
  const auto after = std::ranges::upper_bound(source_begin_, i);
  return static_cast<std::uint32_t>(after - source_begin_.begin() - 1);
}

#include "tessera/describe/profile_clock.h"

#include <unordered_map>

using namespace tessera;
using namespace tessera::description;

ProfileClock::ProfileClock(const Description& description, ProfilingLevel level)
    : description_(description), level_(level) {
  if (level < ProfilingLevel::per_block) return;
  times_.resize(description.nodes.size());
  runs_.resize(description.nodes.size());
}

void ProfileClock::begin() {
  if (level_ != ProfilingLevel::none) begin_ = Clock::now();
}

void ProfileClock::add(std::uint32_t node, Clock::duration time) {
  times_[node] += time;
  ++runs_[node];
}

Profile ProfileClock::end() {
  Profile out{.level = level_};
  if (level_ == ProfilingLevel::none) return out;
  out.total = Clock::now() - begin_;
  if (level_ >= ProfilingLevel::per_block) add_blocks(out);
  if (level_ == ProfilingLevel::per_kernel)
    for (std::size_t i = 0; i < times_.size(); ++i)
      out.kernels.push_back(
          {description_.nodes[i].id, times_[i], runs_[i], description_.nodes[i].kind == NodeKind::captured});
  return out;
}

/// Own times first, then those of inner blocks into the blocks around them, innermost first.
void ProfileClock::add_blocks(Profile& out) const {
  std::unordered_map<std::string_view, std::size_t> number;
  for (const Block& block : description_.blocks) {
    number.emplace(block.id, out.blocks.size());
    out.blocks.push_back({block.id});
  }
  const std::size_t without_block = out.blocks.size();
  out.blocks.push_back({});
  for (std::size_t i = 0; i < times_.size(); ++i) {
    const std::string& block = description_.nodes[i].block;
    BlockTime& entry = out.blocks[block.empty() ? without_block : number.at(block)];
    entry.time += times_[i];
    entry.runs += runs_[i];
  }
  std::vector<std::size_t> children(out.blocks.size()), ready;
  for (const Block& block : description_.blocks)
    if (!block.parent.empty()) ++children[number.at(block.parent)];
  for (std::size_t i = 0; i < without_block; ++i)
    if (children[i] == 0) ready.push_back(i);
  while (!ready.empty()) {
    const std::size_t inner = ready.back();
    ready.pop_back();
    const std::string& parent = description_.blocks[inner].parent;
    if (parent.empty()) continue;
    BlockTime& outer = out.blocks[number.at(parent)];
    outer.time += out.blocks[inner].time;
    outer.runs += out.blocks[inner].runs;
    if (--children[number.at(parent)] == 0) ready.push_back(number.at(parent));
  }
}

#include "tessera/runtime/cuda/graph_replicas.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// As many sets as the outputs of a plan have buffers to change between.
constexpr std::size_t most_replicas = 4;
constexpr std::size_t most_seen = 16;

std::uint64_t hash_of(const LaunchAddresses& addresses) {
  std::uint64_t out = addresses.inputs.size();
  const auto add = [&out](const std::byte* address) {
    out = (out ^ reinterpret_cast<std::uintptr_t>(address)) * 0x9e3779b97f4a7c15u;
    out ^= out >> 29;
  };
  std::for_each(addresses.inputs.begin(), addresses.inputs.end(), add);
  std::for_each(addresses.outputs.begin(), addresses.outputs.end(), add);
  return out;
}

}  // namespace

bool GraphReplica::holds(const LaunchAddresses& addresses) const {
  return std::equal(inputs.begin(), inputs.end(), addresses.inputs.begin(), addresses.inputs.end()) &&
         std::equal(outputs.begin(), outputs.end(), addresses.outputs.begin(), addresses.outputs.end());
}

void GraphReplicas::reset(std::vector<BoundLaunch> launches, std::size_t inputs, std::size_t outputs) {
  auto next = std::make_unique<GraphReplica>();
  if (!replicas_.empty()) next->graphs = std::move(current().graphs);
  next->launches = std::move(launches);
  next->inputs.assign(inputs, nullptr);
  next->outputs.assign(outputs, nullptr);
  replicas_.clear();
  replicas_.push_back(std::move(next));
  seen_.clear();
  use(0);
}

void GraphReplicas::use(std::size_t i) {
  current_ = i;
  replicas_[i]->last_used = ++uses_;
}

bool GraphReplicas::was_seen(const LaunchAddresses& addresses) {
  const std::uint64_t hash = hash_of(addresses);
  if (std::find(seen_.begin(), seen_.end(), hash) != seen_.end()) return true;
  seen_.push_back(hash);
  if (seen_.size() > most_seen) seen_.pop_front();
  return false;
}

void GraphReplicas::choose(const LaunchAddresses& addresses) {
  for (std::size_t i = 0; i < replicas_.size(); ++i)
    if (replicas_[i]->holds(addresses)) return use(i);
  if (was_seen(addresses) && replicas_.size() < most_replicas) {
    auto next = std::make_unique<GraphReplica>();
    next->launches = current().launches;
    next->inputs = current().inputs;
    next->outputs = current().outputs;
    next->parameters = current().parameters;
    replicas_.push_back(std::move(next));
    return use(replicas_.size() - 1);
  }
  const auto oldest = std::min_element(replicas_.begin(), replicas_.end(), [](const auto& a, const auto& b) {
    return a->last_used < b->last_used;
  });
  use(static_cast<std::size_t>(oldest - replicas_.begin()));
}

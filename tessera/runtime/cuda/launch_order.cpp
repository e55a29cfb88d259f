#include "tessera/runtime/cuda/launch_order.h"

#include <algorithm>
#include <numeric>
#include <queue>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// How long it takes, in small kernels.
std::uint32_t length_of(const BoundLaunch& launch) {
  switch (launch.kind) {
    case BoundLaunch::Kind::product:
    case BoundLaunch::Kind::captured:
      return 5;
    case BoundLaunch::Kind::join:
    case BoundLaunch::Kind::event:
      return 0;
    default:
      return 1;
  }
}

}  // namespace

std::vector<std::uint32_t> tessera::runtime::cuda::launch_order(
    std::span<const BoundLaunch> launches, std::span<const std::vector<std::uint32_t>> after) {
  std::vector<std::uint32_t> out(launches.size());
  std::iota(out.begin(), out.end(), 0);
  const auto has_bodies = [](const BoundLaunch& launch) {
    return launch.kind == BoundLaunch::Kind::conditional;
  };
  if (std::any_of(launches.begin(), launches.end(), has_bodies)) return out;
  std::vector<std::uint32_t> way(launches.size()), waits(launches.size());
  std::vector<std::vector<std::uint32_t>> users(launches.size());
  for (std::size_t i = launches.size(); i-- > 0;) {
    way[i] += length_of(launches[i]);
    waits[i] = static_cast<std::uint32_t>(after[i].size());
    for (const std::uint32_t before : after[i]) {
      way[before] = std::max(way[before], way[i]);
      users[before].push_back(static_cast<std::uint32_t>(i));
    }
  }
  const auto comes_later = [&](std::uint32_t a, std::uint32_t b) {
    return way[a] != way[b] ? way[a] < way[b] : a > b;
  };
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(comes_later)> ready(comes_later);
  for (std::uint32_t i = 0; i < launches.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  for (std::uint32_t& next : out) {
    next = ready.top();
    ready.pop();
    for (const std::uint32_t user : users[next])
      if (--waits[user] == 0) ready.push(user);
  }
  return out;
}

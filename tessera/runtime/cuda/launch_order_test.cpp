#include "tessera/runtime/cuda/launch_order.h"

#include <gtest/gtest.h>

using namespace tessera::runtime::cuda;

namespace {

using Kind = BoundLaunch::Kind;
using Nodes = std::vector<std::uint32_t>;

Nodes order_of(const std::vector<Kind>& kinds, const std::vector<Nodes>& after) {
  std::vector<BoundLaunch> launches;
  for (const Kind kind : kinds) launches.push_back({.kind = kind});
  return launch_order(launches, after);
}

}  // namespace

TEST(LaunchOrder, AChainStaysAChain) {
  EXPECT_EQ(order_of({Kind::kernel, Kind::kernel, Kind::product}, {{}, {0}, {1}}), (Nodes{0, 1, 2}));
  EXPECT_EQ(order_of({}, {}), Nodes());
}

TEST(LaunchOrder, WhatTheLongestWayLeadsThroughComesFirst) {
  // 0, 1 and 3 are short ways; 2 -> 4 -> 5 is the long one.
  EXPECT_EQ(order_of({Kind::kernel, Kind::kernel, Kind::product, Kind::kernel, Kind::product, Kind::kernel},
                     {{}, {0}, {}, {2}, {2}, {1, 4}}),
            (Nodes{2, 4, 0, 1, 3, 5}));
}

TEST(LaunchOrder, EqualOnesKeepTheirOrder) {
  EXPECT_EQ(order_of({Kind::kernel, Kind::kernel, Kind::kernel, Kind::join}, {{}, {}, {}, {0, 1, 2}}),
            (Nodes{0, 1, 2, 3}));
}

TEST(LaunchOrder, GraphsWithBodiesKeepTheirs) {
  EXPECT_EQ(order_of({Kind::kernel, Kind::conditional, Kind::product}, {{}, {0}, {}}), (Nodes{0, 1, 2}));
}

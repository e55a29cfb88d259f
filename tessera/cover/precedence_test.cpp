#include "tessera/cover/precedence.h"

#include <gtest/gtest.h>

using namespace tessera::cover;

namespace {

using Nodes = std::vector<std::uint32_t>;

Nodes row(const Rows& rows, std::uint32_t i) { return {rows[i].begin(), rows[i].end()}; }

/// A diamond with names out of order: 3 -> {1, 0} -> 2, and one edge twice.
Precedence diamond() {
  const std::vector<Edge> edges{{3, 1}, {3, 0}, {1, 2}, {0, 2}, {3, 1}};
  return make_precedence(4, edges);
}

TEST(Precedence, RowsAreAscendingWithoutRepeats) {
  const Precedence graph = diamond();
  EXPECT_EQ(row(graph.outputs, 3), (Nodes{0, 1}));
  EXPECT_EQ(row(graph.inputs, 2), (Nodes{0, 1}));
  EXPECT_TRUE(graph.inputs[3].empty());
}

TEST(Precedence, RenumberedKeepsTheEdges) {
  const Precedence graph = renumbered(diamond(), Nodes{3, 0, 1, 2});
  EXPECT_EQ(row(graph.outputs, 0), (Nodes{1, 2}));
  EXPECT_EQ(row(graph.inputs, 3), (Nodes{1, 2}));
}

TEST(StrongComponents, JoinsExactlyWhatIsOnACycle) {
  const std::vector<Edge> edges{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 3}, {5, 5}};
  const Nodes component = strong_components(Rows(6, edges));
  EXPECT_EQ(component[0], component[1]);
  EXPECT_EQ(component[0], component[2]);
  EXPECT_EQ(component[3], component[4]);
  EXPECT_NE(component[0], component[3]);
  EXPECT_NE(component[5], component[0]);
}

TEST(StrongComponents, DoNotRecurse) {
  std::vector<Edge> edges;
  const std::uint32_t count = 300'000;
  for (std::uint32_t i = 0; i < count; ++i) edges.push_back({i, (i + 1) % count});
  const Nodes component = strong_components(Rows(count, edges));
  EXPECT_EQ(component.front(), component.back());
}

}  // namespace

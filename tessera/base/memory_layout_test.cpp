#include "tessera/base/memory_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace tessera;

namespace {

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

TEST(MemoryLayout, AChainNeedsTwoPlaces) {
  std::vector<LiveRange> lives;
  for (std::uint32_t s = 0; s < 10; ++s) lives.push_back({s, {s + 1}, 1000});
  const MemoryLayout layout = lay_out(lives, 11);
  EXPECT_EQ(layout.bytes, 2 * 1024);
  EXPECT_EQ(layout.lower_bound, 2 * 1024);
  EXPECT_EQ(layout.without_reuse, 10 * 1024);
}

// K0 writes A; K3 reads A; K4, which waits for K1 alone, may run before K3 is done.
TEST(MemoryLayout, Trap_G3_APlaceIsReusedOnlyAfterEveryReaderByAPath) {
  const std::vector<LiveRange> lives = {{0, {1, 3}, 64}, {1, {4}, 64}, {4, {5}, 64}};
  std::vector<std::vector<std::uint32_t>> before = {{}, {0}, {}, {0}, {1}, {4}};
  EXPECT_NE(lay_out(lives, 6, StepOrder(before)).offsets[0], lay_out(lives, 6, StepOrder(before)).offsets[2]);
  before[4] = {1, 3};
  EXPECT_EQ(lay_out(lives, 6, StepOrder(before)).offsets[0], lay_out(lives, 6, StepOrder(before)).offsets[2]);
  EXPECT_EQ(lay_out(lives, 6).offsets[0], lay_out(lives, 6).offsets[2]);
}

// Random programs: two values share bytes only if one is over before the other begins, by brute force.
TEST(MemoryLayout, ValuesThatMayLiveTogetherDoNotOverlap) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::uint32_t steps = 2 + random() % 30;
    std::vector<std::vector<std::uint32_t>> before(steps);
    std::vector<LiveRange> lives;
    for (std::uint32_t s = 0; s < steps; ++s) {
      lives.push_back({s, {}, random() % 500});
      for (std::uint32_t k = 0; s > 0 && k < random() % 3; ++k) {
        const std::uint32_t from = random() % s;
        if (std::find(before[s].begin(), before[s].end(), from) != before[s].end()) continue;
        before[s].push_back(from);
        lives[from].reads.push_back(s);
      }
    }
    std::vector<std::set<std::uint32_t>> all(steps);
    for (std::uint32_t s = 0; s < steps; ++s)
      for (const std::uint32_t b : before[s]) {
        all[s].insert(b);
        all[s].insert(all[b].begin(), all[b].end());
      }
    const MemoryLayout layout = lay_out(lives, steps, StepOrder(before));
    for (std::uint32_t a = 0; a < steps; ++a)
      for (std::uint32_t b = 0; b < steps; ++b) {
        if (a == b || !overlap(layout.offsets[a], lives[a].bytes, layout.offsets[b], lives[b].bytes))
          continue;
        const auto over = [&](std::uint32_t x, std::uint32_t y) {
          if (all[y].count(x) == 0) return false;
          for (const std::uint32_t read : lives[x].reads)
            if (all[y].count(read) == 0) return false;
          return true;
        };
        EXPECT_TRUE(over(a, b) || over(b, a)) << "seed " << seed << ": " << a << " and " << b;
      }
  }
}

// The listed order against brute force, with values that live long beside those that do not.
TEST(MemoryLayout, ListedValuesThatLiveTogetherDoNotOverlap) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::uint32_t steps = 1 + random() % 60;
    std::vector<LiveRange> lives;
    for (std::uint32_t i = 0; i < 80; ++i) {
      const std::uint32_t first = random() % steps;
      const std::uint32_t length = random() % (random() % 4 == 0 ? steps : 4);
      lives.push_back({first, {std::min(first + length, steps - 1)}, random() % 500});
    }
    const MemoryLayout layout = lay_out(lives, steps);
    std::uint64_t end = 0, all = 0;
    for (std::size_t a = 0; a < lives.size(); ++a) {
      end = std::max(end, layout.offsets[a] + aligned_bytes(lives[a].bytes));
      all += aligned_bytes(lives[a].bytes);
      EXPECT_EQ(layout.offsets[a] % memory_alignment, 0U);
      for (std::size_t b = 0; b < a; ++b) {
        if (!overlap(layout.offsets[a], lives[a].bytes, layout.offsets[b], lives[b].bytes)) continue;
        EXPECT_TRUE(lives[a].last() < lives[b].first || lives[b].last() < lives[a].first)
            << "seed " << seed << ": " << a << " and " << b;
      }
    }
    EXPECT_EQ(layout.bytes, end);
    EXPECT_EQ(layout.without_reuse, all);
    EXPECT_LE(layout.lower_bound, layout.bytes);
  }
}

// As many values as a large model has: a quadratic layout would take minutes.
TEST(MemoryLayout, AHundredThousandValues) {
  std::vector<LiveRange> lives;
  for (std::uint32_t s = 0; s < 100'000; ++s)
    lives.push_back({s, {s + 1 + s % 7}, 64ULL * (1 + s * 2654435761U % 97)});
  const MemoryLayout layout = lay_out(lives, 100'010);
  EXPECT_LE(layout.bytes, layout.lower_bound * 3 / 2);
}

TEST(MemoryLayout, SizesFromFilesDoNotOverflow) {
  constexpr std::uint64_t huge = ~std::uint64_t{0} - 5;
  const std::vector<LiveRange> lives = {{0, {1}, huge}, {0, {1}, huge}, {0, {1}, 64}};
  EXPECT_EQ(lay_out(lives, 2).bytes, ~std::uint64_t{0});
  EXPECT_EQ(lay_out(lives, 2).lower_bound, ~std::uint64_t{0});
  EXPECT_EQ(lay_out(lives, 2, StepOrder(std::vector<std::vector<std::uint32_t>>{{}, {0}})).bytes,
            ~std::uint64_t{0});
}

#include "tessera/engine/size_rules.h"

#include <gtest/gtest.h>

using namespace tessera::engine;

namespace {

std::vector<std::string> texts(const SizeRules& rules) {
  std::vector<std::string> out;
  for (const SizeRule& rule : rules.rules()) out.push_back(to_text(rule));
  return out;
}

using Sizes = std::vector<std::int64_t>;

}  // namespace

TEST(SizeRules, OneInstanceIsAllNumbers) {
  const auto rules = SizeRules::learn(std::vector<Sizes>{{64, 784, 1}});
  EXPECT_EQ(texts(*rules), (std::vector<std::string>{"64", "784", "1"}));
}

TEST(SizeRules, WhatDiffersBecomesASymbolAndWhatFollowsItAnExpression) {
  const auto rules = SizeRules::learn(std::vector<Sizes>{{8, 784, 8, 1024, 17}, {16, 784, 16, 2048, 33}});
  EXPECT_EQ(texts(*rules), (std::vector<std::string>{"d0", "784", "d0", "128*d0", "2*d0+1"}));
  std::vector<std::int64_t> symbols;
  EXPECT_TRUE(rules->match(Sizes{5, 784, 5, 640, 11}, symbols));
  EXPECT_EQ(symbols, (Sizes{5}));
  EXPECT_FALSE(rules->match(Sizes{5, 784, 6, 640, 11}, symbols));
}

TEST(SizeRules, TwoSizesThatPartAreTwoSymbols) {
  const auto rules = SizeRules::learn(std::vector<Sizes>{{8, 8}, {16, 16}, {32, 7}});
  EXPECT_EQ(rules->symbol_count(), 2U);
}

// Broadcasting gives 1 another meaning, so that a size that was 1 once is not the same size.
TEST(SizeRules, OneAndZeroAreNoSymbols) {
  EXPECT_FALSE(SizeRules::learn(std::vector<Sizes>{{1, 3}, {4, 3}}).has_value());
  const auto rules = SizeRules::learn(std::vector<Sizes>{{2, 3}, {4, 3}});
  std::vector<std::int64_t> symbols;
  EXPECT_FALSE(rules->match(Sizes{1, 3}, symbols));
  EXPECT_FALSE(rules->match(Sizes{0, 3}, symbols));
}

TEST(SizeRules, OverflowIsNoMatch) {
  const auto rules = SizeRules::learn(std::vector<Sizes>{{2, 2000}, {4, 4000}});
  std::vector<std::int64_t> symbols;
  EXPECT_FALSE(rules->match(Sizes{INT64_MAX, 0}, symbols));
}

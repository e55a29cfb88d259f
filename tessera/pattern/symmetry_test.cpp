// Matches that only a symmetry of the pattern tells apart are one candidate, however large the pattern is.
#include "tessera/pattern/symmetry.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tessera/base/text.h"
#include "tessera/pattern/match_listing.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Lines = std::vector<std::string>;

/// A sum of 2^depth different leaves, as a tree of additions, as nodes of a graph or a pattern.
std::string sum_tree(std::uint32_t depth, std::string_view op = "add") {
  std::string out = R"({"nodes":[)";
  for (std::uint32_t i = 1; i < 1U << depth; ++i) {
    const bool is_leaf = i >= 1U << (depth - 1);
    const char* name = is_leaf ? "x" : "n";
    out += cat(i == 1 ? "" : ",", R"({"id":"n)", i, R"(","op":")", op, R"(","inputs":[")", name, 2 * i,
               R"(",")", name, 2 * i + 1, R"("]})");
  }
  return out + "]}";
}

std::size_t count(const std::string& graph, const std::string& pattern) {
  return matches(graph_from(graph), pattern_from(pattern)).size();
}

TEST(Symmetry, ATreeOfAdditionsIsOneCandidate) {
  for (std::uint32_t depth : {1U, 2U, 3U, 5U, 7U, 10U})
    EXPECT_EQ(count(sum_tree(depth), sum_tree(depth)), 1U) << depth;
}

TEST(Symmetry, ASmallerTreeFitsOnceAtEachPlace) { EXPECT_EQ(count(sum_tree(8), sum_tree(3)), (1U << 6) - 1); }

TEST(Symmetry, SlotsThatCountAreNotExchanged) {
  EXPECT_EQ(count(sum_tree(5, "sub"), sum_tree(5, "sub")), 1U);
  EXPECT_EQ(count(sum_tree(5), sum_tree(5, "sub")), 0U);
}

/// op(x0, …) of `width` names; the graph has them in reverse, after a node that numbers them.
TEST(Symmetry, ManyEqualOperandsAreOneCandidate) {
  for (std::uint32_t width : {2U, 40U, 300U}) {
    std::string names;
    std::string reversed;
    for (std::uint32_t i = 0; i < width; ++i) {
      names += cat(i == 0 ? "" : ",", "\"x", i, "\"");
      reversed += cat(i == 0 ? "" : ",", "\"x", width - 1 - i, "\"");
    }
    const std::string graph = cat(R"({"nodes":[{"id":"0","op":"list","inputs":[)", names,
                                  R"(]},{"id":"1","op":"add","inputs":[)", reversed, "]}]}");
    EXPECT_EQ(count(graph, cat(R"({"nodes":[{"id":"a","op":"add","inputs":[)", names, "]}]}")), 1U) << width;
  }
}

TEST(Symmetry, EqualBranchesThatShareAnInputAreOneCandidate) {
  // Sixty terms x * neg(x), each of its own x; and sixty terms neg(x) of one x.
  for (const bool is_shared : {false, true}) {
    std::string nodes;
    std::string terms;
    for (int i = 0; i < 60; ++i) {
      const std::string x = is_shared ? "x" : cat("x", i);
      nodes += cat(R"({"id":"n)", i, R"(","op":"neg","inputs":[")", x, R"("]},{"id":"m)", i,
                   R"(","op":"mul","inputs":["n)", i, "\",\"", x, R"("]},)");
      terms += cat(i == 0 ? "" : ",", "\"m", i, "\"");
    }
    const std::string text =
        cat(R"({"nodes":[)", nodes, R"({"id":"t","op":"add","inputs":[)", terms, R"(]}],"outputs":["t"]})");
    EXPECT_EQ(count(text, text), 1U) << is_shared;
  }
}

TEST(Symmetry, EqualBranchesThatDoNotMeetAgainAreOneCandidate) {
  std::string text = "s:exp";
  for (int i = 0; i < 40; ++i) text += cat("; s->n", i, ":neg->m", i, ":abs");
  EXPECT_EQ(count(text, text), 1U);
}

TEST(Symmetry, EqualValuesBehindDifferentNamesMakeNoNewCandidates) {
  const std::string pattern =
      R"({"nodes":[{"id":"a","op":"neg","inputs":["x"]},{"id":"b","op":"neg","inputs":["y"]},
      {"id":"s","op":"add","inputs":["a","b"]},{"id":"m","op":"mul","inputs":["x","y"]},
      {"id":"r","op":"sub","inputs":["s","m"]}],"outputs":["r"]})";
  const std::string graph =
      R"({"nodes":[{"id":"1","op":"neg","inputs":["p"]},{"id":"2","op":"neg","inputs":["p"]},
      {"id":"3","op":"add","inputs":["1","2"]},{"id":"4","op":"mul","inputs":["p","p"]},
      {"id":"5","op":"sub","inputs":["3","4"]}]})";
  EXPECT_EQ(count(graph, pattern), 1U);
}

TEST(Symmetry, BindingsOfNamesThatDifferAreAllListedUpToALimit) {
  // Every name admits another set of dtypes, so each way to hand out the inputs is a boundary of its own.
  const auto pattern = [](int width) {
    std::string names;
    std::string types;
    static constexpr const char* others[] = {"f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8"};
    for (int i = 0; i < width; ++i) {
      names += cat(i == 0 ? "" : ",", "\"x", i, "\"");
      types += cat(i == 0 ? "" : ",", "\"x", i, R"(":{"dtype":["f32",")", others[i], "\"]}");
    }
    return cat(R"({"nodes":[{"id":"a","op":"add","inputs":[)", names, R"(]}],"externals":{)", types, "}}");
  };
  const auto graph = [](int width) {
    std::string names;
    std::string types;
    for (int i = 0; i < width; ++i) {
      names += cat(i == 0 ? "" : ",", "\"p", i, "\"");
      types += cat(i == 0 ? "" : ",", "\"p", i, R"(":{"dtype":"f32"})");
    }
    return cat(R"({"nodes":[{"id":"1","op":"add","inputs":[)", names, R"(]}],"externals":{)", types, "}}");
  };
  EXPECT_EQ(count(graph(4), pattern(4)), 24U);
  EXPECT_EQ(count(graph(8), pattern(8)), 64U);
}

}  // namespace

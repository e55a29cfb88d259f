#include "tessera/pattern/in_place.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "tessera/base/text.h"
#include "tessera/pattern/convexity.h"
#include "tessera/pattern/match_listing.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

std::string op_of(std::string_view nodes, NodeId node, std::string_view outputs = "") {
  const Graph graph = graph_from(cat("{\"nodes\":[", nodes, "]", outputs, "}"));
  return graph.op_name(graph.op(node));
}

constexpr const char* relu_in_place =
    R"({"id":"1","op":"matmul","inputs":["x","w"]},{"id":"2","op":"relu_","inputs":["1"]})";

TEST(InPlace, MeansTheSameWhereNobodyReadsTheOldValue) { EXPECT_EQ(op_of(relu_in_place, 1), "relu"); }

TEST(InPlace, StaysAnOpOfItsOwnWhereTheOldValueIsReadLater) {
  EXPECT_EQ(op_of(cat(relu_in_place, R"(,{"id":"3","op":"add","inputs":["1","2"]})"), 1), "relu_");
}

TEST(InPlace, AReadBeforeTheWriteIsNoHazard) {
  EXPECT_EQ(op_of(R"({"id":"1","op":"matmul","inputs":["x","w"]},{"id":"2","op":"exp","inputs":["1"]},
                     {"id":"3","op":"relu_","inputs":["1"]})",
                  2),
            "relu");
}

TEST(InPlace, AViewSharesTheStorage) {
  const char* through_view =
      R"({"id":"1","op":"matmul","inputs":["x","w"]},{"id":"2","op":"reshape","inputs":["1"]},
      {"id":"3","op":"relu_","inputs":["2"]},{"id":"4","op":"exp","inputs":["1"]})";
  EXPECT_EQ(op_of(through_view, 2), "relu_");
}

TEST(InPlace, AGraphOutputIsReadAtTheEnd) {
  EXPECT_EQ(op_of(relu_in_place, 1, R"(,"outputs":["1","2"])"), "relu_");
  EXPECT_EQ(op_of(relu_in_place, 1, R"(,"outputs":["2"])"), "relu");
}

TEST(InPlace, ReadersStayOnTheirSideOfAHazard) {
  // 3 reads what 2 has overwritten, under its old name: it must run after 2.
  const Graph graph = graph_from(R"({"nodes":[{"id":"1","op":"matmul","inputs":["x","w"]},
      {"id":"2","op":"relu_","inputs":["1"]},{"id":"3","op":"exp","inputs":["1"]}]})");
  const auto before = graph.predecessors(2);
  EXPECT_NE(std::find(before.begin(), before.end(), 1U), before.end());
}

TEST(InPlace, AnInPlaceSpellingInAPatternMeansTheOp) {
  EXPECT_EQ(matches("1:mm->2:relu", "a:mm->b:relu_").size(), 1U);
}

TEST(InPlace, ReadersOfTheOldValueRunBeforeItIsGone) {
  const Graph graph = graph_from(R"({"nodes":[{"id":"1","op":"matmul","inputs":["x","w"]},
      {"id":"2","op":"exp","inputs":["1"]},{"id":"3","op":"relu_","inputs":["1"]}]})");
  const auto before = graph.predecessors(2);
  EXPECT_NE(std::find(before.begin(), before.end(), 1U), before.end());
}

// ---- against every schedule

/// A program of calls on storage, and what it computes.
struct StorageProgram {
  struct Call {
    std::string op;
    std::vector<std::string> inputs;
  };
  std::vector<Call> calls;

  static StorageProgram random(std::mt19937& random, bool has_views) {
    StorageProgram out;
    std::vector<std::string> values{"x", "y"};
    for (std::uint32_t node = 0; node < 6; ++node) {
      static const char* const ops[] = {"exp", "add", "relu_", "add_", "reshape"};
      Call call{ops[random() % (has_views ? 5 : 4)], {values[random() % values.size()]}};
      if (call.op.starts_with("add")) call.inputs.push_back(values[random() % values.size()]);
      values.push_back(cat("n", node));
      out.calls.push_back(std::move(call));
    }
    return out;
  }

  [[nodiscard]] std::string json() const {
    std::string out;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      std::string inputs;
      for (const std::string& input : calls[i].inputs)
        inputs += cat(inputs.empty() ? "" : ",", "\"", input, "\"");
      out += cat(i == 0 ? "" : ",", R"({"id":"n)", i, R"(","op":")", calls[i].op, R"(","inputs":[)", inputs,
                 "]}");
    }
    return cat(R"({"nodes":[)", out, "]}");
  }

  /// What each call computed, then what the storage of each value holds at the end that no call reads;
  /// nothing if a call runs before those it reads from.
  [[nodiscard]] std::vector<std::uint64_t> run(const std::vector<std::uint32_t>& order) const {
    std::map<std::string, std::size_t> storage_of{{"x", 0}, {"y", 1}};
    std::vector<std::uint64_t> contents{1, 2}, out(calls.size());
    for (const std::uint32_t node : order) {
      const Call& call = calls[node];
      std::uint64_t value = node + 1;
      for (const std::string& input : call.inputs) {
        const auto at = storage_of.find(input);
        if (at == storage_of.end()) return {};
        value = (value ^ contents[at->second]) * 0x9e3779b97f4a7c15ULL + 7;
      }
      const bool is_view = call.op == "reshape", overwrites = call.op.ends_with('_');
      if (!is_view) out[node] = value;
      if (!is_view && !overwrites) contents.push_back(value);
      const std::size_t storage = is_view || overwrites ? storage_of.at(call.inputs[0]) : contents.size() - 1;
      if (overwrites) contents[storage] = value;
      storage_of[cat("n", node)] = storage;
    }
    for (std::size_t node = 0; node < calls.size(); ++node) {
      const auto reads = [&](const Call& call) {
        return std::find(call.inputs.begin(), call.inputs.end(), cat("n", node)) != call.inputs.end();
      };
      if (std::none_of(calls.begin(), calls.end(), reads))
        out.push_back(contents[storage_of.at(cat("n", node))]);
    }
    return out;
  }

  /// Whether some order in which the nodes of `set` follow each other computes the same.
  [[nodiscard]] bool can_run_together(std::uint32_t set) const {
    std::vector<std::uint32_t> order(calls.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto expected = run(order);
    std::vector<std::vector<std::uint32_t>> groups(1);
    for (const std::uint32_t node : order)
      if ((set >> node & 1) != 0)
        groups[0].push_back(node);
      else
        groups.push_back({node});
    std::vector<std::size_t> turns(groups.size());
    std::iota(turns.begin(), turns.end(), 0U);
    do {
      order.clear();
      for (const std::size_t group : turns)
        order.insert(order.end(), groups[group].begin(), groups[group].end());
      if (run(order) == expected) return true;
    } while (std::next_permutation(turns.begin(), turns.end()));
    return false;
  }
};

/// How many sets of nodes are accepted and how many rejected, on random programs.
void compare_with_every_schedule(bool has_views, unsigned seed) {
  std::mt19937 random(seed);
  std::size_t accepted = 0, rejected = 0;
  for (int round = 0; round < 150; ++round) {
    const StorageProgram program = StorageProgram::random(random, has_views);
    const Graph graph = graph_from(program.json());
    Convexity convexity(graph);
    for (std::uint32_t set = 1; set < 1U << program.calls.size(); ++set) {
      std::vector<NodeId> nodes;
      for (NodeId node = 0; node < program.calls.size(); ++node)
        if ((set >> node & 1) != 0) nodes.push_back(node);
      const bool is_convex = convexity.is_convex(nodes);
      ++(is_convex ? accepted : rejected);
      const bool can_run = program.can_run_together(set);
      // A view that may share storage is taken to read it: some sets are rejected that could run.
      ASSERT_TRUE(has_views ? can_run || !is_convex : can_run == is_convex)
          << program.json() << " nodes " << join(nodes, " ") << (can_run ? " can" : " cannot")
          << " run together";
    }
  }
  EXPECT_GT(accepted, 1'000U);
  EXPECT_GT(rejected, 1'000U);
}

TEST(InPlace, Trap_U17_WhatIsAcceptedCanRunAndNothingElseIs) { compare_with_every_schedule(false, 17); }
TEST(InPlace, Trap_U17_WhatIsAcceptedCanRunAlsoThroughViews) { compare_with_every_schedule(true, 18); }

TEST(InPlace, Trap_U17_ReadersComeBeforeTheWriteWithoutAHazardToo) {
  const auto program = [](const char* op) {
    return cat(R"({"nodes":[{"id":"n1","op":"exp","inputs":["x"]},{"id":"n2","op":")", op,
               R"(","inputs":["x","c"]},{"id":"n3","op":"sub","inputs":["n2","d"]},
               {"id":"n4","op":"mul","inputs":["n1","n3"]}]})");
  };
  EXPECT_EQ(matches(program("add"), "a:exp->b:mul").size(), 1U);
  EXPECT_EQ(matches(program("add_"), "a:exp->b:mul"), std::vector<std::string>{});
  EXPECT_EQ(graph_from(program("add_")).op_name(graph_from(program("add_")).op(1)), "add") << "no hazard";
  const Graph graph = graph_from(program("add_"));
  EXPECT_TRUE(tiles_of(graph, tiling_of(graph, {named("p", "a:exp->b:mul")})).empty());
}

}  // namespace

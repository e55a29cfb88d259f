#include "tessera/describe/read_json.h"

#include "tessera/describe/test_graph.h"
#include "tests/support/growth.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::description;
using namespace tessera::description::fixture;

namespace {

/// All that is wrong with a text: what reading and validation say.
std::string problems(std::string text) {
  auto reading = read_description("g.json", std::move(text));
  if (!reading) return reading.error().to_text();
  Report report = std::move(reading->problems);
  report.add(
      description::validate(std::make_shared<const Description>(std::move(reading->description)), nullptr)
          .report);
  return report.to_text();
}

constexpr const char* saxpy = R"({
  "name": "saxpy",
  "blocks": [{"id": "main"}],
  "buffers": [
    {"id": "x", "lifetime": "external", "dtype": "f32", "shape": [4]},
    {"id": "y", "lifetime": "external", "dtype": "f32", "shape": [4]},
    {"id": "go", "lifetime": "external", "dtype": "bool", "shape": []}
  ],
  "nodes": [
    {"id": "scale", "block": "main", "kernel": "scale", "grid": [4],
     "parameters": [{"name": "x", "buffer": "x"}, {"name": "y", "access": "write", "dtype": "f32", "shape": "same"},
                    {"name": "by", "scalar": 2.5, "dtype": "f32"}]},
    {"id": "add", "block": "main", "op": "add", "region": "when", "branch": "then",
     "parameters": [{"name": "a", "buffer": "x"}, {"name": "y", "buffer": "y"}]}
  ],
  "edges": [{"from": ["scale", "y"], "to": ["add", 1]}],
  "dependencies": [{"before": "scale", "after": "when"}],
  "regions": [{"id": "when", "kind": "if_else", "condition": "go"}]
})";

}  // namespace

TEST(ReadJson, ADescriptionRuns) {
  auto reading = read_description("g.json", saxpy);
  ASSERT_TRUE(reading);
  EXPECT_TRUE(reading->problems.ok()) << reading->problems.to_text();
  KernelTable kernels;
  kernels.add("scale", [](KernelCall& call) {
    for (std::size_t i = 0; i < 4; ++i)
      call.values<float>(1)[i] = static_cast<float>(call.number(2)) * call.values<float>(0)[i];
    EXPECT_EQ(call.grid(), (std::array<std::int64_t, 3>{4, 1, 1}));
  });
  Memory memory;
  memory.add<float>("x", {1, 2, 3, 4}).add<float>("y", {9, 9, 9, 9}).add<std::uint8_t>("go", {1});
  auto graph =
      value_or_throw(HostGraph::create(reading->description, kernels, {.bindings = memory.bindings()}));
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (std::vector<float>{3.5, 7, 10.5, 14}));
  memory.set<std::uint8_t>("go", {0});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (std::vector<float>(4)));
}

TEST(ReadJson, EveryProblemHasItsPlace) {
  const std::string all = problems(R"({
  "buffers": [
    {"id": "x", "lifetime": "forever", "dtype": "f32", "shape": [4]},
    {"id": "y", "lifetime": "graph", "dtype": "f23", "shape": [4]},
    {"id": "z", "lifetime": "graph", "dtype": "f32", "shape": [4], "colour": 1}
  ],
  "nodes": [
    {"id": "a", "kernel": "k", "parameters": [{"name": "p", "access": "readwrite"}, {"nome": "q"}]},
    {"id": "b", "parameters": []},
    {"id": "c", "kernel": "k",
     "parameters": [{"name": "o", "access": "write", "dtype": "f32", "shape": "[N,"}]}
  ],
  "edges": [{"from": "a.p", "to": ["b", 0]}, {"from": ["a", 5], "to": ["c", 0]}],
  "extra": 3
})");
  for (const char* message :
       {"g.json:3:29: error: buffers[0].lifetime: expected one of external, graph, region, got \"forever\"",
        "g.json:4:47: error: buffers[1].dtype: unknown dtype \"f23\"",
        "g.json:5:68: error: buffers[2]: unknown field \"colour\"",
        "g.json:8:71: error: node 'a', parameter 'p': nodes[0].parameters[0].access: expected one of read, "
        "write, "
        "read_write, append, got \"readwrite\"",
        "g.json:8:85: error: node 'a': nodes[0].parameters[1]: missing field \"name\"",
        "g.json:9:5: error: node 'b': nodes[1]: expected one of the fields op, kernel, captured",
        "g.json:11:83: error: node 'c', parameter 'o': shape rule \"[N,\" at column 4: expected a number",
        "g.json:13:22: error: edges[0].from: expected an array, got a string",
        "g.json:14:3: error: unknown field \"extra\""})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
  EXPECT_EQ(all.find("names no kernel"), std::string::npos) << all;
  EXPECT_EQ(all.find("parameter 5"), std::string::npos) << "what follows from a broken node is not told\n"
                                                        << all;
}

TEST(ReadJson, EveryFieldThatIsWrongIsReported) {
  EXPECT_EQ(problems(R"({"buffers": [{"id": "x", "lifetime": "foo", "dtype": "f33", "shape": ["a", 3, "b"]}],
 "nodes": [{"id": "r", "block": 7, "op": "relu", "grid": [0, "c"], "bogus": 1, "other": 2, "region": 3,
  "parameters": [{"name": "x", "access": "rd", "dtype": "zz", "shape": 5, "bufer": "x"}]}],
 "edges": [{"from": ["r"], "to": "q"}],
 "dependencies": [{"before": 1, "after": 2}],
 "regions": [{"id": "w", "kind": "until", "limit": "x", "condition": 4, "branches": 9}]})"),
            R"(g.json:1:38: error: buffers[0].lifetime: expected one of external, graph, region, got "foo"
g.json:1:54: error: buffers[0].dtype: unknown dtype "f33", expected one like "f32"
g.json:1:71: error: buffers[0].shape[0]: expected an integer, got a string
g.json:1:79: error: buffers[0].shape[2]: expected an integer, got a string
g.json:2:33: error: node 'r': nodes[0].block: expected a string, got a number
g.json:3:75: error: node 'r', parameter 'x': nodes[0].parameters[0]: unknown field "bufer", expected one of name, access, scalar, in_device_memory, dtype, shape, buffer, required, comment
g.json:3:42: error: node 'r', parameter 'x': nodes[0].parameters[0].access: expected one of read, write, read_write, append, got "rd"
g.json:3:57: error: node 'r', parameter 'x': nodes[0].parameters[0].dtype: unknown dtype "zz", expected one like "f32"
g.json:3:72: error: node 'r', parameter 'x': nodes[0].parameters[0].shape: expected a string, got a number
g.json:2:68: error: node 'r': nodes[0]: unknown field "bogus", expected one of id, block, op, kernel, captured, attributes, source, entry, threads, grid, parameters, region, branch, comment
g.json:2:80: error: node 'r': nodes[0]: unknown field "other", expected one of id, block, op, kernel, captured, attributes, source, entry, threads, grid, parameters, region, branch, comment
g.json:2:102: error: node 'r': nodes[0].region: expected a string, got a number
g.json:2:62: error: node 'r': nodes[0].grid[1]: expected an integer, got a string
g.json:4:21: error: edges[0].from: expected a node and a parameter: ["node", "parameter"]
g.json:4:34: error: edges[0].to: expected an array, got a string
g.json:5:30: error: dependencies[0].before: expected a string, got a number
g.json:5:42: error: dependencies[0].after: expected a string, got a number
g.json:6:34: error: region 'w': regions[0].kind: expected one of if, switch, while, for, got "until"
g.json:6:70: error: region 'w': regions[0].condition: expected a string, got a number
g.json:6:52: error: region 'w': regions[0].limit: expected an integer, got a string
g.json:2:12: error: node 'r': a grid of 0 is not positive
g.json:2:12: error: node 'r': an op has no grid
g.json:6:14: warning: region 'w': no node stands in the region
)");
}

TEST(ReadJson, EveryAttributeThatIsWrongIsReported) {
  EXPECT_EQ(problems(R"({"buffers": [
  {"id": "x", "lifetime": "external", "dtype": "f32", "shape": [4]},
  {"id": "y", "lifetime": "external", "dtype": "f32", "shape": [4]}],
 "nodes": [{"id": "c", "op": "softmax", "attributes": {"axis": "one", "nope": 1},
  "parameters": [{"name": "x", "buffer": "x"}, {"name": "y", "buffer": "y"}]},
  {"id": "d", "op": "softmax", "attributes": {"axis": null, "nope": {}},
  "parameters": [{"name": "x", "buffer": "x"}, {"name": "y", "buffer": "y"}]}]})"),
            "g.json:6:55: error: node 'd': nodes[1].attributes.axis: expected a number, got null\n"
            "g.json:6:69: error: node 'd': nodes[1].attributes.nope: expected a number, got an object\n"
            "g.json:4:12: error: node 'c': softmax: attribute 'axis' must be an integer, got one\n"
            "g.json:4:12: error: node 'c': softmax: has no attribute 'nope'\n");
}

TEST(ReadJson, AnEndThatDoesNotExistIsReportedAtTheOther) {
  EXPECT_EQ(
      problems(
          R"({"blocks": [{"id": "B"}], "buffers": [{"id": "x", "lifetime": "external", "dtype": "f32", "shape": [4]}],
 "nodes": [{"id": "miss", "block": "B", "kernel": "k", "parameters": [{"name": "in", "access": "read_write", "buffer": "x"}]}],
 "edges": [{"from": ["ghost", 0], "to": ["miss", "in"]}, {"from": ["miss", "in"], "to": ["ghost", 0]},
           {"from": ["ghost", 0], "to": ["phantom", 0]}],
 "dependencies": [{"before": "phantom", "after": "miss"}, {"before": "miss", "after": "phantom"}]})"),
      "g.json:3:12: error: block 'B', node 'miss': an edge leads from node 'ghost', which does not exist\n"
      "g.json:3:58: error: block 'B', node 'miss': an edge leads to node 'ghost', which does not exist\n"
      "g.json:4:12: error: an edge leads from node 'ghost', which does not exist\n"
      "g.json:4:12: error: an edge leads to node 'phantom', which does not exist\n"
      "g.json:5:19: error: block 'B', node 'miss': a dependency names 'phantom', which is no node and no "
      "region\n"
      "g.json:5:59: error: block 'B', node 'miss': a dependency names 'phantom', which is no node and no "
      "region\n");
}

TEST(ReadJson, WhatAnEdgeThatIsWrongWouldBringIsNotMissed) {
  EXPECT_EQ(problems(R"({"nodes": [
  {"id": "a", "kernel": "k", "parameters": [{"name": "in"}]}],
 "edges": [{"from": "b.out", "to": ["a", "in"]}]})"),
            "g.json:3:21: error: edges[0].from: expected an array, got a string\n");
}

TEST(ReadJson, WhatFollowsFromABrokenBufferIsNotTold) {
  EXPECT_EQ(
      problems(R"({"buffers": [
  {"id": "x", "lifetime": "external", "dtype": "f23", "shape": [4]},
  {"id": "y", "lifetime": "for ever", "dtype": "i64", "shape": [4]},
  {"id": "z", "lifetime": "external", "dtype": "i64", "shape": [4]}],
 "nodes": [{"id": "n", "op": "add", "parameters": [
   {"name": "a", "buffer": "x", "dtype": "i64"}, {"name": "b", "buffer": "y"}, {"name": "y", "buffer": "z"}]}]})"),
      "g.json:2:48: error: buffers[0].dtype: unknown dtype \"f23\", expected one like \"f32\"\n"
      "g.json:3:27: error: buffers[1].lifetime: expected one of external, graph, region, got \"for ever\"\n");
}

TEST(ReadJson, ValidationNamesBlockNodeParameterAndPlace) {
  const std::string all = problems(R"({"blocks": [{"id": "β"}],
 "nodes": [{"id": "n", "block": "β", "kernel": "k",
            "parameters": [{"name": "in"}]}]})");
  EXPECT_EQ(all,
            "g.json:3:28: error: block 'β', node 'n', parameter 'in': the required input has no buffer and "
            "no edge\n");
}

TEST(ReadJson, HostileTextsEndInAMessage) {
  for (
      const std::string& text :
      {std::string(), std::string("[]"), std::string("3"), std::string("{\"nodes\": {}}"),
       std::string("{\"nodes\": [3]}"), std::string(100'000, '['), std::string("{\"nodes\": [{\"id\": 3}]}"),
       std::string("{\"name\": \"\xff\"}"), std::string("{\"nodes\": [], \"nodes\": []}"),
       std::string(R"({"edges": [{"from": [1,2,3], "to": []}]})"),
       std::string(R"({"buffers": [{"id": "a", "lifetime": "graph", "dtype": "f32", "shape": [-1]}]})"),
       std::string(
           R"({"buffers": [{"id": "a", "lifetime": "graph", "dtype": "f32", "shape": [4611686018427387904, 8]}]})"),
       std::string(
           R"({"buffers": [{"id": "a", "lifetime": "graph", "dtype": "f32", "shape": [99999999999999999999]}]})"),
       std::string(
           R"({"regions": [{"id": "r", "kind": "switch", "branches": 9223372036854775807, "condition": "r"}]})"),
       std::string(R"({"regions": [{"id": "r", "kind": "for", "count": -9223372036854775808}]})"),
       std::string(R"({"nodes": [{"id": "n", "op": "add", "attributes": {"x": {}}}]})"),
       std::string(R"({"nodes": [{"id": "n", "kernel": "k", "grid": [0, -5]}]})"),
       std::string(R"({"nodes": [{"id": "n", "kernel": "k", "grid": [1,1,1,1]}]})"),
       std::string(R"({"nodes": [{"id": "n", "op": "concat", "parameters": [{"name": "inputs[0]"}]}]})")}) {
    EXPECT_FALSE(problems(text).empty()) << text.substr(0, 80);
  }
}

TEST(ReadJson, ManyWrongThingsInOneLineAreReadInLinearTime) {
  const auto read_nodes = [](int count) {
    std::string text = R"({"nodes": [)";
    for (int i = 0; i < count; ++i) text += R"({"id": "n", "kernel": "k", "wrong": 1},)";
    text.back() = ']';
    EXPECT_NE(problems(text + "}").find("unknown field \"wrong\""), std::string::npos);
  };
  constexpr int count = tessera::fixture::repeats(16'000);
  EXPECT_LT(tessera::fixture::growth(count / 8, count, read_nodes), 24) << "quadratic would be 64";
}

TEST(ReadJson, RegionsNestAsDeepAsAllowed) {
  const auto nested = [](int depth) {
    std::string text =
        R"({"buffers": [{"id": "c", "lifetime": "external", "dtype": "i32", "shape": [1]}], "regions": [)";
    for (int i = 0; i < depth; ++i)
      text += cat(i == 0 ? "" : ",", R"({"id": "r)", i, R"(", "kind": "if", "condition": "c")",
                  i == 0 ? std::string() : cat(R"(, "region": "r)", i - 1, "\""), "}");
    return text + "]}";
  };
  EXPECT_EQ(problems(nested(64)).find("error"), std::string::npos);
  EXPECT_NE(problems(nested(65)).find("nested deeper than 64 regions"), std::string::npos);
  EXPECT_NE(problems(nested(tessera::fixture::repeats(20'000))).find("nested deeper than 64 regions"),
            std::string::npos);
}

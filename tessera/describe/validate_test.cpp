#include "tessera/describe/validate.h"

#include <cmath>

#include "tessera/base/machine_memory.h"
#include "tessera/describe/test_graph.h"
#include "tests/support/growth.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::description;
using namespace tessera::description::fixture;

namespace {

const PinOptions fresh{.dtype = Dtype::f32, .shape = "[4]"};

/// A builder with one kernel "k" that takes anything, and buffers x, y of f32[4].
Builder started() {
  Builder b;
  b.external("x", Dtype::f32, {4}).external("y", Dtype::f32, {4});
  b.kernels().add("k", [](KernelCall&) {});
  return b;
}

}  // namespace

TEST(Validate, Trap_G13_WrongWiringIsAnErrorAndAllOfItIsFoundAtOnce) {
  Builder b = started();
  b.block("B").in_block("B");
  b.external("i", Dtype::i32, {4});
  b.kernel("a", "k", {write("out", fresh)});
  b.kernel("b", "k", {write("out", fresh)});
  b.kernel("c", "k", {read("in", {.dtype = Dtype::f32}), write("out", {.buffer = "y"})});
  b.kernel("d", "k", {read("in"), read("extra", {.required = false})});
  b.kernel("e", "k", {read("in", {.buffer = "i", .dtype = Dtype::f32})});
  b.edge({"a", "out"}, {"c", "in"}).edge({"b", 0}, {"c", 0});
  EXPECT_EQ(messages(description::fixture::validate(b)),
            "error: block 'B', node 'c', parameter 'in': two edges lead to the parameter\n"
            "error: block 'B', node 'd', parameter 'in': the required input has no buffer and no edge\n"
            "error: block 'B', node 'e', parameter 'in': has dtype f32, buffer 'i' has i32\n"
            "warning: buffer 'x' is not used\n"
            "warning: block 'B', node 'b', parameter 'out': nobody reads what it writes\n");
}

TEST(Validate, EdgesAreCheckedOneByOne) {
  Builder b = started();
  b.kernel("a", "k", {read("in", {.buffer = "x"}), write("out", fresh), scalar("s", 1)});
  b.kernel("b", "k", {read("in", {.required = false}), write("out", {.buffer = "y"})});
  b.edge({"nobody", 0}, {"b", 0});
  b.edge({"a", 7}, {"b", 0});
  b.edge({"a", -1}, {"b", 0});
  b.edge({"a", "nothing"}, {"b", 0});
  b.edge({"a", "out"}, {"a", "in"});
  b.edge({"a", "in"}, {"b", "in"});
  b.edge({"a", "s"}, {"b", "in"});
  b.edge({"a", "out"}, {"b", "out"});
  b.edge({"b", "out"}, {"a", "in"});
  b.dependency("a", "ghost").dependency("a", "a");
  const std::string all = messages(description::fixture::validate(b));
  for (const char* message :
       {"an edge leads from node 'nobody', which does not exist",
        "node 'a': an edge leads from parameter 7, the node has 3",
        "node 'a': an edge leads from parameter -1, the node has 3",
        "node 'a': an edge leads from parameter 'nothing', which the node has not",
        "node 'a', parameter 'in': an edge leads from the node to itself",
        "node 'a', parameter 'in': an edge begins at a parameter that writes nothing",
        "node 'a', parameter 's': an edge begins at a parameter that writes nothing",
        "node 'b', parameter 'out': an edge leads to a parameter that reads nothing",
        "node 'a', parameter 'in': the parameter has an edge and a buffer",
        "a dependency names 'ghost', which is no node and no region", "node 'a': depends on itself"})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
}

TEST(Validate, ShapeRulesHoldForOpsToo) {
  Builder b;
  b.external("x", Dtype::f32, {8, 4}).external("y", Dtype::f32, {8, 4}).external("z", Dtype::f32, {8, 4});
  b.op("r", "relu",
       {read("x", {.buffer = "x", .shape = "[N, 16]"}), write("y", {.buffer = "y", .shape = "[99]"})});
  b.op("s", "relu", {read("x", {.buffer = "x", .shape = "[N]"}), write("y", {.shape = "[N, 4]"})});
  b.op("t", "neg", {read("x", {.shape = "[N, N]"}), write("y", {.buffer = "z", .shape = "same"})});
  b.op("u", "neg", {read("x", {.buffer = "y", .shape = "[N, M]"}), write("y", {.shape = "[M, N]"})});
  b.edge({"s", "y"}, {"t", "x"});
  EXPECT_EQ(
      messages(description::fixture::validate(b)),
      "error: node 'r', parameter 'x': expected shape [8, 16], got [8, 4]\n"
      "error: node 'r', parameter 'y': expected shape [99], got [8, 4]\n"
      "error: node 's', parameter 'x': expected rank 1, got shape [8, 4]\n"
      "error: node 't', parameter 'x': size 'N' is 8 elsewhere in the node, axis 1 of shape [8, 4] has 4\n"
      "error: node 'u', parameter 'y': expected shape [4, 8], got [8, 4]\n"
      "warning: node 'u', parameter 'y': nobody reads what it writes\n");
}

TEST(Validate, AllRulesOfAKernelAreChecked) {
  Builder b = started();
  b.kernel("a", "k",
           {read("in", {.buffer = "x", .shape = "[N + 1]"}), write("out", {.buffer = "y", .shape = "[3]"})});
  EXPECT_EQ(messages(description::fixture::validate(b)),
            "error: node 'a', parameter 'in': expected shape [5], got [4]\n"
            "error: node 'a', parameter 'out': expected shape [3], got [4]\n");
}

TEST(Validate, NumbersThatAreLeftOutFitTheirOp) {
  Builder b;
  b.external("u", Dtype::f32, {8}).external("i", Dtype::i32, {4}).external("j", Dtype::i32, {4});
  b.op("r", "random_uniform", {write("y", {.buffer = "u"})}, {{"shape", std::vector<std::int64_t>{8}}});
  b.op("c", "clip", {read("x", {.buffer = "i"}), scalar("low", 2), write("y", {.buffer = "j"})});
  EXPECT_EQ(messages(description::fixture::validate(b)), "");
  Memory memory;
  memory.add<float>("u", std::vector<float>(8, 7.0F)).add<std::int32_t>("i", {1, 2, 3, 1'000'000'000});
  memory.add<std::int32_t>("j", {0, 0, 0, 0});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->launch());
  for (const float value : memory.get<float>("u")) EXPECT_TRUE(value >= 0 && value < 1) << value;
  EXPECT_EQ(memory.get<std::int32_t>("j"), (std::vector<std::int32_t>{2, 2, 3, 1'000'000'000}));
  ASSERT_TRUE(graph->set_number("r", "seed", std::int64_t{9'007'199'254'740'993}));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  EXPECT_FALSE(graph->set_number("r", "seed", 0.5));
}

TEST(Validate, AnIntegerInDeviceMemoryIsOneThatAnF64Has) {
  Builder b = started();
  b.kernels().add_capture("c", [](CaptureCall&) {});
  Parameter large = device_scalar("n", 0);
  large.scalar = std::int64_t{9'007'199'254'740'993};
  b.captured("a", "c", {large, write("out", {.buffer = "y"}), read("in", {.buffer = "x"})});
  EXPECT_EQ(
      messages(description::fixture::validate(b)),
      "error: node 'a', parameter 'n': the integer 9007199254740993 is in device memory, where numbers are "
      "f64\n");
}

TEST(Validate, TypesAreCheckedAlongEdges) {
  Builder b = started();
  b.block("empty");
  b.kernel("a", "k", {write("out", fresh)});
  b.kernel("b", "k", {read("in", {.dtype = Dtype::i32})});
  b.kernel("c", "k", {read("in", {.shape = "[N, 4]"})});
  b.kernel("d", "k", {read_write("in", {.shape = "[2 * 3]"})});
  b.edge({"a", "out"}, {"b", "in"}).edge({"a", "out"}, {"c", "in"}).edge({"a", "out"}, {"d", "in"});
  const std::string all = messages(description::fixture::validate(b));
  for (const char* message : {"node 'b', parameter 'in': has dtype i32, buffer 'a.out' has f32",
                              "node 'c', parameter 'in': expected rank 2, got shape [4]",
                              "node 'd', parameter 'in': expected shape [6], got [4]",
                              "warning: block 'empty': nothing stands in the block"})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
}

TEST(Validate, NamesAreChecked) {
  Builder b = started();
  b.external("x", Dtype::f32, {4})
      .external("", Dtype::f32, {1})
      .block("A", "B")
      .block("B", "A")
      .block("C", "D");
  b.kernel("a", "k", {read("in", {.buffer = "zzz"}), read("in", {.buffer = "x"})});
  b.in_block("nowhere").kernel("a", "k", {write("out", {.buffer = "y"})});
  b.within("no_region").kernel("r", "missing", {});
  const std::string all = messages(description::fixture::validate(b));
  for (const char* message :
       {"id 'x' of a buffer is used twice", "a buffer has no id", "id 'a' of a node is used twice",
        "block 'A': the block stands in itself", "block 'C': there is no block 'D'",
        "there is no block 'nowhere'", "parameter 'in' is declared twice",
        "parameter 'in': there is no buffer 'zzz'", "node 'r': there is no region 'no_region'",
        "there is no kernel 'missing', registered are 'k'"})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
}

TEST(Validate, OpsAreCheckedByTheirCards) {
  Builder b;
  b.external("x", Dtype::f32, {2, 3}).external("y", Dtype::f32, {2, 3}).external("i", Dtype::i64, {2});
  b.op("typo", "matmull", {});
  b.op("shapes", "add",
       {read("a", {.buffer = "x"}), read("b", {.buffer = "i"}), write("y", {.buffer = "y"})});
  b.op("attribute", "sum", {read("x", {.buffer = "x"})}, {{"axis", std::int64_t{1}}});
  b.op("result", "transpose", {read("x", {.buffer = "x"}), write("y", {.buffer = "y"})});
  b.op("name", "relu", {read("input", {.buffer = "x"})});
  const std::string all = messages(description::fixture::validate(b));
  for (const char* message :
       {"node 'typo': there is no op 'matmull', perhaps 'matmul'",
        "node 'shapes': add: ", "node 'attribute': sum: has no attribute 'axis'",
        "node 'result', parameter 'y': the op gives f32[3, 2], buffer 'y' has f32[2, 3]",
        "node 'name': op 'relu' has no parameter 'input'"})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
}

TEST(Validate, OpsTakeTheirParametersFromTheCard) {
  Builder b;
  b.external("x", Dtype::f32, {2, 3}).external("out", Dtype::f32, {2, 2});
  b.op("t", "transpose", {read("x", {.buffer = "x"})});
  b.op("m", "matmul", {read("a", {.buffer = "x"}), write("y", {.buffer = "out"})});
  b.edge({"t", "y"}, {"m", 1});
  Memory memory;
  memory.add<float>("x", {1, 2, 3, 4, 5, 6}).add<float>("out", std::vector<float>(4));
  ASSERT_TRUE(make_graph(b, memory)->launch());
  EXPECT_EQ(memory.get<float>("out"), (std::vector<float>{14, 32, 32, 77}));
}

TEST(Validate, ShapesFollowTheRules) {
  Builder b = started();
  b.external("m", Dtype::f32, {4, 5});
  b.kernel("a", "k",
           {read("p", {.buffer = "m", .shape = "[N, K]"}), read("q", {.buffer = "x", .shape = "[K]"}),
            write("o", {.dtype = Dtype::f32, .shape = "[K, N]"})});
  b.kernel("b", "k", {read("p", {.buffer = "m"}), write("o", {.buffer = "y", .shape = "same"})});
  b.kernel("c", "k", {read("p", {.buffer = "m"}), write("o", {.dtype = Dtype::f32, .shape = "[N"})});
  b.kernel("d", "k", {read("p", {.buffer = "m"}), write("o", {.shape = "same"})});
  b.kernel("e", "k", {read("p", {.buffer = "m"}), write("o", {.dtype = Dtype::f32})});
  b.kernel("f", "k", {write("o", {.dtype = Dtype::f32, .shape = "[4611686018427387904, 4]"})});
  const std::string all = messages(description::fixture::validate(b));
  for (const char* message :
       {"node 'a', parameter 'q': size 'K' is 5 elsewhere in the node, axis 0 of shape [4] has 4",
        "node 'b', parameter 'o': expected shape [4, 5], got [4]",
        "node 'c', parameter 'o': shape rule \"[N\" at column 3: expected ']'",
        "node 'd', parameter 'o': has no buffer and declares no dtype",
        "node 'e', parameter 'o': has no buffer and declares no shape",
        "node 'f', parameter 'o': shape [4611686018427387904, 4] does not fit 64 bits"})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
}

TEST(Validate, Trap_G18_APeakBeyondTheDeviceIsRefusedWithBothFigures) {
  Builder b;
  b.external("x", Dtype::f32, {1 << 18}).graph("g", Dtype::f32, {1 << 18});
  b.kernel("k", [](KernelCall&) {},
           {read("x", {.buffer = "x"}), write("g", {.buffer = "g"}),
            write("t", {.dtype = Dtype::f32, .shape = "same"})});
  b.kernel("l", [](KernelCall&) {}, {read("t"), read_write("g", {.buffer = "g"})});
  b.edge({"k", "t"}, {"l", "t"});
  const Report refused = description::fixture::validate(b, {.device_memory = 3 * (1 << 20) - 1});
  EXPECT_EQ(messages(refused),
            "error: the description needs 3145728 bytes (external 1048576, graph 1048576, temporary "
            "1048576), the device "
            "has 3145727\n");
  EXPECT_EQ(refused.diagnostics()[0].code, ErrorCode::memory);
  EXPECT_TRUE(description::fixture::validate(b, {.device_memory = 3 * (1 << 20)}).ok());
  b.description().buffers[1].shape = {std::int64_t{1} << 60};
  EXPECT_FALSE(description::fixture::validate(b, {.device_memory = 3 * (1 << 20)}).ok());
  const auto graph = HostGraph::create(*b.finish(), b.kernels());
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code(), ErrorCode::memory);
}

TEST(Validate, Trap_G18_WithoutALimitTheMachinesMemoryIsOne) {
  Builder b;
  b.external("x", Dtype::f32, {1'000'000, 1}).external("w", Dtype::f32, {1, 1'000'000});
  b.external("y", Dtype::f32, {});
  b.op("m", "matmul", {read("a", {.buffer = "x"}), read("b", {.buffer = "w"})});
  b.op("s", "sum", {write("y", {.buffer = "y"})}).edge({"m", "y"}, {"s", "x"});
  EXPECT_EQ(messages(description::fixture::validate(b)),
            cat("error: the description needs 4000008000004 bytes (external 8000004, graph 0, temporary "
                "4000000000000), the device has ",
                machine_memory(), "\n"));
}

TEST(Validate, Trap_G18_APeakBeyondTheDeviceIsFoundAmongOtherErrors) {
  Builder b = started();
  b.graph("g", Dtype::f32, {1 << 18}).external("i", Dtype::i32, {4});
  b.kernel("a", "k", {read("in", {.buffer = "i", .dtype = Dtype::f32}), write("out", {.buffer = "g"})});
  b.kernel("b", "k", {read("in", {.buffer = "g"}), write("out", {.dtype = Dtype::f32, .shape = "same"})});
  b.kernel("c", "k", {read("in"), write("out", {.buffer = "y"}), read("x", {.buffer = "x"})});
  b.edge({"b", "out"}, {"c", "in"});
  EXPECT_EQ(messages(description::fixture::validate(b, {.device_memory = 1 << 20})),
            "error: node 'a', parameter 'in': has dtype f32, buffer 'i' has i32\n"
            "error: the description needs at least 2097200 bytes (external 48, graph 1048576, temporary "
            "1048576), the device has 1048576\n");
}

TEST(Validate, ALoopThatCannotEndIsAWarning) {
  Builder b = started();
  b.external("c", Dtype::i32, {1}).external("d", Dtype::i32, {1});
  b.while_("forever", "c", 100)
      .within("forever")
      .kernel("a", "k", {read_write("x", {.buffer = "x"})})
      .within();
  b.while_("once", "d").within("once").if_("inner", "d").within("inner");
  b.kernel("b", "k", {read("y", {.buffer = "y"}), write("d", {.buffer = "d"})});
  EXPECT_EQ(messages(description::fixture::validate(b)),
            "warning: region 'forever': nothing in the loop writes its condition, buffer 'c': it runs not at "
            "all, or "
            "beyond its limit\n");
}

TEST(Validate, RegionsAreChecked) {
  Builder b = started();
  b.external("f", Dtype::f32, {1}).external("n", Dtype::i32, {1}).external("empty", Dtype::i32, {0});
  b.if_("no_condition", "").while_("unknown", "zzz").switch_("floats", "f", 2).for_("negative", -1);
  b.for_count_in("empty_count", "empty").switch_("many", "n", 5000).while_("limit", "n", 0);
  b.description().regions.push_back({.id = "both", .kind = RegionKind::for_, .condition = "n", .count = 3});
  b.for_("long", 2'000'000);
  b.within("many", 1023)
      .if_("inner", "n")
      .within("inner", 1)
      .kernel("branch", "k", {read("x", {.buffer = "x"})});
  b.within("self").if_("self", "n");
  b.within("r2").if_("r1", "n").within("r1").if_("r2", "n");
  const std::string all = messages(description::fixture::validate(b));
  for (const char* message :
       {"region 'no_condition': needs a condition, as every if",
        "region 'unknown': its condition is buffer 'zzz', which does not exist",
        "region 'floats': buffer 'f' has dtype f32, expected i32 or i64",
        "region 'negative': count -1 is negative",
        "region 'empty_count': buffer 'empty' has no element to look at",
        "region 'many': has 5000 branches, expected 1 to 1024", "region 'limit': limit 0 is not positive",
        "region 'both': a for needs a count: a number, or a buffer, not both",
        "region 'long': count 2000000 is beyond the limit of 1000000 iterations",
        "node 'branch': stands in branch 1 of region 'inner', which has 1",
        "region 'self': the region stands in itself", "the region stands in itself"})
    EXPECT_NE(all.find(message), std::string::npos) << message << "\n" << all;
}

TEST(Validate, RegionBuffersStayInTheirRegion) {
  Builder b = started();
  b.external("n", Dtype::i32, {1})
      .if_("r", "n")
      .temporary("t", Dtype::f32, {4}, "r")
      .temporary("u", Dtype::f32, {4});
  b.within("r").kernel("w", "k", {write("o", {.buffer = "t"})});
  b.within().kernel("outside", "k", {read("i", {.buffer = "t"})});
  b.kernel("early", "k", {read_write("i", {.buffer = "u"})});
  const std::string all = messages(description::fixture::validate(b));
  EXPECT_NE(all.find("node 'outside': uses buffer 't' outside its region 'r'"), std::string::npos) << all;
  EXPECT_NE(all.find("node 'early': region buffer 'u' is read before anything writes it"), std::string::npos)
      << all;
}

TEST(Validate, ScratchMayBeSharedByLoopsAndAResultOfALoopMustExist) {
  Builder b = started();
  b.temporary("scratch", Dtype::f32, {4}).temporary("result", Dtype::f32, {4}).for_("one", 2).for_("two", 2);
  for (const char* loop : {"one", "two"})
    b.within(loop)
        .kernel(cat(loop, "_w"), "k", {write("o", {.buffer = "scratch"})})
        .kernel(cat(loop, "_r"), "k", {read("i", {.buffer = "scratch"}), read_write("o", {.buffer = "y"})});
  EXPECT_EQ(messages(description::fixture::validate(b)),
            "warning: buffer 'x' is not used\nwarning: buffer 'result' is not used\n");
  b.within("one").kernel("w", "k", {write("o", {.buffer = "result"})});
  b.within().kernel("r", "k", {read("i", {.buffer = "result"})});
  const std::string all = messages(description::fixture::validate(b));
  EXPECT_NE(
      all.find(
          "node 'r': region buffer 'result' is read before anything writes it: the loop that does may run "
          "zero times"),
      std::string::npos)
      << all;
}

TEST(Validate, AnOpNeedsAllItsInputs) {
  Builder b = started();
  b.op("add", "add", {read("a", {.required = false}), read("b", {.buffer = "x"})});
  EXPECT_NE(messages(description::fixture::validate(b))
                .find("node 'add', parameter 'a': the required input has no buffer"),
            std::string::npos);
}

TEST(Validate, AppendAndWriteDoNotMix) {
  Builder b = started();
  b.external("s", Dtype::f32, {});
  b.kernel("a", "k", {append("o", {.buffer = "y"})});
  b.kernel("w", "k", {write("o", {.buffer = "y"})});
  b.kernel("r", "k", {append("o", {.buffer = "s"})});
  const std::string all = messages(description::fixture::validate(b));
  EXPECT_NE(all.find("node 'w', parameter 'o': buffer 'y' is appended to elsewhere, and written here"),
            std::string::npos);
  EXPECT_NE(all.find("node 'r', parameter 'o': buffer 's' has rank 0, there are no rows to append"),
            std::string::npos);
}

TEST(Validate, NumbersFitTheirDtype) {
  Builder b = started();
  b.kernel("a", "k",
           {integer("i8", 200, Dtype::i8), scalar("frac", 0.5, Dtype::i32), integer("neg", -1, Dtype::u64),
            scalar("nan", std::nan(""), Dtype::i64), integer("ok", 255, Dtype::u8),
            scalar("whole", 2, Dtype::i32)});
  const std::string all = messages(description::fixture::validate(b));
  for (const char* name : {"i8", "frac", "neg", "nan"})
    EXPECT_NE(all.find(cat("node 'a', parameter '", name, "': the number does not fit dtype")),
              std::string::npos)
        << all;
  EXPECT_EQ(all.find("'ok'"), std::string::npos);
  EXPECT_EQ(all.find("'whole'"), std::string::npos);
}

/// `count` nodes that hang together in one of four ways.
Builder large_graph(int form, int count) {
  Builder b = started();
  b.graph("shared", Dtype::f32, {4});
  for (int i = 0; i < count; ++i) {
    const std::string id = cat("n", i);
    if (form == 0)  // a chain by edges
      b.kernel(id, "k", {read("in", {.buffer = i == 0 ? "x" : ""}), write("out", fresh)});
    if (form == 1)  // updates of one buffer
      b.kernel(id, "k", {read_write("in", {.buffer = "shared"})});
    if (form == 2)  // one producer, many readers and updaters
      b.kernel(id, "k",
               {i % 2 == 0 ? read("in", {.buffer = "shared"}) : read_write("in", {.buffer = "shared"})});
    if (form == 3)  // many appenders, many readers
      b.kernel(id, "k", {i % 2 == 0 ? append("in", {.buffer = "shared"}) : read("in", {.buffer = "shared"})});
    if (form == 0 && i > 0) b.edge({cat("n", i - 1), 1}, {id, 0});
  }
  return b;
}

TEST(Validate, LargeGraphsTakeLinearTimeAndNoStack) {
  constexpr int count = tessera::fixture::repeats(100'000);
  for (int form = 0; form < 4; ++form) {
    const auto validate_nodes = [&](int nodes) {
      Builder b = large_graph(form, nodes);
      const Validation v = description::validate(b.finish(), &b.kernels());
      EXPECT_TRUE(v.report.ok()) << form << v.report.diagnostics().front().to_text();
      const std::uint64_t shared = v.program->schedule.memory.shared_bytes;
      EXPECT_EQ(shared, form == 0 ? 2 * 64U : 0U) << "in a chain two buffers take turns";
    };
    validate_nodes(count);
    EXPECT_LT(tessera::fixture::growth(count / 40, count / 5, validate_nodes), 24)
        << form << ": quadratic would be 64";
  }
}

TEST(Validate, ManyErrorsAreCountedAndSomeKept) {
  constexpr unsigned count = tessera::fixture::repeats(100'000U);
  Builder b = started();
  for (unsigned i = 0; i < count; ++i) b.kernel(cat("n", i), "k", {read("in")});
  const Report report = description::fixture::validate(b);
  EXPECT_EQ(report.errors(), count);
  EXPECT_EQ(report.diagnostics().size(), 1'000U);
  EXPECT_NE(report.to_text().find("more are not shown"), std::string::npos);
}

TEST(Validate, ALongCycleIsNamedShortly) {
  constexpr int count = tessera::fixture::repeats(50'000);
  Builder b = started();
  for (int i = 0; i < count; ++i) b.kernel(cat("n", i), "k", {});
  for (int i = 0; i < count; ++i) b.dependency(cat("n", i), cat("n", (i + 1) % count));
  const Report report = description::fixture::validate(b);
  EXPECT_EQ(report.errors(), 1U);
  EXPECT_NE(report.diagnostics()[0].message.find(cat("and ", count - 12, " more")), std::string::npos)
      << report.diagnostics()[0].message;
}

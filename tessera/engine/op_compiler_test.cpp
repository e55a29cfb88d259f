#include "tessera/engine/op_compiler.h"

#include <gtest/gtest.h>

#include <map>

#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/describe/op_group.h"
#include "tessera/describe/test_graph.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/engine/random_graph.h"

using namespace tessera;
using namespace tessera::description;
using description::fixture::fill_kernel;
using description::fixture::make_graph;
using description::fixture::map_kernel;
using description::fixture::Memory;
using description::fixture::update_kernel;
using engine::fixture::Kinds;
using engine::fixture::RandomGraph;
using engine::fixture::RandomMemory;
using Floats = std::vector<float>;

namespace {

Parameter from(std::string name, std::string buffer) {
  return read(std::move(name), {.buffer = std::move(buffer)});
}
Parameter to(std::string buffer) { return write("y", {.buffer = std::move(buffer)}); }

class Compiled : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] HostOptions options() const {
    return {.compiler = engine::make_op_compiler(*engine::find_device(GetParam()))};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Compiled, testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Compiled, OpsOfABlockAreOneProgramAroundKernels) {
  Builder b;
  b.external("x", Dtype::f32, {4}).external("y", Dtype::f32, {4}).temporary("t", Dtype::f32, {4});
  b.temporary("u", Dtype::f32, {4}).temporary("v", Dtype::f32, {4});
  b.op("double", "add", {from("a", "x"), from("b", "x"), to("t")});
  b.op("square", "square", {from("x", "t"), to("u")});
  b.kernel("minus", map_kernel([](float v) { return v - 1; }), {from("x", "u"), to("v")});
  b.op("negative", "neg", {from("x", "v"), to("y")});
  Memory memory;
  memory.add<float>("x", {0, 1, 2, 3}).add<float>("y", {0, 0, 0, 0});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{1, -3, -15, -35}));
  memory.set<float>("x", {1, 1, 1, 1});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{-3, -3, -3, -3}));
}

TEST_P(Compiled, AGroupMayWriteWhereItReads) {
  Builder b;
  b.external("x", Dtype::f32, {2, 2}).external("y", Dtype::f32, {2, 2}).temporary("t", Dtype::f32, {2, 2});
  b.op("turn", "transpose", {from("x", "x"), to("t")}).op("back", "identity", {from("x", "t"), to("x")});
  b.op("sum", "add", {from("a", "x"), from("b", "t"), to("y")}).dependency("turn", "back");
  Memory memory;
  memory.add<float>("x", {1, 2, 3, 4}).add<float>("y", {0, 0, 0, 0});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(memory.get<float>("y"), (Floats{2, 6, 4, 8}));
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{1, 2, 3, 4}));
}

TEST_P(Compiled, NumbersStayHotAndMemoryCanBeBoundElsewhere) {
  Builder b;
  b.external("x", Dtype::f32, {2}).external("y", Dtype::f32, {2});
  b.op("leaky", "leaky_relu", {from("x", "x"), to("y")});
  Memory memory;
  memory.add<float>("x", {-1, 1}).add<float>("y", {0, 0});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->set_number("leaky", "alpha", 0.5));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{-0.5, 1}));
  Floats other{-4, 8};
  ASSERT_TRUE(graph->bind("x", std::as_writable_bytes(std::span(other))));
  EXPECT_EQ(graph->update().tier, Tier::warm);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{-2, 8}));
}

TEST_P(Compiled, BodiesOfRegionsAreCompiledToo) {
  Builder b;
  b.external("x", Dtype::f32, {2}).external("n", Dtype::i64, {}).temporary("t", Dtype::f32, {2}, "loop");
  b.for_count_in("loop", "n").within("loop");
  b.op("half", "mul", {from("a", "x"), scalar("b", 0.5), to("t")});
  b.op("more", "add", {from("a", "t"), scalar("b", 1.0), to("x")}).dependency("half", "more");
  Memory memory;
  memory.add<float>("x", {8, 16}).add<std::int64_t>("n", {3});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{2.75, 3.75}));
  memory.set<std::int64_t>("n", {0});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{2.75, 3.75}));
}

TEST_P(Compiled, AnErrorNamesTheNodeAndLeavesInputs) {
  Builder b;
  b.block("search").in_block("search");
  b.external("x", Dtype::f32, {3}).external("i", Dtype::i64, {1}).external("y", Dtype::f32, {1});
  b.temporary("t", Dtype::f32, {3});
  b.op("twice", "add", {from("a", "x"), from("b", "x"), to("t")});
  b.op("pick", "gather", {from("x", "t"), from("indices", "i"), to("y")});
  Memory memory;
  memory.add<float>("x", {1, 2, 3}).add<std::int64_t>("i", {7}).add<float>("y", {0});
  const auto graph = make_graph(b, memory, options());
  const auto failed = graph->launch();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("node 'pick' of block 'search': gather: index 7"),
            std::string::npos)
      << failed.error().to_text();
  memory.set<std::int64_t>("i", {2});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{6}));
}

TEST_P(Compiled, ProfilesNameTheNodesThatRanTogether) {
  Builder b;
  b.block("one").in_block("one");
  b.external("x", Dtype::f32, {2}).external("y", Dtype::f32, {2}).temporary("t", Dtype::f32, {2});
  b.op("first", "exp", {from("x", "x"), to("t")}).op("second", "neg", {from("x", "t"), to("y")});
  Memory memory;
  memory.add<float>("x", {0, 0}).add<float>("y", {0, 0});
  HostOptions with = options();
  with.profiling = ProfilingLevel::per_kernel;
  const auto graph = make_graph(b, memory, std::move(with));
  const auto report = graph->launch();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->profile.kernels[0].joined_with, "");
  EXPECT_EQ(report->profile.kernels[1].joined_with, "first");
  EXPECT_EQ(report->profile.blocks[0].time, report->profile.kernels[0].time);
}

TEST_P(Compiled, Trap_G18_AProgramThatDoesNotFitBesideThePlanIsNotTaken) {
  Builder b;
  b.graph("s", Dtype::f32, {1 << 18}).external("o", Dtype::f32, {});
  b.op("up", "add", {from("a", "s"), scalar("b", 1.0), to("s")}).op("sum", "sum", {from("x", "s"), to("o")});
  for (const bool is_tight : {true, false}) {
    HostOptions with = options();
    with.profiling = ProfilingLevel::per_kernel;
    with.memory = is_tight ? (1 << 20) + 1'000 : 1 << 23;
    Memory memory;
    memory.add<float>("o", {0});
    const auto graph = make_graph(b, memory, std::move(with));
    for (const float launches : {1.0F, 2.0F}) {
      const auto report = graph->launch();
      ASSERT_TRUE(report);
      EXPECT_EQ(report->profile.kernels[1].joined_with, is_tight ? "" : "up");
      EXPECT_EQ(memory.get<float>("o"), Floats{launches * (1 << 18)});
    }
  }
}

TEST_P(Compiled, Trap_G4_WhatASkippedIfWritesIsZero) {
  Builder b;
  b.external("on", Dtype::i32, {1}).external("x", Dtype::f32, {3}).external("y", Dtype::f32, {3});
  b.if_("maybe", "on").within("maybe").op("root", "sqrt", {from("x", "x"), to("y")});
  Memory memory;
  memory.add<std::int32_t>("on", {1}).add<float>("x", {1, 4, 9}).add<float>("y", {7, 7, 7});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{1, 2, 3}));
  memory.set<std::int32_t>("on", {0});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{0, 0, 0}));
}

TEST_P(Compiled, Trap_G3_MemoryOfATemporaryIsTakenOverWithinAGroup) {
  Builder b;
  b.external("x", Dtype::f32, {64}).external("y", Dtype::f32, {64});
  for (int i = 0; i < 6; ++i) b.temporary(cat("t", i), Dtype::f32, {64});
  b.kernel("load", map_kernel([](float v) { return v + 1; }), {from("x", "x"), to("t0")});
  for (int i = 0; i < 5; ++i)
    b.op(cat("n", i), "add", {from("a", cat("t", i)), scalar("b", 1.0), to(cat("t", i + 1))});
  b.kernel("store", map_kernel([](float v) { return 2 * v; }), {from("x", "t5"), to("y")});
  Memory memory;
  memory.add<float>("x", Floats(64, 1.0F)).add<float>("y", Floats(64, 0.0F));
  const auto graph = make_graph(b, memory, options());
  const auto program = *graph->program();
  EXPECT_LT(program->schedule.memory.shared_bytes, program->schedule.memory.without_reuse);
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_TRUE(graph->launch());
    EXPECT_EQ(memory.get<float>("y"), Floats(64, 14.0F));
  }
}

TEST_P(Compiled, Trap_G12_AWhileOfOpsStopsAtItsLimit) {
  Builder b;
  b.external("go", Dtype::f32, {1}).temporary("t", Dtype::f32, {1}, "forever");
  b.while_("forever", "go", 9).within("forever");
  b.op("grow", "add", {from("a", "go"), scalar("b", 1.0), to("t")});
  b.op("keep", "identity", {from("x", "t"), to("go")}).dependency("grow", "keep");
  Memory memory;
  memory.add<float>("go", {1});
  const auto graph = make_graph(b, memory, options());
  const auto launched = graph->launch();
  ASSERT_FALSE(launched);
  EXPECT_NE(launched.error().message().find("while region 'forever' did not end within its limit of 9"),
            std::string::npos)
      << launched.error().to_text();
  memory.set<float>("go", {0});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("go"), (Floats{0}));
}

TEST_P(Compiled, Trap_G14_AResizeReachesEveryProgram) {
  Builder b;
  b.external("x", Dtype::f32, {4}).external("y", Dtype::f32, {4}).graph("state", Dtype::f32, {4});
  b.op("copy", "identity", {from("x", "x"), to("state")});
  b.kernel("more", update_kernel([](float v) { return v + 1; }), {read_write("x", {.buffer = "state"})});
  b.op("twice", "add", {from("a", "state"), from("b", "x"), to("y")});
  Memory memory;
  memory.add<float>("x", {1, 2, 3, 4}).add<float>("y", {0, 0, 0, 0});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), (Floats{3, 5, 7, 9}));
  Floats x(6, 5.0F), y(6, 0.0F);
  ASSERT_TRUE(graph->bind("x", std::as_writable_bytes(std::span(x)), Extents{6}));
  ASSERT_TRUE(graph->bind("y", std::as_writable_bytes(std::span(y)), Extents{6}));
  ASSERT_TRUE(graph->resize("state", {6}));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::warm);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(y, Floats(6, 11.0F));
}

/// Ten blocks of a few ops, each on what the one before gives.
Builder ten_blocks(std::string_view last_op = "tanh") {
  Builder b;
  b.external("x0", Dtype::f32, {16});
  for (int i = 0; i < 10; ++i) {
    const auto name = [&](std::string_view what) { return cat(what, i); };
    b.block(name("block")).in_block(name("block"));
    b.external(cat("x", i + 1), Dtype::f32, {16});
    b.temporary(name("t"), Dtype::f32, {16}).temporary(name("u"), Dtype::f32, {16});
    b.op(name("scale"), "mul", {from("a", name("x")), scalar("b", 0.5 + i), to(name("t"))});
    b.op(name("shift"), "add", {from("a", name("t")), from("b", name("x")), to(name("u"))});
    b.op(name("end"), i == 4 ? std::string(last_op) : "tanh", {from("x", name("u")), to(cat("x", i + 1))});
  }
  return b;
}

Memory memory_of_ten_blocks() {
  Memory out;
  for (int i = 0; i <= 10; ++i) out.add<float>(cat("x", i), Floats(16, 0.25F));
  return out;
}

TEST_P(Compiled, ARebuildCompilesTheBlockThatChanged) {
  Builder b = ten_blocks();
  Memory memory = memory_of_ten_blocks();
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  Builder changed = ten_blocks("sigmoid");
  ASSERT_TRUE(graph->set_description(*changed.finish()));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::cold);
  EXPECT_EQ(report.programs, 1U);
  EXPECT_EQ(report.interpreted, 0U);
  ASSERT_TRUE(graph->launch());
  const Floats patched = memory.get<float>("x10");
  Memory fresh_memory = memory_of_ten_blocks();
  ASSERT_TRUE(make_graph(changed, fresh_memory, options())->launch());
  EXPECT_EQ(patched, fresh_memory.get<float>("x10"));
}

TEST_P(Compiled, Trap_G5_ARebuildThatFailsKeepsTheProgramsThatWork) {
  Builder b = ten_blocks();
  Memory memory = memory_of_ten_blocks();
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  const Floats before = memory.get<float>("x10");
  Builder broken = ten_blocks("no_such_op");
  ASSERT_TRUE(graph->set_description(*broken.finish()));
  EXPECT_TRUE(graph->update().error);
  memory.set<float>("x10", Floats(16, 0.0F));
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x10"), before);
  ASSERT_TRUE(graph->set_description(*ten_blocks().finish()));
  const UpdateReport again = graph->update();
  ASSERT_FALSE(again.error);
  EXPECT_EQ(again.programs, 0U);
}

TEST_P(Compiled, ARegionOfOpsIsPartOfItsGroup) {
  Builder b;
  b.external("x", Dtype::f32, {2}).external("n", Dtype::i32, {1}).temporary("t", Dtype::f32, {2});
  b.op("begin", "mul", {from("a", "x"), scalar("b", 2), to("t")});
  b.for_count_in("repeat", "n").within("repeat");
  b.op("step", "add", {from("a", "t"), scalar("b", 1), to("t")}).within();
  b.op("end", "neg", {from("x", "t"), to("x")}).dependency("begin", "end");
  Memory memory;
  memory.add<float>("x", {1, 2}).add<std::int32_t>("n", {3});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{-5, -7}));
  ASSERT_TRUE(graph->set_number("step", "b", 10.0));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  memory.set<std::int32_t>("n", {0});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{10, 14}));
  memory.set<std::int32_t>("n", {1});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x"), (Floats{-30, -38}));
  b.op("more", "neg", {from("x", "x"), to("x")}).dependency("end", "more");
  ASSERT_TRUE(graph->set_description(*b.finish()));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error);
  EXPECT_EQ(report.programs, 1U);
  EXPECT_EQ(report.interpreted, 0U);
}

// ---- random graphs

/// What external and graph buffers hold after each launch; it ends with the first that fails.
using Trace = std::vector<std::vector<float>>;

std::optional<Trace> run_random(std::uint64_t seed, Kinds kinds, HostOptions options) {
  Builder b = RandomGraph(seed, kinds).make();
  RandomMemory memory(seed);
  options.bindings = memory.bindings();
  const auto graph = HostGraph::create(*b.finish(), b.kernels(), std::move(options));
  if (!graph) return std::nullopt;
  Trace out;
  for (int launch = 0; launch < 3; ++launch) {
    if (!(*graph)->launch()) return out;
    for (int i = 0; i < 3; ++i) out.push_back(memory.get<float>(cat("e", i)));
    for (const char* name : {"g0", "g1"}) {
      const auto bytes = *(*graph)->content(name);
      Floats& values = out.emplace_back(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
    }
  }
  return out;
}

TEST_P(Compiled, RandomGraphsGiveWhatTheyGiveNodeByNode) {
  int ran = 0;
  for (const Kinds kinds : {Kinds::ops_and_kernels, Kinds::ops})
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      const auto expected = run_random(seed, kinds, {});
      ran += expected && expected->size() == 15 ? 1 : 0;
      ASSERT_EQ(run_random(seed, kinds, options()), expected) << "seed " << seed;
    }
  EXPECT_GT(ran, 60);
}

// ---- the whole launch as one plan

/// A launch that is one plan on a device, saved and loaded again.
Result<engine::PlanRunner> one_plan(const Builder& b, runtime::Device& device) {
  const auto program = description::validate(b.finish(), nullptr).program;
  if (program == nullptr) return Error(ErrorCode::invalid_argument, "not valid");
  const auto launch = TESSERA_TRY(whole_launch(*program));
  const compiler::PlanOptions exact{.pipeline = {.passes = {.floats = compiler::FloatRules::exact}}};
  auto planned = TESSERA_TRY(compiler::plan_program(launch.function, device.target(), exact));
  std::vector<std::string> outputs;
  for (const std::uint32_t buffer : launch.results) outputs.push_back(program->graph.buffers[buffer].name);
  const auto package =
      compiler::package(*launch.function, {std::move(planned.program)}, std::string(device.name()),
                        {.outputs = outputs, .states = launch.states});
  const std::string bytes = TESSERA_TRY(plan::to_bytes(package));
  auto loaded = TESSERA_TRY(plan::from_bytes(Bytes::copy(std::as_bytes(std::span(bytes))), "test"));
  return engine::PlanRunner::create(std::move(loaded), device);
}

/// The trace of a plan; what it does not give is as it was.
Trace run_plan(engine::PlanRunner& runner, std::uint64_t seed) {
  RandomMemory memory(seed);
  std::map<std::string, Floats> content{{"g0", Floats(4)}, {"g1", Floats(4)}};
  for (const char* name : {"e0", "e1", "e2"}) content[name] = memory.get<float>(name);
  const auto count = memory.get<std::int32_t>("count");
  Trace out;
  for (int launch = 0; launch < 3; ++launch) {
    std::vector<op::HostTensor> inputs;
    for (const std::string& name : runner.package().inputs)
      inputs.push_back(name == "count" ? op::HostTensor::of<std::int32_t>(Dtype::i32, {1}, count)
                                       : op::HostTensor::of<float>(Dtype::f32, {4}, content.at(name)));
    const auto results = runner.run(inputs);
    if (!results) return out;
    for (std::size_t i = 0; i < results->size(); ++i)
      if (const std::string& name = runner.package().outputs[i]; content.contains(name)) {
        const auto* values = reinterpret_cast<const float*>((*results)[i].array().data);
        content[name].assign(values, values + 4);
      }
    for (const char* name : {"e0", "e1", "e2", "g0", "g1"}) out.push_back(content[name]);
  }
  return out;
}

TEST_P(Compiled, AWholeLaunchOfOpsAndRegionsIsOnePlan) {
  const auto device = *engine::find_device(GetParam());
  int ran = 0, stopped = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto expected = run_random(seed, Kinds::ops, {});
    if (!expected) continue;
    auto runner = one_plan(RandomGraph(seed, Kinds::ops).make(), *device);
    ASSERT_TRUE(runner) << "seed " << seed << ": " << runner.error().to_text();
    const bool is_whole = expected->size() == 15;
    Trace trace = run_plan(*runner, seed);
    ran += is_whole ? 1 : 0;
    stopped += !is_whole && trace.size() == expected->size() ? 1 : 0;
    // A loop beyond its limit, of which a plan runs only what somebody reads.
    if (!is_whole && trace.size() > expected->size()) trace.resize(expected->size());
    ASSERT_EQ(trace, *expected) << "seed " << seed;
  }
  EXPECT_GT(ran, 20);
  EXPECT_GT(stopped, 5);
}

TEST_P(Compiled, IntegersThatNoDoubleHasAreExact) {
  const std::int64_t large = 9'007'199'254'740'993;  // 2^53 + 1
  Builder b;
  b.external("i", Dtype::i64, {1}).external("j", Dtype::i64, {1});
  b.op("n", "add", {from("a", "i"), integer("b", large), to("j")});
  auto runner = one_plan(b, **engine::find_device(GetParam()));
  ASSERT_TRUE(runner) << runner.error().to_text();
  const std::vector<op::HostTensor> zero{
      op::HostTensor::of<std::int64_t>(Dtype::i64, {1}, std::vector<std::int64_t>{0})};
  const auto results = runner->run(zero);
  ASSERT_TRUE(results);
  EXPECT_EQ(*reinterpret_cast<const std::int64_t*>((*results)[0].array().data), large);

  Memory memory;
  memory.add<std::int64_t>("i", {0}).add<std::int64_t>("j", {0});
  const auto graph = make_graph(b, memory, options());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<std::int64_t>("j"), std::vector<std::int64_t>{large});
  ASSERT_TRUE(graph->set_number("n", "b", large + 2));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<std::int64_t>("j"), std::vector<std::int64_t>{large + 2});
}

TEST_P(Compiled, Trap_G12_ALoopThatCannotEndRunsToItsLimitInAPlanToo) {
  Builder b;
  b.external("c", Dtype::i32, {1}).graph("x", Dtype::f32, {1});
  b.while_("forever", "c", 100)
      .within("forever")
      .op("inc", "add", {from("a", "x"), scalar("b", 1.0), to("x")});
  auto runner = one_plan(b, **engine::find_device(GetParam()));
  ASSERT_TRUE(runner) << runner.error().to_text();
  const auto with = [](std::int32_t condition) {
    return std::vector{
        op::HostTensor::of<std::int32_t>(Dtype::i32, {1}, std::vector<std::int32_t>{condition})};
  };
  const auto failed = runner->run(with(1));
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("while 'forever': goes on after its limit of 100 iterations"),
            std::string::npos)
      << failed.error().to_text();
  EXPECT_TRUE(runner->run(with(0)));
}

}  // namespace

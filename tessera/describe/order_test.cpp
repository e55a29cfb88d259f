#include "tessera/describe/test_graph.h"

using namespace tessera;
using namespace tessera::description;
using namespace tessera::description::fixture;

namespace {

using Names = std::vector<std::string>;

/// A capture that copies parameter 0 to parameter 1.
CaptureFunction copy_capture() {
  return [](CaptureCall& call) {
    const auto from = call.values<float>(0);
    const auto to = call.values<float>(1);
    call.record("copy", [from, to] { std::copy(from.begin(), from.end(), to.begin()); });
  };
}

std::shared_ptr<const Program> program_of(Builder& b) {
  Validation v = description::validate(b.finish(), &b.kernels());
  EXPECT_EQ(v.report.errors(), 0U) << v.report.to_text();
  return v.program;
}

}  // namespace

TEST(Order, Trap_G1_AKernelThatWritesComesBeforeACaptureThatReads) {
  for (bool capture_first : {false, true})
    for (bool by_edge : {false, true}) {
      Builder b;
      b.external("out", Dtype::f32, {2});
      if (!by_edge) b.graph("A", Dtype::f32, {2});
      const std::string name = by_edge ? "" : "A";
      const auto kernel = [&] {
        b.kernel("k", fill_kernel(7), {write("x", {.buffer = name, .dtype = Dtype::f32, .shape = "[2]"})});
      };
      if (!capture_first) kernel();
      b.captured("c", copy_capture(), {read("a", {.buffer = name}), write("y", {.buffer = "out"})});
      if (capture_first) kernel();
      if (by_edge) b.edge({"k", "x"}, {"c", "a"});
      const auto program = program_of(b);
      EXPECT_EQ(order_of(*program), (Names{"k", "c"}));
      EXPECT_TRUE(contains(causes(*program, "k", "c"), Cause::read_after_write));
      Memory memory;
      memory.add<float>("out", {0, 0});
      ASSERT_TRUE(make_graph(b, memory)->launch());
      EXPECT_EQ(memory.get<float>("out"), (std::vector<float>{7, 7}));
    }
}

TEST(Order, Trap_G2_ACycleThroughACaptureIsFoundHoweverItIsSaid) {
  for (int how = 0; how < 3; ++how) {
    Builder b;
    b.block("one").block("two");
    const bool by_name = how == 2;
    if (by_name) b.graph("A", Dtype::f32, {2}).graph("B", Dtype::f32, {2});
    const PinOptions a{.buffer = by_name ? "A" : "", .dtype = Dtype::f32, .shape = "[2]"};
    const PinOptions c{.buffer = by_name ? "B" : "", .dtype = Dtype::f32, .shape = "[2]"};
    b.in_block("one").kernel("k", fill_kernel(7), {write("x", a), read("in", {c.buffer, {}, "", by_name})});
    b.in_block("two").captured("c", copy_capture(), {read("a", {.buffer = a.buffer}), write("y", c)});
    if (!by_name) b.edge({"k", "x"}, {"c", "a"});
    if (how == 0) b.edge({"c", "y"}, {"k", "in"});
    if (how == 1) b.dependency("c", "k");
    const Report report = description::fixture::validate(b);
    EXPECT_NE(messages(report).find("a cycle: "), std::string::npos) << messages(report);
    EXPECT_EQ(report.of_node("k").front().code, ErrorCode::cycle);
    EXPECT_FALSE(report.of_block("one").empty());
    EXPECT_FALSE(report.of_block("two").empty());
    EXPECT_NE(report.of_block("two").front().message.find("'k' before 'c'"), std::string::npos)
        << report.to_text();
  }
}

TEST(Order, Trap_G3_MemoryIsReusedOnlyAfterEveryReader) {
  // K1 -> A; K2 reads A -> B; K3 reads A; K4 reads B -> C. K4 may start while K3 still reads A.
  Builder b;
  const PinOptions buffer{.dtype = Dtype::f32, .shape = "[1024]"};
  b.external("out3", Dtype::f32, {1024}).external("out4", Dtype::f32, {1024});
  b.kernel("k1", fill_kernel(1), {write("x", buffer)});
  const auto add_one = map_kernel([](float x) { return x + 1; });
  b.kernel("k2", add_one, {read("x"), write("y", buffer)});
  b.kernel("k3", add_one, {read("x"), write("y", {.buffer = "out3"})});
  b.kernel("k4", add_one, {read("x"), write("y", buffer)});
  b.kernel("k5", add_one, {read("x"), write("y", {.buffer = "out4"})});
  b.edge({"k1", "x"}, {"k2", "x"}).edge({"k1", "x"}, {"k3", "x"}).edge({"k2", "y"}, {"k4", "x"});
  b.edge({"k4", "y"}, {"k5", "x"});
  const auto offset = [](const Program& program, std::string_view name) {
    for (std::size_t i = 0; i < program.graph.buffers.size(); ++i)
      if (program.graph.buffers[i].name == name) return program.schedule.memory.homes[i].offset;
    return std::uint64_t{999};
  };
  const auto loose = program_of(b);
  EXPECT_NE(offset(*loose, "k1.x"), offset(*loose, "k4.y"));
  EXPECT_EQ(loose->schedule.memory.shared_bytes, 3 * 4096U);
  b.dependency("k3", "k4");
  const auto ordered = program_of(b);
  EXPECT_EQ(offset(*ordered, "k1.x"), offset(*ordered, "k4.y"));
  EXPECT_EQ(ordered->schedule.memory.shared_bytes, 2 * 4096U);
  EXPECT_EQ(ordered->schedule.memory.lower_bound, 2 * 4096U);
  EXPECT_EQ(ordered->schedule.memory.without_reuse, 3 * 4096U);
}

TEST(Order, Trap_G8_AnUpdateInPlaceAndAReaderAreOrdered) {
  for (bool update_first : {false, true}) {
    Builder b;
    b.graph("A", Dtype::f32, {1}).external("out", Dtype::f32, {1});
    b.kernel("k0", fill_kernel(1), {write("x", {.buffer = "A"})});
    const auto update = [&] {
      b.kernel("k1", update_kernel([](float x) { return x + 1; }), {read_write("x", {.buffer = "A"})});
    };
    if (update_first) update();
    b.kernel("k2", map_kernel([](float x) { return 10 * x; }),
             {read("x", {.buffer = "A"}), write("y", {.buffer = "out"})});
    if (!update_first) update();
    b.dependency("k0", "k1").dependency("k0", "k2");
    const auto program = program_of(b);
    EXPECT_EQ(contains(causes(*program, "k1", "k2"), Cause::read_after_write), update_first);
    EXPECT_EQ(contains(causes(*program, "k2", "k1"), Cause::write_after_read), !update_first);
    Memory memory;
    memory.add<float>("out", {0});
    ASSERT_TRUE(make_graph(b, memory)->launch());
    EXPECT_EQ(memory.get<float>("out")[0], update_first ? 20 : 10);
  }
}

TEST(Order, Trap_G8_WhatAnEdgeBringsIsReadBeforeAnotherUpdatesIt) {
  for (bool update_first : {false, true}) {
    Builder b;
    b.external("out", Dtype::f32, {1}).external("other", Dtype::f32, {1});
    b.kernel("k0", fill_kernel(1), {write("x", {.dtype = Dtype::f32, .shape = "[1]"})});
    const auto update = [&] {
      b.kernel("k1", update_kernel([](float x) { return x + 1; }), {read_write("x")});
    };
    if (update_first) update();
    b.kernel("k2", map_kernel([](float x) { return 10 * x; }), {read("x"), write("y", {.buffer = "out"})});
    if (!update_first) update();
    b.kernel("k3", map_kernel([](float x) { return 10 * x; }), {read("x"), write("y", {.buffer = "other"})});
    b.edge({"k0", "x"}, {"k1", "x"}).edge({"k0", "x"}, {"k2", "x"}).edge({"k1", "x"}, {"k3", "x"});
    const auto program = program_of(b);
    EXPECT_TRUE(contains(causes(*program, "k2", "k1"), Cause::write_after_read));
    Memory memory;
    memory.add<float>("out", {0}).add<float>("other", {0});
    ASSERT_TRUE(make_graph(b, memory)->launch());
    EXPECT_EQ(memory.get<float>("out")[0], 10);
    EXPECT_EQ(memory.get<float>("other")[0], 20);
    b.dependency("k1", "k2");
    ASSERT_TRUE(make_graph(b, memory)->launch());
    EXPECT_EQ(memory.get<float>("out")[0], 20) << "a dependency goes first";
  }
}

TEST(Order, Trap_G9_ALibraryCallThatAddsToItsOutputWaitsForWhoWroteIt) {
  Builder b;
  b.external("C", Dtype::f32, {1});
  b.captured("gemm",
             [](CaptureCall& call) {
               const auto c = call.values<float>(0);
               const double beta = call.number(1);
               call.record("gemm", [c, beta] { c[0] = 5 + static_cast<float>(beta) * c[0]; });
             },
             {read_write("c", {.buffer = "C"}), scalar("beta", 2.0)});
  b.kernel("init", fill_kernel(3), {write("x", {.buffer = "C"})});
  const auto program = program_of(b);
  EXPECT_TRUE(contains(causes(*program, "init", "gemm"), Cause::read_after_write));
  Memory memory;
  memory.add<float>("C", {100});
  ASSERT_TRUE(make_graph(b, memory)->launch());
  EXPECT_EQ(memory.get<float>("C")[0], 11);
}

TEST(Order, AStateIsReadBeforeItIsWrittenWhereEdgesSaySo) {
  // y = f(state); state = g(y): the edge says that the read of `state` comes first.
  Builder b;
  b.external("state", Dtype::f32, {1});
  b.kernel("g", map_kernel([](float x) { return x + 1; }), {read("x"), write("y", {.buffer = "state"})});
  b.kernel("f", map_kernel([](float x) { return x * 2; }),
           {read("x", {.buffer = "state"}), write("y", {.dtype = Dtype::f32, .shape = "same"})});
  b.edge({"f", "y"}, {"g", "x"});
  const auto program = program_of(b);
  EXPECT_EQ(order_of(*program), (Names{"f", "g"}));
  EXPECT_TRUE(contains(causes(*program, "f", "g"), Cause::write_after_read));
  Memory memory;
  memory.add<float>("state", {3});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->launch());
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("state")[0], 15);
}

TEST(Order, LevelsAreThoseOfTheSeed) {
  Builder b;
  b.external("x", Dtype::f32, {4}).external("out", Dtype::f32, {4});
  const auto same = map_kernel([](float x) { return x; });
  const PinOptions fresh{.dtype = Dtype::f32, .shape = "same"};
  b.kernel("D", [](KernelCall&) {}, {read("x"), read("y"), write("z", {.buffer = "out"})});
  b.kernel("C", same, {read("x"), write("y", fresh)});
  b.kernel("B", same, {read("x"), write("y", fresh)});
  b.kernel("A", same, {read("x", {.buffer = "x"}), write("y", fresh)});
  b.edge({"A", "y"}, {"B", "x"})
      .edge({"A", "y"}, {"C", "x"})
      .edge({"B", "y"}, {"D", "x"})
      .edge({"C", "y"}, {"D", "y"});
  const auto program = program_of(b);
  std::map<std::string, std::uint32_t> levels;
  for (const Step& step : program->schedule.sequences[0].steps)
    levels[program->description->nodes[step.index].id] = step.level;
  EXPECT_EQ(levels, (std::map<std::string, std::uint32_t>{{"A", 0}, {"B", 1}, {"C", 1}, {"D", 2}}));
  EXPECT_EQ(program->schedule.sequences[0].levels, 3U);
}

TEST(Order, TwoWritersKeepTheOrderOfTheListing) {
  Builder b;
  b.external("A", Dtype::f32, {1}).external("mid", Dtype::f32, {1}).external("end", Dtype::f32, {1});
  const auto same = map_kernel([](float x) { return x; });
  b.kernel("w1", fill_kernel(1), {write("x", {.buffer = "A"})});
  b.kernel("r1", same, {read("x", {.buffer = "A"}), write("y", {.buffer = "mid"})});
  b.kernel("w2", fill_kernel(2), {write("x", {.buffer = "A"})});
  b.kernel("r2", same, {read("x", {.buffer = "A"}), write("y", {.buffer = "end"})});
  Memory memory;
  memory.add<float>("A", {0}).add<float>("mid", {0}).add<float>("end", {0});
  const auto program = program_of(b);
  EXPECT_TRUE(contains(causes(*program, "r1", "w2"), Cause::write_after_read));
  ASSERT_TRUE(make_graph(b, memory)->launch());
  EXPECT_EQ(memory.get<float>("mid")[0], 1);
  EXPECT_EQ(memory.get<float>("end")[0], 2);
}

/// A loop may leave a buffer as it was, but it does not read it.
TEST(Order, ALoopThatWritesStaysBeforeADefinitionThatIsListedLater) {
  Builder b;
  b.external("y", Dtype::f32, {1});
  b.for_("loop", 2).within("loop").kernel("inside", fill_kernel(3), {write("x", {.buffer = "y"})}).within();
  b.kernel("behind", fill_kernel(7), {write("x", {.buffer = "y"})});
  const auto program = program_of(b);
  EXPECT_EQ(order_of(*program), (Names{"inside", "behind"}));
  Memory memory;
  memory.add<float>("y", {0});
  ASSERT_TRUE(make_graph(b, memory)->launch());
  EXPECT_EQ(memory.get<float>("y"), std::vector<float>{7});
}

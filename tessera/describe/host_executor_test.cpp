#include "tessera/describe/host_executor.h"

#include <gtest/gtest.h>

#include <condition_variable>

#include "tessera/base/run_meter.h"
#include "tessera/describe/test_graph.h"

using namespace tessera;
using namespace tessera::description;
using namespace tessera::description::fixture;

namespace {

using Floats = std::vector<float>;

KernelFunction add_one() {
  return update_kernel([](float x) { return x + 1; });
}

/// Appends every i in 0..255 that is above a threshold.
KernelFunction above_threshold() {
  return [](KernelCall& call) {
    for (int i = 0; i < 256; ++i)
      if (i > call.number(1)) call.append<float>(0, static_cast<float>(i));
  };
}

}  // namespace

TEST(HostExecutor, Trap_G4_OutputsOfAnIfAreZeroInEveryLaunchThatSkipsIt) {
  for (bool is_external : {true, false}) {
    Builder b;
    b.external("flag", Dtype::i32, {1}).external("seen", Dtype::f32, {2});
    is_external ? b.external("y", Dtype::f32, {2}) : b.temporary("y", Dtype::f32, {2});
    b.if_("when", "flag");
    b.kernel("reader", map_kernel([](float x) { return x; }),
             {read("x", {.buffer = "y"}), write("y", {.buffer = "seen"})});
    b.within("when").kernel("body", fill_kernel(5), {write("x", {.buffer = "y"})});
    Memory memory;
    memory.add<std::int32_t>("flag", {1}).add<float>("seen", {7, 7});
    if (is_external) memory.add<float>("y", {7, 7});
    const auto graph = make_graph(b, memory);
    for (int flag : {1, 0, 1, 0, 0}) {
      memory.set<std::int32_t>("flag", {flag});
      ASSERT_TRUE(graph->launch());
      EXPECT_EQ(memory.get<float>("seen"), flag != 0 ? (Floats{5, 5}) : (Floats{0, 0}));
    }
  }
}

TEST(HostExecutor, WhatAnIfUpdatesInPlaceStaysWhenItIsSkipped) {
  Builder b;
  b.external("flag", Dtype::f32, {1}).external("x", Dtype::f32, {1}).if_("when", "flag");
  b.within("when").kernel("body", add_one(), {read_write("x", {.buffer = "x"})});
  Memory memory;
  memory.add<float>("flag", {0.5F}).add<float>("x", {3});
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->launch());
  memory.set<float>("flag", {0});
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("x")[0], 4);
}

TEST(HostExecutor, ElseAndSwitchRunOneBranchAndZeroWhatItDoesNotWrite) {
  Builder b;
  b.external("which", Dtype::i64, {1}).external("a", Dtype::f32, {1}).external("b", Dtype::f32, {1});
  b.switch_("s", "which", 3).if_else("e", "which");
  b.external("c", Dtype::f32, {1});
  b.within("s", 0).kernel("s0", fill_kernel(10), {write("x", {.buffer = "a"})});
  b.within("s", 1).kernel("s1", fill_kernel(11), {write("x", {.buffer = "b"})});
  b.within("s", 2).kernel("s2", fill_kernel(12), {write("x", {.buffer = "a"})});
  b.within("e", 0).kernel("then", fill_kernel(1), {write("x", {.buffer = "c"})});
  b.within("e", 1).kernel("else", fill_kernel(2), {write("x", {.buffer = "c"})});
  Memory memory;
  memory.add<std::int64_t>("which", {0}).add<float>("a", {9}).add<float>("b", {9}).add<float>("c", {9});
  const auto graph = make_graph(b, memory);
  const std::map<std::int64_t, Floats> expected = {
      {0, {10, 0, 2}}, {1, {0, 11, 1}}, {2, {12, 0, 1}}, {3, {0, 0, 1}}, {-1, {0, 0, 1}}};
  for (const auto& [which, values] : expected) {
    memory.set<std::int64_t>("which", {which});
    ASSERT_TRUE(graph->launch());
    EXPECT_EQ((Floats{memory.get<float>("a")[0], memory.get<float>("b")[0], memory.get<float>("c")[0]}),
              values)
        << which;
  }
}

TEST(HostExecutor, Trap_G10_AnAppendBufferThatIsFullReportsIt) {
  for (std::uint64_t rows : {std::uint64_t{150}, std::uint64_t{3'000'000'000}, std::uint64_t{5'000'000'000},
                             std::numeric_limits<std::uint64_t>::max()}) {
    Builder b;
    b.external("out", Dtype::f32, {100});
    b.kernel("k",
             [rows](KernelCall& call) {
               const AppendedRows got = call.reserve(0, rows);
               for (std::uint64_t i = 0; i < got.count; ++i) call.values<float>(0)[got.first + i] = 1;
               EXPECT_EQ(call.reserve(0, 10).count, 0U);
             },
             {append("out", {.buffer = "out"})});
    Memory memory;
    memory.add<float>("out", Floats(100));
    const auto graph = make_graph(b, memory);
    const auto report = graph->launch();
    ASSERT_TRUE(report);
    EXPECT_EQ(*graph->count("out"), 100U);
    ASSERT_EQ(report->overflows.size(), 1U);
    EXPECT_EQ(report->overflows[0].buffer, "out");
    EXPECT_EQ(report->overflows[0].capacity, 100U);
    EXPECT_EQ(report->overflows[0].asked, rows > rows + 10 ? rows : rows + 10);
    EXPECT_EQ(memory.get<float>("out"), Floats(100, 1));
  }
}

TEST(HostExecutor, Trap_G10_OneByOne) {
  Builder b;
  b.external("out", Dtype::f32, {100});
  b.kernel("k",
           [](KernelCall& call) {
             for (int i = 0; i < 150; ++i) EXPECT_EQ(call.append<float>(0, static_cast<float>(i)), i < 100);
           },
           {append("out", {.buffer = "out"})});
  Memory memory;
  memory.add<float>("out", Floats(100));
  const auto graph = make_graph(b, memory);
  const auto report = graph->launch();
  ASSERT_TRUE(report);
  EXPECT_EQ(*graph->count("out"), 100U);
  EXPECT_EQ(report->overflows.at(0).asked, 150U);
  EXPECT_EQ(memory.get<float>("out")[99], 99);
}

TEST(HostExecutor, Trap_G11_TheCounterIsResetInEveryLaunch) {
  Builder b;
  b.external("out", Dtype::f32, {256}).external("count", Dtype::i64, {1});
  b.kernel(
      "reader",
      [](KernelCall& call) { call.values<std::int64_t>(1)[0] = static_cast<std::int64_t>(call.count(0)); },
      {read("x", {.buffer = "out"}), write("n", {.buffer = "count"})});
  b.kernel("k", above_threshold(), {append("out", {.buffer = "out"}), scalar("threshold", 200)});
  Memory memory;
  memory.add<float>("out", Floats(256)).add<std::int64_t>("count", {-1});
  const auto graph = make_graph(b, memory);
  for (const auto& [threshold, expected] : {std::pair{200, 55}, {250, 5}, {999, 0}, {999, 0}}) {
    ASSERT_TRUE(graph->set_number("k", "threshold", double(threshold)));
    graph->update();
    const auto report = graph->launch();
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->overflows.empty());
    EXPECT_EQ(*graph->count("out"), static_cast<std::uint64_t>(expected));
    EXPECT_EQ(memory.get<std::int64_t>("count")[0], expected) << "the reader comes after the appender";
  }
}

TEST(HostExecutor, SeveralAppendersAndAppendsInALoop) {
  Builder b;
  b.external("out", Dtype::f32, {8}).external("more", Dtype::i32, {1}).for_("loop", 3);
  const auto push = [](float value) { return [value](KernelCall& call) { call.append<float>(0, value); }; };
  b.kernel("a", push(1), {append("o", {.buffer = "out"})})
      .within("loop")
      .kernel("b", push(2), {append("o", {.buffer = "out"})});
  b.within().kernel("c", push(3), {append("o", {.buffer = "out"})});
  b.description().buffers.erase(b.description().buffers.begin() + 1);
  Memory memory;
  memory.add<float>("out", Floats(8));
  const auto graph = make_graph(b, memory);
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_TRUE(graph->launch());
    EXPECT_EQ(*graph->count("out"), 5U);
    EXPECT_EQ(memory.get<float>("out"), (Floats{1, 2, 2, 2, 3, 0, 0, 0}));
  }
}

TEST(HostExecutor, Trap_G12_AWhileThatNeverEndsStopsAtItsLimit) {
  Builder b;
  b.external("go", Dtype::i32, {1}).external("x", Dtype::f32, {1}).while_("forever", "go", 1000);
  b.within("forever").kernel("body", add_one(), {read_write("x", {.buffer = "x"})});
  Memory memory;
  memory.add<std::int32_t>("go", {1}).add<float>("x", {0});
  const auto graph = make_graph(b, memory);
  const auto report = graph->launch();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::limit);
  EXPECT_NE(
      report.error().to_text().find("while region 'forever' did not end within its limit of 1000 iterations"),
      std::string::npos);
  EXPECT_NE(report.error().span().line, 0U);
  EXPECT_EQ(memory.get<float>("x")[0], 1000);
  memory.set<std::int32_t>("go", {0});
  EXPECT_TRUE(graph->launch()) << "the graph is not broken by it";
}

TEST(HostExecutor, Trap_U14_ALoopEndsWithTheTimeOfTheRunAndIsNamed) {
  for (const bool is_while : {true, false}) {
    Builder b;
    b.external("go", Dtype::i32, {1}).external("x", Dtype::f32, {1});
    if (is_while)
      b.while_("forever", "go", std::int64_t{1} << 40);
    else
      b.for_("forever", std::int64_t{1} << 40);
    b.description().regions.back().limit = std::int64_t{1} << 40;
    RunMeter meter({.seconds = 0.05});
    const RunMeter::Scope scope(&meter);
    int late = 0;
    b.within("forever").kernel("body", [&](KernelCall&) { late += meter.is_late() ? 1 : 0; },
                               {read_write("x", {.buffer = "x"})});
    Memory memory;
    memory.add<std::int32_t>("go", {1}).add<float>("x", {0});
    const auto report = make_graph(b, memory)->launch();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), ErrorCode::limit);
    EXPECT_NE(report.error().message().find("region 'forever', iteration "), std::string::npos)
        << report.error().to_text();
    EXPECT_LE(late, 1) << "what began in time";
  }
}

TEST(HostExecutor, Trap_G19_LoopsThatRunZeroTimesLeaveCarriedValues) {
  Builder b;
  b.external("go", Dtype::i32, {1})
      .external("n", Dtype::i32, {1})
      .external("x", Dtype::f32, {1})
      .external("y", Dtype::f32, {1});
  b.external("z", Dtype::f32, {1});
  b.while_("w", "go").for_("f", 0).for_count_in("g", "n");
  b.within("w").kernel("wb", fill_kernel(9), {write("x", {.buffer = "x"})});
  b.within("f").kernel("fb", fill_kernel(9), {write("x", {.buffer = "y"})});
  b.within("g").kernel("gb", fill_kernel(9), {write("x", {.buffer = "z"})});
  Memory memory;
  memory.add<std::int32_t>("go", {0})
      .add<std::int32_t>("n", {0})
      .add<float>("x", {1})
      .add<float>("y", {2})
      .add<float>("z", {3});
  const auto graph = make_graph(b, memory);
  for (int count : {0, -5}) {
    memory.set<std::int32_t>("n", {count});
    ASSERT_TRUE(graph->launch());
    EXPECT_EQ(memory.get<float>("x")[0], 1);
    EXPECT_EQ(memory.get<float>("y")[0], 2);
    EXPECT_EQ(memory.get<float>("z")[0], 3);
  }
  memory.set<std::int32_t>("n", {2'000'000'000});
  EXPECT_NE(graph->launch().error().message().find(
                "for region 'g' has 2000000000 iterations, beyond its limit of 1000000"),
            std::string::npos);
}

TEST(HostExecutor, RegionsNestAndLoopsCount) {
  // for i in 0..3 { if (i odd) y += i; while (x < i) x += 1 }
  Builder b;
  b.graph("i", Dtype::i64, {})
      .temporary("odd", Dtype::boolean, {})
      .graph("y", Dtype::f32, {1})
      .graph("x", Dtype::f32, {1});
  b.temporary("less", Dtype::boolean, {});
  b.for_("loop", 4, "i").within("loop").if_("when", "odd").while_("inner", "less");
  b.kernel("parity", [](KernelCall& c) { c.values<bool>(1)[0] = c.values<std::int64_t>(0)[0] % 2 == 1; },
           {read("i", {.buffer = "i"}), write("odd", {.buffer = "odd"})});
  const KernelFunction compare = [](KernelCall& c) {
    c.values<bool>(2)[0] = c.values<float>(1)[0] < static_cast<float>(c.values<std::int64_t>(0)[0]);
  };
  b.kernel("first", compare,
           {read("i", {.buffer = "i"}), read("x", {.buffer = "x"}), write("less", {.buffer = "less"})});
  b.within("when").kernel(
      "add", [](KernelCall& c) { c.values<float>(1)[0] += static_cast<float>(c.values<std::int64_t>(0)[0]); },
      {read("i", {.buffer = "i"}), read_write("y", {.buffer = "y"})});
  b.within("inner").kernel("step", add_one(), {read_write("x", {.buffer = "x"})});
  b.kernel("again", compare,
           {read("i", {.buffer = "i"}), read("x", {.buffer = "x"}), write("less", {.buffer = "less"})});
  Memory memory;
  const auto graph = make_graph(b, memory);
  ASSERT_TRUE(graph->launch());
  const auto number = [&](const char* name) {
    float out = 0;
    std::memcpy(&out, graph->content(name)->data(), sizeof out);
    return out;
  };
  EXPECT_EQ(number("y"), 4);
  EXPECT_EQ(number("x"), 3);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(number("y"), 8) << "a graph buffer keeps its content";
}

TEST(HostExecutor, AnErrorInAKernelNamesItsNodeAndBlock) {
  Builder b;
  b.external("x", Dtype::f32, {1}).block("B").in_block("B");
  const auto fails_with = [&](KernelFunction kernel) {
    Builder copy = b;
    copy.kernel("bad", std::move(kernel), {read("x", {.buffer = "x"})});
    Memory memory;
    memory.add<float>("x", {1});
    const auto report = make_graph(copy, memory)->launch();
    return report ? std::string() : report.error().to_text();
  };
  EXPECT_NE(
      fails_with([](KernelCall&) { throw std::runtime_error("boom"); }).find("node 'bad' of block 'B': boom"),
      std::string::npos);
  EXPECT_NE(fails_with([](KernelCall&) { throw 3; }).find("threw something"), std::string::npos);
  EXPECT_NE(fails_with([](KernelCall& c) {
              (void)c.values<double>(0);
            }).find("has dtype f32, read as elements of 8 bytes"),
            std::string::npos);
  EXPECT_NE(fails_with([](KernelCall& c) { (void)c.argument(4); }).find("there is no parameter 4"),
            std::string::npos);
  EXPECT_NE(fails_with([](KernelCall& c) { (void)c.reserve(0, 1); }).find("does not append"),
            std::string::npos);
}

TEST(HostExecutor, BindingsAreChecked) {
  Builder b;
  b.external("x", Dtype::f32, {4}).external("y", Dtype::f32, {4});
  b.kernel("k", map_kernel([](float x) { return x; }),
           {read("x", {.buffer = "x"}), write("y", {.buffer = "y"})});
  Floats memory(8);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory));
  const auto message = [&](Bindings bindings) {
    const auto graph = HostGraph::create(*b.finish(), b.kernels(), {.bindings = std::move(bindings)});
    if (!graph) return graph.error().message();
    const auto report = (*graph)->launch();
    return report ? std::string("fine") : report.error().message();
  };
  EXPECT_EQ(message({{"x", bytes.first(16)}, {"y", bytes.subspan(16)}}), "fine");
  EXPECT_EQ(message({{"x", bytes.first(16)}}), "external buffer 'y' is not bound");
  EXPECT_EQ(message({{"x", bytes.first(15)}, {"y", bytes.subspan(16)}}),
            "external buffer 'x' needs 16 bytes, it is bound to 15");
  EXPECT_EQ(message({{"x", bytes.subspan(1, 16)}}),
            "external buffer 'x' is bound to memory that is not aligned for f32");
  EXPECT_EQ(message({{"x", bytes.first(16)}, {"y", bytes.subspan(8, 16)}}),
            "external buffer 'y' is bound to memory that another is bound to, and one is written");
  EXPECT_EQ(message({{"z", bytes}}), "there is no buffer 'z'");
}

namespace {

/// Whether two of them are inside at the same time.
class Meeting {
 public:
  void enter() {
    std::unique_lock lock(mutex_);
    met_ |= ++inside_ > 1;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(patience_), [&] { return met_; });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // worth a thread the next time
    lock.lock();
    --inside_;
  }
  void expect_none() { patience_ = 20; }
  [[nodiscard]] bool has_met() const { return met_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  int patience_ = 600'000;  // for ever, but for a test that hangs
  bool met_ = false;
};

/// Two nodes that do not wait for each other.
Builder two_at_once(bool are_captured, const std::function<void()>& body, bool is_allowed = true) {
  Builder b;
  b.external("p", Dtype::f32, {1}).external("q", Dtype::f32, {1});
  for (const char* buffer : {"p", "q"})
    if (are_captured)
      b.captured(cat("of_", buffer), CaptureFunction([=](CaptureCall& call) {
                   call.record("body", body);
                   if (is_allowed) call.allow_side_by_side();
                 }),
                 {write("o", {.buffer = buffer})});
    else
      b.kernel(cat("of_", buffer), [=](KernelCall&) { body(); }, {write("o", {.buffer = buffer})});
  return b;
}

Memory two_floats() { return Memory().add<float>("p", {0}).add<float>("q", {0}); }

}  // namespace

TEST(HostExecutor, KernelsThatDoNotWaitForEachOtherRunAtOnce) {
  for (const bool are_captured : {false, true}) {
    Meeting meeting;
    Builder b = two_at_once(are_captured, [&] { meeting.enter(); });
    Memory memory = two_floats();
    const auto graph = make_graph(b, memory, {.threads = 2});
    ASSERT_TRUE(graph->launch());
    EXPECT_TRUE(meeting.has_met());
  }
}

TEST(HostExecutor, NothingRunsAtOnceUnlessItMay) {
  const auto meets = [](bool are_captured, bool is_allowed, std::uint32_t threads) {
    Meeting meeting;
    meeting.expect_none();
    Builder b = two_at_once(
        are_captured, [&] { meeting.enter(); }, is_allowed);
    Memory memory = two_floats();
    const auto graph = make_graph(b, memory, {.threads = threads});
    EXPECT_TRUE(graph->launch());
    return meeting.has_met();
  };
  EXPECT_FALSE(meets(false, true, 1));
  EXPECT_FALSE(meets(true, true, 1));
  EXPECT_FALSE(meets(true, false, 2)) << "a capture must say so";
}

TEST(HostExecutor, OfKernelsThatRunAtOnceTheFirstErrorIsReportedAndAllAreMeasured) {
  std::atomic<bool> fails = true;
  std::atomic<int> runs = 0;
  Builder b = two_at_once(false, [&] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (fails) throw std::runtime_error("no");
  });
  Memory memory = two_floats();
  const auto graph = make_graph(b, memory, {.profiling = ProfilingLevel::per_kernel, .threads = 2});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(graph->launch().error().message(), "node 'of_p': no");
  fails = false;
  runs = 0;
  const auto report = graph->launch();
  ASSERT_TRUE(report);
  EXPECT_EQ(runs, 2);
  for (const auto& kernel : report->profile.kernels) {
    EXPECT_EQ(kernel.runs, 1U);
    EXPECT_GE(kernel.time, std::chrono::milliseconds(2));
  }
}

TEST(HostExecutor, AKernelOnAnotherThreadCannotCallItsGraphEither) {
  HostGraph* self = nullptr;
  std::atomic<int> refused = 0;
  Builder b = two_at_once(false, [&] {
    refused += self->launch() ? 0 : 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  Memory memory = two_floats();
  const auto graph = make_graph(b, memory, {.threads = 2});
  self = graph.get();
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(refused, 2);
}

TEST(HostExecutor, ProfilesAsMuchAsIsAsked) {
  Builder b;
  b.external("x", Dtype::f32, {1}).block("outer").block("inner", "outer").for_("loop", 5);
  b.in_block("inner").within("loop").kernel("k", add_one(), {read_write("x", {.buffer = "x"})});
  b.in_block("outer").within().captured("c",
                                        [](CaptureCall& call) {
                                          const auto x = call.values<float>(0);
                                          call.record("first", [x] { x[0] += 1; });
                                          call.record("second", [x] { x[0] += 1; });
                                        },
                                        {read_write("x", {.buffer = "x"})});
  b.in_block("").kernel("free", add_one(), {read_write("x", {.buffer = "x"})});
  Memory memory;
  memory.add<float>("x", {0});
  const auto graph = make_graph(b, memory);
  EXPECT_EQ(graph->launch()->profile.total.count(), 0);
  graph->set_profiling(ProfilingLevel::summary);
  EXPECT_GT(graph->launch()->profile.total.count(), 0);
  EXPECT_TRUE(graph->launch()->profile.blocks.empty());
  graph->set_profiling(ProfilingLevel::per_block);
  const Profile blocks = graph->launch()->profile;
  ASSERT_EQ(blocks.blocks.size(), 3U);
  EXPECT_EQ(blocks.blocks[0].block, "outer");
  EXPECT_EQ(blocks.blocks[0].runs, 6U) << "with the block inside it";
  EXPECT_EQ(blocks.blocks[1].runs, 5U);
  EXPECT_EQ(blocks.blocks[2].runs, 1U);
  EXPECT_GE(blocks.blocks[0].time, blocks.blocks[1].time);
  EXPECT_TRUE(blocks.kernels.empty());
  graph->set_profiling(ProfilingLevel::per_kernel);
  const Profile kernels = graph->launch()->profile;
  ASSERT_EQ(kernels.kernels.size(), 3U);
  EXPECT_EQ(kernels.kernels[0].runs, 5U);
  EXPECT_FALSE(kernels.kernels[0].is_opaque);
  EXPECT_TRUE(kernels.kernels[1].is_opaque);
  EXPECT_GE(kernels.total, kernels.kernels[0].time);
}

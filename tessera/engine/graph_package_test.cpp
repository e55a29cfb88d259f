#include "tessera/engine/graph_package.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tessera/describe/test_graph.h"
#include "tessera/engine/devices.h"
#include "tessera/plan/package.h"

using namespace tessera;
using namespace tessera::description;
using description::fixture::map_kernel;
using description::fixture::Memory;
using description::fixture::update_kernel;
using engine::GraphPackage;
using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

namespace {

Parameter takes(std::string name, std::string buffer) {
  return read(std::move(name), {.buffer = std::move(buffer)});
}
Parameter gives(std::string name, std::string buffer) {
  return write(std::move(name), {.buffer = std::move(buffer)});
}

/// What the descriptions here call by name.
KernelTable kernels() {
  KernelTable out;
  out.add("scale", [](KernelCall& call) {
    for (std::size_t i = 0; i < call.values<float>(1).size(); ++i)
      call.values<float>(1)[i] = call.values<float>(0)[i] * static_cast<float>(call.number(2));
  });
  out.add("increment", update_kernel([](float x) { return x + 1; }));
  out.add("halve", update_kernel([](float x) { return x / 2; }));
  out.add("one_less", [](KernelCall& call) { --call.values<std::int64_t>(0)[0]; });
  out.add("above", [](KernelCall& call) {
    for (const float x : call.values<float>(0))
      if (x > call.number(2)) call.append<float>(1, x);
  });
  out.add("count", [](KernelCall& call) {
    call.values<std::int64_t>(1)[0] = static_cast<std::int64_t>(call.count(0));
  });
  out.add_capture("blend", [](CaptureCall& call) {
    const auto x = call.values<float>(0), y = call.values<float>(1);
    const double* weight = call.device_number(2);
    const auto offset = static_cast<float>(call.number(3));
    call.record("blend", [=] {
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * static_cast<float>(*weight) + offset;
    });
  });
  return out;
}

/// Op nodes in two groups around a kernel, a captured node behind them, edges and buffers without names.
Builder chain() {
  Builder b("chain");
  b.block("outer").block("inner", "outer");
  b.external("x", Dtype::f32, {4}).external("y", Dtype::f32, {4}).graph("sum", Dtype::f32, {4});
  b.temporary("t", Dtype::f32, {4}).temporary("u", Dtype::f32, {4});
  b.in_block("inner");
  b.op("double", "mul", {takes("a", "x"), scalar("b", 2.0)});
  b.op("soft", "softmax", {gives("y", "t")}, {{"axis", std::int64_t{0}}});
  b.edge({"double", "y"}, {"soft", "x"});
  b.in_block("outer");
  b.kernel("scale", "scale", {takes("x", "t"), gives("y", "u"), scalar("by", 3.0)});
  b.op("add", "add", {takes("a", "sum"), takes("b", "u"), gives("y", "sum")});
  b.captured("blend", "blend",
             {takes("x", "sum"), gives("y", "y"), device_scalar("weight", 2), scalar("offset", 1)});
  b.dependency("scale", "blend");
  return b;
}

/// Every kind of region, around kernels, captured nodes and ops, in each other.
Builder regions() {
  Builder b("regions");
  b.external("flag", Dtype::i64, {1}).external("which", Dtype::i64, {1}).external("n", Dtype::i64, {1});
  b.external("x", Dtype::f32, {4}).external("a", Dtype::f32, {4}).external("b", Dtype::f32, {4});
  b.external("c", Dtype::f32, {4}).graph("state", Dtype::f32, {4}).graph("left", Dtype::i64, {1});
  b.graph("i", Dtype::i64, {1}).temporary("t", Dtype::f32, {4}, "twice");
  b.op("start", "identity", {takes("x", "n"), gives("y", "left")});
  b.if_("if", "flag").switch_("switch", "which", 3).while_("while", "left", 100).for_("twice", 2, "i");
  b.if_else("else", "flag").for_count_in("times", "n");
  b.within("if").op("exp", "exp", {takes("x", "x"), gives("y", "a")});
  b.within("switch", 0).kernel("k0", "scale", {takes("x", "x"), gives("y", "b"), scalar("by", 5.0)});
  b.within("switch", 1).op("neg", "neg", {takes("x", "x"), gives("y", "b")});
  b.within("switch", 2)
      .captured("c2", "blend",
                {takes("x", "x"), gives("y", "b"), device_scalar("weight", 1), scalar("offset", -1)});
  b.within("while").kernel("less", "one_less", {read_write("x", {.buffer = "left"})});
  b.within("while").kernel("more", "increment", {read_write("x", {.buffer = "state"})});
  b.within("twice").op("square", "square", {takes("x", "state"), gives("y", "t")});
  b.within("twice").kernel("scale", "scale", {takes("x", "t"), gives("y", "state"), scalar("by", 0.5)});
  b.within("else", 0).op("relu", "relu", {takes("x", "x"), gives("y", "c")});
  b.within("else", 1).kernel("third", "scale", {takes("x", "x"), gives("y", "c"), scalar("by", 1.0 / 3)});
  b.within("times").kernel("halve", "halve", {read_write("x", {.buffer = "state"})});
  b.within().dependency("square", "scale");
  return b;
}

/// Rows that are appended, counted and read.
Builder appending() {
  Builder b("appending");
  b.external("x", Dtype::f32, {8}).external("n", Dtype::i64, {1}).external("rows", Dtype::f32, {4});
  b.kernel("count", "count", {takes("rows", "rows"), gives("n", "n")});
  b.kernel("above", "above", {takes("x", "x"), append("rows", {.buffer = "rows"}), scalar("threshold", 2)});
  return b;
}

Memory memory_of(const Description& description) {
  Memory out;
  for (const Buffer& buffer : description.buffers) {
    if (buffer.lifetime != Lifetime::external) continue;
    const auto size = static_cast<std::size_t>(op::element_count(buffer.shape));
    if (buffer.dtype == Dtype::f32)
      out.add<float>(buffer.id, Floats(size, 1));
    else
      out.add<std::int64_t>(buffer.id, Integers(size, 1));
  }
  return out;
}

Bytes bytes_of(const std::string& text) {
  return Bytes::copy(std::as_bytes(std::span(text.data(), text.size())));
}

Result<GraphPackage> loaded(const std::string& bytes) {
  return engine::graph_from_bytes(bytes_of(bytes), "x.plan");
}

class SavedGraphs : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::shared_ptr<runtime::Device> device() {
    return value_or_throw(engine::find_device(GetParam()));
  }
  /// What a file with it has.
  static std::string saved(Builder& b) {
    return value_or_throw(engine::to_bytes(value_or_throw(engine::compile_graph(*b.finish(), *device()))));
  }
  static std::unique_ptr<HostGraph> from_file(Builder& b, Memory& memory, HostOptions options = {}) {
    options.bindings = memory.bindings();
    return value_or_throw(
        engine::make_graph(value_or_throw(loaded(saved(b))), kernels(), std::move(options)));
  }
  static std::unique_ptr<HostGraph> direct(Builder& b, Memory& memory) {
    return value_or_throw(
        HostGraph::create(*b.finish(), kernels(),
                          {.bindings = memory.bindings(), .compiler = engine::make_op_compiler(device())}));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SavedGraphs, testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

/// The same graph built here and from a file, each with its memory.
struct Both {
  Memory here, there;
  std::unique_ptr<HostGraph> direct, from_file;

  template <class T>
  void set(const std::string& buffer, const std::vector<T>& values) {
    here.set(buffer, values);
    there.set(buffer, values);
  }
  void launch() const {
    for (const auto& graph : {direct.get(), from_file.get()}) {
      const auto report = graph->launch();
      ASSERT_TRUE(report) << report.error().to_text();
    }
  }
  template <class T>
  void expect_equal(const std::string& buffer) const {
    EXPECT_EQ(here.get<T>(buffer), there.get<T>(buffer)) << buffer;
  }
};

TEST_P(SavedGraphs, OpsKernelsAndCapturesRunAsTheyDidBeforeTheyWereSaved) {
  Builder b = chain();
  Both both{memory_of(b.description()), memory_of(b.description()), {}, {}};
  both.direct = direct(b, both.here), both.from_file = from_file(b, both.there);
  for (int launch = 1; launch <= 3; ++launch) {
    both.set<float>("x", {1, 2, 3, static_cast<float>(launch)});
    both.launch();
    both.expect_equal<float>("y");
    EXPECT_EQ(*both.direct->content("sum"), *both.from_file->content("sum"));
    // Softmax sums to 1: y is twice the sum of three times that of all launches, and 1 more in each element.
    const Floats y = both.there.get<float>("y");
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0F), 6 * launch + 4, 1e-4);
  }
}

TEST_P(SavedGraphs, EveryKindOfRegionRunsAsItDidBefore) {
  Builder b = regions();
  Both both{memory_of(b.description()), memory_of(b.description()), {}, {}};
  both.direct = direct(b, both.here), both.from_file = from_file(b, both.there);
  both.set<float>("x", {-1, 0.5, 2, 3});
  for (const std::int64_t which : {0, 1, 2, 3, -1})
    for (const std::int64_t flag : {0, 1})
      for (const std::int64_t n : {0, 1, 3}) {
        both.set<std::int64_t>("which", {which});
        both.set<std::int64_t>("flag", {flag});
        both.set<std::int64_t>("n", {n});
        both.launch();
        for (const char* buffer : {"a", "b", "c"}) both.expect_equal<float>(buffer);
        EXPECT_EQ(*both.direct->content("state"), *both.from_file->content("state"));
        EXPECT_EQ(both.there.get<float>("a")[2], flag == 0 ? 0 : std::exp(2.0F));
        EXPECT_EQ(both.there.get<float>("b")[2], which == 0 ? 10 : which == 1 ? -2 : which == 2 ? 1 : 0);
      }
}

TEST_P(SavedGraphs, AppendBuffersCountFromZeroAndReportWhatDoesNotFit) {
  Builder b = appending();
  Memory memory = memory_of(b.description());
  const auto graph = from_file(b, memory);
  memory.set<float>("x", {0, 1, 2, 3, 4, 5, 1, 6});
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_TRUE(graph->launch());
    EXPECT_EQ(memory.get<std::int64_t>("n")[0], 4);
    EXPECT_EQ(memory.get<float>("rows"), (Floats{3, 4, 5, 6}));
  }
  memory.set<float>("x", {3, 3, 3, 3, 3, 3, 1, 1});
  const auto report = graph->launch();
  ASSERT_TRUE(report && report->overflows.size() == 1);
  EXPECT_EQ(report->overflows[0].asked, 6U);
}

TEST_P(SavedGraphs, AreTheSameBytesAgain) {
  for (Builder b : {chain(), regions(), appending()}) {
    const std::string bytes = saved(b);
    EXPECT_EQ(value_or_throw(engine::to_bytes(value_or_throw(loaded(bytes)))), bytes);
  }
}

TEST_P(SavedGraphs, GroupsAreLoadedAsPlansAndNotCompiledAgain) {
  class NoCompiler final : public OpCompiler {
   public:
    Result<std::shared_ptr<OpProgram>> compile(const ir::FunctionRef&, std::uint64_t) override {
      ADD_FAILURE() << "a group is compiled";
      return Error(ErrorCode::unsupported, "no");
    }
  };
  Builder b = chain();
  const GraphPackage package = value_or_throw(loaded(saved(b)));
  EXPECT_EQ(package.plans.size(), 2U);
  for (const plan::PlanRef& plan : package.plans) EXPECT_NE(plan, nullptr);
  Memory memory = memory_of(b.description());
  const auto graph = value_or_throw(engine::make_graph(
      package, kernels(), {.bindings = memory.bindings(), .compiler = std::make_shared<NoCompiler>()}));
  graph->set_profiling(ProfilingLevel::per_kernel);
  const auto report = graph->launch();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->profile.kernels.at(1).joined_with, "double");  // one program
}

TEST_P(SavedGraphs, AreProfiledByBlock) {
  Builder b = chain();
  Memory memory = memory_of(b.description());
  const auto graph = from_file(b, memory, {.profiling = ProfilingLevel::per_block});
  const auto report = graph->launch();
  ASSERT_TRUE(report);
  std::map<std::string, std::uint64_t> runs;
  for (const description::BlockTime& time : report->profile.blocks) runs[time.block] = time.runs;
  EXPECT_EQ(runs["inner"], 1U);
  EXPECT_EQ(runs["outer"], 4U);
}

// ---- changes after loading

TEST_P(SavedGraphs, NumbersBuffersGridsAndSizesChangeAfterLoading) {
  Builder b = chain();
  Both both{memory_of(b.description()), memory_of(b.description()), {}, {}};
  both.direct = direct(b, both.here), both.from_file = from_file(b, both.there);
  both.set<float>("x", {1, 2, 3, 4});
  const auto change = [&](Tier tier, const auto& apply) {
    for (HostGraph* graph : {both.direct.get(), both.from_file.get()}) {
      ASSERT_TRUE(apply(*graph));
      const UpdateReport report = graph->update();
      ASSERT_FALSE(report.error) << report.error->to_text();
      EXPECT_EQ(report.tier, tier) << report.cause;
    }
    both.launch();
    both.expect_equal<float>("y");
  };
  change(Tier::hot, [](HostGraph& g) { return g.set_number("scale", "by", 7.0); });
  change(Tier::hot, [](HostGraph& g) { return g.set_number("double", "b", -1.0); });
  change(Tier::hot, [](HostGraph& g) { return g.set_number("blend", "weight", 0.5); });
  change(Tier::recapture, [](HostGraph& g) { return g.set_number("blend", "offset", 4.0); });
  change(Tier::warm, [](HostGraph& g) { return g.set_grid("scale", {2, 1, 1}); });
  Memory other;
  other.add<float>("x", {4, 3, 2, 1});
  change(Tier::warm, [&](HostGraph& g) { return g.bind("x", other.bindings()["x"]); });
  change(Tier::code,
         [](HostGraph& g) { return g.replace_kernel("scale", map_kernel([](float x) { return x * 100; })); });
}

TEST_P(SavedGraphs, SizesChangeAfterLoading) {
  Builder b = regions();
  Memory memory = memory_of(b.description());
  const auto graph = from_file(b, memory);
  Memory large;
  for (const char* buffer : {"x", "a", "b", "c"}) {
    large.add<float>(buffer, Floats(6, 2));
    ASSERT_TRUE(graph->bind(buffer, large.bindings()[buffer], Extents{6}));
  }
  for (const char* buffer : {"state", "t"}) ASSERT_TRUE(graph->resize(buffer, {6}));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::recapture) << report.cause;  // the captured node sees other memory
  EXPECT_GT(report.programs, 0U);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(large.get<float>("c"), Floats(6, 2));
}

TEST_P(SavedGraphs, ANodeThatCallsAnotherOpIsExchangedAfterLoading) {
  Builder b = chain();
  Memory memory = memory_of(b.description());
  const auto graph = from_file(b, memory);
  Description other = *b.finish();
  other.nodes[3].call = "sub";
  ASSERT_TRUE(graph->set_description(other));
  ASSERT_FALSE(graph->update().error);
  ASSERT_TRUE(graph->launch());
  const Floats y = memory.get<float>("y");
  EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0F), -6 + 4, 1e-4);
}

TEST_P(SavedGraphs, WhatWasChangedIsSavedAsItIsNow) {
  Builder b = chain();
  Memory memory = memory_of(b.description());
  const auto first = from_file(b, memory);
  ASSERT_TRUE(first->set_number("blend", "offset", 10.0));
  const auto package = engine::compile_graph(*first->description(), *device());
  const std::string bytes = value_or_throw(engine::to_bytes(*package));
  const auto graph = value_or_throw(
      engine::make_graph(value_or_throw(loaded(bytes)), kernels(), {.bindings = memory.bindings()}));
  ASSERT_TRUE(graph->launch());
  const Floats y = memory.get<float>("y");
  EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0F), 6 + 40, 1e-4);
}

TEST_P(SavedGraphs, APlanRunsOnAnotherDevice) {
  Builder b = chain();
  Both both{memory_of(b.description()), memory_of(b.description()), {}, {}};
  both.direct = direct(b, both.here);
  for (const char* other : {"reference", "cpu"}) {
    both.from_file = value_or_throw(engine::make_graph(value_or_throw(loaded(saved(b))), kernels(),
                                                       {.bindings = both.there.bindings()},
                                                       value_or_throw(engine::find_device(other))));
    ASSERT_TRUE(both.from_file->launch());
    const Floats y = both.there.get<float>("y");
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0F), 10, 1e-4);
  }
}

// ---- another process

TEST(SavedGraph, RunsInAnotherProcess) {
  const auto path = std::filesystem::temp_directory_path() / cat("tessera-saved-graph-", ::getpid(), ".plan");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto package = engine::compile_graph(*chain().finish(), **engine::find_device("cpu"));
    _exit(package && engine::save_graph(*package, path.string()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(engine::is_graph(path.string()));
  Builder b = chain();
  Memory memory = memory_of(b.description());
  auto package = engine::load_graph(path.string());
  ASSERT_TRUE(package) << package.error().to_text();
  std::filesystem::remove(path);
  const auto graph =
      value_or_throw(engine::make_graph(*std::move(package), kernels(), {.bindings = memory.bindings()}));
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), Floats(4, 2.5F));
}

// ---- what cannot be

std::string error_of(const auto& result) { return result ? "" : result.error().to_text(); }

GraphPackage package_of(Builder& b) {
  return value_or_throw(engine::compile_graph(*b.finish(), **engine::find_device("cpu")));
}

TEST(SavedGraph, AllNamesThatAreMissingAreInOneError) {
  Builder b = chain();
  KernelTable table;
  table.add("other", [](KernelCall&) {});
  const std::string error = error_of(engine::make_graph(package_of(b), table));
  EXPECT_NE(error.find("block 'outer', node 'scale': there is no kernel 'scale', registered are 'other'"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("block 'outer', node 'blend': there is no capture 'blend', registered are none"),
            std::string::npos)
      << error;
}

TEST(SavedGraph, AllKernelsThatTakeOtherParametersAreInOneError) {
  Builder b = chain();
  KernelTable table = kernels();
  table.declare(NodeKind::kernel, "scale",
                {read("x", {.dtype = Dtype::f64}), read_write("y"), scalar("by", 0)});
  table.declare(NodeKind::captured, "blend", {read("x"), write("y"), device_scalar("weight", 0)});
  const std::string error = error_of(engine::make_graph(package_of(b), table));
  for (const char* part :
       {"node 'scale', parameter 'x': kernel 'scale' takes it as f64, the node has it as f32",
        "node 'scale', parameter 'y': kernel 'scale' takes it as read_write, the node has it as write",
        "node 'blend': captured 'blend' takes 3 parameters, the node has 4"})
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  table.declare(NodeKind::kernel, "scale", {read("x", {.dtype = Dtype::f32}), write("y"), scalar("by", 0)});
  table.declare(NodeKind::captured, "blend",
                {read("x"), write("y"), device_scalar("weight", 0), scalar("offset", 0)});
  EXPECT_EQ(error_of(engine::make_graph(package_of(b), table)), "");
}

TEST(SavedGraph, AFunctionWithoutANameCannotBeSaved) {
  for (const bool is_captured : {false, true}) {
    Builder b = appending();
    b.block("here").in_block("here");
    if (is_captured)
      b.captured("own", CaptureFunction([](CaptureCall&) {}), {takes("x", "x")});
    else
      b.kernel("own", KernelFunction([](KernelCall&) {}), {takes("x", "x")});
    const std::string error = error_of(engine::to_bytes(package_of(b)));
    EXPECT_NE(
        error.find("the plan cannot be saved: node 'own' of block 'here' calls a function that was given "
                   "with it and has no name"),
        std::string::npos)
        << error;
    EXPECT_NE(error.find("graph_package_test.cpp:"), std::string::npos) << error;
  }
}

TEST(SavedGraph, CodeOfADeviceIsCarriedInTheFile) {
  const auto path = std::filesystem::temp_directory_path() / cat("tessera-code-", ::getpid(), ".cu");
  std::ofstream(path) << "extern \"C\" __global__ void fill(float* y) { y[threadIdx.x] = 1; }\n";
  Builder b;
  b.external("y", Dtype::f32, {4});
  b.kernel("fill", "fill", {gives("y", "y")});
  b.description().nodes[0].code = KernelFile{.file = path.string(), .entry = {}, .threads = {4, 1, 1}};
  const std::string bytes = value_or_throw(engine::to_bytes(package_of(b)));
  std::filesystem::remove(path);
  GraphPackage package = value_or_throw(loaded(bytes));
  ASSERT_EQ(package.code.size(), 1U);
  EXPECT_NE(package.code[0].text.find("threadIdx.x"), std::string::npos);
  EXPECT_NE(
      error_of(engine::make_graph(package, {})).find("kernel 'fill' is for a device, the graph has none"),
      std::string::npos);
  KernelTable host;
  host.add("fill", description::fixture::fill_kernel(3));
  Memory memory = memory_of(b.description());
  const auto graph = value_or_throw(engine::make_graph(package, host, {.bindings = memory.bindings()}));
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(memory.get<float>("y"), Floats(4, 3));
}

TEST(SavedGraph, FilesOfOtherVersionsAndDamagedOnesAreRefused) {
  Builder b = chain();
  const std::string bytes = value_or_throw(engine::to_bytes(package_of(b)));
  const auto changed = [&](std::size_t at, char by) {
    std::string out = bytes;
    out[at] = static_cast<char>(out[at] + by);
    return error_of(loaded(out));
  };
  EXPECT_NE(changed(0, 1).find("x.plan: the file is no plan"), std::string::npos);
  EXPECT_NE(changed(8, 1).find("the file has form 2 of plans, this version"), std::string::npos);
  EXPECT_NE(changed(16, 1).find("the plan was made by version '1.1.0'"), std::string::npos) << changed(16, 1);
  EXPECT_NE(changed(40, 1).find("made by another build of version"), std::string::npos);
  EXPECT_NE(changed(bytes.size() - 1, 1).find("its checksum is not that of its content"), std::string::npos);
  for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 200)
    EXPECT_NE(error_of(loaded(bytes.substr(0, size))), "") << size;
  EXPECT_NE(error_of(plan::from_bytes(bytes_of(bytes), "x.plan")).find("the plan of a graph description"),
            std::string::npos);
}

// ---- schedules that were changed

/// The error of a package whose schedule is another, behind the bytes that a file has of it.
template <class Change>
std::string error_with(Builder& b, const Change& change) {
  GraphPackage package = package_of(b);
  auto program = std::make_shared<Program>(*package.program);
  change(program->schedule, package);
  package.program = std::move(program);
  return error_of(loaded(value_or_throw(engine::to_bytes(package))));
}

TEST(SavedGraph, AScheduleThatIsNotOneOfItsDescriptionIsRefused) {
  Builder b = chain();
  const auto expect = [&](std::string_view part, const auto& change) {
    const std::string error = error_with(b, change);
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  };
  expect("", [](Schedule&, GraphPackage&) {});
  expect("a step waits for one that comes later",
         [](Schedule& s, GraphPackage&) { s.sequences[0].steps[1].waits[0].step = 3; });
  expect("another level", [](Schedule& s, GraphPackage&) { s.sequences[0].steps[1].level = 0; });
  expect("other levels", [](Schedule& s, GraphPackage&) { s.sequences[0].levels = 1'000'000; });
  expect("of one that runs elsewhere", [](Schedule& s, GraphPackage&) { s.sequences[0].steps[0].index = 1; });
  expect("of one that runs elsewhere",
         [](Schedule& s, GraphPackage&) { s.sequences[0].steps[0].index = 9999; });
  expect("it has 2 sequences", [](Schedule& s, GraphPackage&) { s.sequences.emplace_back(); });
  expect("'blend' never runs", [](Schedule& s, GraphPackage& p) {
    s.sequences[0].steps.pop_back();
    --s.sequences[0].levels;
    p.grouping.units[0].pop_back();
  });
  expect("not every buffer has a home", [](Schedule& s, GraphPackage&) { s.memory.homes.pop_back(); });
  expect("lies where it cannot", [](Schedule& s, GraphPackage&) { s.memory.homes[3].offset += 1 << 20; });
  expect("lies where it cannot", [](Schedule& s, GraphPackage&) { s.memory.homes[3].offset += 1; });
  expect("the sums of its memory", [](Schedule& s, GraphPackage&) { s.memory.own_bytes = 0; });
  expect("two buffers lie in the same place", [](Schedule& s, GraphPackage&) {
    for (Home& home : s.memory.homes) home.offset = 0;
  });
  expect("units are not sorted", [](Schedule&, GraphPackage& p) {
    std::swap(p.grouping.units[0].front(), p.grouping.units[0].back());
  });
  expect("a step is in no unit", [](Schedule&, GraphPackage& p) { p.grouping.units[0].pop_back(); });
  expect("a group has kernel node 'scale', a host function",
         [](Schedule&, GraphPackage& p) { p.grouping.groups[0].steps.push_back(2); });
  expect("it has other inputs, outputs or numbers than its ops",
         [](Schedule&, GraphPackage& p) { std::swap(p.plans[0], p.plans[1]); });
}

TEST(SavedGraph, AScheduleThatRacesIsRefused) {
  Builder b = appending();
  const std::string error = error_with(b, [](Schedule& s, GraphPackage&) {
    for (Step& step : s.sequences[0].steps) step.waits.clear(), step.level = 0;
    s.sequences[0].levels = 1;
  });
  EXPECT_NE(error.find("steps use buffer 'rows' at the same time"), std::string::npos) << error;
  Builder r = regions();
  for (const StepKind kind : {StepKind::zero, StepKind::reset_counter}) {
    Builder& of = kind == StepKind::zero ? r : b;
    const std::string refused = error_with(of, [&](Schedule& s, GraphPackage&) {
      for (Step& step : s.sequences[0].steps)
        if (step.kind == kind) step.kind = kind == StepKind::zero ? StepKind::reset_counter : StepKind::zero;
    });
    EXPECT_NE(refused.find("is not reset or zeroed where it must be"), std::string::npos) << refused;
  }
}

}  // namespace

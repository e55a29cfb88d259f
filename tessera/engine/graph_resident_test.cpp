// A description on a device is one resident graph: launched as one, changed in place, with its regions in it.
// On the emulated device, and on a GPU where there is one.
#include "tessera/describe/builder.h"
#include "tessera/engine/device_graph_fixture.h"
#include "tessera/engine/random_graph.h"

using namespace tessera;
using namespace tessera::description;
using engine::fixture::DeviceFloats;
using runtime::cuda::emulated_state;

namespace {

constexpr std::size_t width = 64;
constexpr const char* resident_kernels = R"(
extern "C" __global__ void scale(const float* x, float* y, float by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * by;
}
extern "C" __global__ void sum(const float* a, const float* b, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a[i] + b[i];
}
extern "C" __global__ void increase(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += 1;
}
extern "C" __global__ void count_down(int* left) {
  if (blockIdx.x * blockDim.x + threadIdx.x == 0) left[0] -= 1;
}
extern "C" __global__ void fill(float* rows, unsigned long long* count, unsigned long long capacity, const int* how_many) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= how_many[0]) return;
  const unsigned long long at = atomicAdd(count, 1ull);
  if (at < capacity) rows[at] = 1;
}
)";

Parameter in(std::string name, std::string buffer) {
  return read(std::move(name), {.buffer = std::move(buffer)});
}
Parameter out(std::string name, std::string buffer) {
  return write(std::move(name), {.buffer = std::move(buffer)});
}
Parameter both(std::string name, std::string buffer) {
  return read_write(std::move(name), {.buffer = std::move(buffer)});
}

/// What the emulated driver was asked for.
struct DriverWork {
  std::uint64_t instantiated = 0, launched = 0, patched = 0, captured = 0;

  static DriverWork until_now() {
    const auto& state = emulated_state();
    return {state.instantiated, state.launched, state.patched, state.captured};
  }
  [[nodiscard]] DriverWork since(const DriverWork& before) const {
    return {instantiated - before.instantiated, launched - before.launched, patched - before.patched,
            captured - before.captured};
  }
  bool operator==(const DriverWork&) const = default;
};
std::ostream& operator<<(std::ostream& to, const DriverWork& work) {
  return to << work.instantiated << " instantiated, " << work.launched << " launched, " << work.patched
            << " patched, " << work.captured << " captured";
}

class GraphResident : public engine::fixture::DeviceGraph {
 protected:
  void SetUp() override {
    DeviceGraph::SetUp();
    if (device_ == nullptr) return;
    x_ = filled(1);
    code_ = op::KernelSource::from_text(resident_kernels, op::CodeForm::cuda, "resident.cu");
  }
  void TearDown() override {
    emulated_state().refuses_updates = emulated_state().refuses_conditionals = false;
    emulated_state().instantiation = CUDA_SUCCESS;
    DeviceGraph::TearDown();
  }

  [[nodiscard]] DeviceFloats filled(float value) const { return floats(std::vector<float>(width, value)); }

  [[nodiscard]] DeviceCode code(const std::string& entry) const {
    DeviceCode out{.threads = {32, 1, 1}};
    out.call.name = entry;
    out.call.entry = entry;
    out.call.code = code_;
    return out;
  }
  /// Buffers x (external), a, b, out of f32; flag and left (graph) of i32.
  [[nodiscard]] Builder builder() const {
    Builder b;
    b.external("x", Dtype::f32, {width});
    for (const char* name : {"a", "b", "out"}) b.graph(name, Dtype::f32, {width});
    for (const char* name : {"scale", "sum", "increase", "count_down", "fill"})
      b.kernels().add_device_kernel(name, code(name));
    engine::add_stream_capture(b.kernels(), "copied", copies());
    return b;
  }
  static Builder& scale(Builder& b, std::string id, std::string from, std::string to, double by) {
    b.kernel(std::move(id), "scale",
             {in("x", std::move(from)), out("y", std::move(to)), scalar("by", by, Dtype::f32)});
    b.description().nodes.back().grid = {2, 1, 1};
    return b;
  }
  static Builder& increase(Builder& b, std::string id, std::string buffer) {
    b.kernel(std::move(id), "increase", {both("x", std::move(buffer))});
    b.description().nodes.back().grid = {2, 1, 1};
    return b;
  }
  /// x scaled twice side by side, one of both copied by a captured call, and the sum of both.
  [[nodiscard]] Builder diamond() const {
    Builder b = builder();
    b.temporary("t", Dtype::f32, {width});
    scale(b, "left", "x", "a", 2);
    scale(b, "right", "x", "t", 3);
    b.captured("copy", "copied", {in("from", "t"), out("to", "b"), integer("bytes", width * sizeof(float))});
    b.kernel("sum", "sum", {in("a", "a"), in("b", "b"), out("y", "out")});
    b.description().nodes.back().grid = {2, 1, 1};
    return b;
  }
  [[nodiscard]] Result<std::unique_ptr<HostGraph>> try_create(
      Builder& b, std::map<std::string, DeviceFloats> more = {},
      ProfilingLevel profiling = ProfilingLevel::none) const {
    HostOptions options{.profiling = profiling, .device = graph_device_};
    more.emplace("x", x_);
    for (const auto& [name, memory] : more) options.bindings.emplace(name, memory.bytes());
    return HostGraph::create(*b.finish(), b.kernels(), std::move(options));
  }
  [[nodiscard]] std::unique_ptr<HostGraph> created(Builder& b,
                                                   std::map<std::string, DeviceFloats> more = {}) const {
    return value_or_throw(try_create(b, std::move(more)));
  }

  /// Counts only where they can be seen.
  void expect_work(const DriverWork& before, const DriverWork& expected) const {
    if (is_emulated()) {
      EXPECT_EQ(DriverWork::until_now().since(before), expected);
    }
  }
  /// An i32 in device memory.
  [[nodiscard]] DeviceFloats number(std::int32_t value) const {
    DeviceFloats out = floats({0});
    set(out, value);
    return out;
  }
  void set(const DeviceFloats& where, std::int32_t value) const {
    value_or_throw(graph_device_->copy_in(where.memory.get(), std::as_bytes(std::span(&value, 1))));
  }

  DeviceFloats x_;
  std::shared_ptr<op::KernelSource> code_;
};

// ---- one launch

TEST_P(GraphResident, ALaunchIsOneLaunchOfAGraph) {
  Builder b = diamond();
  const DriverWork before = DriverWork::until_now();
  const auto graph = created(b);
  expect_work(before, {.instantiated = 1, .captured = 1});
  for (int i = 0; i < 5; ++i) {
    const DriverWork begin = DriverWork::until_now();
    EXPECT_EQ(launched(*graph), 5);
    expect_work(begin, {.launched = 1});
  }
}

TEST_P(GraphResident, BuffersMayBeBoundLater) {
  Builder b = diamond();
  const auto graph = value_or_throw(HostGraph::create(*b.finish(), b.kernels(), {.device = graph_device_}));
  const auto unbound = graph->launch();
  ASSERT_FALSE(unbound);
  EXPECT_NE(unbound.error().message().find("external buffer 'x' is not bound"), std::string::npos);
  ASSERT_TRUE(graph->bind("x", x_.bytes()));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_TRUE(report.is_remade);
  EXPECT_EQ(launched(*graph), 5);
}

// ---- changes

TEST_P(GraphResident, Trap_G17_ANumberIsOneNode) {
  Builder b = diamond();
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 5);
  const DriverWork before = DriverWork::until_now();
  ASSERT_TRUE(graph->set_number("left", "by", 10.0));
  const UpdateReport report = graph->update();
  EXPECT_EQ(report.tier, Tier::hot);
  EXPECT_EQ(report.patched, 1U);
  EXPECT_FALSE(report.is_remade);
  EXPECT_EQ(launched(*graph), 13);
  expect_work(before, {.launched = 1, .patched = 1});
}

TEST_P(GraphResident, Trap_G17_AddressesAndGridsAreTheNodesThatHoldThem) {
  Builder b = diamond();
  const auto graph = created(b);
  const DriverWork before = DriverWork::until_now();
  const DeviceFloats other = filled(2);
  ASSERT_TRUE(graph->bind("x", other.bytes()));
  const UpdateReport moved = graph->update();
  EXPECT_EQ(moved.tier, Tier::warm);
  EXPECT_EQ(moved.patched, 2U);
  EXPECT_EQ(launched(*graph), 10);
  ASSERT_TRUE(graph->set_grid("left", {1, 1, 1}));
  const UpdateReport grid = graph->update();
  EXPECT_EQ(grid.tier, Tier::warm);
  EXPECT_EQ(grid.patched, 1U);
  ASSERT_TRUE(graph->bind("x", x_.bytes()));
  EXPECT_FALSE(graph->update().error);
  EXPECT_EQ(launched(*graph), 5);
  EXPECT_EQ(content(*graph, "out")[width - 1], 7) << "the second half of 'a' is of the launch before";
  expect_work(before, {.launched = 2, .patched = 5});
}

TEST_P(GraphResident, Trap_G14_AResizeIsPatchedToo) {
  Builder b = diamond();
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 5);
  const DriverWork before = DriverWork::until_now();
  ASSERT_TRUE(graph->resize("a", {2 * width}));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_FALSE(report.is_remade);
  EXPECT_EQ(launched(*graph), 5);
  if (is_emulated()) {
    EXPECT_EQ(DriverWork::until_now().since(before).instantiated, 0U);
  }
}

TEST_P(GraphResident, Trap_G17_ACaptureIsReplacedInPlace) {
  Builder b = diamond();
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 5);
  const DriverWork before = DriverWork::until_now();
  ASSERT_TRUE(graph->set_number("copy", "bytes", std::int64_t{128}));
  const UpdateReport report = graph->update();
  EXPECT_EQ(report.tier, Tier::recapture);
  EXPECT_EQ(report.patched, 1U);
  EXPECT_FALSE(report.is_remade);
  expect_work(before, {.patched = 1, .captured = 1});
  ASSERT_TRUE(graph->set_number("right", "by", 4.0));
  EXPECT_FALSE(graph->update().error);
  EXPECT_EQ(launched(*graph), 6);
  EXPECT_EQ(content(*graph, "out")[width - 1], 5) << "half as much is copied";
}

TEST_P(GraphResident, Trap_G7_ACaptureOfOtherCallsMakesTheGraphAnew) {
  Builder b = diamond();
  const auto graph = created(b);
  const auto once = copies();
  DeviceCode twice;
  twice.call.name = "copied";
  twice.call.capture = [once](const op::StreamCall& call) { once(call), once(call); };
  ASSERT_TRUE(graph->set_number("left", "by", 20.0));
  ASSERT_TRUE(graph->replace_capture("copied", twice));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::cold);
  EXPECT_TRUE(report.is_remade);
  EXPECT_NE(report.cause.find("not changed in place: node 'copy': "), std::string::npos) << report.cause;
  EXPECT_EQ(launched(*graph), 23) << "Trap_G6: both changes are in the next launch";
}

TEST_P(GraphResident, Trap_G17_AnotherKernelIsAnotherFunctionOfItsNodes) {
  Builder b = diamond();
  const auto graph = created(b);
  const DriverWork before = DriverWork::until_now();
  DeviceCode other = code("scale");
  std::string text = resident_kernels;
  text.replace(text.find("x[i] * by"), 9, "x[i] - by");
  other.call.code = op::KernelSource::from_text(text, op::CodeForm::cuda, "other.cu");
  ASSERT_TRUE(graph->replace_kernel("scale", other));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::code);
  EXPECT_EQ(report.patched, 2U);
  EXPECT_EQ(launched(*graph), -3);
  text.replace(text.find("x[i] - by"), 9, "x[i] + by");
  other.call.code->set_text(text, op::CodeForm::cuda);
  EXPECT_EQ(launched(*graph), 7) << "the code itself changed";
  expect_work(before, {.launched = 2, .patched = 4});
}

TEST_P(GraphResident, ANumberInDeviceMemoryIsNoPatchAtAll) {
  Builder b = builder();
  DeviceCode scaling;  // what a library does that reads its factor from memory
  scaling.call.name = "scaled";
  scaling.call.capture = [&driver = device_->context()->driver()](const op::StreamCall& call) {
    static_cast<void>(driver.cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(call.data<float>(1)),
                                               reinterpret_cast<CUdeviceptr>(call.data<double>(2)),
                                               sizeof(double), static_cast<CUstream>(call.stream())));
    EXPECT_FALSE(call.argument(2).is_number);
  };
  b.kernels().add_device_capture("scaled", scaling);
  b.captured("c", "scaled", {in("x", "x"), out("y", "out"), device_scalar("by", 2.5)});
  const auto graph = created(b);
  const auto first = [&] {
    static_cast<void>(value_or_throw(graph->launch()));
    double out = 0;
    std::memcpy(&out, value_or_throw(graph->content("out")).data(), sizeof out);
    return out;
  };
  EXPECT_EQ(first(), 2.5);
  const DriverWork before = DriverWork::until_now();
  ASSERT_TRUE(graph->set_number("c", "by", -7.0));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  EXPECT_EQ(first(), -7);
  expect_work(before, {.launched = 1});
}

TEST_P(GraphResident, NumbersOfOpsAreReadFromMemory) {
  Builder b = builder();
  b.op("more", "add", {in("a", "x"), scalar("b", 2.0), out("y", "out")});
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 3);
  const DriverWork before = DriverWork::until_now();
  ASSERT_TRUE(graph->set_number("more", "b", 5.0));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  EXPECT_EQ(launched(*graph), 6);
  expect_work(before, {.launched = 1});
}

TEST_P(GraphResident, WhatTheDriverRefusesIsMadeAnewWithTheReason) {
  if (!is_emulated()) GTEST_SKIP() << "drivers take this";
  Builder b = diamond();
  const auto graph = created(b);
  emulated_state().refuses_updates = true;
  ASSERT_TRUE(graph->set_number("left", "by", 10.0));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::cold);
  EXPECT_TRUE(report.is_remade);
  EXPECT_NE(report.cause.find("not changed in place: node 'left': "), std::string::npos) << report.cause;
  EXPECT_EQ(launched(*graph), 13);
}

TEST_P(GraphResident, Trap_G5_AChangeThatFailsLeavesTheGraph) {
  Builder b = diamond();
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 5);
  DeviceCode broken;
  broken.call.name = "copied";
  broken.call.capture = [](const op::StreamCall&) { throw std::runtime_error("no such library"); };
  ASSERT_TRUE(graph->set_number("left", "by", 10.0));
  ASSERT_TRUE(graph->replace_capture("copied", broken));
  const UpdateReport failed = graph->update();
  ASSERT_TRUE(failed.error);
  EXPECT_NE(failed.error->message().find("node 'copy': "), std::string::npos) << failed.error->to_text();
  EXPECT_NE(failed.error->message().find("no such library"), std::string::npos) << failed.error->to_text();
  EXPECT_EQ(launched(*graph), 5) << "nor is the number in it";
  DeviceCode good;
  good.call.name = "copied";
  good.call.capture = copies();
  ASSERT_TRUE(graph->replace_capture("copied", good));
  EXPECT_FALSE(graph->update().error);
  EXPECT_EQ(launched(*graph), 13);
}

/// A call that queues something else than before, so that the driver refuses to patch its node, and fails
/// when the graph is made anew and when what was patched before it is to be taken back.
TEST_P(GraphResident, Trap_G5_AGraphOfWhichNothingIsLeftIsMadeAnew) {
  Builder b = builder();
  int calls_left = 100;
  const auto copies_often = [copy = copies(), &calls_left](const op::StreamCall& call) {
    if (calls_left-- <= 0) throw std::runtime_error("no such library");
    for (std::int64_t i = 0; i < call.integer(3); ++i) copy(call);
  };
  engine::add_stream_capture(b.kernels(), "often", copies_often);
  scale(b, "left", "x", "out", 2);
  for (const auto& [id, to] : {std::pair("one", "a"), std::pair("two", "b")})
    b.captured(
        id, "often",
        {in("from", "x"), out("to", to), integer("bytes", width * sizeof(float)), integer("times", 1)});
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 2);
  const DeviceFloats other = filled(3);
  ASSERT_TRUE(graph->bind("x", other.bytes()));
  const DriverWork before = DriverWork::until_now();
  calls_left = 1;
  EXPECT_TRUE(graph->update().error);
  expect_work(before, {.captured = 2});
  EXPECT_EQ(launched(*graph), 2) << "no node was touched";
  ASSERT_TRUE(graph->set_number("two", "times", std::int64_t{2}));
  calls_left = 2;
  EXPECT_TRUE(graph->update().error);
  EXPECT_FALSE(graph->launch()) << "calls fail still";
  ASSERT_TRUE(graph->set_number("left", "by", 10.0));
  const UpdateReport again = graph->update();
  ASSERT_TRUE(again.error);
  EXPECT_NE(again.error->message().find("no such library"), std::string::npos) << again.error->to_text();
  calls_left = 100;
  ASSERT_TRUE(graph->set_number("left", "by", 11.0));
  const UpdateReport last = graph->update();
  ASSERT_FALSE(last.error) << last.error->to_text();
  EXPECT_EQ(launched(*graph), 33);
}

/// Only a driver that does not take conditional nodes makes the host drive.
TEST_P(GraphResident, Trap_G5_AFailedRebuildOfAGraphWithRegionsLeavesIt) {
  Builder b = builder();
  b.external("n", Dtype::i32, {1}).for_count_in("loop", "n").within("loop");
  increase(b, "more", "out");
  const DeviceFloats n = number(4);
  const auto graph = created(b, {{"n", n}});
  EXPECT_EQ(launched(*graph), 4);
  const auto expect_left = [&](const std::string& words, ErrorCode code) {
    const UpdateReport report = graph->update();
    ASSERT_TRUE(report.error);
    EXPECT_EQ(report.error->code(), code) << report.error->to_text();
    EXPECT_NE(report.error->to_text().find(words), std::string::npos) << report.error->to_text();
    EXPECT_EQ(report.driven, "");
    const DriverWork before = DriverWork::until_now();
    const float last = content(*graph, "out")[0];
    EXPECT_EQ(launched(*graph), last + 4);
    expect_work(before, {.launched = 1});
  };
  Builder other = builder();
  DeviceCode broken;
  broken.call.name = "broken";
  broken.call.capture = [](const op::StreamCall&) {
    throw Exception(Error(ErrorCode::unsupported, "no such library"));
  };
  other.kernels().add_device_capture("broken", broken);
  other.external("n", Dtype::i32, {1}).for_count_in("loop", "n").within("loop");
  increase(other, "more", "out");
  other.captured("fails", "copied",
                 {in("from", "x"), out("to", "a"), integer("bytes", width * sizeof(float))});
  ASSERT_TRUE(graph->set_description(*other.finish()));
  ASSERT_TRUE(graph->replace_capture("copied", broken));
  expect_left("node 'fails': ", ErrorCode::device);
  expect_left("graph_resident_test.cpp:", ErrorCode::device);
  DeviceCode good;
  good.call.name = "copied";
  good.call.capture = copies();
  ASSERT_TRUE(graph->replace_capture("copied", good));
  if (is_emulated()) {
    emulated_state().instantiation = CUDA_ERROR_OUT_OF_MEMORY;
    expect_left("cuGraphInstantiate", ErrorCode::memory);
    emulated_state().instantiation = CUDA_SUCCESS;
    ASSERT_TRUE(graph->replace_capture("copied", good));
  }
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  static_cast<void>(value_or_throw(graph->launch()));
  EXPECT_EQ(content(*graph, "a")[0], 1);
}

TEST_P(GraphResident, Trap_G15_AKernelThatDoesNotCompileLeavesTheGraph) {
  Builder b = diamond();
  const auto graph = created(b);
  DeviceCode broken = code("scale");
  broken.call.code = op::KernelSource::from_text("#error oh", op::CodeForm::cuda, "broken.cu");
  ASSERT_TRUE(graph->replace_kernel("scale", broken));
  const UpdateReport failed = graph->update();
  ASSERT_TRUE(failed.error);
  EXPECT_NE(failed.error->message().find("node 'left': "), std::string::npos) << failed.error->to_text();
  EXPECT_EQ(launched(*graph), 5);
  ASSERT_TRUE(graph->replace_kernel("scale", [](KernelCall&) {}));
  const UpdateReport of_host = graph->update();
  ASSERT_TRUE(of_host.error);
  EXPECT_NE(of_host.error->message().find("is a function of the host"), std::string::npos)
      << of_host.error->to_text();
  EXPECT_EQ(launched(*graph), 5);
}

TEST_P(GraphResident, OtherStructureIsAnotherGraph) {
  Builder b = diamond();
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 5);
  increase(b, "more", "out");
  ASSERT_TRUE(graph->set_description(*b.finish()));
  const UpdateReport report = graph->update();
  EXPECT_EQ(report.tier, Tier::cold);
  EXPECT_TRUE(report.is_remade);
  EXPECT_EQ(launched(*graph), 6);
}

// ---- regions

TEST_P(GraphResident, Trap_G4_RegionsAreDecidedOnTheDevice) {
  Builder b = builder();
  b.external("which", Dtype::i32, {1}).external("flag", Dtype::i32, {1});
  b.if_else("either", "flag").within("either");
  scale(b, "yes", "x", "a", 2);
  b.within("either", 1);
  scale(b, "no", "x", "a", 3);
  b.within().switch_("one_of", "which", 2).within("one_of", 0);
  scale(b, "zero", "a", "b", 10);
  b.within("one_of", 1);
  scale(b, "one", "a", "b", 100);
  b.within().if_("maybe", "flag").within("maybe");
  scale(b, "only", "b", "out", 1);
  const DeviceFloats which = number(0), flag = number(1);
  const auto graph = created(b, {{"which", which}, {"flag", flag}});
  const auto run = [&](std::int32_t flag_value, std::int32_t case_value) {
    set(flag, flag_value);
    set(which, case_value);
    const DriverWork before = DriverWork::until_now();
    const float out = launched(*graph);
    expect_work(before, {.launched = 1});
    return out;
  };
  EXPECT_EQ(run(1, 0), 20);
  EXPECT_EQ(content(*graph, "a")[0], 2);
  EXPECT_EQ(run(0, 1), 0) << "what is skipped is zero";
  EXPECT_EQ(content(*graph, "b")[0], 300);
  EXPECT_EQ(run(-5, 1), 200);
  EXPECT_EQ(run(1, 7), 0) << "there is no such case";
  EXPECT_EQ(content(*graph, "b")[0], 0);
  ASSERT_TRUE(graph->set_number("yes", "by", 5.0));
  const UpdateReport report = graph->update();
  EXPECT_EQ(report.tier, Tier::hot);
  EXPECT_EQ(report.patched, 1U) << "nodes in bodies are patched, too";
  EXPECT_EQ(run(1, 0), 50);
}

TEST_P(GraphResident, Trap_G12_Trap_G19_LoopsAndTheirLimits) {
  Builder b = builder();
  b.external("left", Dtype::i32, {1}).external("n", Dtype::i32, {1}).graph("i", Dtype::i32, {1});
  b.while_("down", "left", 9).within("down");
  increase(b, "more", "a");
  b.kernel("count", "count_down", {both("left", "left")});
  b.for_count_in("inner", "n", "i", 20).within("inner");
  increase(b, "again", "out");
  const DeviceFloats left = number(3), n = number(2);
  const auto graph = created(b, {{"left", left}, {"n", n}});
  const DriverWork before = DriverWork::until_now();
  EXPECT_EQ(launched(*graph), 6);
  expect_work(before, {.launched = 1});
  EXPECT_EQ(content(*graph, "a")[0], 3);
  EXPECT_EQ(launched(*graph), 6) << "a loop that does not run changes nothing";
  set(left, 9);
  set(n, 0);
  EXPECT_EQ(launched(*graph), 6);
  EXPECT_EQ(content(*graph, "a")[0], 12);
  set(left, 10);
  const auto endless = graph->launch();
  ASSERT_FALSE(endless);
  EXPECT_NE(
      endless.error().message().find("while region 'down' did not end within its limit of 9 iterations"),
      std::string::npos)
      << endless.error().to_text();
  EXPECT_NE(endless.error().to_text().find("graph_resident_test.cpp:"), std::string::npos);
  set(left, 1);
  set(n, 21);
  const auto many = graph->launch();
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message().find("for region 'inner' has 21 iterations, beyond its limit of 20"),
            std::string::npos)
      << many.error().to_text();
  set(left, 1);
  set(n, 20);
  EXPECT_EQ(launched(*graph), 26);
  std::int32_t index = 0;
  std::memcpy(&index, value_or_throw(graph->content("i")).data(), sizeof index);
  EXPECT_EQ(index, 19);
}

TEST_P(GraphResident, ConditionsThatLieElsewhereArePatched) {
  Builder b = builder();
  b.external("n", Dtype::i32, {1}).for_count_in("loop", "n").within("loop");
  increase(b, "more", "out");
  const DeviceFloats two = number(2), five = number(5);
  const auto graph = created(b, {{"n", two}});
  EXPECT_EQ(launched(*graph), 2);
  ASSERT_TRUE(graph->bind("n", five.bytes()));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(report.tier, Tier::warm);
  EXPECT_FALSE(report.is_remade);
  EXPECT_EQ(launched(*graph), 7);
}

TEST_P(GraphResident, Trap_G11_CountersOfRegionsAreResetByTheirRuns) {
  Builder b = builder();
  b.external("n", Dtype::i32, {1}).external("many", Dtype::i32, {1});
  b.for_("outer", 2).within("outer").for_count_in("loop", "n").within("loop");
  b.temporary("rows", Dtype::f32, {40}, "loop");
  b.kernel("fill", "fill", {append("rows", {.buffer = "rows"}), in("many", "many")});
  b.description().nodes.back().grid = {2, 1, 1};
  b.kernel("use", "sum", {in("a", "rows"), in("b", "rows"), out("y", "a")});
  const DeviceFloats n = number(3), many = number(10);
  const auto graph = created(b, {{"n", n}, {"many", many}});
  const auto overflows = [&] { return value_or_throw(graph->launch()).overflows; };
  EXPECT_TRUE(overflows().empty()) << "both runs begin at 0";
  EXPECT_EQ(value_or_throw(graph->count("rows")), 30U);
  set(many, 20);
  const auto found = overflows();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].asked, 60U);
  EXPECT_EQ(found[0].capacity, 40U);
  set(n, 0);
  EXPECT_TRUE(overflows().empty());
  EXPECT_EQ(value_or_throw(graph->count("rows")), 0U);
}

/// Counters have 64 bits; what is asked for beyond the capacity is lost, and said.
TEST_P(GraphResident, Trap_G10_ThreeBillionRowsAreCounted) {
  Builder b = builder();
  DeviceCode many{.threads = {32, 1, 1}};
  many.call.name = many.call.entry = "many";
  many.call.code = op::KernelSource::from_text(
      R"(extern "C" __global__ void many(float* rows, unsigned long long* count, unsigned long long capacity, unsigned each) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned long long at = atomicAdd(count, (unsigned long long)each);
  if (at < capacity) rows[at] = (float)i;
})",
      op::CodeForm::cuda, "many.cu");
  b.kernels().add_device_kernel("many", many);
  b.graph("rows", Dtype::f32, {40});
  b.kernel("many", "many", {append("rows", {.buffer = "rows"}), scalar("each", 93'750'000.0, Dtype::u32)});
  b.description().nodes.back().grid = {1, 1, 1};
  const auto graph = created(b);
  for (int i = 0; i < 2; ++i) {
    const auto overflows = value_or_throw(graph->launch()).overflows;
    ASSERT_EQ(overflows.size(), 1U);
    EXPECT_EQ(overflows[0].asked, 3'000'000'000U) << "32 threads";
    EXPECT_EQ(overflows[0].capacity, 40U);
    EXPECT_EQ(value_or_throw(graph->count("rows")), 40U);
  }
  ASSERT_TRUE(graph->set_number("many", "each", 1.0));
  ASSERT_FALSE(graph->update().error);
  EXPECT_TRUE(value_or_throw(graph->launch()).overflows.empty());
  EXPECT_EQ(value_or_throw(graph->count("rows")), 32U);
}

/// Numbers, addresses, sizes and captured calls change with every launch, and nobody waits between them.
TEST_P(GraphResident, Trap_G6_Trap_G16_ChangesWhileLaunchesAreUnderWay) {
  constexpr int launches = 24;
  Builder b = builder();
  b.external("y", Dtype::f32, {width});
  scale(b, "left", "x", "a", 1);
  b.captured("copy", "copied", {in("from", "a"), out("to", "y"), integer("bytes", width * sizeof(float))});
  std::vector<DeviceFloats> results;
  for (int i = 0; i < launches; ++i) results.push_back(filled(-1));
  const auto graph = created(b, {{"y", results[0]}});
  const auto bytes_of = [](int i) { return i % 3 == 0 ? width * 2 : width * 4; };
  for (int i = 0; i < launches; ++i) {
    ASSERT_TRUE(graph->bind("y", results[static_cast<std::size_t>(i)].bytes()));
    ASSERT_TRUE(graph->set_number("left", "by", static_cast<double>(i)));
    ASSERT_TRUE(graph->set_number("copy", "bytes", static_cast<std::int64_t>(bytes_of(i))));
    const std::size_t size = i % 5 == 4 ? width * static_cast<std::size_t>(1 + i % 2) : width;
    ASSERT_TRUE(graph->resize("a", {static_cast<std::int64_t>(size)}));
    const UpdateReport report = graph->update();
    ASSERT_FALSE(report.error) << report.error->to_text();
    static_cast<void>(value_or_throw(graph->launch()));
  }
  for (int i = 0; i < launches; ++i) {
    const auto y = values_of(results[static_cast<std::size_t>(i)]);
    for (std::size_t k = 0; k < width; ++k)
      ASSERT_EQ(y[k], k < bytes_of(i) / sizeof(float) ? static_cast<float>(i) : -1.0F) << i << ", " << k;
  }
}

TEST_P(GraphResident, Trap_G18_MoreMemoryThanThereIsLeavesTheGraph) {
  Builder b = diamond();
  const auto graph = created(b);
  EXPECT_EQ(launched(*graph), 5);
  const std::uint64_t used = emulated_state().used_bytes;
  for (const std::int64_t size : {std::int64_t{1} << 29, std::int64_t{1} << 42}) {
    if (!is_emulated() && size < std::int64_t{1} << 40) continue;  // it may have as much
    ASSERT_TRUE(graph->resize("a", {size}));
    const UpdateReport refused = graph->update();
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->code(), ErrorCode::memory) << refused.error->to_text();
    const std::string there = cat(", the device has ", device_->context()->memory_bytes());
    EXPECT_NE(refused.error->message().find(there), std::string::npos) << refused.error->to_text();
    EXPECT_EQ(launched(*graph), 5) << "what there was goes on";
  }
  if (is_emulated()) {
    device_->memory().trim();
    EXPECT_LE(emulated_state().used_bytes, used);
  }
  ASSERT_TRUE(graph->resize("a", {2 * width}));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_EQ(launched(*graph), 5);
}

TEST_P(GraphResident, WithoutConditionalNodesTheHostDrives) {
  if (!is_emulated()) GTEST_SKIP() << "the driver has them";
  emulated_state().refuses_conditionals = true;
  Builder b = builder();
  b.external("n", Dtype::i32, {1}).for_count_in("loop", "n").within("loop");
  increase(b, "more", "out");
  const DeviceFloats n = number(4);
  const auto graph = created(b, {{"n", n}});
  EXPECT_EQ(launched(*graph), 4);
  Builder other = builder();
  other.external("n", Dtype::i32, {1}).for_count_in("loop", "n").within("loop");
  increase(other, "more", "out");
  increase(other, "twice", "out");
  ASSERT_TRUE(graph->set_description(*other.finish()));
  const UpdateReport report = graph->update();
  ASSERT_FALSE(report.error) << report.error->to_text();
  EXPECT_NE(report.driven, "");
  EXPECT_EQ(launched(*graph), 12);
  emulated_state().refuses_conditionals = false;
  ASSERT_TRUE(graph->set_description(*b.finish()));
  EXPECT_EQ(graph->update().driven, "") << "it is tried again";
  const DriverWork before = DriverWork::until_now();
  EXPECT_EQ(launched(*graph), 16);
  expect_work(before, {.launched = 1});
}

// ---- the rest

TEST_P(GraphResident, ProfilesAreOfTheDevice) {
  Builder b = builder();
  b.block("first").in_block("first");
  scale(b, "left", "x", "a", 2);
  b.captured("copy", "copied", {in("from", "a"), out("to", "b")});
  b.in_block("").for_("loop", 3).within("loop");
  increase(b, "more", "out");
  increase(b, "again", "out");
  const auto graph = value_or_throw(try_create(b, {}, ProfilingLevel::per_kernel));
  for (int i = 0; i < 3; ++i) {
    const Profile profile = value_or_throw(graph->launch()).profile;
    ASSERT_EQ(profile.kernels.size(), 4U);
    for (const std::size_t node : {0, 1, 2}) {
      EXPECT_EQ(profile.kernels[node].runs, 1U) << node;
      EXPECT_GT(profile.kernels[node].time.count(), 0) << node;
    }
    EXPECT_TRUE(profile.kernels[1].is_opaque);
    EXPECT_EQ(profile.kernels[0].region, "");
    EXPECT_EQ(profile.kernels[2].region, "loop") << "all of its nodes, all of its turns";
    EXPECT_EQ(profile.kernels[3].joined_with, "more");
    EXPECT_EQ(profile.blocks[0].time, profile.kernels[0].time + profile.kernels[1].time);
    EXPECT_GE(profile.total, profile.blocks[0].time);
  }
  ASSERT_TRUE(graph->set_number("left", "by", 4.0));
  EXPECT_EQ(graph->update().tier, Tier::hot);
  static_cast<void>(value_or_throw(graph->launch()));
  EXPECT_EQ(content(*graph, "b")[0], 4) << "the twin has the number, too";
  graph->set_profiling(ProfilingLevel::summary);
  EXPECT_GT(value_or_throw(graph->launch()).profile.total.count(), 0);
  graph->set_profiling(ProfilingLevel::none);
  static_cast<void>(value_or_throw(graph->launch()));
  EXPECT_EQ(content(*graph, "out")[0], 36) << "six launches";
}

TEST_P(GraphResident, AnIndexOutsideIsAnErrorAtItsNode) {
  Builder b = builder();
  b.external("i", Dtype::i32, {1}).graph("y", Dtype::f32, {1});
  b.op("pick", "gather", {in("x", "x"), in("indices", "i"), out("y", "y")});
  const DeviceFloats i = number(width);
  const auto graph = created(b, {{"i", i}});
  const auto failed = graph->launch();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("node 'pick': gather: index 64"), std::string::npos)
      << failed.error().to_text();
  set(i, 3);
  ASSERT_TRUE(graph->launch());
  EXPECT_EQ(content(*graph, "y")[0], 1);
}

/// All tiers in turn, with the results of each.
TEST_P(GraphResident, ManyChangesGiveWhatTheyShould) {
  Builder b = diamond();
  const auto graph = created(b);
  const std::uint64_t live = emulated_state().live_graphs;
  const std::vector<DeviceFloats> memories{x_, filled(2), filled(3)};
  std::mt19937 random(7);
  float x = 1, left = 2, right = 3;
  for (int i = 0; i < 200; ++i) {
    const auto value = static_cast<float>(random() % 50);
    switch (random() % 4) {
      case 0:
        ASSERT_TRUE(graph->set_number("left", "by", left = value));
        break;
      case 1:
        ASSERT_TRUE(graph->set_number("right", "by", right = value));
        break;
      case 2: {
        const std::size_t which = random() % memories.size();
        ASSERT_TRUE(graph->bind("x", memories[which].bytes()));
        x = static_cast<float>(which + 1);
        break;
      }
      default:
        ASSERT_TRUE(graph->resize("a", {static_cast<std::int64_t>(width * (1 + random() % 3))}));
    }
    if (random() % 3 == 0) continue;  // several at once
    const UpdateReport report = graph->update();
    ASSERT_FALSE(report.error) << report.error->to_text();
    ASSERT_EQ(launched(*graph), x * (left + right)) << i;
  }
  if (is_emulated()) {
    EXPECT_EQ(emulated_state().live_graphs, live);
  }
}

/// What external and graph buffers hold after each launch; it ends with the first that fails.
using Trace = std::vector<std::vector<float>>;

class RandomResident : public GraphResident {
 protected:
  static Trace on_host(std::uint64_t seed) {
    Builder b = engine::fixture::RandomGraph(seed, engine::fixture::Kinds::ops).make();
    engine::fixture::RandomMemory memory(seed);
    const auto graph = HostGraph::create(*b.finish(), {}, {.bindings = memory.bindings()});
    Trace out;
    for (int launch = 0; graph && launch < 3 && (*graph)->launch(); ++launch) {
      for (const char* name : {"e0", "e1", "e2"}) out.push_back(memory.get<float>(name));
      for (const char* name : {"g0", "g1"}) out.push_back(content(**graph, name));
    }
    return out;
  }
  [[nodiscard]] Trace on_device(std::uint64_t seed) const {
    Builder b = engine::fixture::RandomGraph(seed, engine::fixture::Kinds::ops).make();
    const engine::fixture::RandomMemory memory(seed);
    std::map<std::string, DeviceFloats> bound{{"count", number(memory.get<std::int32_t>("count")[0])}};
    for (const char* name : {"e0", "e1", "e2"}) bound[name] = floats(memory.get<float>(name));
    const auto graph = create(*b.finish(), bound);
    Trace out;
    for (int launch = 0; graph && launch < 3 && (*graph)->launch(); ++launch) {
      for (const char* name : {"e0", "e1", "e2"}) out.push_back(values_of(bound[name]));
      for (const char* name : {"g0", "g1"}) out.push_back(content(**graph, name));
    }
    return out;
  }
};

TEST_P(RandomResident, GivesWhatItGivesOnTheHost) {
  int ran = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Trace expected = on_host(seed);
    ran += expected.size() == 15 ? 1 : 0;
    ASSERT_EQ(on_device(seed), expected) << "seed " << seed;
  }
  EXPECT_GT(ran, 20);
}

INSTANTIATE_TEST_SUITE_P(Devices, GraphResident, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);
INSTANTIATE_TEST_SUITE_P(Devices, RandomResident, runtime::cuda::all_test_devices(),
                         runtime::cuda::test_device_name);

}  // namespace

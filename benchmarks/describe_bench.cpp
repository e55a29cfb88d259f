// A described graph of ten blocks: built from nothing, and built again after one node changed. Both in turn,
// on a device that has no code yet, with the launch that makes the last of it, less what a launch takes
// anyway.
#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>
#include <set>

#include "tessera/base/text.h"
#include "tessera/compile/tiling.h"
#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/engine/op_compiler.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr int blocks = 10;

/// A normalised layer with a residue, as somebody writes it op by op: 13 nodes. Widths differ, so that no two
/// blocks are the same program.
class Layer {
 public:
  Layer(Builder& b, int number) : b_(b), number_(number), width_(64 + 8 * number) {
    b_.block(cat("block", number)).in_block(cat("block", number));
    b_.graph(cat("w", number), Dtype::f32, {width_, width_});
    b_.external(cat("x", number), Dtype::f32, {rows, width_})
        .external(cat("y", number), Dtype::f32, {rows, width_});
  }

  void add(std::string_view last_op) {
    const std::string x = cat("x", number_), mean = reduce(x), centred = zip("sub", x, mean);
    const std::string squares = zip("mul", centred, centred), variance = reduce(squares);
    const std::string scale = map("rsqrt", with_number("add", variance, 1e-5)),
                      norm = zip("mul", centred, scale);
    const std::string product = temporary({rows, width_});
    node("matmul", {from("a", norm), from("b", cat("w", number_)), to(product)});
    const std::string active = map("gelu", product), half = with_number("mul", active, 0.5);
    const std::string sum = zip("add", half, x), soft = map("softmax", sum);
    node(std::string(last_op), {from("x", soft), to(cat("y", number_))});
  }

  static constexpr std::int64_t rows = 32;

 private:
  static Parameter from(std::string name, std::string buffer) {
    return read(std::move(name), {.buffer = std::move(buffer)});
  }
  static Parameter to(std::string buffer) { return write("y", {.buffer = std::move(buffer)}); }

  std::string temporary(Extents shape) {
    std::string out = cat("t", number_, "_", next_++);
    b_.temporary(out, Dtype::f32, std::move(shape));
    return out;
  }
  void node(std::string op, std::vector<Parameter> parameters, ir::Attributes attributes = {}) {
    b_.op(cat("n", number_, "_", next_++), std::move(op), std::move(parameters), std::move(attributes));
  }
  std::string map(std::string op, const std::string& x) {
    const bool is_column = columns_.count(x) != 0;
    std::string out = temporary({rows, is_column ? 1 : width_});
    if (is_column) columns_.insert(out);
    node(std::move(op), {from("x", x), to(out)});
    return out;
  }
  std::string with_number(std::string op, const std::string& x, double number) {
    const bool is_column = columns_.count(x) != 0;
    std::string out = temporary({rows, is_column ? 1 : width_});
    if (is_column) columns_.insert(out);
    node(std::move(op), {from("a", x), scalar("b", number), to(out)});
    return out;
  }
  std::string zip(std::string op, const std::string& a, const std::string& b) {
    std::string out = temporary({rows, width_});
    node(std::move(op), {from("a", a), from("b", b), to(out)});
    return out;
  }
  std::string reduce(const std::string& x) {
    std::string out = temporary({rows, 1});
    columns_.insert(out);
    node("mean", {from("x", x), to(out)}, {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", true}});
    return out;
  }

  Builder& b_;
  int number_;
  std::int64_t width_;
  int next_ = 0;
  std::set<std::string> columns_;  // of one element a row
};

Description describe(std::string_view op_of_block_4) {
  Builder b;
  for (int i = 0; i < blocks; ++i) Layer(b, i).add(i == 4 ? op_of_block_4 : "tanh");
  return *b.finish();
}

std::shared_ptr<runtime::Device> fresh_device(bool cpu) {
  if (!cpu) return std::make_shared<runtime::ReferenceDevice>();
  static const runtime::CodeStore nowhere("");
  return std::make_shared<runtime::cpu::CpuDevice>(runtime::cpu::CpuOptions{
      .kernels = {.store = &nowhere}, .target = {.name = "cpu", .sources = {compiler::fused_regions()}}});
}

void check(const Result<LaunchReport>& launched) {
  if (!launched) throw Exception(launched.error());
}

/// The time of processors, of all threads: others on the machine do not count.
struct ProcessorClock {
  static std::chrono::nanoseconds now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
};

double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) * 1e-6; }

void build_and_rebuild(benchmark::State& state, bool cpu) {
  using Clock = ProcessorClock;
  const Description before = describe("tanh"), after = describe("sigmoid");
  std::vector<std::vector<float>> memory;
  Bindings bindings;
  for (const Buffer& buffer : before.buffers)
    if (buffer.lifetime == Lifetime::external) {
      memory.emplace_back(static_cast<std::size_t>(op::element_count(buffer.shape)), 0.25F);
      bindings[buffer.id] = std::as_writable_bytes(std::span(memory.back()));
    }
  double cold = 0, again = 0, launch = 0, compiled = 0, compiled_again = 0;
  std::uint64_t programs = 0;
  for (auto _ : state) {
    const auto compiler = engine::make_op_compiler(fresh_device(cpu));
    const auto began = Clock::now();
    const auto graph = value_or_throw(
        HostGraph::create(before, KernelTable(), {.bindings = bindings, .compiler = compiler}));
    compiled += milliseconds(Clock::now() - began);
    check(graph->launch());
    const auto built = Clock::now();
    value_or_throw(graph->set_description(after));
    programs += graph->update().programs;
    compiled_again += milliseconds(Clock::now() - built);
    check(graph->launch());
    const auto rebuilt = Clock::now();
    check(graph->launch());
    const auto steady = Clock::now() - rebuilt;
    cold += milliseconds(built - began - steady);
    again += milliseconds(rebuilt - built - steady);
    launch += milliseconds(steady);
  }
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["cold_ms"] = cold / rounds;
  state.counters["rebuild_ms"] = again / rounds;
  // Without the launch: on the CPU most code is made there.
  state.counters["compile_ms"] = compiled / rounds;
  state.counters["compile_again_ms"] = compiled_again / rounds;
  state.counters["compile_share"] = compiled_again / compiled;
  state.counters["launch_ms"] = launch / rounds;
  state.counters["rebuild_share"] = again / cold;
  state.counters["programs_rebuilt"] = static_cast<double>(programs) / rounds;
}

/// What measuring costs: launches of 200 kernels that do nothing, at each level in turn.
void profiled_launch(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  constexpr int kernels = 200;
  Builder b;
  b.graph("x", Dtype::f32, {1});
  for (int i = 0; i < kernels; ++i) {
    if (i % 20 == 0) b.block(cat("block", i)).in_block(cat("block", i));
    b.kernel(cat("k", i), [](KernelCall&) {}, {read_write("x", {.buffer = "x"})});
  }
  const auto graph = value_or_throw(HostGraph::create(*b.finish(), b.kernels(), {}));
  static constexpr std::pair<ProfilingLevel, const char*> levels[] = {
      {ProfilingLevel::none, "none_us"},
      {ProfilingLevel::summary, "summary_us"},
      {ProfilingLevel::per_block, "per_block_us"},
      {ProfilingLevel::per_kernel, "per_kernel_us"}};
  double spent[std::size(levels)] = {};
  for (auto _ : state)
    for (std::size_t i = 0; i < std::size(levels); ++i) {
      graph->set_profiling(levels[i].first);
      const auto began = Clock::now();
      check(graph->launch());
      spent[i] += 1e3 * milliseconds(Clock::now() - began);
    }
  for (std::size_t i = 0; i < std::size(levels); ++i)
    state.counters[levels[i].second] = spent[i] / static_cast<double>(state.iterations());
}

BENCHMARK(profiled_launch)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(build_and_rebuild, reference, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build_and_rebuild, cpu, true)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();

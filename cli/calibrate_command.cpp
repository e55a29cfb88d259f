// Measures what things take on this machine, for the compiler and the scheduler to reckon with.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/command.h"
#include "tessera/base/text.h"
#include "tessera/compile/plan_function.h"
#include "tessera/compile/tiling.h"
#include "tessera/ir/parse.h"
#include "tessera/plan/work.h"
#include "tessera/runtime/cpu/cpu_device.h"

using namespace tessera;
using namespace tessera::cli;
using runtime::cpu::CostStore;
using runtime::cpu::CpuDevice;
using runtime::cpu::MachineCosts;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto time_for_one = std::chrono::milliseconds(250);
constexpr int fewest_runs = 5;

std::shared_ptr<CpuDevice> device_with(unsigned threads) {
  return std::make_shared<CpuDevice>(runtime::cpu::CpuOptions{
      .threads = threads, .target = {.name = "cpu", .sources = {compiler::fused_regions()}}});
}

/// A program of f32 arrays with constant sizes on a device, ready to run.
class Probe {
 public:
  static Result<Probe> create(const std::string& text, const std::shared_ptr<CpuDevice>& device) {
    const ir::FunctionRef function = TESSERA_TRY(ir::parse_function(text));
    const auto planned = TESSERA_TRY(compiler::plan_function(function, device->target()));
    Probe out;
    out.plan_ = planned.plan;
    out.executable_ = TESSERA_TRY(device->load(planned.plan, runtime::MemoryPool::create()));
    std::vector<op::Layout> layouts;
    for (const plan::ValueId value : planned.plan->inputs) {
      const op::Extents shape = op::extents_of(planned.plan->values[value].type.shape);
      out.memory_.push_back(TESSERA_TRY(op::HostTensor::allocate(op::Dtype::f32, shape)));
      for (float& number : out.memory_.back().values<float>()) number = 0.5f;
      layouts.push_back(out.memory_.back().array().layout);
      out.inputs_.push_back(out.memory_.back().array().data);
    }
    TESSERA_TRY(out.executable_->prepare({}, layouts));
    for (const plan::OutputBuffer& buffer : out.executable_->binding().buffers) {
      out.memory_.push_back(TESSERA_TRY(op::HostTensor::allocate(op::Dtype::u8, {buffer.bytes})));
      out.outputs_.push_back(out.memory_.back().array().data);
    }
    return out;
  }

  /// What one run takes at least: others may use the machine, too.
  [[nodiscard]] Result<double> nanoseconds() const {
    double best = 1e18;
    const Clock::time_point end = Clock::now() + time_for_one;
    for (int runs = 0; runs < fewest_runs || Clock::now() < end; ++runs) {
      const Clock::time_point begin = Clock::now();
      TESSERA_TRY(executable_->run({.inputs = inputs_, .parameters = {}, .outputs = outputs_}));
      best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    }
    return best;
  }
  /// In what the scheduler counts in.
  [[nodiscard]] Result<double> work() const {
    double out = 0;
    for (const double step : TESSERA_TRY(plan::work_by_step(*plan_, {}))) out += step;
    return out;
  }
  [[nodiscard]] double bytes() const {
    double out = 0;
    for (const op::HostTensor& tensor : memory_) out += static_cast<double>(tensor.byte_size());
    return out;
  }

 private:
  plan::PlanRef plan_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<op::HostTensor> memory_;
  std::vector<std::byte*> inputs_, outputs_;
};

/// `count` small steps that nothing can make one of: their sizes differ.
std::string small_steps(int count) {
  std::vector<std::string> parameters, results;
  std::string body;
  for (int i = 0; i < count; ++i) {
    parameters.push_back(cat("x", i, ": f32[", 16 + i, "]"));
    results.push_back(cat("y", i));
    body += cat("  y", i, ": f32[", 16 + i, "] = relu(x", i, ")\n");
  }
  return cat("func small(", join(parameters, ", "), ") {\n", body, "  return ", join(results, ", "), "\n}\n");
}

constexpr const char* fused_kernel =
    "func fused(a: f32[16384], b: f32[16384], c: f32[16384]) {\n  p: f32[16384] = mul(a, b)\n"
    "  s: f32[16384] = add(p, c)\n  y: f32[16384] = relu(s)\n  return y\n}\n";
constexpr const char* product =
    "func product(a: f32[256, 256], b: f32[256, 256]) {\n  y: f32[256, 256] = matmul(a, b)\n  return y\n}\n";
constexpr const char* by_reference =
    "func scan(x: f32[64, 256]) {\n  y: f32[64, 256] = cumsum(x) {axis = 1}\n  return y\n}\n";
constexpr const char* large_copy =
    "func copy(x: f32[8388608]) {\n  y: f32[8388608] = relu(x)\n  return y\n}\n";

/// `count` multiplications of numbers that are in the caches. Sums would become one operation with them.
std::string multiplications(int count) {
  std::string body, last = "x";
  for (int i = 0; i < count; ++i) {
    body += cat("  p", i, ": f32[65536] = mul(", last, ", x)\n");
    last = cat("p", i);
  }
  return cat("func multiply(x: f32[65536]) {\n", body, "  return ", last, "\n}\n");
}

/// Nanoseconds for one unit of the work of a program.
Result<double> unit_time(const std::string& text, const std::shared_ptr<CpuDevice>& device, double begin_ns) {
  const Probe probe = TESSERA_TRY(Probe::create(text, device));
  const double time = TESSERA_TRY(probe.nanoseconds()), work = TESSERA_TRY(probe.work());
  return std::max(time - begin_ns, 0.01 * time) / work;
}

/// Of what more arithmetic takes on the same memory.
Result<double> operation_time(const std::shared_ptr<CpuDevice>& device) {
  constexpr int few = 8, many = 72;
  constexpr double operations = 65536.0 * (many - few);
  const double short_time =
      TESSERA_TRY(TESSERA_TRY(Probe::create(multiplications(few), device)).nanoseconds());
  const double long_time =
      TESSERA_TRY(TESSERA_TRY(Probe::create(multiplications(many), device)).nanoseconds());
  return std::max(long_time - short_time, 0.01 * long_time) / operations;
}

Result<MachineCosts> measure(unsigned threads) {
  constexpr int few = 8, many = 72;
  const auto one_thread = device_with(1), all_threads = device_with(threads);
  MachineCosts out;
  const double short_time =
      TESSERA_TRY(TESSERA_TRY(Probe::create(small_steps(few), one_thread)).nanoseconds());
  const double long_time =
      TESSERA_TRY(TESSERA_TRY(Probe::create(small_steps(many), one_thread)).nanoseconds());
  out.begin_ns = std::max(1.0, (long_time - short_time) / (many - few));
  out.element_ns = TESSERA_TRY(unit_time(fused_kernel, one_thread, out.begin_ns));
  out.product_ns = TESSERA_TRY(unit_time(product, one_thread, out.begin_ns));
  out.reference_ns = TESSERA_TRY(unit_time(by_reference, one_thread, out.begin_ns));
  const Probe copy = TESSERA_TRY(Probe::create(large_copy, all_threads));
  out.byte_ns = TESSERA_TRY(copy.nanoseconds()) / copy.bytes();
  out.operation_ns = TESSERA_TRY(operation_time(all_threads));
  return out;
}

struct CalibrateOptions {
  unsigned threads = 0;
  bool show = false;
  bool json = false;
};

void print(const MachineCosts& costs, const CalibrateOptions& options, bool is_measured,
           const std::string& path) {
  const std::string text = to_text(costs);
  if (!options.json) {
    std::printf("%s%s %s\n", text.c_str(), is_measured ? "kept in" : "not measured; would be kept in",
                printable(path).c_str());
    return;
  }
  std::string fields;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t space = text.find(' ', begin), end = text.find('\n', begin);
    fields +=
        cat("\"", text.substr(begin, space - begin), "\":", text.substr(space + 1, end - space - 1), ",");
    begin = end + 1;
  }
  std::printf("{%s\"threads\":%u,\"measured\":%s,\"file\":%s}\n", fields.c_str(), options.threads,
              is_measured ? "true" : "false", quote(path).c_str());
}

Result<Answer> run(CalibrateOptions options) {
  options.threads = runtime::cpu::thread_count(options.threads);
  const CostStore store;
  if (options.show) {
    const auto kept = TESSERA_TRY(store.load(options.threads));
    print(kept.value_or(MachineCosts()), options, kept.has_value(), store.path_of(options.threads));
    return kept ? Answer::yes : Answer::no;
  }
  const MachineCosts costs = TESSERA_TRY(measure(options.threads));
  TESSERA_TRY(store.save(options.threads, costs));
  print(costs, options, true, store.path_of(options.threads));
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_calibrate(Commands& commands) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App& command =
      commands.add("calibrate", "measure this machine, for the cost model of the CPU",
                   "  tessera calibrate                    takes two seconds; programs use it from then on\n"
                   "  tessera calibrate --threads 1        for programs with one thread\n"
                   "  tessera calibrate --show --json      what was measured; 1 if nothing was",
                   [options] { return run(*options); });
  command.add_option("--threads", options->threads, "threads of the programs; the default is theirs")
      ->check(CLI::Range(1U, 256U));
  command.add_flag("--show", options->show, "print what was measured before, measure nothing");
  command.add_flag("--json", options->json, "print JSON");
}

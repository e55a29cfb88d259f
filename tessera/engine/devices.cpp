#include "tessera/engine/devices.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include "tessera/base/environment.h"
#include "tessera/base/text.h"
#include "tessera/compile/plan_function.h"
#include "tessera/compile/tiling.h"
#include "tessera/compile/whole_calls.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/cuda/cuda_devices.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

struct Registered {
  std::mutex mutex;
  std::vector<std::shared_ptr<runtime::Device>> devices;
};

/// Never destroyed, as all devices.
Registered& registered() {
  static auto* all = new Registered;
  return *all;
}

std::shared_ptr<runtime::Device> find_registered(std::string_view name) {
  const std::lock_guard lock(registered().mutex);
  for (const auto& device : registered().devices)
    if (device->name() == name) return device;
  return nullptr;
}

/// What the name of the CPU says.
struct CpuName {
  bool is_precise = false;
  unsigned threads = 0;  ///< 0: TESSERA_THREADS, or as many as the machine has

  auto operator<=>(const CpuName&) const = default;
  [[nodiscard]] std::string text() const {
    return cat("cpu", is_precise ? ":precise" : "", threads == 0 ? "" : cat(":threads=", threads));
  }
};

/// "cpu", "cpu:precise", "cpu:threads=4", in any order; nothing if it is no name of a CPU.
Result<std::optional<CpuName>> cpu_name(std::string_view name) {
  constexpr std::string_view prefix = "cpu", threads = "threads=";
  if (!name.starts_with(prefix)) return std::optional<CpuName>();
  name.remove_prefix(prefix.size());
  CpuName out;
  while (!name.empty()) {
    if (name[0] != ':') return std::optional<CpuName>();
    const std::string_view word = name.substr(1, name.find(':', 1) - 1);
    name.remove_prefix(1 + word.size());
    if (word == "precise")
      out.is_precise = true;
    else if (word.starts_with(threads))
      out.threads = TESSERA_TRY(runtime::cpu::parse_thread_count(word.substr(threads.size())));
    else
      return Error(ErrorCode::not_found,
                   cat("the CPU has no option '", printable(word), "', only precise and threads=N"));
  }
  return std::optional(out);
}

/// Fused kernels, with what was measured on this machine.
std::shared_ptr<runtime::Device> make_cpu(const CpuName& name) {
  runtime::cpu::CpuOptions options{.name = name.text(), .threads = name.threads};
  options.kernels.is_precise = name.is_precise;
  const auto costs = runtime::cpu::CostStore().load(runtime::cpu::thread_count(name.threads));
  if (!costs)
    std::fprintf(stderr, "tessera: %s; usual costs are used\n", costs.error().message().c_str());
  else if (*costs)
    options.costs = **costs;
  options.target.sources = {compiler::fused_regions(options.costs.steps())};
  options.plan_body = &plan_body;
  return std::make_shared<runtime::cpu::CpuDevice>(std::move(options));
}

std::shared_ptr<runtime::Device> find_cpu(const CpuName& name) {
  struct Made {
    std::mutex mutex;
    std::map<CpuName, std::shared_ptr<runtime::Device>> devices;
  };
  static auto* made = new Made;  // never destroyed: tensors in static storage may outlive everything else
  const std::lock_guard lock(made->mutex);
  auto& device = made->devices[name];
  if (device == nullptr) device = make_cpu(name);
  return device;
}

/// What the name of a GPU says.
struct GpuName {
  int number = 0;
  runtime::cuda::ProductPrecision products = runtime::cuda::ProductPrecision::full;

  auto operator<=>(const GpuName&) const = default;
};

/// "cuda", "cuda:1", "cuda:1:tf32"; nothing if it is no name of a GPU.
std::optional<GpuName> gpu_name(std::string_view name) {
  GpuName out;
  constexpr std::string_view prefix = "cuda", rounded = ":tf32";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.ends_with(rounded)) {
    out.products = runtime::cuda::ProductPrecision::tf32;
    name.remove_suffix(rounded.size());
  }
  if (name.empty()) return out;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 1, end, out.number);
  const bool is_number = name[0] == ':' && error == std::errc() && stop == end && out.number >= 0;
  return is_number ? std::optional(out) : std::nullopt;
}

Result<std::shared_ptr<runtime::Device>> find_gpu(const GpuName& name) {
  struct Opened {
    std::mutex mutex;
    std::map<GpuName, std::shared_ptr<runtime::Device>> devices;
  };
  static auto* opened = new Opened;  // never destroyed, as all devices
  const std::lock_guard lock(opened->mutex);
  if (const auto found = opened->devices.find(name); found != opened->devices.end()) return found->second;
  runtime::cuda::CudaOptions options{
      .target = gpu_target(), .products = name.products, .plan_body = &plan_body};
  auto device = TESSERA_TRY(runtime::cuda::open_device(name.number, std::move(options)));
  opened->devices.emplace(name, device);
  return device;
}

}  // namespace

pattern::Target tessera::engine::gpu_target() {
  // A launch costs more than a long kernel takes to compile.
  // What it computes, it computes while it waits for memory.
  const pattern::StepCosts costs{.operation_ns = 0};
  return {.name = "cuda",
          .sources = {compiler::fused_regions(costs)},
          .costs = costs,
          .most_ops_in_kernel = 4096};
}

Result<plan::PlanRef> tessera::engine::plan_body(const ir::FunctionRef& body, const pattern::Target& target) {
  const compiler::PlanOptions exact{.pipeline = {.passes = {.floats = compiler::FloatRules::exact,
                                                            .takes = compiler::stays_whole_unless_costly}}};
  return TESSERA_TRY(compiler::plan_function(body, target, exact)).plan;
}

std::vector<std::string> tessera::engine::device_names() {
  std::vector<std::string> out{"reference", "cpu"};
  const auto gpus = runtime::cuda::device_count();
  for (int i = 0; gpus && i < *gpus; ++i) out.push_back(cat("cuda:", i));
  const std::lock_guard lock(registered().mutex);
  for (const auto& device : registered().devices) out.emplace_back(device->name());
  return out;
}

bool tessera::engine::is_gpu_name(std::string_view name) { return gpu_name(name).has_value(); }

Result<void> tessera::engine::register_device(std::shared_ptr<runtime::Device> device) {
  if (find_device(device->name()))
    return Error(ErrorCode::invalid_argument,
                 cat("there is a device '", printable(device->name()), "' already"));
  const std::lock_guard lock(registered().mutex);
  registered().devices.push_back(std::move(device));
  return {};
}

Result<std::shared_ptr<runtime::Device>> tessera::engine::find_device(std::string_view name) {
  // Never destroyed: tensors in static storage may outlive everything else.
  static const auto* reference =
      new std::shared_ptr<runtime::Device>(std::make_shared<runtime::ReferenceDevice>());
  if (name == "reference") return *reference;
  if (const auto cpu = TESSERA_TRY(cpu_name(name))) return find_cpu(*cpu);
  if (auto device = find_registered(name)) return device;
  if (const auto gpu = gpu_name(name)) return find_gpu(*gpu);
  return Error(ErrorCode::not_found,
               cat("there is no device '", printable(name), "', only ", join(device_names(), ", ")));
}

std::shared_ptr<runtime::Device> tessera::engine::default_device() {
  const char* name = environment("TESSERA_DEVICE");
  if (name == nullptr || *name == '\0') return *find_device("cpu");
  auto found = find_device(name);
  if (found) return *std::move(found);
  std::fprintf(stderr, "tessera: TESSERA_DEVICE: %s; the CPU is used\n", found.error().message().c_str());
  return *find_device("cpu");
}

#include "tessera/runtime/cpu/cpu_device.h"

#include "tessera/op/reference.h"
#include "tessera/runtime/cpu/cpu_executable.h"
#include "tessera/runtime/cpu/library_tiles.h"
#include "tessera/runtime/cpu/single_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

CpuDevice::CpuDevice(CpuOptions options)
    : options_(std::move(options)),
      threads_(options_.threads),
      store_(CodeStore::default_folder()),
      kernels_(kernel_options()),
      libraries_(options_.kernels.is_precise) {
  options_.target.sources.push_back(std::make_shared<LibraryTiles>(options_.costs.steps()));
  options_.target.reads_narrow_factors = true;
}

KernelOptions CpuDevice::kernel_options() const {
  KernelOptions out = options_.kernels;
  if (out.store == nullptr) out.store = &store_;
  if (options_.improves_code) out.quality = CodeQuality::fast;
  return out;
}

/// Op by op is for what is not hot: nothing is compiled for it.
Result<void> CpuDevice::run(const op::CallInfo& call, std::span<const op::Array> inputs,
                            std::span<const op::Array> results) {
  const bool done =
      TESSERA_TRY(run_single_call(call, inputs, results, {.threads = threads_, .libraries = libraries_}));
  return done ? Result<void>() : op::run_reference(call, inputs, results);
}

Result<plan::PlanRef> CpuDevice::plan_body(const ir::FunctionRef& body) const {
  if (!options_.plan_body) return Error(ErrorCode::unsupported, "the device has no compiler for regions");
  return options_.plan_body(body, options_.target);
}

Result<std::unique_ptr<Executable>> CpuDevice::load(plan::PlanRef plan,
                                                    const std::shared_ptr<MemoryPool>& pool) {
  return std::unique_ptr<Executable>(
      std::make_unique<CpuExecutable>(shared_from_this(), std::move(plan), pool));
}

Result<plan::Binding> CpuDevice::plan_memory(const plan::PlanRef& plan, std::span<const std::int64_t> sizes,
                                             std::span<const op::Layout> inputs) {
  return CpuExecutable(shared_from_this(), plan, MemoryPool::create()).find_binding(sizes, inputs);
}

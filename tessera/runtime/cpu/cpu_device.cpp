#include "tessera/runtime/cpu/cpu_device.h"

#include "tessera/kernel/build.h"
#include "tessera/op/reference.h"
#include "tessera/runtime/cpu/cpu_executable.h"
#include "tessera/runtime/cpu/early_start.h"
#include "tessera/runtime/cpu/library_tiles.h"
#include "tessera/runtime/cpu/llvm.h"
#include "tessera/runtime/cpu/onednn.h"
#include "tessera/runtime/cpu/single_call.h"
#include "tessera/runtime/cpu/thrown_error.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

CpuDevice::CpuDevice(CpuOptions options)
    : options_(std::move(options)),
      threads_(options_.threads),
      store_(CodeStore::default_folder()),
      kernels_(kernel_options()),
      libraries_(options_.kernels.is_precise, threads_.size()) {
  options_.target.sources.push_back(
      std::make_shared<LibraryTiles>(options_.costs.steps(), options_.kernels.accuracy()));
  options_.target.reads_narrow_factors = true;
  options_.target.costs = options_.costs.steps();
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
  return thrown_as_error([&]() -> Result<void> {
    const bool done =
        TESSERA_TRY(run_single_call(call, inputs, results, {.threads = threads_, .libraries = libraries_}));
    if (done) return {};
    for (const op::Array& result : results) clear(result);
    return op::run_reference(call, inputs, results);
  });
}

std::string CpuDevice::found() const {
  const auto llvm = Llvm::open();
  const auto onednn = OneDnn::open();
  const bool compiles = llvm && options_.kernels.compiles;
  return cat(threads_.size(), threads_.size() == 1 ? " thread" : " threads", ", kernels ",
             compiles ? cat("by LLVM ", (*llvm)->version()) : "interpreted", ", products ",
             onednn ? cat("by oneDNN ", (*onednn)->version()) : "our own",
             options_.kernels.is_precise ? ", precise" : "");
}

std::vector<std::string> CpuDevice::lacks() const {
  std::vector<std::string> out;
  const auto add = [&](std::string_view what, const std::string& why) {
    if (!why.empty()) out.push_back(cat(what, ": ", why));
  };
  const auto kernels = kernels_.troubles();
  add("kernels without code are interpreted", kernels.why_interpreted);
  add("generated code is not kept", kernels.why_not_stored);
  if (const auto onednn = OneDnn::open(); !onednn) add("products are our own", onednn.error().message());
  return out;
}

/// A plan has kernels for all devices. What is precise has others, of the same operands.
std::shared_ptr<CompiledKernel> CpuDevice::compiled(const plan::Step& step) {
  if (options_.kernels.is_precise)
    if (const auto precise = kernel::build(*step.function, kernel::Accuracy::precise);
        precise && precise->slots == step.kernel->slots)
      return kernels_.get(*precise);
  return kernels_.get(*step.kernel);
}

EpilogueFunction* CpuDevice::epilogue_function(const op::Card& card) {
  KernelOptions options = kernel_options();
  options.quality = CodeQuality::good;
  const std::lock_guard lock(epilogue_mutex_);
  return &epilogue_functions_.try_emplace(&card, card, options).first->second;
}

Result<plan::PlanRef> CpuDevice::plan_body(const ir::FunctionRef& body) const {
  if (!options_.plan_body) return Error(ErrorCode::unsupported, "the device has no compiler for regions");
  return options_.plan_body(body, options_.target);
}

std::future<void> CpuDevice::expect(const ir::Function& function) {
  if (threads_.size() == 1) return {};
  const KernelOptions options = kernel_options();
  const bool makes_code = options.compiles && !options.store->may_have_code();
  return start_early(function, makes_code ? KernelCode::to_be_made : KernelCode::may_be_stored);
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

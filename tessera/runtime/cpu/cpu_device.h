// The CPU: fused kernels as machine code over one pool of threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "tessera/runtime/cpu/code_improver.h"
#include "tessera/runtime/cpu/epilogue_function.h"
#include "tessera/runtime/cpu/kernel_cache.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/machine_costs.h"
#include "tessera/runtime/cpu/thread_pool.h"
#include "tessera/runtime/device.h"

namespace tessera::runtime::cpu {

struct CpuOptions {
  std::string name = "cpu";
  unsigned threads = 0;  ///< 0: TESSERA_THREADS, or as many as the machine has
  /// Without a store of their own, kernels use that of the user's cache (code_store.h).
  KernelOptions kernels = {};
  /// Code is made fast at first, and better beside the program when it is hot. The bits are the same.
  bool improves_code = true;
  /// Makes the plans of what is inside of regions, which the reference runs without it. (A runtime knows no
  /// compiler.)
  std::function<Result<plan::PlanRef>(const ir::FunctionRef& body, const pattern::Target& target)> plan_body =
      {};
  /// What the compiler may choose from, beside the libraries.
  pattern::Target target = {.name = "cpu"};
  /// What it reckons with; the sources of `target` may have others.
  MachineCosts costs = {};
};

class CpuDevice final : public Device, public std::enable_shared_from_this<CpuDevice> {
 public:
  explicit CpuDevice(CpuOptions options = {});

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] std::string found() const override;
  [[nodiscard]] std::vector<std::string> lacks() const override;
  [[nodiscard]] Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                 std::span<const op::Array> results) override;
  [[nodiscard]] bool takes_any_results() const override { return true; }
  void settle() override { improver_.wait(); }
  [[nodiscard]] const pattern::Target& target() const override { return options_.target; }
  /// Nothing is begun where there is one thread.
  [[nodiscard]] std::future<void> expect(const ir::Function& function) override;
  [[nodiscard]] Result<std::unique_ptr<Executable>> load(plan::PlanRef plan,
                                                         const std::shared_ptr<MemoryPool>& pool) override;
  [[nodiscard]] Result<plan::Binding> plan_memory(const plan::PlanRef& plan,
                                                  std::span<const std::int64_t> sizes,
                                                  std::span<const op::Layout> inputs) override;

  /// A plan for what is inside of a region; an error if there can be none.
  [[nodiscard]] Result<plan::PlanRef> plan_body(const ir::FunctionRef& body) const;
  [[nodiscard]] ThreadPool& threads() { return threads_; }
  /// The kernel of a step in a form that runs; one for all plans that need it. REQUIRES that it has one.
  [[nodiscard]] std::shared_ptr<CompiledKernel> compiled(const plan::Step& step);
  /// Null if code is as good as it gets from the beginning.
  [[nodiscard]] CodeImprover* improver() { return options_.improves_code ? &improver_ : nullptr; }
  /// What ends products by the formula of a card; lives as long as the device.
  [[nodiscard]] EpilogueFunction* epilogue_function(const op::Card& card);
  [[nodiscard]] Libraries& libraries() { return libraries_; }
  [[nodiscard]] const MachineCosts& costs() const { return options_.costs; }
  /// Kernels that were made and are still known.
  [[nodiscard]] std::size_t kernel_count() const { return kernels_.size(); }

 private:
  [[nodiscard]] KernelOptions kernel_options() const;

  CpuOptions options_;
  ThreadPool threads_;
  CodeStore store_;
  KernelCache kernels_;
  std::mutex epilogue_mutex_;
  std::map<const op::Card*, EpilogueFunction> epilogue_functions_;
  Libraries libraries_;
  CodeImprover improver_;  ///< last: its thread uses the kernels
};

}  // namespace tessera::runtime::cpu

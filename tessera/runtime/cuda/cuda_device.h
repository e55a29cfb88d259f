// A GPU as a device: one stream, its memory, the code that was made for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tessera/base/once.h"
#include "tessera/runtime/cuda/blas.h"
#include "tessera/runtime/cuda/bound_launch.h"
#include "tessera/runtime/cuda/call_cache.h"
#include "tessera/runtime/cuda/cuda_devices.h"
#include "tessera/runtime/cuda/device_memory.h"
#include "tessera/runtime/cuda/module_cache.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/makes_kernels.h"

namespace tessera::runtime::cuda {

/// Opens what computes matrix products, for one device.
using OpenBlas = std::function<Result<std::unique_ptr<Blas>>(const BlasDevice& device)>;

class CudaDevice final : public Device, public std::enable_shared_from_this<CudaDevice>, public MakesKernels {
 public:
  /// The device that `driver` counts as `number`, with code by `compiler`.
  [[nodiscard]] static Result<std::shared_ptr<CudaDevice>> create(
      const Driver& driver, int number, std::shared_ptr<const SourceCompiler> compiler,
      CudaOptions options = {}, OpenBlas open_blas = &Blas::open);

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view remark() const override;
  [[nodiscard]] std::shared_ptr<MemorySpace> memory_space() override { return memory_; }
  /// Returns when the call is queued, unless it has indices to check.
  [[nodiscard]] Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                                 std::span<const op::Array> results) override;
  /// Queues a program on arrays in the memory of the device.
  [[nodiscard]] Result<void> run_program(const StepProgram& program, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results);
  /// The program of a call on arrays in the memory of the device, with its functions.
  [[nodiscard]] Result<ReadyProgramRef> program_of(const op::CallInfo& call,
                                                   std::span<const op::Array> inputs,
                                                   std::span<const op::Array> results);
  [[nodiscard]] Result<void> synchronize() override;
  [[nodiscard]] Result<std::unique_ptr<StepClock>> step_clock() override;
  [[nodiscard]] const pattern::Target& target() const override { return target_; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> load(plan::PlanRef plan,
                                                         const std::shared_ptr<MemoryPool>& pool) override;
  [[nodiscard]] Result<plan::Binding> plan_memory(const plan::PlanRef& plan,
                                                  std::span<const std::int64_t> sizes,
                                                  std::span<const op::Layout> inputs) override;
  [[nodiscard]] Result<std::unique_ptr<StepGraph>> step_graph(StepBlame blame) override;

  [[nodiscard]] const ContextRef& context() const { return context_; }
  [[nodiscard]] const Stream& stream() const { return *stream_; }
  [[nodiscard]] DeviceMemory& memory() { return *memory_; }
  [[nodiscard]] ModuleCache& modules() { return modules_; }
  [[nodiscard]] std::size_t kernel_count() const override { return modules_.size(); }
  [[nodiscard]] const CallCache& calls() const { return calls_; }
  /// May be empty.
  [[nodiscard]] const PlanBody& plan_body() const { return plan_body_; }
  /// What computes matrix products; null if there is no library for it. Opened when it is first asked for,
  /// which takes a while.
  [[nodiscard]] Blas* blas();
  /// What the library needs for a product beside its operands; the most it may, where it refuses the product.
  [[nodiscard]] std::int64_t workspace_of(const Product& product);
  /// Says that open_products() will be called, by another thread: until it returns, who need not wait for
  /// the library computes products by kernels.
  void expect_products() { awaits_products_.store(true, std::memory_order_release); }
  /// Makes the first product, so that others need not wait for what a library does only once.
  void open_products();
  /// Whether the library of products is still being opened beside the program.
  [[nodiscard]] bool awaits_products() const { return awaits_products_.load(std::memory_order_acquire); }
  void settle() override { awaits_products_.wait(true, std::memory_order_acquire); }

 private:
  [[nodiscard]] Result<void> run_on_host(const op::CallInfo& call, std::span<const op::Array> inputs,
                                         std::span<const op::Array> results);
  [[nodiscard]] Result<op::HostTensor> to_host(const op::Array& array);
  [[nodiscard]] Result<StepProgram> program_of_user(const op::CallInfo& call,
                                                    std::span<const op::Array> inputs,
                                                    std::span<const op::Array> results);
  [[nodiscard]] Result<ReadyProgramRef> ready(StepProgram program);
  CudaDevice(ContextRef context, std::shared_ptr<const Stream> stream, int number,
             std::shared_ptr<const SourceCompiler> compiler, CudaOptions options, OpenBlas open_blas);

  std::string name_;
  ProductPrecision products_;
  pattern::Target target_;
  ContextRef context_;
  std::shared_ptr<const Stream> stream_;
  std::shared_ptr<DeviceMemory> memory_;
  PlanBody plan_body_;
  OpenBlas open_blas_;  ///< empty: none is wanted
  Once<Blas*> blas_once_;
  std::atomic<bool> awaits_products_{false};
  std::unique_ptr<Blas> blas_;
  CodeStore own_store_;
  const CodeStore* store_;
  ModuleCache modules_;
  CallCache calls_;
};

}  // namespace tessera::runtime::cuda

#include "tessera/runtime/cuda/cuda_device.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/cuda_executable.h"
#include "tessera/runtime/cuda/cuda_step_graph.h"
#include "tessera/runtime/cuda/library_product.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/product_tiles.h"
#include "tessera/runtime/cuda/step_events.h"
#include "tessera/runtime/cuda/step_launches.h"
#include "tessera/runtime/cuda/user_program.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

/// The launches of one call, with memory for as long as they are queued: what is queued later waits for them.
class SingleCall {
 public:
  SingleCall(CudaDevice& device, std::span<const op::Array> inputs, std::span<const op::Array> results)
      : device_(device), inputs_(inputs), results_(results) {}
  SingleCall(const SingleCall&) = delete;
  SingleCall& operator=(const SingleCall&) = delete;
  ~SingleCall() {
    for (const auto& [memory, bytes] : taken_) device_.memory().free(memory, bytes);
  }

  Result<void> run(const ReadyProgram& ready) {
    const StepProgram& program = ready.program;
    for (const std::int64_t bytes : program.scratch_bytes)
      scratch_.push_back(TESSERA_TRY(take(static_cast<std::size_t>(bytes))));
    std::vector<Status> found(program.checks.size());
    const auto bytes = std::as_writable_bytes(std::span(found));
    if (!found.empty()) {
      status_ = TESSERA_TRY(take(bytes.size()));
      TESSERA_TRY(device_.memory().clear(status_, bytes.size()));
    }
    TESSERA_TRY(queue_all(ready));
    if (found.empty()) return {};
    TESSERA_TRY(device_.memory().copy_out(status_, bytes));
    for (std::size_t i = 0; i < found.size(); ++i)
      if (auto error = error_of(program.checks[i], found[i])) return *std::move(error);
    return {};
  }

 private:
  Result<std::byte*> take(std::size_t bytes) {
    std::byte* out = TESSERA_TRY(device_.memory().allocate(bytes));
    taken_.emplace_back(out, bytes);
    return out;
  }

  Result<void> queue_all(const ReadyProgram& ready) {
    for (const BoundLaunch& launch : bound_launches(ready, {inputs_, results_, scratch_, status_}))
      TESSERA_TRY(queue(*device_.context(), launch, device_.stream()));
    return {};
  }

  CudaDevice& device_;
  std::span<const op::Array> inputs_, results_;
  std::vector<std::byte*> scratch_;
  std::byte* status_ = nullptr;
  std::vector<std::pair<std::byte*, std::size_t>> taken_;
};

}  // namespace

CudaDevice::CudaDevice(ContextRef context, std::shared_ptr<const Stream> stream, int number,
                       std::shared_ptr<const SourceCompiler> compiler, CudaOptions options,
                       OpenBlas open_blas)
    : name_(cat("cuda:", number, options.products == ProductPrecision::tf32 ? ":tf32" : "")),
      products_(options.products),
      target_(std::move(options.target)),
      context_(std::move(context)),
      stream_(std::move(stream)),
      memory_(std::make_shared<DeviceMemory>(context_, stream_)),
      plan_body_(std::move(options.plan_body)),
      open_blas_(options.libraries == LibraryUse::none ? OpenBlas() : std::move(open_blas)),
      own_store_(options.store == nullptr ? CodeStore::default_folder() : std::string()),
      store_(options.store == nullptr ? &own_store_ : options.store),
      modules_(stream_, std::move(compiler), store_) {
  if (open_blas_ && !target_.sources.empty())
    target_.sources.push_back(std::make_shared<ProductTiles>(target_.costs));
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::create(const Driver& driver, int number,
                                                       std::shared_ptr<const SourceCompiler> compiler,
                                                       CudaOptions options, OpenBlas open_blas) {
  ContextRef context = TESSERA_TRY(Context::open(driver, number));
  const Current current = TESSERA_TRY(context->enter());
  auto stream = TESSERA_TRY(Stream::create(context));
  return std::shared_ptr<CudaDevice>(new CudaDevice(std::move(context), std::move(stream), number,
                                                    std::move(compiler), std::move(options),
                                                    std::move(open_blas)));
}

Result<void> CudaDevice::run(const op::CallInfo& call, std::span<const op::Array> inputs,
                             std::span<const op::Array> results) {
  const Current current = TESSERA_TRY(context_->enter());
  if (runs_on_host(call.card())) return run_on_host(call, inputs, results);
  const ReadyProgramRef program = TESSERA_TRY(program_of(call, inputs, results));
  stream_->note_queued(call.card().name);
  auto done = SingleCall(*this, inputs, results).run(*program);
  if (done) return done;
  return std::move(done).error().note(cat("running '", call.card().name, "' on ", name_));
}

Result<op::HostTensor> CudaDevice::to_host(const op::Array& array) {
  auto out = TESSERA_TRY(op::HostTensor::allocate(array.dtype, array.shape()));
  const std::span<std::byte> bytes(out.array().data, out.byte_size());
  if (array.layout.is_contiguous()) {
    TESSERA_TRY(memory_->copy_out(array.at(array.layout.offset), bytes));
    return out;
  }
  std::byte* dense = TESSERA_TRY(memory_->allocate(bytes.size()));
  const op::Array to{array.dtype, op::contiguous(array.shape()), dense};
  auto done = run_program(copy_program(array, to), {&array, 1}, {&to, 1});
  if (done) done = memory_->copy_out(dense, bytes);
  memory_->free(dense, bytes.size());
  TESSERA_TRY(std::move(done));
  return out;
}

/// Waits for what is queued: the function sees values.
Result<void> CudaDevice::run_on_host(const op::CallInfo& call, std::span<const op::Array> inputs,
                                     std::span<const op::Array> results) {
  std::vector<op::HostTensor> held;
  std::vector<op::Array> from, to;
  for (const op::Array& input : inputs) {
    held.push_back(TESSERA_TRY(to_host(input)));
    from.push_back(held.back().array());
  }
  for (const op::Array& result : results) {
    held.push_back(TESSERA_TRY(op::HostTensor::allocate(result.dtype, result.shape())));
    to.push_back(held.back().array());
  }
  TESSERA_TRY(call.card().reference(call, from, to));
  for (std::size_t i = 0; i < results.size(); ++i)
    TESSERA_TRY(memory_->copy_in(results[i].at(results[i].layout.offset),
                                 {to[i].data, held[inputs.size() + i].byte_size()}));
  return {};
}

/// Numbers that are arguments of kernels are read back first.
Result<StepProgram> CudaDevice::program_of_user(const op::CallInfo& call, std::span<const op::Array> inputs,
                                                std::span<const op::Array> results) {
  std::vector<InputNumber> numbers(inputs.size());
  for (const op::DeviceArgument& argument : op::device_call_of(call.card())->arguments) {
    if (argument.kind != op::DeviceArgument::Kind::number) continue;
    const op::Array& number = inputs[argument.index];
    std::byte element[8] = {};
    TESSERA_TRY(memory_->copy_out(number.at(number.layout.offset),
                                  std::span(element).first(ir::size_of(number.dtype))));
    numbers[argument.index] = number_in(element, number.dtype);
  }
  return user_program(call, inputs, results, numbers, {});
}

Result<ReadyProgramRef> CudaDevice::program_of(const op::CallInfo& call, std::span<const op::Array> inputs,
                                               std::span<const op::Array> results) {
  // Code of the program, and the numbers it is given, may be others the next time.
  if (op::device_call_of(call.card()) != nullptr)
    return ready(TESSERA_TRY(program_of_user(call, inputs, results)));
  auto key = call_key(call, inputs, results);
  if (key)
    if (ReadyProgramRef known = calls_.find(*key)) return known;
  const bool is_product = may_be_product(call.card());
  if (is_product && awaits_products())
    return ready(TESSERA_TRY(call_program(call, inputs, results, {.limits = context_->limits()})));
  const bool has_library = is_product && blas() != nullptr;
  const Means means{has_library ? Products::by_library : Products::by_kernels, context_->limits()};
  StepProgram program = TESSERA_TRY(call_program(call, inputs, results, means));
  ReadyProgramRef out = TESSERA_TRY(ready(std::move(program)));
  if (key) calls_.keep(*std::move(key), out);
  return out;
}

std::int64_t CudaDevice::workspace_of(const Product& product) {
  const auto made = blas()->get(product);
  return made ? (*made)->workspace_bytes() : product_workspace;
}

Result<ReadyProgramRef> CudaDevice::ready(StepProgram program) {
  fit_workspaces(program, [this](const Product& product) { return workspace_of(product); });
  auto out = std::make_shared<ReadyProgram>();
  std::vector<SourceRef> sources;
  for (const cuda::Launch& launch : program.launches)
    if (launch.kind == cuda::Launch::Kind::kernel) sources.push_back(launch.source);
  auto functions = TESSERA_TRY(modules_.get(sources));
  auto next = functions.begin();
  for (const cuda::Launch& launch : program.launches) {
    out->functions.push_back(launch.kind == cuda::Launch::Kind::kernel ? std::move(*next++) : nullptr);
    out->products.emplace_back();
    if (launch.kind == cuda::Launch::Kind::product)
      out->products.back() = TESSERA_TRY(blas()->get(*launch.product));
  }
  out->program = std::move(program);
  return ReadyProgramRef(std::move(out));
}

Result<void> CudaDevice::run_program(const StepProgram& program, std::span<const op::Array> inputs,
                                     std::span<const op::Array> results) {
  const Current current = TESSERA_TRY(context_->enter());
  const ReadyProgramRef made = TESSERA_TRY(ready(program));
  return SingleCall(*this, inputs, results).run(*made);
}

Result<void> CudaDevice::synchronize() {
  const Current current = TESSERA_TRY(context_->enter());
  return stream_->wait();
}

std::string_view CudaDevice::remark() const {
  return products_ == ProductPrecision::full ? "" : "the library rounds factors of f32 products to tf32";
}

Result<std::unique_ptr<StepClock>> CudaDevice::step_clock() {
  std::unique_ptr<StepClock> out = TESSERA_TRY(StreamClock::create(context_, stream_));
  return out;
}

Result<std::unique_ptr<Executable>> CudaDevice::load(plan::PlanRef plan,
                                                     const std::shared_ptr<MemoryPool>& pool) {
  const Current current = TESSERA_TRY(context_->enter());
  auto capturing = TESSERA_TRY(Stream::create(context_));
  return std::unique_ptr<Executable>(
      std::make_unique<CudaExecutable>(shared_from_this(), std::move(plan), pool, std::move(capturing)));
}

Result<plan::Binding> CudaDevice::plan_memory(const plan::PlanRef& plan, std::span<const std::int64_t> sizes,
                                              std::span<const op::Layout> inputs) {
  return plan::bind(*plan, sizes, inputs, CudaExecutable::running_of(*plan));
}

/// Graphs of steps are made once and patched: their products are those of the library.
Result<std::unique_ptr<StepGraph>> CudaDevice::step_graph(StepBlame blame) {
  settle();
  const Current current = TESSERA_TRY(context_->enter());
  auto capturing = TESSERA_TRY(Stream::create(context_));
  return std::unique_ptr<StepGraph>(
      std::make_unique<CudaStepGraph>(shared_from_this(), std::move(capturing), std::move(blame)));
}

Blas* CudaDevice::blas() {
  const auto opened = blas_once_.get([this]() -> Result<Blas*> {
    if (!open_blas_) return nullptr;
    const Current current = TESSERA_TRY(context_->enter());
    blas_ = TESSERA_TRY(open_blas_({context_, stream_, memory_, store_, products_}));
    return blas_.get();
  });
  return opened ? *opened : nullptr;
}

namespace {

/// Whatever happens, those who wait need not wait any longer.
struct EndsWaiting {
  std::atomic<bool>& awaited;
  ~EndsWaiting() {
    awaited.store(false, std::memory_order_release);
    awaited.notify_all();
  }
};

}  // namespace

void CudaDevice::open_products() {
  const EndsWaiting at_the_end{awaits_products_};
  const auto current = context_->enter();
  Blas* const library = current ? blas() : nullptr;
  if (library == nullptr) return;
  constexpr std::int64_t size = 32;
  Product any{.rows = size, .columns = size, .depth = size};
  any.a.leading = any.b.leading = any.c.leading = size;
  // What is wrong with the library shows when a product is asked for.
  static_cast<void>(library->get(any).ok());
}

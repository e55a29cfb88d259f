#include "tessera/runtime/cpu/body_runs.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/run_meter.h"
#include "tessera/plan/size_conditions.h"
#include "tessera/plan/work.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;
using op::HostTensor;

namespace {

/// What is smaller is copied to and from one place, so that no address changes from run to run.
constexpr std::size_t most_copied = 16'384;

/// The input that a step writes its result over if it may: one that it alone reads, and changes in part.
std::optional<std::uint32_t> updated_input(const plan::Plan& plan, plan::ValueId result) {
  if (plan.values[result].kind != plan::ValueKind::computed) return std::nullopt;
  const plan::Step& step = plan.steps[plan.values[result].index];
  if (step.kind != plan::StepKind::call || !step.card->traits.in_place) return std::nullopt;
  const plan::ValueId first = step.inputs[0];
  if (plan.values[first].kind != plan::ValueKind::input) return std::nullopt;
  std::ptrdiff_t reads = std::count(plan.outputs.begin(), plan.outputs.end(), first);
  for (const plan::Step& other : plan.steps)
    reads += std::count(other.inputs.begin(), other.inputs.end(), first);
  return reads == 1 ? std::optional(plan.values[first].index) : std::nullopt;
}

}  // namespace

class BodyRuns::Body {
 public:
  Body(ir::FunctionRef function, plan::PlanRef plan, std::unique_ptr<Executable> executable)
      : function_(std::move(function)), plan_(std::move(plan)), executable_(std::move(executable)) {
    for (const plan::ValueId output : plan_->outputs) updated_.push_back(updated_input(*plan_, output));
  }

  Result<Tensors> run(Tensors& inputs, std::span<const std::int64_t> sizes,
                      std::span<const std::uint64_t> numbers) {
    TESSERA_TRY(prepare(inputs, sizes));
    if (RunMeter* meter = RunMeter::current()) TESSERA_TRY(meter->take_work(TESSERA_TRY(work())));
    TESSERA_TRY(take_inputs(inputs));
    Tensors results = TESSERA_TRY(place_results(inputs));
    TESSERA_TRY(executable_->run({.inputs = from_, .parameters = numbers, .outputs = to_}));
    for (std::size_t i = 0; i < results.size(); ++i) copy_out(i, results[i]);
    return results;
  }

 private:
  [[nodiscard]] const plan::Place& place(std::size_t output) const {
    return executable_->binding().output(*plan_, output);
  }
  [[nodiscard]] op::Dtype dtype(std::size_t output) const {
    return plan_->values[plan_->outputs[output]].type.dtype;
  }

  Result<void> prepare(const Tensors& inputs, std::span<const std::int64_t> sizes) {
    std::vector<op::Layout> layouts;
    for (const HostTensor& input : inputs) layouts.push_back(input.array().layout);
    if (is_prepared_ && std::equal(sizes.begin(), sizes.end(), sizes_.begin(), sizes_.end()) &&
        layouts == layouts_)
      return {};
    is_prepared_ = false;
    work_.reset();
    if (sizes.size() == plan_->dims.size()) TESSERA_TRY(plan::check_sizes(*plan_, sizes));
    TESSERA_TRY(executable_->prepare(sizes, layouts));
    sizes_.assign(sizes.begin(), sizes.end());
    layouts_ = std::move(layouts);
    copies_.assign(inputs.size(), {});
    buffers_.assign(executable_->binding().buffers.size(), {});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].byte_size() <= most_copied)
        copies_[i] = TESSERA_TRY(HostTensor::allocate(inputs[i].dtype(), inputs[i].shape()));
    for (std::size_t b = 0; b < buffers_.size(); ++b)
      if (const std::int64_t bytes = executable_->binding().buffers[b].bytes;
          bytes <= static_cast<std::int64_t>(most_copied))
        buffers_[b] = TESSERA_TRY(HostTensor::allocate(op::Dtype::u8, {std::max<std::int64_t>(bytes, 1)}));
    is_prepared_ = true;
    return {};
  }

  /// Of one run, without the regions inside, which count their own.
  Result<double> work() {
    if (work_) return *work_;
    const auto by_step = TESSERA_TRY(plan::work_by_step(*plan_, sizes_));
    double sum = 0;
    for (std::size_t s = 0; s < by_step.size(); ++s)
      if (plan_->steps[s].kind != plan::StepKind::function) sum += by_step[s];
    work_ = sum;
    return sum;
  }

  Result<void> take_inputs(const Tensors& inputs) {
    from_.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_copied = copies_[i].array().data != nullptr;
      if (is_copied) std::memcpy(copies_[i].array().data, inputs[i].array().data, inputs[i].byte_size());
      from_.push_back(is_copied ? copies_[i].array().data : inputs[i].array().data);
    }
    return {};
  }

  /// Whether a result is written where an input lies, which nobody needs any more.
  [[nodiscard]] bool is_update(std::size_t output, const Tensors& inputs) const {
    if (!updated_[output] || place(output).where != plan::Where::output) return false;
    const HostTensor& input = inputs[*updated_[output]];
    return input.byte_size() > most_copied && input.is_unshared();
  }

  /// Memory for the results: the tensors themselves if they lie as tensors do, else buffers that are copied.
  Result<Tensors> place_results(Tensors& inputs) {
    Tensors out(plan_->outputs.size());
    to_.assign(buffers_.size(), nullptr);
    for (std::size_t b = 0; b < buffers_.size(); ++b) to_[b] = buffers_[b].array().data;
    held_.assign(buffers_.size(), {});
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = is_update(i, inputs) ? inputs[*updated_[i]]
                                    : TESSERA_TRY(HostTensor::allocate(dtype(i), place(i).layout.shape));
      if (place(i).where == plan::Where::output && to_[place(i).index] == nullptr && is_dense(i))
        to_[place(i).index] = out[i].array().data;
    }
    for (std::size_t b = 0; b < to_.size(); ++b) {
      if (to_[b] != nullptr) continue;
      held_[b] = TESSERA_TRY(HostTensor::allocate(op::Dtype::u8, {executable_->binding().buffers[b].bytes}));
      to_[b] = held_[b].array().data;
    }
    return out;
  }

  [[nodiscard]] bool is_dense(std::size_t output) const {
    const op::Layout& layout = place(output).layout;
    return layout.is_contiguous() && layout.offset == 0;
  }

  void copy_out(std::size_t output, const HostTensor& to) const {
    const plan::Place& from = place(output);
    std::byte* const data = from.where == plan::Where::output ? to_[from.index] : from_[from.index];
    if (data != to.array().data) op::copy_elements({dtype(output), from.layout, data}, to.array());
  }

  ir::FunctionRef function_;  ///< found by its address
  plan::PlanRef plan_;
  std::unique_ptr<Executable> executable_;
  std::vector<std::optional<std::uint32_t>> updated_;  ///< by result
  bool is_prepared_ = false;
  std::vector<std::int64_t> sizes_;
  std::optional<double> work_;  ///< with these sizes, once it is asked for
  std::vector<op::Layout> layouts_;
  Tensors copies_;   ///< by input; empty for large ones
  Tensors buffers_;  ///< by buffer of the binding; empty for large ones
  Tensors held_;     ///< by buffer: large ones of this run that are copied
  std::vector<std::byte*> from_, to_;
};

Result<std::optional<BodyRuns::Tensors>> BodyRuns::run(const ir::FunctionRef& function, Tensors& inputs,
                                                       std::span<const std::int64_t> sizes,
                                                       std::span<const std::uint64_t> numbers) {
  const auto [at, is_new] = bodies_.try_emplace(function.get());
  if (is_new) {
    const auto plan = device_->plan_body(function);
    if (plan)
      at->second = std::make_shared<Body>(function, *plan,
                                          std::make_unique<CpuExecutable>(device_, *plan, pool_, depth_ + 1));
  }
  if (at->second == nullptr) return std::optional<Tensors>();
  return std::optional(TESSERA_TRY(at->second->run(inputs, sizes, numbers)));
}

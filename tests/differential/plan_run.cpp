#include <bit>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/runtime/memory_pool.h"
#include "tests/differential/runs.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

/// A plan ready to run on the inputs of a program.
class PlanRun {
 public:
  static Result<PlanRun> load(const Program& program, plan::PlanRef plan, runtime::Device& device) {
    PlanRun out;
    out.plan_ = plan;
    out.executable_ = TESSERA_TRY(device.load(std::move(plan), runtime::MemoryPool::create()));
    std::vector<op::Layout> layouts;
    for (const auto& input : program.inputs) {
      layouts.push_back(input.array().layout);
      out.inputs_.push_back(input.array().data);
    }
    TESSERA_TRY(out.executable_->prepare(program.sizes, layouts));
    return out;
  }

  Result<Results> launch(std::span<const double> numbers) {
    std::vector<op::HostTensor> buffers;
    std::vector<std::byte*> outputs;
    for (const auto& buffer : executable_->binding().buffers) {
      buffers.push_back(
          TESSERA_TRY(op::HostTensor::allocate(op::Dtype::u8, {std::max<std::int64_t>(buffer.bytes, 1)})));
      outputs.push_back(buffers.back().array().data);
    }
    const auto parameters = bits_of(numbers);
    TESSERA_TRY(executable_->run({.inputs = inputs_, .parameters = parameters, .outputs = outputs}));
    Results out;
    for (std::size_t i = 0; i < plan_->outputs.size(); ++i) out.push_back(TESSERA_TRY(output(i, outputs)));
    return out;
  }

 private:
  [[nodiscard]] std::vector<std::uint64_t> bits_of(std::span<const double> numbers) const {
    std::vector<std::uint64_t> out;
    for (std::size_t slot = 0; slot < plan_->parameters.size(); ++slot) {
      const double number = slot < numbers.size() ? numbers[slot] : 0;
      out.push_back(ir::is_float(plan_->parameters[slot])
                        ? std::bit_cast<std::uint64_t>(number)
                        : static_cast<std::uint64_t>(static_cast<std::int64_t>(number)));
    }
    return out;
  }

  Result<op::HostTensor> output(std::size_t i, const std::vector<std::byte*>& outputs) const {
    const plan::Place& place = executable_->binding().output(*plan_, i);
    const op::Dtype dtype = plan_->values[plan_->outputs[i]].type.dtype;
    op::HostTensor out = TESSERA_TRY(op::HostTensor::allocate(dtype, place.layout.shape));
    std::byte* from = place.where == plan::Where::input ? inputs_[place.index] : outputs[place.index];
    op::copy_elements({dtype, place.layout, from}, out.array());
    return out;
  }

  plan::PlanRef plan_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<std::byte*> inputs_;
};

/// The plan as another process would get it.
Result<plan::PlanRef> saved_and_loaded(const Program& program, const plan::PlanRef& plan) {
  const std::string bytes = TESSERA_TRY(plan::to_bytes(compiler::package(*program.function, plan, "any")));
  const auto loaded = TESSERA_TRY(
      plan::from_bytes(Bytes::copy(std::as_bytes(std::span(bytes.data(), bytes.size()))), "saved"));
  return loaded.plan;
}

}  // namespace

Result<Results> tessera::differential::run_planned(const Program& program,
                                                   const compiler::PlanOptions& options,
                                                   runtime::Device& device, const pattern::Target& target,
                                                   std::span<const double> parameters) {
  const auto planned = TESSERA_TRY(compiler::plan_function(program.function, target, options));
  PlanRun run = TESSERA_TRY(PlanRun::load(program, planned.plan, device));
  (void)run.launch(program.second_parameters);
  auto fresh = run.launch(parameters);
  PlanRun loaded =
      TESSERA_TRY(PlanRun::load(program, TESSERA_TRY(saved_and_loaded(program, planned.plan)), device));
  const auto again = loaded.launch(parameters);
  if (fresh.ok() != again.ok())
    return Error(ErrorCode::internal, "a loaded plan fails where the fresh one does not");
  if (fresh)
    if (const auto other = difference(*fresh, *again))
      return Error(ErrorCode::internal, cat("a loaded plan gives something else: ", *other));
  return fresh;
}

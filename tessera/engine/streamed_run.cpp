#include "tessera/engine/streamed_run.h"

#include <algorithm>
#include "tessera/base/text.h"

#include "tessera/base/text.h"
#include "tessera/engine/record.h"
#include "tessera/op/call_info.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/host_access.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

/// The scalars of a call as arrays of rank 0.
class ScalarMemory {
 public:
  explicit ScalarMemory(const Node& node) : node_(node), memory_(node.input_count) {}

  /// The next scalar, which is operand `i`.
  op::Array next(std::size_t i) {
    const Dtype dtype = scalar_dtype_of(node_, i);
    auto* at = reinterpret_cast<std::byte*>(&memory_[count_]);
    const ScalarBits bits = node_.scalar_at(count_++);
    if (ir::is_float(dtype)) {
      const double value = bits.as_float();
      op::storer<double>(dtype)(at, 0, 1, 1, &value);
    } else {
      const op::SignedWide value = bits.as_integer();
      op::storer<op::SignedWide>(dtype)(at, 0, 1, 1, &value);
    }
    return {dtype, op::contiguous({}), at};
  }

  /// A device with memory of its own reads them there. Null if there is nothing to move.
  Result<Ref<runtime::Buffer>> move_to(runtime::MemoryPool& pool, std::span<op::Array> inputs) {
    if (count_ == 0 || pool.space() == nullptr) return Ref<runtime::Buffer>();
    auto far = TESSERA_TRY(pool.allocate(count_ * sizeof memory_[0]));
    TESSERA_TRY(runtime::write_bytes(*far, std::as_bytes(std::span(memory_.data(), count_))));
    std::size_t moved = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (node_.input(i) == nullptr) inputs[i].data = far->data() + moved++ * sizeof memory_[0];
    return far;
  }

 private:
  const Node& node_;
  std::vector<std::uint64_t> memory_;
  std::size_t count_ = 0;
};

/// Regions are interpreted on the host.
Result<void> read_by_host(const Storage& from, const op::Array& to) {
  if (from.buffer->is_host()) {
    op::copy_elements(from.array(to.dtype), to);
    return {};
  }
  const auto bytes = TESSERA_TRY(runtime::host_elements(from, to.dtype));
  std::copy(bytes.begin(), bytes.end(), to.data);
  return {};
}

}  // namespace

Result<RunFigures> StreamedRun::run(std::span<const std::uint32_t> steps, std::vector<Computed>& out,
                                    std::vector<runtime::TimedStep>* times) {
  results_.resize(needed_.size());
  uses_left_.resize(needed_.size());
  const std::size_t count = steps.empty() ? needed_.size() : steps.size();
  const auto step_at = [&](std::size_t i) {
    return steps.empty() ? static_cast<std::uint32_t>(i) : steps[i];
  };
  for (std::size_t i = 0; i < count; ++i) uses_left_[step_at(i)] = needed_.uses(step_at(i));
  if (times != nullptr) clock_ = TESSERA_TRY(device_.step_clock());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t step = step_at(i);
    auto done = times == nullptr ? run_step(step) : run_timed(step, *times);
    if (!done) {
      const Node& node = needed_.node(step);
      Error error = std::move(done).error();
      if (error.code() == ErrorCode::memory && node.card != nullptr)
        static_cast<void>(std::move(error).note(cat("computing '", node.card->name, "'")));
      return std::move(error).at(SourceSpan{node.file == nullptr ? "" : node.file, node.line, 0});
    }
    for (const std::uint32_t from : needed_.from(step))
      if (from != Needed::stored) used(from);
  }
  if (clock_ != nullptr) TESSERA_TRY(clock_->read(*times));
  for (std::size_t i = 0; i < count; ++i) keep(step_at(i), out);
  return figures_;
}

/// Views take no time: they are not noted.
Result<void> StreamedRun::run_timed(std::uint32_t step, std::vector<runtime::TimedStep>& times) {
  const std::uint64_t kernels = figures_.kernels;
  if (clock_ != nullptr) {
    TESSERA_TRY(clock_->begin());
    TESSERA_TRY(run_step(step));
    return figures_.kernels != kernels ? clock_->end(step) : Result<void>();
  }
  runtime::TimedStep time{.step = step, .begin = std::chrono::steady_clock::now()};
  TESSERA_TRY(run_step(step));
  time.end = std::chrono::steady_clock::now();
  if (figures_.kernels != kernels) times.push_back(time);
  return {};
}

Result<void> StreamedRun::run_step(std::uint32_t step) {
  const Node& node = needed_.node(step);
  if (node.is(Node::is_result)) {
    results_[step].push_back(results_[needed_.from(step)[0]][node.extra->result]);
    return {};
  }
  if (node.is(Node::placeholder))
    return Error(ErrorCode::invalid_argument, "a value of a traced region was asked for outside of it");
  if (node.card == nullptr) return Error(ErrorCode::internal, "a leaf without storage was asked for");
  return node.extra != nullptr && node.extra->function ? run_function(step) : run_call(step);
}

Result<void> StreamedRun::run_call(std::uint32_t step) {
  const Node& node = needed_.node(step);
  ScalarMemory scalars(node);
  std::vector<op::Array> inputs;
  op::ValueTypes types;
  for (std::size_t i = 0; i < node.input_count; ++i) {
    const Node* input = node.input(i);
    inputs.push_back(input == nullptr ? scalars.next(i) : operand(step, i).array(input->dtype));
    types.push_back(input == nullptr ? op::ValueType{inputs.back().dtype, {}} : input->type());
  }
  const op::CallInfo call(*node.card, types, node.attributes());
  const Ref<runtime::Buffer> far_scalars = TESSERA_TRY(scalars.move_to(pool_, inputs));
  if (node.card->view != nullptr && node.input(0) != nullptr) {
    if (const auto layout = node.card->view(call, inputs[0].layout)) {
      results_[step].push_back({operand(step, 0).buffer, *layout});
      ++figures_.views;
      return {};
    }
  }
  std::vector<op::Array> results;
  TESSERA_TRY(allocate_results(step, results));
  ++figures_.kernels;
  return device_.run(call, inputs, results);
}

Result<void> StreamedRun::run_function(std::uint32_t step) {
  const Node& node = needed_.node(step);
  std::vector<op::HostTensor> inputs;
  for (std::size_t i = 0; i < node.input_count; ++i) {
    const Storage& from = operand(step, i);
    inputs.push_back(TESSERA_TRY(op::HostTensor::allocate(node.input(i)->dtype, from.layout.shape)));
    TESSERA_TRY(read_by_host(from, inputs.back().array()));
  }
  const auto values = TESSERA_TRY(op::interpret(*node.extra->function, inputs));
  std::vector<op::Array> results;
  TESSERA_TRY(allocate_results(step, results));
  for (std::size_t i = 0; i < results.size(); ++i)
    TESSERA_TRY(
        runtime::write_bytes(*results_[step][i].buffer, {values[i].array().data, values[i].byte_size()}));
  ++figures_.kernels;
  return {};
}

Result<void> StreamedRun::allocate_results(std::uint32_t step, std::vector<op::Array>& arrays) {
  const Node& node = needed_.node(step);
  const auto add = [&](Dtype dtype, const Extents& shape) -> Result<void> {
    const auto bytes = static_cast<std::size_t>(op::element_count(shape)) * ir::size_of(dtype);
    auto buffer = pool_.allocate(bytes);
    if (!buffer)
      return std::move(buffer).error().note(
          cat("for a result of '", node.card->name, "', ", dtype, "[", join(shape, ", "), "]"));
    Storage storage{*std::move(buffer), op::contiguous(shape)};
    if (!device_.takes_any_results()) TESSERA_TRY(runtime::clear(*storage.buffer));
    arrays.push_back(storage.array(dtype));
    results_[step].push_back(std::move(storage));
    return {};
  };
  if (node.extra == nullptr || node.extra->results.empty())
    return add(node.dtype, Extents(node.shape().begin(), node.shape().end()));
  for (const op::ValueType& type : node.extra->results)
    TESSERA_TRY(add(type.dtype, *ir::constant_shape(type.shape)));
  return {};
}

const Storage& StreamedRun::operand(std::uint32_t step, std::size_t i) const {
  const std::uint32_t from = needed_.from(step)[i];
  if (from != Needed::stored) return results_[from][0];
  return *needed_.node(step).input(i)->storage.load(std::memory_order_acquire);
}

/// A value that no later step needs and nobody keeps is given up at once.
void StreamedRun::used(std::uint32_t step) {
  if (--uses_left_[step] == 0 && needed_.keep(step) == Needed::dropped) results_[step].clear();
}

void StreamedRun::keep(std::uint32_t step, std::vector<Computed>& out) {
  if (needed_.keep(step) == Needed::dropped || results_[step].empty()) return;
  Results& results = results_[step];
  Computed computed{.node = &needed_.node(step), .value = std::make_unique<Storage>(results[0])};
  if (results.size() > 1) computed.results = std::move(results);
  out.push_back(std::move(computed));
}

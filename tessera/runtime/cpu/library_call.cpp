#include "tessera/runtime/cpu/library_call.h"

#include <bit>
#include <mutex>

using namespace tessera;
using namespace tessera::runtime::cpu;

float runtime::cpu::scale_of(const LibraryForm& form, const LibraryLaunch& launch) {
  if (form.scale_slot == no_input) return form.scale;
  const auto number = static_cast<float>(std::bit_cast<double>(launch.numbers[form.scale_slot]));
  return form.scale * (form.divides ? 1.0f / number : number);
}

Result<void> runtime::cpu::run_items(LibraryCall& call, ThreadPool& threads,
                                     std::span<kernel::Scratch> scratch) {
  std::mutex mutex;
  Result<void> first;
  try {
    threads.run(call.items(), 1, [&](std::int64_t begin, std::int64_t end, unsigned thread) {
      auto done = call.run({begin, end}, scratch[thread]);
      if (done) return;
      const std::lock_guard lock(mutex);
      if (first) first = std::move(done);
    });
  } catch (const Exception& late) {
    first = late.error();
  }
  if (first) call.end();
  return first;
}

Result<LibraryCallRef> runtime::cpu::make_library_call(const LibraryForm& form,
                                                       std::span<const op::Array> inputs,
                                                       std::span<const op::Array> results,
                                                       Libraries& libraries, std::int64_t row_block) {
  switch (form.op) {
    case LibraryOp::matmul:
      return make_matmul_call(form, inputs, results, libraries, row_block);
    case LibraryOp::half_matmul:
      return make_half_matmul_call(form, inputs, results, libraries);
    case LibraryOp::integer_matmul:
      return make_integer_matmul_call(form, inputs, results, libraries);
    case LibraryOp::convolution:
      if (is_pointwise(form, inputs)) return make_pointwise_call(form, inputs, results, libraries);
      if (is_depthwise(form, inputs)) return make_depthwise_call(form, inputs, results);
      return make_convolution_call(form, inputs, results, libraries);
    case LibraryOp::slice_convolution:
      return make_slice_convolution_call(form, inputs, results, libraries);
    case LibraryOp::integer_convolution:
      return make_integer_convolution_call(form, inputs, results, libraries);
    case LibraryOp::attention:
      return make_attention_call(form, inputs, results, row_block);
    case LibraryOp::max_pool:
    case LibraryOp::avg_pool:
      return make_pooling_call(form, inputs, results);
  }
  return Error(ErrorCode::internal, "an unknown library call");
}

#include "tessera/runtime/cpu/single_call.h"

#include <algorithm>

#include "tessera/kernel/build.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/work.h"
#include "tessera/runtime/call_function.h"
#include "tessera/runtime/cpu/call_parts.h"
#include "tessera/runtime/cpu/convolution_gradient.h"
#include "tessera/runtime/cpu/element_moves.h"
#include "tessera/runtime/cpu/row_orders.h"
#include "tessera/runtime/cpu/shared_copy.h"
#include "tessera/runtime/cpu/wide_matmul.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// What the reference does in the time that it takes to prepare another way.
constexpr double least_work = 8192;
/// The same for writing out the parts of a call.
constexpr double least_work_of_parts = 131'072;
/// Items of a kernel that one thread takes at once, per thread.
constexpr std::int64_t pieces_per_thread = 4;

op::ValueType type_of(const op::Array& array) {
  return {array.dtype, ir::shape_of(std::span<const std::int64_t>(array.shape()))};
}

/// One for each thread of the pool; those of the thread that called.
std::span<kernel::Scratch> scratch_for(const ThreadPool& threads) {
  static thread_local std::vector<kernel::Scratch> scratch;
  if (scratch.size() < threads.size()) scratch.resize(threads.size());
  return scratch;
}

Result<bool> run_interpreted(const op::CallInfo& call, std::span<const op::Array> inputs,
                             std::span<const op::Array> results, SingleCallContext context) {
  const auto accuracy = context.libraries.is_precise ? kernel::Accuracy::precise : kernel::Accuracy::usual;
  auto built = kernel::build(*function_of(call, inputs, results), accuracy);
  if (!built) return false;
  const kernel::Interpreter interpreter(*std::move(built), accuracy);
  kernel::Job job;
  // Strides may forbid to see an input in the order that the kernel needs.
  if (!interpreter.prepare(inputs, results, job)) return false;
  const auto scratch = scratch_for(context.threads);
  const auto pieces = static_cast<std::int64_t>(context.threads.size()) * pieces_per_thread;
  context.threads.run(job.items, std::max<std::int64_t>(1, job.items / pieces),
                      [&](std::int64_t begin, std::int64_t end, unsigned thread) {
                        interpreter.run(job, {}, {begin, end}, scratch[thread]);
                      });
  return true;
}

}  // namespace

Result<bool> runtime::cpu::run_by_library(const op::CallInfo& call, std::span<const op::Array> inputs,
                                          std::span<const op::Array> results, SingleCallContext context) {
  const auto form = library_form(call);
  if (!form) return false;
  const LibraryCallRef library = TESSERA_TRY(make_library_call(*form, inputs, results, context.libraries));
  TESSERA_TRY(library->begin({.inputs = inputs, .results = results, .numbers = {}, .weights = {}}));
  TESSERA_TRY(run_items(*library, context.threads, scratch_for(context.threads)));
  return true;
}

Result<bool> runtime::cpu::run_single_call(const op::CallInfo& call, std::span<const op::Array> inputs,
                                           std::span<const op::Array> results, SingleCallContext context) {
  op::ValueTypes types;
  for (const op::Array& result : results) types.push_back(type_of(result));
  // A card of the caller's own may have the name of another.
  if (!op::is_in_catalogue(call.card())) return false;
  const double work = op::work_of(call, types);
  if (work < least_work) return false;
  if (const auto to = copied_in_order(call, inputs, results)) {
    copy_shared(inputs[0], *to, context.threads);
    return true;
  }
  if (TESSERA_TRY(run_moves(call, inputs, results, context.threads))) return true;
  if (TESSERA_TRY(run_by_library(call, inputs, results, context))) return true;
  if (TESSERA_TRY(run_convolution_gradient(call, inputs, results, context))) return true;
  if (TESSERA_TRY(run_wide_matmul(call, inputs, results, context.threads))) return true;
  if (TESSERA_TRY(run_row_orders(call, inputs, results, context.threads))) return true;
  if (TESSERA_TRY(run_interpreted(call, inputs, results, context))) return true;
  return work >= least_work_of_parts ? run_by_parts(call, inputs, results, context) : false;
}

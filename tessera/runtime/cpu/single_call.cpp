#include "tessera/runtime/cpu/single_call.h"

#include <algorithm>

#include "tessera/kernel/build.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/work.h"
#include "tessera/runtime/cpu/shared_copy.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// What the reference does in the time that it takes to prepare another way.
constexpr double least_work = 8192;
/// Items of a kernel that one thread takes at once, per thread.
constexpr std::int64_t pieces_per_thread = 4;

op::ValueType type_of(const op::Array& array) {
  return {array.dtype, ir::shape_of(std::span<const std::int64_t>(array.shape()))};
}

ir::TypeRef tensor_type(const op::Array& array) { return ir::tensor_type(array.dtype, type_of(array).shape); }

/// The call as a function of its inputs.
ir::FunctionRef function_of(const op::CallInfo& call, std::span<const op::Array> inputs,
                            std::span<const op::Array> results) {
  ir::FunctionParts parts{.name = std::string(call.card().name)};
  std::vector<ir::ExprRef> args;
  std::vector<Ref<ir::Var>> targets;
  for (const op::Array& input : inputs) {
    parts.params.push_back(ir::variable("x", tensor_type(input)));
    args.push_back(parts.params.back());
  }
  for (const op::Array& result : results) {
    targets.push_back(ir::variable("y", tensor_type(result)));
    parts.results.push_back(targets.back());
  }
  parts.body.push_back(ir::assign(
      std::move(targets), ir::call(std::string(call.card().name), std::move(args), call.attributes())));
  return ir::function(std::move(parts));
}

/// One for each thread of the pool; those of the thread that called.
std::span<kernel::Scratch> scratch_for(const ThreadPool& threads) {
  static thread_local std::vector<kernel::Scratch> scratch;
  if (scratch.size() < threads.size()) scratch.resize(threads.size());
  return scratch;
}

Result<bool> run_library(const op::CallInfo& call, std::span<const op::Array> inputs,
                         std::span<const op::Array> results, SingleCallContext context) {
  const auto form = library_form(call);
  if (!form) return false;
  const LibraryCallRef library = TESSERA_TRY(make_library_call(*form, inputs, results, context.libraries));
  TESSERA_TRY(library->begin({.inputs = inputs, .results = results, .numbers = {}, .weights = {}}));
  TESSERA_TRY(run_items(*library, context.threads, scratch_for(context.threads)));
  return true;
}

/// A view of elements that do not lie as it needs is a copy of them in their order: `reshape` of a transpose.
bool copy_in_order(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results, ThreadPool& threads) {
  if (call.card().view == nullptr || inputs[0].dtype != results[0].dtype) return false;
  const op::Layout dense = op::contiguous(inputs[0].shape());
  const auto seen = call.card().view(call, dense);
  if (!seen || !seen->is_contiguous() || seen->offset != 0 || inputs[0].size() != results[0].size())
    return false;
  copy_shared(inputs[0], {results[0].dtype, dense, results[0].at(results[0].layout.offset)}, threads);
  return true;
}

Result<bool> run_interpreted(const op::CallInfo& call, std::span<const op::Array> inputs,
                             std::span<const op::Array> results, SingleCallContext context) {
  auto built = kernel::build(*function_of(call, inputs, results));
  if (!built) return false;
  const kernel::Interpreter interpreter(*std::move(built));
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

Result<bool> runtime::cpu::run_single_call(const op::CallInfo& call, std::span<const op::Array> inputs,
                                           std::span<const op::Array> results, SingleCallContext context) {
  op::ValueTypes types;
  for (const op::Array& result : results) types.push_back(type_of(result));
  // A card of the caller's own may have the name of another.
  if (op::find_card(call.card().name) != &call.card() || op::work_of(call, types) < least_work) return false;
  if (copy_in_order(call, inputs, results, context.threads)) return true;
  if (TESSERA_TRY(run_library(call, inputs, results, context))) return true;
  return run_interpreted(call, inputs, results, context);
}

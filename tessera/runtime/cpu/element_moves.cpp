#include "tessera/runtime/cpu/element_moves.h"

#include "tessera/base/small_vector.h"
#include "tessera/op/families/parts.h"
#include "tessera/runtime/cpu/shared_copy.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::size_t most_copies_at_once = 8;

Result<void> concat(const op::CallInfo& call, std::span<const op::Array> inputs, const op::Array& result,
                    ThreadPool& threads) {
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), result.rank()));
  // Groups of as many as need no memory.
  SmallVector<SharedCopy, most_copies_at_once> copies;
  std::int64_t begin = 0;
  for (const op::Array& input : inputs) {
    const std::int64_t size = input.shape()[axis];
    copies.push_back({input, {result.dtype, op::part_of(result.layout, axis, begin, size), result.data}});
    begin += size;
    if (copies.size() < most_copies_at_once && &input != &inputs.back()) continue;
    copy_shared(copies, threads);
    copies.clear();
  }
  return {};
}

Result<void> slice_at(const op::CallInfo& call, std::span<const op::Array> inputs, const op::Array& result,
                      ThreadPool& threads) {
  const op::Layout from = TESSERA_TRY(op::moving_part(call, inputs[0].layout, inputs));
  copy_shared({inputs[0].dtype, from, inputs[0].data}, result, threads);
  return {};
}

/// `to` is the part of the result that is replaced.
Result<void> update_part(const op::Layout& to, std::span<const op::Array> inputs, const op::Array& result,
                         ThreadPool& threads) {
  if (inputs[0].data != result.data) copy_shared(inputs[0], result, threads);  // else it is written over
  copy_shared(inputs[1], {result.dtype, to, result.data}, threads);
  return {};
}

}  // namespace

Result<bool> runtime::cpu::run_moves(const op::CallInfo& call, std::span<const op::Array> inputs,
                                     std::span<const op::Array> results, ThreadPool& threads) {
  if (call.card().name == "concat")
    TESSERA_TRY(concat(call, inputs, results[0], threads));
  else if (call.card().name == "slice_at")
    TESSERA_TRY(slice_at(call, inputs, results[0], threads));
  else if (call.card().name == "update_slice")
    TESSERA_TRY(
        update_part(TESSERA_TRY(op::updated_part(call, results[0].layout)), inputs, results[0], threads));
  else if (call.card().name == "update_slice_at")
    TESSERA_TRY(update_part(TESSERA_TRY(op::moving_part(call, results[0].layout, inputs)), inputs, results[0],
                            threads));
  else
    return false;
  return true;
}

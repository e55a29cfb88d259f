#include "tessera/runtime/cuda/op_source.h"

#include <algorithm>
#include <iterator>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/cuda/op_programs.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

struct Entry {
  std::string_view op;
  WriteOp write;
};

constexpr Entry entries[] = {
    {"argmax", write_argmax},
    {"argmin", write_argmin},
    {"avg_pool", write_avg_pool},
    {"avg_pool_gradient", write_avg_pool_gradient},
    {"concat", write_concat},
    {"conv", write_conv},
    {"conv_transpose", write_conv_transpose},
    {"conv_weight_gradient", write_conv_weight_gradient},
    {"cumprod", write_cumprod},
    {"cumsum", write_cumsum},
    {"gather", write_gather},
    {"gather_elements", write_gather_elements},
    {"gather_nd", write_gather_nd},
    {"matmul", write_matmul},
    {"max_pool", write_max_pool},
    {"nonzero", write_nonzero},
    {"one_hot", write_one_hot},
    {"scatter_elements", write_scatter_elements},
    {"scatter_nd", write_scatter_nd},
    {"slice_at", write_slice_at},
    {"sort", write_sort},
    {"update_slice", write_update_slice},
    {"update_slice_at", write_update_slice_at},
};

const Entry* find_entry(const op::Card& card) {
  // A card of the caller's own may have the name of another.
  if (op::find_card(card.name) != &card) return nullptr;
  const auto* const found =
      std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) { return e.op == card.name; });
  return found == std::end(entries) ? nullptr : found;
}

}  // namespace

bool runtime::cuda::has_op_program(const op::Card& card) { return find_entry(card) != nullptr; }

Result<StepProgram> runtime::cuda::op_program(const op::CallInfo& call, std::span<const op::Array> inputs,
                                              std::span<const op::Array> results,
                                              const DeviceLimits& limits) {
  const Entry* const entry = find_entry(call.card());
  if (entry == nullptr)
    return Error(ErrorCode::unsupported, cat(call.card().name, ": has no program for CUDA devices"));
  for (const op::Array& result : results)
    if (!result.layout.is_contiguous())
      return Error(ErrorCode::unsupported, cat(call.card().name, ": writes to contiguous results alone"));
  ProgramWriter program(inputs, results, limits);
  TESSERA_TRY(entry->write(call, program));
  return program.take();
}

StepProgram runtime::cuda::copy_program(const op::Array& from, const op::Array& to) {
  ProgramWriter program({&from, 1}, {&to, 1}, {});
  program.copy(program.input(0), program.result(0));
  return program.take();
}

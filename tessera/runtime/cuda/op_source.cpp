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
    {"concat", write_concat},       {"gather", write_gather},   {"gather_elements", write_gather_elements},
    {"gather_nd", write_gather_nd}, {"one_hot", write_one_hot}, {"update_slice", write_update_slice},
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
                                              std::span<const op::Array> results) {
  const Entry* const entry = find_entry(call.card());
  if (entry == nullptr)
    return Error(ErrorCode::unsupported, cat(call.card().name, ": has no program for CUDA devices"));
  for (const op::Array& result : results)
    if (!result.layout.is_contiguous())
      return Error(ErrorCode::unsupported, cat(call.card().name, ": writes to contiguous results alone"));
  ProgramWriter program(inputs, results);
  TESSERA_TRY(entry->write(call, program));
  return program.take();
}

StepProgram runtime::cuda::copy_program(const op::Array& from, const op::Array& to) {
  ProgramWriter program({&from, 1}, {&to, 1});
  program.copy(program.input(0), program.result(0));
  return program.take();
}

#include "tessera/runtime/cuda/coverage.h"

#include "tessera/runtime/cuda/op_source.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

std::string_view tessera::runtime::cuda::to_string(RunsAs how) {
  static constexpr std::string_view words[] = {"view", "kernel", "program", "parts", "nothing"};
  return words[static_cast<std::size_t>(how)];
}

RunsAs tessera::runtime::cuda::runs_as(const op::Card& card) {
  if (has_op_program(card)) return RunsAs::program;
  if (card.view != nullptr) return RunsAs::view;
  if (card.pointwise != nullptr || card.reduction != nullptr || card.indexed != nullptr)
    return RunsAs::kernel;
  return card.decompose != nullptr ? RunsAs::parts : RunsAs::nothing;
}

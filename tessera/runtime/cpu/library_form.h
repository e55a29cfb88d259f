// The library call that a step of a plan is, before its sizes are known.
#pragma once

#include <optional>

#include "tessera/op/call_info.h"
#include "tessera/plan/plan.h"
#include "tessera/runtime/cpu/library_chain.h"

namespace tessera::runtime::cpu {

inline constexpr std::uint32_t no_input = 0xffffffff, no_result = 0xffffffff;

struct LibraryForm {
  LibraryOp op = LibraryOp::matmul;
  const op::Card* card = nullptr;
  op::Attributes attributes;  ///< complete
  Epilogue epilogue;
  const op::Card* activation = nullptr;  ///< of an epilogue by card, whose function the device has
  std::uint32_t result = 0;              ///< of the step, what the chain computes
  std::uint32_t product = no_result;     ///< of the step, the product that is kept
  // Which inputs of the step its operands are.
  std::uint32_t left = 0, right = no_input, bias = no_input, residual = no_input;
  float scale = 1;                      ///< of an epilogue that has one; the sign of a parameter
  std::uint32_t scale_slot = no_input;  ///< of a scale that is a parameter
  bool divides = false;                 ///< by that parameter
  std::int32_t right_zero = 0;          ///< of integers: what is taken from the right operand
  /// Of an attention, whose left and right operands are queries and keys.
  std::uint32_t values = no_input;
  bool joins_heads = false;  ///< the result is [queries, heads, width]
};

/// Nothing if no library computes it.
[[nodiscard]] std::optional<LibraryForm> library_form(const plan::Step& step);
/// The same of a single call.
[[nodiscard]] std::optional<LibraryForm> library_form(const op::CallInfo& call);

}  // namespace tessera::runtime::cpu

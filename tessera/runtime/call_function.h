// A call without a plan around it, in the forms that runtimes make kernels and copies of.
#pragma once

#include <optional>
#include <span>

#include "tessera/ir/function.h"
#include "tessera/op/call_info.h"

namespace tessera::runtime {

/// The call as a function of its inputs, with the types of these arrays.
[[nodiscard]] ir::FunctionRef function_of(const op::CallInfo& call, std::span<const op::Array> inputs,
                                          std::span<const op::Array> results);

/// Of a view whose elements do not lie as it needs, a `reshape` of a transpose: the result seen with the
/// shape of the first input. Copying that input there, element by element, is the call. Nothing if it is no
/// such view.
[[nodiscard]] std::optional<op::Array> copied_in_order(const op::CallInfo& call,
                                                       std::span<const op::Array> inputs,
                                                       std::span<const op::Array> results);

}  // namespace tessera::runtime

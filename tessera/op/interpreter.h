// Runs an IR function by the reference kernels, statement by statement, regions included. The meaning of a
// program, and what constant folding uses.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tessera/ir/function.h"
#include "tessera/op/reference.h"

namespace tessera::op {

struct InterpreterOptions {
  /// Iterations of a `while` without a limit of its own.
  std::int64_t loop_limit = 1'000'000;
  /// The values of scalar parameters by slot, as ir::number_bits; a slot outside has the value it was
  /// recorded with.
  std::span<const std::uint64_t> parameters = {};
  /// How a call is run; empty: by its reference kernel.
  std::function<Result<std::vector<HostTensor>>(const Card&, std::span<const Array>, const Attributes&)>
      run_call = {};
  /// How the body of a region is run; empty, or returning nothing: statement by statement. What nobody else
  /// holds of its inputs may be overwritten.
  std::function<Result<std::optional<std::vector<HostTensor>>>(
      const ir::FunctionRef& body, std::vector<HostTensor>& inputs, std::span<const std::int64_t> sizes)>
      run_body = {};
};

/// The results of `function` on `inputs`. Sizes are taken from the inputs, or from `sizes` (one per size
/// symbol of the function) if they do not follow from them. Errors name the op and carry its span.
[[nodiscard]] Result<std::vector<HostTensor>> interpret(const ir::Function& function,
                                                        std::span<const HostTensor> inputs,
                                                        const InterpreterOptions& options = {},
                                                        std::span<const std::int64_t> sizes = {});

/// The value of a scalar expression; nothing if a variable has none.
struct ScalarValue {
  Dtype dtype = Dtype::i64;
  double number = 0;         ///< floats
  std::int64_t integer = 0;  ///< integers (u64: its bits) and booleans
};
[[nodiscard]] std::optional<ScalarValue> evaluate_scalar(
    const ir::Expr& expr, const std::function<std::optional<ScalarValue>(const ir::Expr&)>& leaf);

}  // namespace tessera::op

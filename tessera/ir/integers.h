// Integer arithmetic of every dtype, one operation at a time: what folding and evaluating scalar expressions
// mean by it. The reference kernels compute the same (op/formula.h).
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/ir/dtype.h"
#include "tessera/ir/scalar_opcode.h"

namespace tessera::ir {

/// An integer or a boolean, sign- or zero-extended as its dtype is.
struct Integer {
  Dtype dtype = Dtype::i64;
  std::int64_t bits = 0;
};

/// The answer of a comparison of two integers of one dtype; nothing if the opcode is none.
[[nodiscard]] std::optional<bool> compare_integers(ScalarOpcode opcode, Integer a, Integer b);

/// The bits of the result, wrapped as a store into the dtype of `a`; of one operand `b` counts for nothing.
/// Nothing if the opcode is no operation of one or two integers. Dividing by zero gives 0, the remainder is
/// the dividend.
[[nodiscard]] std::optional<std::int64_t> wrapped_integers(ScalarOpcode opcode, Integer a, Integer b);

/// The same of i64, and nothing where the value does not fit: a size that wraps is a mistake.
[[nodiscard]] std::optional<std::int64_t> evaluate_integers(ScalarOpcode opcode, std::int64_t a,
                                                            std::int64_t b);

/// Wrapped as a store does it; anything but 0 is true.
[[nodiscard]] std::int64_t convert_integer(Integer value, Dtype to);
/// Truncated and saturated; NaN gives 0.
[[nodiscard]] std::int64_t integer_from_float(double value, Dtype to);

}  // namespace tessera::ir

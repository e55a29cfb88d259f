// Scalar operations as CUDA C++: the same values, NaNs, infinities and wrapping as the reference has. f16 and
// bf16 are computed in f32, integers in 64 bits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/kernel/kernel.h"

namespace tessera::runtime::cuda {

using ir::Dtype;
using ir::ScalarOpcode;

/// What values of a wide dtype are in the text: "float", "long long", …
[[nodiscard]] std::string_view wide_type(Dtype wide);
/// What elements are in memory: "unsigned short" for the 16-bit floats.
[[nodiscard]] std::string_view memory_type(Dtype dtype);

/// Texts of expressions. Remembers which functions of our own they call.
class ScalarText {
 public:
  /// `bits` as a kernel's constant has them: of a double, of an integer, or 0 and 1.
  [[nodiscard]] std::string constant(Dtype wide, std::uint64_t bits);
  /// What leaves every other value as it is.
  [[nodiscard]] std::string neutral(ScalarOpcode opcode, Dtype wide);
  /// An element in memory as a value, and back. What is narrowed is a number of the dtype.
  [[nodiscard]] std::string widened(Dtype dtype, const std::string& element);
  [[nodiscard]] std::string narrowed(Dtype dtype, const std::string& value);
  [[nodiscard]] std::string cast(const std::string& value, Dtype from, Dtype to);
  [[nodiscard]] std::string bitcast(const std::string& value, Dtype from, Dtype to);
  /// An operation of operands of the dtype `wide`, no cast or bitcast; of a select that of the alternatives.
  [[nodiscard]] Result<std::string> operation(ScalarOpcode opcode, Dtype wide,
                                              std::span<const std::string> x);

  /// The smaller or larger of two f32 in a reduction: NaN if either is. Of two zeros it may be either.
  [[nodiscard]] std::string extreme(ScalarOpcode opcode, const std::string& a, const std::string& b);

  /// The functions that were used, for the begin of the source.
  [[nodiscard]] std::string functions() const;

 private:
  [[nodiscard]] Result<std::string> of_float(ScalarOpcode opcode, bool is_double,
                                             std::span<const std::string> x);
  [[nodiscard]] Result<std::string> of_integer(ScalarOpcode opcode, std::span<const std::string> x);
  [[nodiscard]] Result<std::string> of_boolean(ScalarOpcode opcode, std::span<const std::string> x);
  [[nodiscard]] std::string saturated(const std::string& value, Dtype from, Dtype to);

  bool uses_half_ = false, uses_floats_ = false, uses_integers_ = false, uses_saturation_ = false;
};

}  // namespace tessera::runtime::cuda

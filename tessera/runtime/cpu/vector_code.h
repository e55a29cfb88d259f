// Straight-line code on vectors, written as a text of LLVM's IR. A value is a vector of `width` numbers, or
// of one where the code computes what is the same in all lanes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tessera/base/result.h"
#include "tessera/kernel/kernel.h"

namespace tessera::runtime::cpu {

using ir::Dtype;
using ir::ScalarOpcode;

/// The type of a number in a register and in an array: "float", "i64", "i1"; "i16" for f16, "i8" for bool.
[[nodiscard]] std::string_view register_type(Dtype dtype);
[[nodiscard]] std::string_view memory_type(Dtype dtype);

/// Every bit of a float, in the form that LLVM reads for float and double alike.
[[nodiscard]] std::string float_literal(double value);
/// The error that there is no code for a function.
[[nodiscard]] Error no_vector_code(ScalarOpcode opcode, Dtype wide);

class VectorCode {
 public:
  VectorCode(unsigned width, bool is_precise) : width_(width), is_precise_(is_precise) {}

  /// The width of what is written next.
  void set_width(unsigned width) { width_ = width; }

  // ---- text

  /// "<16 x float>"
  [[nodiscard]] std::string vector_of(std::string_view type) const;
  /// "v16f32": how intrinsics name it.
  [[nodiscard]] std::string suffix(std::string_view type) const;
  void line(std::string_view text);
  void label(std::string_view name);
  /// "%t12 = text", and its name.
  std::string value(std::string_view text);
  /// A call of an intrinsic, which is declared by the way.
  std::string call(std::string_view result, std::string_view name, std::initializer_list<std::string> types,
                   std::initializer_list<std::string> arguments);
  void call_void(std::string_view name, std::initializer_list<std::string> types,
                 std::initializer_list<std::string> arguments);

  // ---- vectors

  [[nodiscard]] std::string constant(std::string_view type, std::string_view literal) const;
  [[nodiscard]] std::string number(Dtype wide, std::uint64_t bits) const;
  std::string splat(std::string_view type, std::string_view scalar);
  /// A vector of one number as one of `width` numbers.
  std::string repeated(std::string_view type, const std::string& one);
  /// The lanes of the first or of the second half of a vector twice as wide.
  std::string half_of(std::string_view type, const std::string& vector, bool second);
  /// 0, 1, 2, … of i64.
  [[nodiscard]] std::string iota() const;
  std::string select(std::string_view type, const std::string& condition, const std::string& a,
                     const std::string& b);

  // ---- what kernels do

  /// `literal` says that the second operand is a constant other than NaN.
  Result<std::string> operation(ScalarOpcode opcode, Dtype dtype, std::span<const std::string> operands,
                                bool literal = false);
  /// Of f32: x times the normal distribution function of x, also where that is very small.
  std::string gelu(const std::string& x);
  Result<std::string> cast(const std::string& value, Dtype from, Dtype to);
  Result<std::string> bitcast(const std::string& value, Dtype from, Dtype to);
  /// From what an array holds, and back.
  std::string widened(const std::string& stored, Dtype dtype);
  std::string narrowed(const std::string& value, Dtype dtype);

  [[nodiscard]] unsigned width() const { return width_; }
  [[nodiscard]] bool is_precise() const { return is_precise_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::string declarations() const;
  /// Lanes that the code has no right result for, as a vector of truths: an angle that is too large for the
  /// code of sine and cosine, a divisor that has no reciprocal. Empty if there are none.
  void note_failure(const std::string& lanes);
  [[nodiscard]] const std::string& failed() const { return failed_; }
  void forget_failure() { failed_.clear(); }

 private:
  std::string float_operation(std::string_view name, std::string_view type, std::span<const std::string> x);
  std::string product_and_sum(bool subtracts, std::string_view type,
                              std::pair<std::string, std::string> factors, std::span<const std::string> x,
                              std::size_t i);
  std::string extreme(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x, bool literal);
  std::string compare(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x);
  Result<std::string> function_of_f32(ScalarOpcode opcode, const std::string& x);
  Result<std::string> function_of_f64(ScalarOpcode opcode, const std::string& x);
  std::string pow_of_f32(const std::string& x, const std::string& y);
  Result<std::string> function_of_float(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x);
  Result<std::string> function_of_integer(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x);
  std::string shifted(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x);
  std::string rounded_bf16(const std::string& value);
  std::string angle(const std::string& x, int quarter);
  std::string wide_angle(const std::string& x);

  unsigned width_;
  bool is_precise_;
  std::string text_;
  std::set<std::string> declared_;
  std::map<std::string, std::pair<std::string, std::string>> products_;  ///< by name: what was multiplied
  std::string failed_;
  unsigned next_ = 0;
};

}  // namespace tessera::runtime::cpu

#include "tessera/runtime/cuda/scalar_text.h"

#include <bit>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/scalar_functions.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using kernel::wide_dtype;

namespace {

std::string hexadecimal(std::uint64_t bits) {
  char buffer[20];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16);
  return cat("0x", std::string_view(buffer, static_cast<std::size_t>(end.ptr - buffer)));
}

std::string infix(std::string_view symbol, std::span<const std::string> x) {
  return cat("(", x[0], " ", symbol, " ", x[1], ")");
}

std::string called(std::string_view name, std::span<const std::string> x) {
  return cat(name, "(", join(x, ", "), ")");
}

Error no_text(ScalarOpcode opcode, Dtype wide) {
  return Error(ErrorCode::unsupported,
               cat("no CUDA code for '", ir::to_string(opcode), "' of ", ir::to_string(wide)));
}

}  // namespace

std::string_view tessera::runtime::cuda::wide_type(Dtype wide) {
  switch (wide) {
    case Dtype::f32:
      return "float";
    case Dtype::f64:
      return "double";
    case Dtype::u64:
      return "unsigned long long";
    case Dtype::boolean:
      return "bool";
    default:
      return "long long";
  }
}

std::string_view tessera::runtime::cuda::memory_type(Dtype dtype) {
  constexpr std::string_view types[] = {
      "double",       "float",       "unsigned short", "unsigned short", "long long",    "int",
      "short",        "signed char", "unsigned char",  "unsigned short", "unsigned int", "unsigned long long",
      "unsigned char"};
  return types[static_cast<std::size_t>(dtype)];
}

std::string ScalarText::constant(Dtype wide, std::uint64_t bits) {
  switch (wide) {
    case Dtype::f64:
      return cat("__longlong_as_double((long long)", hexadecimal(bits), "ULL)");
    case Dtype::f32:
      return cat("__uint_as_float(",
                 hexadecimal(std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)))),
                 "u)");
    case Dtype::boolean:
      return bits != 0 ? "true" : "false";
    default:
      return cat("(", wide_type(wide), ")", hexadecimal(bits), "ULL");
  }
}

std::string ScalarText::neutral(ScalarOpcode opcode, Dtype wide) {
  return constant(wide, kernel::neutral_bits(opcode, wide));
}

std::string ScalarText::widened(Dtype dtype, const std::string& element) {
  switch (dtype) {
    case Dtype::f16:
      uses_half_ = true;
      return cat("f16_value(", element, ")");
    case Dtype::bf16:
      uses_half_ = true;
      return cat("bf16_value(", element, ")");
    case Dtype::boolean:
      return cat("(", element, " != 0)");
    default:
      return dtype == wide_dtype(dtype) ? element : cat("(long long)", element);
  }
}

std::string ScalarText::narrowed(Dtype dtype, const std::string& value) {
  switch (dtype) {
    case Dtype::f16:
      uses_half_ = true;
      return cat("f16_bits(", value, ")");
    case Dtype::bf16:
      uses_half_ = true;
      return cat("bf16_bits(", value, ")");
    default:
      return dtype == wide_dtype(dtype) && dtype != Dtype::boolean ? value
                                                                   : cat("(", memory_type(dtype), ")", value);
  }
}

std::string ScalarText::saturated(const std::string& value, Dtype from, Dtype to) {
  uses_saturation_ = true;
  if (to == Dtype::u64) return cat("saturated_u64(", value, ")");
  const unsigned bits = 8 * static_cast<unsigned>(ir::size_of(to)) - (ir::is_unsigned(to) ? 0 : 1);
  const double limit = std::ldexp(1.0, static_cast<int>(bits));
  const std::uint64_t most = (std::uint64_t{1} << bits) - 1;
  const bool is_unsigned = ir::is_unsigned(to);
  const auto real = [&](double x) { return constant(from, std::bit_cast<std::uint64_t>(x)); };
  return cat("saturated(", value, ", ", real(is_unsigned ? 0.0 : -limit), ", ", real(limit), ", ",
             constant(Dtype::i64, is_unsigned ? 0 : ~most), ", ", constant(Dtype::i64, most), ")");
}

std::string ScalarText::cast(const std::string& value, Dtype from, Dtype to) {
  const Dtype wide = wide_dtype(from);
  if (to == Dtype::boolean) return wide == Dtype::boolean ? value : cat("(", value, " != 0)");
  if (to == Dtype::f32 || to == Dtype::f64) return cat("(", wide_type(to), ")(", value, ")");
  if (to == Dtype::f16 || to == Dtype::bf16) {
    uses_half_ = true;
    const std::string_view name = to == Dtype::f16 ? "rounded_to_f16" : "rounded_to_bf16";
    if (wide == Dtype::f32) return cat(name, "(", value, ")");
    return cat(name, "(to_float_for_half((double)(", value, ")))");
  }
  if (ir::is_float(wide)) return saturated(value, wide, to);
  if (to == Dtype::i64 || to == Dtype::u64) return cat("(", wide_type(to), ")(", value, ")");
  return cat("(long long)(", memory_type(to), ")(", value, ")");
}

std::string ScalarText::bitcast(const std::string& value, Dtype from, Dtype to) {
  if (from == to) return value;
  if (ir::size_of(from) == 8) {
    if (from == Dtype::f64) return cat("(", wide_type(to), ")__double_as_longlong(", value, ")");
    if (to == Dtype::f64) return cat("__longlong_as_double((long long)", value, ")");
    return cat("(", wide_type(to), ")", value);
  }
  if (from == Dtype::f32)
    return cat("(long long)", to == Dtype::i32 ? "__float_as_int(" : "__float_as_uint(", value, ")");
  if (to == Dtype::f32) return cat("__uint_as_float((unsigned)", value, ")");
  return cast(value, from, to);
}

Result<std::string> ScalarText::operation(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x) {
  if (opcode == ScalarOpcode::select) return cat("(", x[0], " ? ", x[1], " : ", x[2], ")");
  if (ir::is_comparison(opcode)) return infix(ir::info(opcode).symbol, x);
  if (wide == Dtype::boolean) return of_boolean(opcode, x);
  if (ir::is_float(wide)) return of_float(opcode, wide == Dtype::f64, x);
  return of_integer(opcode, x);
}

Result<std::string> ScalarText::of_float(ScalarOpcode opcode, bool is_double,
                                         std::span<const std::string> x) {
  switch (opcode) {
    case ScalarOpcode::add:
    case ScalarOpcode::sub:
    case ScalarOpcode::mul:
    case ScalarOpcode::div:
      return infix(ir::info(opcode).symbol, x);
    case ScalarOpcode::neg:
      return cat("(-", x[0], ")");
    case ScalarOpcode::is_nan:
      return cat("(", x[0], " != ", x[0], ")");
    case ScalarOpcode::abs:
      return called(is_double ? "fabs" : "fabsf", x);
    case ScalarOpcode::round:
      return called(is_double ? "rint" : "rintf", x);
    case ScalarOpcode::min:
    case ScalarOpcode::max:
    case ScalarOpcode::sign:
    case ScalarOpcode::is_inf:
    case ScalarOpcode::floor_div:
    case ScalarOpcode::floor_mod:
      uses_floats_ = true;
      return called(cat("float_", ir::to_string(opcode)), x);
    default:
      if (!ir::info(opcode).has(ir::opcode_trait::in_c))
        return no_text(opcode, is_double ? Dtype::f64 : Dtype::f32);
      return called(cat(ir::to_string(opcode), is_double ? "" : "f"), x);
  }
}

Result<std::string> ScalarText::of_integer(ScalarOpcode opcode, std::span<const std::string> x) {
  switch (opcode) {
    case ScalarOpcode::bit_and:
    case ScalarOpcode::bit_or:
    case ScalarOpcode::bit_xor:
      return infix(ir::info(opcode).symbol, x);
    case ScalarOpcode::bit_not:
      return cat("(~", x[0], ")");
    case ScalarOpcode::add:
    case ScalarOpcode::sub:
    case ScalarOpcode::mul:
    case ScalarOpcode::div:
    case ScalarOpcode::floor_div:
    case ScalarOpcode::floor_mod:
    case ScalarOpcode::fmod:
    case ScalarOpcode::pow:
    case ScalarOpcode::shl:
    case ScalarOpcode::shr:
    case ScalarOpcode::min:
    case ScalarOpcode::max:
    case ScalarOpcode::neg:
    case ScalarOpcode::abs:
    case ScalarOpcode::sign:
    case ScalarOpcode::popcount:
    case ScalarOpcode::fma:
      uses_integers_ = true;
      return called(cat("int_", ir::to_string(opcode)), x);
    default:
      return no_text(opcode, Dtype::i64);
  }
}

Result<std::string> ScalarText::of_boolean(ScalarOpcode opcode, std::span<const std::string> x) {
  switch (opcode) {
    case ScalarOpcode::bit_and:
    case ScalarOpcode::min:
    case ScalarOpcode::mul:
      return infix("&&", x);
    case ScalarOpcode::bit_or:
    case ScalarOpcode::max:
      return infix("||", x);
    case ScalarOpcode::bit_xor:
      return infix("!=", x);
    case ScalarOpcode::bit_not:
      return cat("(!", x[0], ")");
    default:
      return no_text(opcode, Dtype::boolean);
  }
}

std::string ScalarText::extreme(ScalarOpcode opcode, const std::string& a, const std::string& b) {
  uses_floats_ = true;
  return cat("extreme_", ir::to_string(opcode), "(", a, ", ", b, ")");
}

std::string ScalarText::functions() const {
  return cat(uses_half_ ? half_functions : "", uses_saturation_ ? saturation_functions : "",
             uses_floats_ ? float_functions : "", uses_integers_ ? integer_functions : "");
}

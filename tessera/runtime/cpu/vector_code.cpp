#include "tessera/runtime/cpu/vector_code.h"

#include <bit>
#include <cstdio>
#include <span>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

// ---- text

std::string tessera::runtime::cpu::float_literal(double value) {
  char out[24];
  std::snprintf(out, sizeof out, "0x%016lX", std::bit_cast<std::uint64_t>(value));
  return out;
}

Error tessera::runtime::cpu::no_vector_code(ScalarOpcode opcode, Dtype wide) {
  return Error(ErrorCode::unsupported,
               cat("no vector code for '", ir::to_string(opcode), "' of ", ir::to_string(wide)));
}

std::string_view tessera::runtime::cpu::register_type(Dtype dtype) {
  switch (kernel::wide_dtype(dtype)) {
    case Dtype::f32:
      return "float";
    case Dtype::f64:
      return "double";
    case Dtype::boolean:
      return "i1";
    default:
      return "i64";
  }
}

std::string_view tessera::runtime::cpu::memory_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return "double";
    case Dtype::f32:
      return "float";
    default:
      break;
  }
  switch (ir::size_of(dtype)) {
    case 1:
      return "i8";
    case 2:
      return "i16";
    case 4:
      return "i32";
    default:
      return "i64";
  }
}

std::string VectorCode::vector_of(std::string_view type) const { return cat("<", width_, " x ", type, ">"); }

std::string VectorCode::suffix(std::string_view type) const {
  return cat("v", width_, type == "float" ? "f32" : type == "double" ? "f64" : type == "half" ? "f16" : type);
}

void VectorCode::line(std::string_view text) { text_ += cat("  ", text, "\n"); }
void VectorCode::label(std::string_view name) { text_ += cat(name, ":\n"); }

std::string VectorCode::value(std::string_view text) {
  std::string name = cat("%t", next_++);
  line(cat(name, " = ", text));
  return name;
}

namespace {

std::string call_text(std::string_view result, std::string_view name,
                      std::initializer_list<std::string> types,
                      std::initializer_list<std::string> arguments) {
  std::string out = cat("call ", result, " @", name, "(");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    out += cat(i == 0 ? "" : ", ", types.begin()[i], " ", arguments.begin()[i]);
  return out + ")";
}

}  // namespace

std::string VectorCode::call(std::string_view result, std::string_view name,
                             std::initializer_list<std::string> types,
                             std::initializer_list<std::string> arguments) {
  declared_.insert(cat("declare ", result, " @", name, "(", join(types, ", "), ")\n"));
  return value(call_text(result, name, types, arguments));
}

void VectorCode::call_void(std::string_view name, std::initializer_list<std::string> types,
                           std::initializer_list<std::string> arguments) {
  declared_.insert(cat("declare void @", name, "(", join(types, ", "), ")\n"));
  line(call_text("void", name, types, arguments));
}

std::string VectorCode::declarations() const {
  std::string out;
  for (const std::string& declaration : declared_) out += declaration;
  return out;
}

// ---- vectors

std::string VectorCode::constant(std::string_view type, std::string_view literal) const {
  const std::string vector = vector_of(type);
  return cat("shufflevector (", vector, " insertelement (", vector, " poison, ", type, " ", literal,
             ", i64 0), ", vector, " poison, ", vector_of("i32"), " zeroinitializer)");
}

std::string VectorCode::number(Dtype wide, std::uint64_t bits) const {
  if (wide == Dtype::f32)
    return constant("float",
                    float_literal(static_cast<double>(static_cast<float>(std::bit_cast<double>(bits)))));
  if (wide == Dtype::f64) return constant("double", float_literal(std::bit_cast<double>(bits)));
  if (wide == Dtype::boolean) return constant("i1", bits != 0 ? "true" : "false");
  return constant("i64", cat(static_cast<std::int64_t>(bits)));
}

std::string VectorCode::splat(std::string_view type, std::string_view scalar) {
  const std::string vector = vector_of(type);
  const std::string one = value(cat("insertelement ", vector, " poison, ", type, " ", scalar, ", i64 0"));
  return value(cat("shufflevector ", vector, " ", one, ", ", vector, " poison, ", vector_of("i32"),
                   " zeroinitializer"));
}

std::string VectorCode::repeated(std::string_view type, const std::string& one) {
  return value(cat("shufflevector <1 x ", type, "> ", one, ", <1 x ", type, "> poison, ", vector_of("i32"),
                   " zeroinitializer"));
}

std::string VectorCode::half_of(std::string_view type, const std::string& vector, bool second) {
  std::string order;
  for (unsigned i = 0; i < width_; ++i) order += cat(i == 0 ? "" : ", ", "i32 ", i + (second ? width_ : 0));
  const std::string whole = cat("<", 2 * width_, " x ", type, ">");
  return value(cat("shufflevector ", whole, " ", vector, ", ", whole, " poison, ", vector_of("i32"), " <",
                   order, ">"));
}

std::string VectorCode::iota() const {
  std::string out = "<";
  for (unsigned i = 0; i < width_; ++i) out += cat(i == 0 ? "" : ", ", "i64 ", i);
  return out + ">";
}

std::string VectorCode::select(std::string_view type, const std::string& condition, const std::string& a,
                               const std::string& b) {
  const std::string vector = vector_of(type);
  return value(cat("select ", vector_of("i1"), " ", condition, ", ", vector, " ", a, ", ", vector, " ", b));
}

// ---- operations

std::string VectorCode::float_operation(std::string_view name, std::string_view type,
                                        std::span<const std::string> x) {
  if (!is_precise_ && (name == "fadd" || name == "fsub"))
    for (const std::size_t i : {0, 1})
      if (const auto product = products_.find(x[i]); product != products_.end())
        return product_and_sum(name == "fsub", type, product->second, x, i);
  std::string out = value(cat(name, " ", vector_of(type), " ", x[0], ", ", x[1]));
  if (!is_precise_ && name == "fmul") products_.emplace(out, std::pair(x[0], x[1]));
  return out;
}

/// x[0] + x[1] or x[0] - x[1], where x[i] is a product, as one operation if the processor has it: fewer
/// roundings, but not those of single ops. It is said here, since what LLVM joins depends on how good the
/// code is to be, and the bits must not.
std::string VectorCode::product_and_sum(bool subtracts, std::string_view type,
                                        std::pair<std::string, std::string> factors,
                                        std::span<const std::string> x, std::size_t i) {
  const std::string vector = vector_of(type);
  const auto negative = [&](const std::string& v) { return value(cat("fneg ", vector, " ", v)); };
  std::string other = x[1 - i];
  if (subtracts && i == 0) other = negative(other);
  if (subtracts && i == 1) factors.first = negative(factors.first);
  return call(vector, cat("llvm.fmuladd.", suffix(type)), {vector, vector, vector},
              {factors.first, factors.second, other});
}

/// NaN if either is.
std::string VectorCode::extreme(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x,
                                bool literal) {
  const bool is_max = opcode == ScalarOpcode::max;
  const std::string_view type = register_type(wide);
  const std::string vector = vector_of(type);
  if (!ir::is_float(wide)) {
    const bool is_signed = wide == Dtype::i64;
    const std::string_view order = is_signed ? (is_max ? "sgt" : "slt") : (is_max ? "ugt" : "ult");
    return select(type, value(cat("icmp ", order, " ", vector, " ", x[0], ", ", x[1])), x[0], x[1]);
  }
  if (literal) {  // the constant unless x is beyond it or NaN
    const std::string inside = value(cat("fcmp ", is_max ? "oge " : "ole ", vector, " ", x[1], ", ", x[0]));
    return select(type, inside, x[1], x[0]);
  }
  const std::string first = value(cat("fcmp ", is_max ? "ogt " : "olt ", vector, " ", x[0], ", ", x[1]));
  const std::string better = select(type, first, x[0], x[1]);
  const std::string is_nan = value(cat("fcmp uno ", vector, " ", x[0], ", ", x[0]));
  return select(type, is_nan, x[0], better);
}

std::string VectorCode::compare(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x) {
  constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  const std::string_view name = names[static_cast<int>(opcode) - static_cast<int>(ScalarOpcode::eq)];
  const bool is_equality = opcode == ScalarOpcode::eq || opcode == ScalarOpcode::ne;
  std::string order;
  if (ir::is_float(wide))
    order = cat("fcmp ", opcode == ScalarOpcode::ne ? "u" : "o", name);
  else
    order = cat("icmp ", is_equality ? "" : wide == Dtype::i64 ? "s" : "u", name);
  return value(cat(order, " ", vector_of(register_type(wide)), " ", x[0], ", ", x[1]));
}

void VectorCode::note_failure(const std::string& lanes) {
  failed_ = failed_.empty() ? lanes : value(cat("or ", vector_of("i1"), " ", failed_, ", ", lanes));
}

Result<std::string> VectorCode::function_of_float(ScalarOpcode opcode, Dtype wide,
                                                  std::span<const std::string> x) {
  const std::string_view type = register_type(wide);
  const std::string vector = vector_of(type);
  const auto intrinsic = [&](std::string_view name) {
    return call(vector, cat("llvm.", name, ".", suffix(type)), {vector}, {x[0]});
  };
  const auto one = [&] { return number(wide, std::bit_cast<std::uint64_t>(1.0)); };
  const auto zero = [&] { return number(wide, 0); };
  switch (opcode) {
    case ScalarOpcode::add:
      return float_operation("fadd", type, x);
    case ScalarOpcode::sub:
      return float_operation("fsub", type, x);
    case ScalarOpcode::mul:
      return float_operation("fmul", type, x);
    case ScalarOpcode::div:
      return value(cat("fdiv ", vector, " ", x[0], ", ", x[1]));
    case ScalarOpcode::neg:
      return value(cat("fneg ", vector, " ", x[0]));
    case ScalarOpcode::abs:
      return intrinsic("fabs");
    case ScalarOpcode::sqrt:
      return intrinsic("sqrt");
    case ScalarOpcode::rsqrt:
      return value(cat("fdiv ", vector, " ", one(), ", ", intrinsic("sqrt")));
    case ScalarOpcode::floor:
      return intrinsic("floor");
    case ScalarOpcode::ceil:
      return intrinsic("ceil");
    case ScalarOpcode::round:
      return intrinsic("rint");
    case ScalarOpcode::trunc:
      return intrinsic("trunc");
    case ScalarOpcode::is_nan:
      return value(cat("fcmp uno ", vector, " ", x[0], ", ", x[0]));
    case ScalarOpcode::is_inf: {
      const std::string infinity = number(wide, std::bit_cast<std::uint64_t>(__builtin_inf()));
      return value(cat("fcmp oeq ", vector, " ", intrinsic("fabs"), ", ", infinity));
    }
    case ScalarOpcode::copysign:
      return call(vector, cat("llvm.copysign.", suffix(type)), {vector, vector}, {x[0], x[1]});
    case ScalarOpcode::fma:
      return call(vector, cat("llvm.fma.", suffix(type)), {vector, vector, vector}, {x[0], x[1], x[2]});
    case ScalarOpcode::sign: {
      const std::string minus = number(wide, std::bit_cast<std::uint64_t>(-1.0));
      const std::string above = value(cat("fcmp ogt ", vector, " ", x[0], ", ", zero()));
      const std::string below = value(cat("fcmp olt ", vector, " ", x[0], ", ", zero()));
      const std::string is_nan = value(cat("fcmp uno ", vector, " ", x[0], ", ", x[0]));
      const std::string other = select(type, below, minus, select(type, is_nan, x[0], zero()));
      return select(type, above, one(), other);
    }
    case ScalarOpcode::pow:
      return wide == Dtype::f32 ? Result<std::string>(pow_of_f32(x[0], x[1])) : no_vector_code(opcode, wide);
    default:
      return wide == Dtype::f32 ? function_of_f32(opcode, x[0]) : function_of_f64(opcode, x[0]);
  }
}

Result<std::string> VectorCode::function_of_integer(ScalarOpcode opcode, Dtype wide,
                                                    std::span<const std::string> x) {
  const std::string_view type = register_type(wide);
  const std::string vector = vector_of(type);
  const auto simple = [&](std::string_view name, const std::string& a, const std::string& b) {
    return value(cat(name, " ", vector, " ", a, ", ", b));
  };
  switch (opcode) {
    case ScalarOpcode::add:
      return simple("add", x[0], x[1]);
    case ScalarOpcode::sub:
      return simple("sub", x[0], x[1]);
    case ScalarOpcode::mul:
      return simple("mul", x[0], x[1]);
    case ScalarOpcode::bit_and:
      return simple("and", x[0], x[1]);
    case ScalarOpcode::bit_or:
      return simple("or", x[0], x[1]);
    case ScalarOpcode::bit_xor:
      return simple("xor", x[0], x[1]);
    case ScalarOpcode::bit_not:
      return simple("xor", x[0], wide == Dtype::boolean ? number(wide, 1) : number(wide, ~std::uint64_t{0}));
    case ScalarOpcode::neg:
      return simple("sub", number(wide, 0), x[0]);
    case ScalarOpcode::abs: {
      if (wide == Dtype::u64) return x[0];
      const std::string below = value(cat("icmp slt ", vector, " ", x[0], ", ", number(wide, 0)));
      return select(type, below, simple("sub", number(wide, 0), x[0]), x[0]);
    }
    case ScalarOpcode::sign: {
      const std::string zero = number(wide, 0);
      const std::string below = value(cat("icmp slt ", vector, " ", x[0], ", ", zero));
      const std::string other =
          select(type, value(cat("icmp eq ", vector, " ", x[0], ", ", zero)), zero, number(wide, 1));
      return wide == Dtype::u64 ? other : select(type, below, number(wide, ~std::uint64_t{0}), other);
    }
    case ScalarOpcode::shl:
    case ScalarOpcode::shr:
      return shifted(opcode, wide, x);
    case ScalarOpcode::popcount:
      return call(vector, cat("llvm.ctpop.", suffix(type)), {vector}, {x[0]});
    case ScalarOpcode::fma:
      return simple("add", simple("mul", x[0], x[1]), x[2]);
    default:
      return no_vector_code(opcode, wide);
  }
}

/// By a negative distance or by the width and more everything is pushed out.
std::string VectorCode::shifted(ScalarOpcode opcode, Dtype wide, std::span<const std::string> x) {
  const std::string vector = vector_of("i64");
  const std::string inside = value(cat("icmp ult ", vector, " ", x[1], ", ", constant("i64", "64")));
  const std::string distance = select("i64", inside, x[1], number(wide, 0));
  const std::string_view how = opcode == ScalarOpcode::shl ? "shl" : wide == Dtype::u64 ? "lshr" : "ashr";
  const std::string moved = value(cat(how, " ", vector, " ", x[0], ", ", distance));
  const std::string gone =
      how == "ashr" ? value(cat("ashr ", vector, " ", x[0], ", ", constant("i64", "63"))) : number(wide, 0);
  return select("i64", inside, moved, gone);
}

Result<std::string> VectorCode::operation(ScalarOpcode opcode, Dtype dtype,
                                          std::span<const std::string> operands, bool literal) {
  const Dtype wide = kernel::wide_dtype(dtype);
  if (opcode == ScalarOpcode::select)
    return select(register_type(wide), operands[0], operands[1], operands[2]);
  if (opcode == ScalarOpcode::min || opcode == ScalarOpcode::max)
    return extreme(opcode, wide, operands, literal);
  if (ir::is_comparison(opcode)) return compare(opcode, wide, operands);
  if (ir::is_float(wide)) return function_of_float(opcode, wide, operands);
  return function_of_integer(opcode, wide, operands);
}

// ---- conversions

Result<std::string> VectorCode::cast(const std::string& x, Dtype from, Dtype to) {
  const auto convert = [&](std::string_view how, const std::string& what, std::string_view a,
                           std::string_view b) {
    return value(cat(how, " ", vector_of(a), " ", what, " to ", vector_of(b)));
  };
  const Dtype wide = kernel::wide_dtype(from);
  const std::string_view type = register_type(from);
  const bool is_signed = wide == Dtype::i64;
  if (to == Dtype::boolean) {
    const std::string zero = number(wide, 0);
    return value(cat(ir::is_float(wide) ? "fcmp une " : "icmp ne ", vector_of(type), " ", x, ", ", zero));
  }
  const bool to_half = to == Dtype::f16 || to == Dtype::bf16;
  if (to_half && wide != Dtype::f32 && wide != Dtype::boolean)  // would be rounded twice
    return Error(ErrorCode::unsupported,
                 cat("no vector code for a cast from ", ir::to_string(from), " to ", ir::to_string(to)));
  if (ir::is_float(to)) {
    std::string as_float = x;
    const std::string_view target = to == Dtype::f64 ? "double" : "float";
    if (!ir::is_float(wide))
      as_float = convert(is_signed ? "sitofp" : "uitofp", x, type, target);
    else if (type != target)
      as_float = convert(to == Dtype::f64 ? "fpext" : "fptrunc", x, type, target);
    if (to == Dtype::f16)
      return convert("fpext", convert("fptrunc", as_float, "float", "half"), "half", "float");
    return to == Dtype::bf16 ? rounded_bf16(as_float) : as_float;
  }
  const std::string narrow = memory_type(to).data();
  const bool to_signed = ir::is_signed_integer(to);
  if (ir::is_float(wide)) {
    const std::string name =
        cat("llvm.fpto", to_signed ? "s" : "u", "i.sat.", suffix(narrow), ".", suffix(type));
    const std::string whole = call(vector_of(narrow), name, {vector_of(type)}, {x});
    return narrow == "i64" ? whole : convert(to_signed ? "sext" : "zext", whole, narrow, "i64");
  }
  if (wide == Dtype::boolean) return convert("zext", x, "i1", "i64");
  if (narrow == "i64") return x;
  return convert(to_signed ? "sext" : "zext", convert("trunc", x, "i64", narrow), narrow, "i64");
}

Result<std::string> VectorCode::bitcast(const std::string& x, Dtype from, Dtype to) {
  if (ir::size_of(from) != 8) return Error(ErrorCode::unsupported, "no vector code for a bitcast of 32 bits");
  if (ir::is_float(from) == ir::is_float(to)) return x;
  return value(cat("bitcast ", vector_of(register_type(from)), " ", x, " to ", vector_of(register_type(to))));
}

std::string VectorCode::widened(const std::string& x, Dtype dtype) {
  const auto convert = [&](std::string_view how, const std::string& what, std::string_view a,
                           std::string_view b) {
    return value(cat(how, " ", vector_of(a), " ", what, " to ", vector_of(b)));
  };
  switch (dtype) {
    case Dtype::f64:
    case Dtype::f32:
    case Dtype::i64:
    case Dtype::u64:
      return x;
    case Dtype::f16:
      return convert("fpext", convert("bitcast", x, "i16", "half"), "half", "float");
    case Dtype::bf16: {
      const std::string bits = convert("zext", x, "i16", "i32");
      const std::string shifted =
          value(cat("shl ", vector_of("i32"), " ", bits, ", ", constant("i32", "16")));
      return convert("bitcast", shifted, "i32", "float");
    }
    case Dtype::boolean:
      return value(cat("icmp ne ", vector_of("i8"), " ", x, ", ", constant("i8", "0")));
    default:
      return convert(ir::is_signed_integer(dtype) ? "sext" : "zext", x, memory_type(dtype), "i64");
  }
}

std::string VectorCode::narrowed(const std::string& x, Dtype dtype) {
  const auto convert = [&](std::string_view how, const std::string& what, std::string_view a,
                           std::string_view b) {
    return value(cat(how, " ", vector_of(a), " ", what, " to ", vector_of(b)));
  };
  switch (dtype) {
    case Dtype::f64:
    case Dtype::f32:
    case Dtype::i64:
    case Dtype::u64:
      return x;
    case Dtype::f16:
      return convert("bitcast", convert("fptrunc", x, "float", "half"), "half", "i16");
    case Dtype::bf16: {
      const std::string bits = convert("bitcast", x, "float", "i32");
      const std::string high = value(cat("lshr ", vector_of("i32"), " ", bits, ", ", constant("i32", "16")));
      const std::string quiet = value(cat("or ", vector_of("i32"), " ", high, ", ", constant("i32", "64")));
      const std::string is_nan = value(cat("fcmp uno ", vector_of("float"), " ", x, ", ", x));
      return convert("trunc", select("i32", is_nan, quiet, high), "i32", "i16");
    }
    case Dtype::boolean:
      return convert("zext", x, "i1", "i8");
    default:
      return convert("trunc", x, "i64", memory_type(dtype));
  }
}

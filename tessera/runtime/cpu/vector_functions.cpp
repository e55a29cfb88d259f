// The functions of vectors: what their formulas compute with, and which formula is taken.
#include <bit>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/kernel/vector_math.h"
#include "tessera/runtime/cpu/double_math.h"
#include "tessera/runtime/cpu/table_math.h"
#include "tessera/runtime/cpu/vector_code.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

// ---- what vector_math.h computes with

/// The code that is being written by this thread: formulas have no place for it.
thread_local VectorCode* active = nullptr;

class Active {
 public:
  explicit Active(VectorCode& code) : before_(std::exchange(active, &code)) {}
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  ~Active() { active = before_; }

 private:
  VectorCode* before_;
};

struct Truth {
  std::string name;
};
struct Float {
  std::string name;
};
struct Integer {
  std::string name;
};

std::string binary(std::string_view operation, std::string_view type, const std::string& a,
                   const std::string& b) {
  return active->value(cat(operation, " ", active->vector_of(type), " ", a, ", ", b));
}

Float operator+(const Float& a, const Float& b) { return {binary("fadd", "float", a.name, b.name)}; }
Float operator-(const Float& a, const Float& b) { return {binary("fsub", "float", a.name, b.name)}; }
Float operator*(const Float& a, const Float& b) { return {binary("fmul", "float", a.name, b.name)}; }
Float operator/(const Float& a, const Float& b) { return {binary("fdiv", "float", a.name, b.name)}; }
Float operator-(const Float& a) {
  return {active->value(cat("fneg ", active->vector_of("float"), " ", a.name))};
}
Truth operator<(const Float& a, const Float& b) { return {binary("fcmp olt", "float", a.name, b.name)}; }
Truth operator>(const Float& a, const Float& b) { return {binary("fcmp ogt", "float", a.name, b.name)}; }
Truth operator==(const Float& a, const Float& b) { return {binary("fcmp oeq", "float", a.name, b.name)}; }
Truth operator&(const Truth& a, const Truth& b) { return {binary("and", "i1", a.name, b.name)}; }
Integer operator+(const Integer& a, const Integer& b) { return {binary("add", "i32", a.name, b.name)}; }
Integer operator-(const Integer& a, const Integer& b) { return {binary("sub", "i32", a.name, b.name)}; }

struct OnVectors {
  static Float number(double value) {
    return {active->constant("float", float_literal(static_cast<double>(static_cast<float>(value))))};
  }
  static Integer integer(int value) { return {active->constant("i32", cat(value))}; }
  static std::string floats() { return active->vector_of("float"); }
  static Float intrinsic(std::string_view name, std::initializer_list<std::string> arguments) {
    const std::string full = cat("llvm.", name, ".", active->suffix("float"));
    if (arguments.size() == 1) return {active->call(floats(), full, {floats()}, arguments)};
    return {active->call(floats(), full, {floats(), floats(), floats()}, arguments)};
  }
  static Float mul_add(const Float& a, const Float& b, const Float& c) {
    return intrinsic("fma", {a.name, b.name, c.name});
  }
  /// AVX-512 has an instruction for it.
  static Float scaled(const Float& p, const Float& n) {
    if (active->width() != 16) return kernel::math::scaled_in_steps<OnVectors>(p, n);
    return by_power_of_two(p + number(1.0), n);
  }
  static Float by_power_of_two(const Float& p, const Float& n) {
    if (active->width() != 16) return kernel::math::by_power_in_steps<OnVectors>(p, n);
    const std::string f = floats();
    return {active->call(f, "llvm.x86.avx512.mask.scalef.ps.512", {f, f, f, "i16", "i32"},
                         {p.name, n.name, "zeroinitializer", "-1", "4"})};
  }
  /// Of a positive number and a small rest. AVX-512 has an instruction for the first 14 bits of it.
  static Float reciprocal(const Float& x, const Float& rest) {
    if (active->width() != 16) {
      const Float whole = number(1.0) / x;
      return mul_add(whole * rest, -whole, whole);
    }
    const std::string f = floats();
    const Float first{
        active->call(f, "llvm.x86.avx512.rcp14.ps.512", {f, f, "i16"}, {x.name, "zeroinitializer", "-1"})};
    const Float missing = mul_add(-rest, first, mul_add(-x, first, number(1.0)));
    return mul_add(first, missing, first);
  }
  /// REQUIRES vectors of 16.
  static Float look_up(const tables::Table& table, const Integer& index) {
    const std::string f = floats();
    std::string numbers;
    for (const double number : table.at)
      numbers += cat(numbers.empty() ? "<" : ", ", "float ",
                     float_literal(static_cast<double>(static_cast<float>(number))));
    return {active->call(f, "llvm.x86.avx512.permvar.sf.512", {f, active->vector_of("i32")},
                         {numbers + ">", index.name})};
  }
  static Float copy_sign(const Float& a, const Float& b) {
    const std::string f = floats();
    return {active->call(f, cat("llvm.copysign.", active->suffix("float")), {f, f}, {a.name, b.name})};
  }
  static Float without_quarter_turns(const Float& x, const Float& n) {
    return kernel::math::reduced_angle<OnVectors>(x, n);
  }
  static Float round(const Float& x) { return intrinsic("rint", {x.name}); }
  static Float floor(const Float& x) { return intrinsic("floor", {x.name}); }
  static Float abs(const Float& x) { return intrinsic("fabs", {x.name}); }
  static Float select(const Truth& c, const Float& a, const Float& b) {
    return {active->select("float", c.name, a.name, b.name)};
  }
  static std::string converted(std::string_view how, const std::string& x, std::string_view from,
                               std::string_view to) {
    return active->value(cat(how, " ", active->vector_of(from), " ", x, " to ", active->vector_of(to)));
  }
  /// Lanes out of range hold anything, but always the same.
  static Integer to_int(const Float& x) {
    const std::string whole = converted("fptosi", x.name, "float", "i32");
    return {active->value(cat("freeze ", active->vector_of("i32"), " ", whole))};
  }
  static Float to_float(const Integer& x) { return {converted("sitofp", x.name, "i32", "float")}; }
  static Integer bits(const Float& x) { return {converted("bitcast", x.name, "float", "i32")}; }
  static Float from_bits(const Integer& x) { return {converted("bitcast", x.name, "i32", "float")}; }
  static Integer shift_left(const Integer& x, int by) {
    return {binary("shl", "i32", x.name, integer(by).name)};
  }
  static Integer shift_right(const Integer& x, int by) {
    return {binary("ashr", "i32", x.name, integer(by).name)};
  }
  static Truth is_odd(const Integer& x) {
    const std::string bit = binary("and", "i32", x.name, integer(1).name);
    return {binary("icmp ne", "i32", bit, integer(0).name)};
  }
};

/// f64, also for formulas of f32 that must not lose anything on the way.
struct Double {
  std::string name;
};
struct Whole {
  std::string name;
};
Double operator+(const Double& a, const Double& b) { return {binary("fadd", "double", a.name, b.name)}; }
Double operator-(const Double& a, const Double& b) { return {binary("fsub", "double", a.name, b.name)}; }
Double operator*(const Double& a, const Double& b) { return {binary("fmul", "double", a.name, b.name)}; }
Double operator/(const Double& a, const Double& b) { return {binary("fdiv", "double", a.name, b.name)}; }
Double operator-(const Double& a) {
  return {active->value(cat("fneg ", active->vector_of("double"), " ", a.name))};
}
Truth operator<(const Double& a, const Double& b) { return {binary("fcmp olt", "double", a.name, b.name)}; }
Truth operator>(const Double& a, const Double& b) { return {binary("fcmp ogt", "double", a.name, b.name)}; }
Truth operator==(const Double& a, const Double& b) { return {binary("fcmp oeq", "double", a.name, b.name)}; }
Whole operator+(const Whole& a, const Whole& b) { return {binary("add", "i64", a.name, b.name)}; }
Whole operator-(const Whole& a, const Whole& b) { return {binary("sub", "i64", a.name, b.name)}; }

struct OnDoubles {
  static Double number(double value) { return {active->constant("double", float_literal(value))}; }
  static Double intrinsic(std::string_view name, std::initializer_list<std::string> arguments) {
    const std::string full = cat("llvm.", name, ".", active->suffix("double")),
                      d = active->vector_of("double");
    if (arguments.size() == 1) return {active->call(d, full, {d}, arguments)};
    return {active->call(d, full, {d, d, d}, arguments)};
  }
  static Double mul_add(const Double& a, const Double& b, const Double& c) {
    return intrinsic("fma", {a.name, b.name, c.name});
  }
  static Double round(const Double& x) { return intrinsic("rint", {x.name}); }
  static Double abs(const Double& x) { return intrinsic("fabs", {x.name}); }
  static Double select(const Truth& c, const Double& a, const Double& b) {
    return {active->select("double", c.name, a.name, b.name)};
  }
  static Double floor(const Double& x) { return intrinsic("floor", {x.name}); }
  static Double copy_sign(const Double& a, const Double& b) {
    const std::string d = active->vector_of("double");
    return {active->call(d, cat("llvm.copysign.", active->suffix("double")), {d, d}, {a.name, b.name})};
  }
  static Whole whole(std::int64_t value) { return {active->constant("i64", cat(value))}; }
  static Whole bits(const Double& x) { return {OnVectors::converted("bitcast", x.name, "double", "i64")}; }
  static Double from_bits(const Whole& x) {
    return {OnVectors::converted("bitcast", x.name, "i64", "double")};
  }
  static Whole shift_left(const Whole& x, int by) { return {binary("shl", "i64", x.name, whole(by).name)}; }
  static Whole shift_right(const Whole& x, int by) { return {binary("ashr", "i64", x.name, whole(by).name)}; }
  static Truth is_odd(const Whole& x) {
    const std::string bit = binary("and", "i64", x.name, whole(1).name);
    return {binary("icmp ne", "i64", bit, whole(0).name)};
  }
  /// Added to a whole number, it leaves that in the last bits of the fraction.
  static constexpr double to_last_bits = 6755399441055744.0;  // 1.5 * 2^52
  static Double to_float(const Whole& x) {
    return from_bits(x + whole(std::bit_cast<std::int64_t>(to_last_bits))) - number(to_last_bits);
  }
  static Whole to_whole(const Double& x) {
    return bits(x + number(to_last_bits)) - whole(std::bit_cast<std::int64_t>(to_last_bits));
  }
  /// 2 to the n, for integral -1022 <= n <= 1023.
  static Double power_of_two(const Double& n) {
    return from_bits(shift_left(bits(n + number(to_last_bits + 1023)), 52));
  }
  /// (1 + p) 2^n.
  static Double scaled(const Double& p, const Double& n) {
    const Double power = power_of_two(n);
    return mul_add(p, power, power);
  }
};

/// What a function of f64 gives for floats.
template <class F>
std::string in_doubles(const std::string& x, F&& function) {
  const Double wide{OnVectors::converted("fpext", x, "float", "double")};
  return OnVectors::converted("fptrunc", function(wide).name, "double", "float");
}

}  // namespace

/// Where a quarter or none is added: cosine or sine. Angles that are too large are remembered.
std::string VectorCode::angle(const std::string& x, int quarter) {
  const std::string limit = OnVectors::number(kernel::math::largest_angle).name;
  note_failure(binary("fcmp ugt", "float", OnVectors::abs({x}).name, limit));
  return kernel::math::sine<OnVectors>(Float{x}, quarter).name;
}

/// An angle of f64 that is not too large, else that is remembered.
std::string VectorCode::wide_angle(const std::string& x) {
  note_failure(
      binary("fcmp ugt", "double", OnDoubles::abs({x}).name, OnDoubles::number(doubles::largest_angle).name));
  return x;
}

Result<std::string> VectorCode::function_of_f32(ScalarOpcode opcode, const std::string& x) {
  const Active scope(*this);
  namespace math = kernel::math;
  switch (opcode) {
    case ScalarOpcode::exp:
      return (width_ == 16 ? tables::exp<OnVectors>(Float{x}) : math::exp<OnVectors>(Float{x})).name;
    case ScalarOpcode::exp2:
      return math::exp2<OnVectors>(Float{x}).name;
    case ScalarOpcode::expm1:
      return math::expm1<OnVectors>(Float{x}).name;
    case ScalarOpcode::log:
      return math::log<OnVectors>(Float{x}).name;
    case ScalarOpcode::log2:
      return math::log2<OnVectors>(Float{x}).name;
    case ScalarOpcode::log1p:
      return math::log1p<OnVectors>(Float{x}).name;
    case ScalarOpcode::tanh:
      if (width_ == 16) return tables::tanh<OnVectors>(Float{x}).name;
      return (is_precise_ ? math::precise_tanh<OnVectors>(Float{x}) : math::tanh<OnVectors>(Float{x})).name;
    case ScalarOpcode::erf:
      return (is_precise_ ? math::precise_erf<OnVectors>(Float{x}) : math::erf<OnVectors>(Float{x})).name;
    case ScalarOpcode::erfc:
      if (is_precise_)
        return in_doubles(x, [](const Double& wide) { return math::precise_erfc<OnDoubles>(wide); });
      return math::erfc<OnVectors>(Float{x}).name;
    case ScalarOpcode::sin:
      return angle(x, 0);
    case ScalarOpcode::cos:
      return angle(x, 1);
    default: {
      const std::string wide = OnVectors::converted("fpext", x, "float", "double");
      const auto out = function_of_f64(opcode, wide);
      if (!out) return no_vector_code(opcode, Dtype::f32);
      return OnVectors::converted("fptrunc", *out, "double", "float");
    }
  }
}

Result<std::string> VectorCode::function_of_f64(ScalarOpcode opcode, const std::string& x) {
  const Active scope(*this);
  switch (opcode) {
    case ScalarOpcode::exp:
      return doubles::exp<OnDoubles>(Double{x}).name;
    case ScalarOpcode::exp2:
      return doubles::exp2<OnDoubles>(Double{x}).name;
    case ScalarOpcode::expm1:
      return doubles::expm1<OnDoubles>(Double{x}).name;
    case ScalarOpcode::log:
      return doubles::log<OnDoubles>(Double{x}).name;
    case ScalarOpcode::log2:
      return doubles::log2<OnDoubles>(Double{x}).name;
    case ScalarOpcode::log1p:
      return doubles::log1p<OnDoubles>(Double{x}).name;
    case ScalarOpcode::tanh:
      return doubles::tanh<OnDoubles>(Double{x}).name;
    case ScalarOpcode::atan:
      return doubles::atan<OnDoubles>(Double{x}).name;
    case ScalarOpcode::sin:
      return doubles::sine<OnDoubles>(Double{wide_angle(x)}, 0).name;
    case ScalarOpcode::cos:
      return doubles::sine<OnDoubles>(Double{wide_angle(x)}, 1).name;
    case ScalarOpcode::tan:
      return doubles::tan<OnDoubles>(Double{wide_angle(x)}).name;
    default:
      return no_vector_code(opcode, Dtype::f64);
  }
}

/// In f64, which is not enough for powers of f64.
std::string VectorCode::pow_of_f32(const std::string& x, const std::string& y) {
  const Active scope(*this);
  const auto wide = [](const std::string& v) {
    return Double{OnVectors::converted("fpext", v, "float", "double")};
  };
  const Double out = doubles::narrow_pow<OnDoubles>(wide(x), wide(y));
  return OnVectors::converted("fptrunc", out.name, "double", "float");
}

std::string VectorCode::gelu(const std::string& x) {
  const Active scope(*this);
  using namespace kernel;
  if (!is_precise_)
    return (width_ == 16 ? tables::gelu<OnVectors>(Float{x}) : math::gelu<OnVectors>(Float{x})).name;
  return in_doubles(x, [](const Double& wide) { return math::precise_gelu<OnDoubles>(wide); });
}

std::string VectorCode::rounded_bf16(const std::string& x) {
  const Active scope(*this);
  const auto integer = [&](std::string_view name, const std::string& a, int b) {
    return binary(name, "i32", a, constant("i32", cat(b)));
  };
  const std::string bits = OnVectors::bits({x}).name;
  const std::string odd = integer("and", integer("lshr", bits, 16), 1);
  const std::string sum = binary("add", "i32", integer("add", bits, 0x7fff), odd);
  const std::string rounded = OnVectors::from_bits({integer("and", sum, -65536)}).name;
  const std::string is_nan = binary("fcmp uno", "float", x, x);
  return select("float", is_nan, x, rounded);
}

// The loops themselves. Included by one file per instruction set, which names the namespace. Everything here
// is local to that file, so that no function compiled for a newer processor is linked where an older one
// runs.
//
// REQUIRES TESSERA_LOOPS, the name of the namespace.
#include <cstring>
#include <limits>
#include <type_traits>

#include "tessera/kernel/block_loops.h"
#include "tessera/kernel/vector_math.h"

namespace tessera::kernel::TESSERA_LOOPS {
namespace {

using ir::Dtype;
using ir::ScalarOpcode;
using Bool = std::uint8_t;

template <class T>
constexpr bool is_float_v = std::is_floating_point_v<T>;

// ---- operations of two

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_float_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_float_v<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    if constexpr (is_float_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct Div {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct Min {  // NaN if either is
  template <class T>
  static T of(T a, T b) {
    return (a != a) | (a < b) ? a : b;
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return (a != a) | (a > b) ? a : b;
  }
};
struct CopySign {
  static float of(float a, float b) { return __builtin_copysignf(a, b); }
  static double of(double a, double b) { return __builtin_copysign(a, b); }
};

#define TESSERA_OPERATOR(name, symbol) \
  struct name {                        \
    template <class T>                 \
    static auto of(T a, T b) {         \
      return a symbol b;               \
    }                                  \
  };
TESSERA_OPERATOR(Eq, ==)
TESSERA_OPERATOR(Ne, !=)
TESSERA_OPERATOR(Lt, <)
TESSERA_OPERATOR(Le, <=)
TESSERA_OPERATOR(Gt, >)
TESSERA_OPERATOR(Ge, >=)
TESSERA_OPERATOR(And, &)
TESSERA_OPERATOR(Or, |)
TESSERA_OPERATOR(Xor, ^)
#undef TESSERA_OPERATOR

/// Shifts by a negative amount or by the width and more push everything out.
struct ShiftLeft {
  template <class T>
  static T of(T a, T by) {
    const auto distance = static_cast<std::uint64_t>(by);
    return distance > 63 ? T(0) : static_cast<T>(static_cast<std::uint64_t>(a) << (distance & 63));
  }
};
struct ShiftRight {
  template <class T>
  static T of(T a, T by) {
    const auto distance = static_cast<std::uint64_t>(by);
    return distance > 63 ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> (distance & 63));
  }
};

// ---- operations of one

struct Neg {
  template <class T>
  static T of(T a) {
    if constexpr (is_float_v<T>)
      return -a;
    else
      return static_cast<T>(0 - static_cast<std::uint64_t>(a));
  }
};
struct Abs {
  static float of(float a) { return __builtin_fabsf(a); }
  static double of(double a) { return __builtin_fabs(a); }
  static std::int64_t of(std::int64_t a) { return a < 0 ? Neg::of(a) : a; }
  static std::uint64_t of(std::uint64_t a) { return a; }
};
struct Sign {
  template <class T>
  static T of(T a) {
    return a != a ? a : static_cast<T>((a > 0) - (a < 0));
  }
};
struct BitNot {
  template <class T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};
struct Not {
  static Bool of(Bool a) { return static_cast<Bool>(a == 0); }
};
struct IsNan {
  template <class T>
  static bool of(T a) {
    return a != a;
  }
};
struct IsInf {
  template <class T>
  static bool of(T a) {
    return Abs::of(a) == static_cast<T>(__builtin_inf());
  }
};

#define TESSERA_FUNCTION(name, on_float, on_double)     \
  struct name {                                         \
    static float of(float a) { return on_float(a); }    \
    static double of(double a) { return on_double(a); } \
  };
TESSERA_FUNCTION(Sqrt, __builtin_sqrtf, __builtin_sqrt)
TESSERA_FUNCTION(Rsqrt, 1.0f / __builtin_sqrtf, 1.0 / __builtin_sqrt)
TESSERA_FUNCTION(Floor, __builtin_floorf, __builtin_floor)
TESSERA_FUNCTION(Ceil, __builtin_ceilf, __builtin_ceil)
TESSERA_FUNCTION(Round, __builtin_rintf, __builtin_rint)
TESSERA_FUNCTION(Trunc, __builtin_truncf, __builtin_trunc)
#undef TESSERA_FUNCTION

/// What vector_math.h computes with: single numbers, which the compiler makes vectors of.
struct OnFloat {
  static float number(double value) { return static_cast<float>(value); }
  static std::uint32_t integer(std::int32_t value) { return static_cast<std::uint32_t>(value); }
  static float mul_add(float a, float b, float c) {
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
  }
  static float scaled(float p, float n) { return math::scaled_in_steps<OnFloat>(p, n); }
  static float by_power_of_two(float p, float n) { return math::by_power_in_steps<OnFloat>(p, n); }
  /// Of a positive number and a small rest.
  static float reciprocal(float x, float rest) {
    const float whole = 1.0f / x;
    return mul_add(whole * rest, -whole, whole);
  }
  static float without_quarter_turns(float x, float n) {
#ifdef __FMA__
    return math::reduced_angle<OnFloat>(x, n);
#else
    return static_cast<float>(static_cast<double>(x) - static_cast<double>(n) * 1.57079632679489662);
#endif
  }
  static float round(float x) {
#ifdef __SSE4_1__
    return __builtin_rintf(x);
#else
    // Where a call would be needed: adding 1.5 * 2^23 leaves no bits behind the point. |x| < 2^22 here.
    return (x + 12582912.0f) - 12582912.0f;
#endif
  }
  static float floor(float x) {
    const float nearest = round(x);
    return nearest > x ? nearest - 1.0f : nearest;
  }
  static float abs(float x) { return __builtin_fabsf(x); }
  static float select(bool c, float a, float b) { return c ? a : b; }
  // Integers as unsigned ones, whose arithmetic wraps: lanes whose result is thrown away may hold anything.
  static std::uint32_t to_int(float x) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(x)); }
  static float to_float(std::uint32_t x) { return static_cast<float>(static_cast<std::int32_t>(x)); }
  static std::uint32_t bits(float x) { return __builtin_bit_cast(std::uint32_t, x); }
  static float from_bits(std::uint32_t x) { return __builtin_bit_cast(float, x); }
  static std::uint32_t shift_left(std::uint32_t x, int by) { return x << by; }
  static std::uint32_t shift_right(std::uint32_t x, int by) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> by);
  }
  static bool is_odd(std::uint32_t x) { return (x & 1) != 0; }
};

#define TESSERA_MATH(name, function)                                \
  struct name {                                                     \
    static float of(float x) { return math::function<OnFloat>(x); } \
  };
TESSERA_MATH(Exp, exp)
TESSERA_MATH(Exp2, exp2)
TESSERA_MATH(Expm1, expm1)
TESSERA_MATH(Log, log)
TESSERA_MATH(Log2, log2)
TESSERA_MATH(Log1p, log1p)
TESSERA_MATH(Tanh, tanh)
TESSERA_MATH(Erf, erf)
TESSERA_MATH(Erfc, erfc)
#ifdef __FMA__  // what a square loses cannot be had without
TESSERA_MATH(Gelu, gelu)
#endif
#undef TESSERA_MATH

// ---- loops

/// Truth is one byte.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, Bool, T>;

template <class Op, class T>
void one(const void* a, const void*, const void*, void* out, std::size_t count) {
  const T* x = static_cast<const T*>(a);
  auto* y = static_cast<Stored<decltype(Op::of(*x))>*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) y[i] = Op::of(x[i]);
}

template <class Op, class T, LoopForm form>
void two(const void* a, const void* b, const void*, void* out, std::size_t count) {
  const T *x = static_cast<const T*>(a), *z = static_cast<const T*>(b);
  // Comparisons give truth; two bytes become an int, which is a byte again.
  using Out = std::conditional_t<std::is_same_v<decltype(Op::of(*x, *z)), bool>, Bool, T>;
  auto* y = static_cast<Out*>(out);
  const T first = *x, second = *z;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    y[i] = static_cast<Out>(Op::of(form == LoopForm::scalar_first ? first : x[i],
                                   form == LoopForm::scalar_second ? second : z[i]));
}

template <class T>
void choose(const void* a, const void* b, const void* c, void* out, std::size_t count) {
  const Bool* condition = static_cast<const Bool*>(a);
  const T *x = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) y[i] = condition[i] != 0 ? x[i] : z[i];
}

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class T>
T fused(T a, T b, T c) {
  return Add::of(Mul::of(a, b), c);
}
template <class T>
void multiply_add(const void* a, const void* b, const void* c, void* out, std::size_t count) {
  const T *x = static_cast<const T*>(a), *z = static_cast<const T*>(b), *w = static_cast<const T*>(c);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) y[i] = fused(x[i], z[i], w[i]);
}

/// Sine or cosine; the few angles that are too large one by one.
template <int quarter>
void sine(const void* a, const void*, const void*, void* out, std::size_t count) {
  const float* x = static_cast<const float*>(a);
  float* y = static_cast<float*>(out);
  constexpr std::size_t part = 64;
  for (std::size_t begin = 0; begin < count; begin += part) {
    const std::size_t n = count - begin < part ? count - begin : part;
    float angles[part], results[part];
    bool any_large = false;
    for (std::size_t i = 0; i < n; ++i) {
      angles[i] = x[begin + i];
      any_large |= !(__builtin_fabsf(angles[i]) <= static_cast<float>(math::largest_angle));
    }
    if (any_large)
      for (std::size_t i = 0; i < n; ++i)
        results[i] = static_cast<float>(quarter == 0 ? __builtin_sin(static_cast<double>(angles[i]))
                                                     : __builtin_cos(static_cast<double>(angles[i])));
    else
      for (std::size_t i = 0; i < n; ++i) results[i] = math::sine<OnFloat>(angles[i], quarter);
    for (std::size_t i = 0; i < n; ++i) y[begin + i] = results[i];
  }
}

// ---- conversions

/// Rounded to the 11 bits of f16, ties to even; what is too large is infinite.
struct RoundF16 {
  static float of(float x) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
    const float magnitude = __builtin_fabsf(x);
    const std::uint32_t rounded = (bits + 0xfff + ((bits >> 13) & 1)) & ~std::uint32_t{0x1fff};
    const float normal = __builtin_fabsf(__builtin_bit_cast(float, rounded));
    const float subnormal = (magnitude + 0.5f) - 0.5f;  // multiples of 2^-24
    float y = magnitude < 6.103515625e-05f ? subnormal : normal;
    y = magnitude >= 65520.0f ? __builtin_inff() : y;
    return x != x ? x : __builtin_copysignf(y, x);
  }
};
struct RoundBf16 {
  static float of(float x) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & ~std::uint32_t{0xffff};
    return x != x ? x : __builtin_bit_cast(float, rounded);
  }
};

/// To a number of type N, held in T. Floats saturate and NaN is 0; integers wrap.
template <class T, class N>
struct To {
  template <class From>
  static T of(From x) {
    if constexpr (is_float_v<From> && !is_float_v<N>) {
      constexpr From low = static_cast<From>(std::numeric_limits<N>::min());
      // The next power of two above the largest, which always is a float.
      constexpr From limit = static_cast<From>(std::numeric_limits<N>::max() / 2 + 1) * From(2);
      const From inside = x > low && x < limit ? x : From(0);
      const N whole = static_cast<N>(inside);
      return static_cast<T>(x >= limit ? std::numeric_limits<N>::max()
                            : x <= low ? std::numeric_limits<N>::min()
                                       : whole);
    } else {
      return static_cast<T>(static_cast<N>(x));
    }
  }
};
struct ToBool {
  template <class From>
  static bool of(From x) {
    return x != From(0);
  }
};

template <class N>
struct BitsOfF32 {
  static std::int64_t of(float x) { return __builtin_bit_cast(N, x); }
};
struct F32OfBits {
  static float of(std::int64_t x) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(x)); }
};
struct Same {
  static std::uint64_t of(std::uint64_t x) { return x; }
};

struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};
struct BoolByte {
  std::uint8_t byte;
};

inline float widen(F16 h) {
  const std::uint32_t magnitude = h.bits & 0x7fffU;
  // As a float the exponent is 112 too small; multiplying makes subnormal numbers right, too.
  const float value = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  const std::uint32_t special = 0x7f800000U | (magnitude << 13);
  const std::uint32_t bits = magnitude >= 0x7c00U ? special : __builtin_bit_cast(std::uint32_t, value);
  return __builtin_bit_cast(float, bits | static_cast<std::uint32_t>(h.bits & 0x8000U) << 16);
}
inline float widen(Bf16 h) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(h.bits) << 16); }
inline Bool widen(BoolByte b) { return static_cast<Bool>(b.byte != 0); }
inline double widen(double x) { return x; }
inline float widen(float x) { return x; }
inline std::uint64_t widen(std::uint64_t x) { return x; }
template <class T>
std::int64_t widen(T x) {
  return x;
}

/// `x` is a number of the narrow type.
template <class N, class T>
N narrow(T x) {
  if constexpr (std::is_same_v<N, F16>) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x), sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    const std::uint32_t normal = (magnitude - 0x38000000U) >> 13;
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000U;
    const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
    std::uint32_t out = magnitude < 0x38800000U ? subnormal : normal;
    out = magnitude >= 0x7f800000U ? 0x7c00U : out;
    out = magnitude > 0x7f800000U ? nan : out;
    return {static_cast<std::uint16_t>(out | sign)};
  } else if constexpr (std::is_same_v<N, Bf16>) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
    return {static_cast<std::uint16_t>(x != x ? (bits >> 16) | 0x40 : bits >> 16)};
  } else if constexpr (std::is_same_v<N, BoolByte>) {
    return {x};
  } else {
    return static_cast<N>(x);
  }
}

template <class N>
void load(const std::byte* from, std::int64_t stride, void* out, std::size_t count) {
  auto* y = static_cast<decltype(widen(N()))*>(out);
  if (stride == 1) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      N x;
      std::memcpy(&x, from + i * sizeof(N), sizeof x);
      y[i] = widen(x);
    }
    return;
  }
  const std::int64_t step = stride * static_cast<std::int64_t>(sizeof(N));
  for (std::size_t i = 0; i < count; ++i, from += step) {
    N x;
    std::memcpy(&x, from, sizeof x);
    y[i] = widen(x);
  }
}

template <class N>
void store(const void* in, std::byte* to, std::int64_t stride, std::size_t count) {
  const auto* x = static_cast<const decltype(widen(N()))*>(in);
  if (stride == 1) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
      const N y = narrow<N>(x[i]);
      std::memcpy(to + i * sizeof(N), &y, sizeof y);
    }
    return;
  }
  const std::int64_t step = stride * static_cast<std::int64_t>(sizeof(N));
  for (std::size_t i = 0; i < count; ++i, to += step) {
    const N y = narrow<N>(x[i]);
    std::memcpy(to, &y, sizeof y);
  }
}

template <class T>
void fill(const void* a, const void*, const void*, void* out, std::size_t count) {
  const T value = *static_cast<const T*>(a);
  T* y = static_cast<T*>(out);
  for (std::size_t i = 0; i < count; ++i) y[i] = value;
}

void count_up(std::int64_t first, void* out, std::size_t count) {
  auto* y = static_cast<std::int64_t*>(out);
  for (std::size_t i = 0; i < count; ++i) y[i] = first + static_cast<std::int64_t>(i);
}

// ---- reductions

/// Joined element by element into `total`.
template <class Op, class T, class A>
void reduce_rest(const T* x, A& total, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) total = static_cast<A>(Op::of(total, static_cast<A>(x[i])));
}

template <class Op, class V>
void join(V& total, const V& x) {
  if constexpr (std::is_same_v<Op, Min>)
    total = (total != total) | (total < x) ? total : x;
  else if constexpr (std::is_same_v<Op, Max>)
    total = (total != total) | (total > x) ? total : x;
  else if constexpr (std::is_same_v<Op, Mul>)
    total = total * x;
  else
    total = total + x;
}

/// Floats in many lanes side by side, which are joined in A at the end: fast, and the error of a sum grows
/// with the few additions of one lane.
template <class Op, class T, class A>
void reduce_floats(const void* in, void* accumulator, std::size_t count) {
  typedef T Vector __attribute__((vector_size(64)));
  constexpr std::size_t width = 64 / sizeof(T), lanes = 4 * width;
  const T* x = static_cast<const T*>(in);
  A& total = *static_cast<A*>(accumulator);
  std::size_t i = 0;
  if (count >= lanes) {
    Vector part[4], next;
    std::memcpy(part, x, sizeof part);
    for (i = lanes; i + lanes <= count; i += lanes)
      for (std::size_t k = 0; k < 4; ++k) {
        std::memcpy(&next, x + i + k * width, sizeof next);
        join<Op>(part[k], next);
      }
    T flat[lanes];
    std::memcpy(flat, part, sizeof flat);
    A wide[lanes];
    for (std::size_t k = 0; k < lanes; ++k) wide[k] = static_cast<A>(flat[k]);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
      for (std::size_t k = 0; k < half; ++k) wide[k] = Op::of(wide[k], wide[k + half]);
    total = Op::of(total, wide[0]);
  }
  reduce_rest<Op>(x + i, total, count - i);
}

template <class Op, class T, class A>
void reduce(const void* in, void* accumulator, std::size_t count) {
  if constexpr (is_float_v<T>)
    reduce_floats<Op, T, A>(in, accumulator, count);
  else
    reduce_rest<Op>(static_cast<const T*>(in), *static_cast<A*>(accumulator), count);
}

/// Products of floats leave the range of f32 long before the result does.
void reduce_product(const void* in, void* accumulator, std::size_t count) {
  const float* x = static_cast<const float*>(in);
  double& total = *static_cast<double*>(accumulator);
  for (std::size_t i = 0; i < count; ++i) total *= static_cast<double>(x[i]);
}

template <class Op, class T, class A>
void accumulate(const void* in, void* accumulators, std::size_t count) {
  const T* x = static_cast<const T*>(in);
  A* total = static_cast<A*>(accumulators);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) total[i] = static_cast<A>(Op::of(total[i], static_cast<A>(x[i])));
}

// ---- the table

constexpr std::size_t f32 = 0, f64 = 1, i64 = 2, u64 = 3, boolean = 4;

struct Filler {
  LoopTable table{};

  LoopTable::Operation* row(ScalarOpcode opcode, std::size_t wide) {
    return table.operation[static_cast<std::size_t>(opcode)][wide];
  }

  template <class Op, class T>
  void set_one(ScalarOpcode opcode, std::size_t wide) {
    row(opcode, wide)[0] = &one<Op, T>;
  }
  template <class Op, class T>
  void set_two(ScalarOpcode opcode, std::size_t wide) {
    row(opcode, wide)[0] = &two<Op, T, LoopForm::vectors>;
    row(opcode, wide)[1] = &two<Op, T, LoopForm::scalar_second>;
    row(opcode, wide)[2] = &two<Op, T, LoopForm::scalar_first>;
  }
  template <class Op>
  void floats_one(ScalarOpcode opcode) {
    set_one<Op, float>(opcode, f32);
    set_one<Op, double>(opcode, f64);
  }
  template <class Op>
  void floats_two(ScalarOpcode opcode) {
    set_two<Op, float>(opcode, f32);
    set_two<Op, double>(opcode, f64);
  }
  template <class Op>
  void integers_one(ScalarOpcode opcode) {
    set_one<Op, std::int64_t>(opcode, i64);
    set_one<Op, std::uint64_t>(opcode, u64);
  }
  template <class Op>
  void integers_two(ScalarOpcode opcode) {
    set_two<Op, std::int64_t>(opcode, i64);
    set_two<Op, std::uint64_t>(opcode, u64);
  }
  template <class Op>
  void numbers_two(ScalarOpcode opcode) {
    floats_two<Op>(opcode);
    integers_two<Op>(opcode);
  }
  template <class Op>
  void numbers_one(ScalarOpcode opcode) {
    floats_one<Op>(opcode);
    integers_one<Op>(opcode);
  }
  template <class Op>
  void f32_one(ScalarOpcode opcode) {
    set_one<Op, float>(opcode, f32);
  }

  void operations() {
    using enum ScalarOpcode;
    numbers_two<Add>(add);
    numbers_two<Sub>(sub);
    numbers_two<Mul>(mul);
    floats_two<Div>(div);
    numbers_two<Min>(min);
    numbers_two<Max>(max);
    numbers_two<Eq>(eq);
    numbers_two<Ne>(ne);
    numbers_two<Lt>(lt);
    numbers_two<Le>(le);
    numbers_two<Gt>(gt);
    numbers_two<Ge>(ge);
    floats_two<CopySign>(copysign);
    integers_two<And>(bit_and);
    integers_two<Or>(bit_or);
    integers_two<Xor>(bit_xor);
    integers_two<ShiftLeft>(shl);
    integers_two<ShiftRight>(shr);
    set_two<And, Bool>(bit_and, boolean);
    set_two<Or, Bool>(bit_or, boolean);
    set_two<Xor, Bool>(bit_xor, boolean);
    set_two<Eq, Bool>(eq, boolean);
    set_two<Ne, Bool>(ne, boolean);
    set_one<Not, Bool>(bit_not, boolean);
  }

  void functions() {
    using enum ScalarOpcode;
    numbers_one<Neg>(neg);
    numbers_one<Abs>(abs);
    numbers_one<Sign>(sign);
    integers_one<BitNot>(bit_not);
    floats_one<IsNan>(is_nan);
    floats_one<IsInf>(is_inf);
    floats_one<Sqrt>(sqrt);
    floats_one<Rsqrt>(rsqrt);
    floats_one<Floor>(floor);
    floats_one<Ceil>(ceil);
    floats_one<Round>(round);
    floats_one<Trunc>(trunc);
    f32_one<Exp>(exp);
    f32_one<Exp2>(exp2);
    f32_one<Expm1>(expm1);
    f32_one<Log>(log);
    f32_one<Log2>(log2);
    f32_one<Log1p>(log1p);
    f32_one<Tanh>(tanh);
    f32_one<Erf>(erf);
    f32_one<Erfc>(erfc);
#ifdef __FMA__
    table.gelu = &one<Gelu, float>;
#endif
    row(sin, f32)[0] = &sine<0>;
    row(cos, f32)[0] = &sine<1>;
  }

  template <class T>
  void of_three(std::size_t wide) {
    row(ScalarOpcode::select, wide)[0] = &choose<T>;
    if constexpr (!std::is_same_v<T, Bool>) row(ScalarOpcode::fma, wide)[0] = &multiply_add<T>;
    table.fill[wide] = &fill<T>;
  }

  void to(Dtype dtype, std::size_t from, LoopTable::Operation cast) {
    table.cast[from][static_cast<std::size_t>(dtype)] = cast;
  }
  template <class From>
  void casts_from(std::size_t from) {
    to(Dtype::f64, from, &one<To<double, double>, From>);
    to(Dtype::f32, from, &one<To<float, float>, From>);
    to(Dtype::i64, from, &one<To<std::int64_t, std::int64_t>, From>);
    to(Dtype::i32, from, &one<To<std::int64_t, std::int32_t>, From>);
    to(Dtype::i16, from, &one<To<std::int64_t, std::int16_t>, From>);
    to(Dtype::i8, from, &one<To<std::int64_t, std::int8_t>, From>);
    to(Dtype::u8, from, &one<To<std::int64_t, std::uint8_t>, From>);
    to(Dtype::u16, from, &one<To<std::int64_t, std::uint16_t>, From>);
    to(Dtype::u32, from, &one<To<std::int64_t, std::uint32_t>, From>);
    to(Dtype::u64, from, &one<To<std::uint64_t, std::uint64_t>, From>);
    to(Dtype::boolean, from, &one<ToBool, From>);
  }
  void conversions() {
    casts_from<float>(f32);
    casts_from<double>(f64);
    casts_from<std::int64_t>(i64);
    casts_from<std::uint64_t>(u64);
    casts_from<Bool>(boolean);
    to(Dtype::f16, f32, &one<RoundF16, float>);
    to(Dtype::bf16, f32, &one<RoundBf16, float>);
    // 0 and 1 need no rounding
    to(Dtype::f16, boolean, &one<To<float, float>, Bool>);
    to(Dtype::bf16, boolean, &one<To<float, float>, Bool>);
    table.f32_to_i32 = &one<BitsOfF32<std::int32_t>, float>;
    table.f32_to_u32 = &one<BitsOfF32<std::uint32_t>, float>;
    table.bits_to_f32 = &one<F32OfBits, std::int64_t>;
    table.copy_bits = &one<Same, std::uint64_t>;
  }

  template <class N>
  void memory(Dtype dtype) {
    table.load[static_cast<std::size_t>(dtype)] = &load<N>;
    table.store[static_cast<std::size_t>(dtype)] = &store<N>;
  }

  template <class Op, class T, class A>
  void reduction(ScalarOpcode opcode, std::size_t wide) {
    table.reduce[static_cast<std::size_t>(opcode)][wide] = &reduce<Op, T, A>;
    table.accumulate[static_cast<std::size_t>(opcode)][wide] = &accumulate<Op, T, A>;
  }
  template <class T>
  void reductions_of(std::size_t wide) {
    using A = std::conditional_t<std::is_same_v<T, float>, double, T>;
    reduction<Add, T, A>(ScalarOpcode::add, wide);
    reduction<Mul, T, A>(ScalarOpcode::mul, wide);
    reduction<Min, T, T>(ScalarOpcode::min, wide);
    reduction<Max, T, T>(ScalarOpcode::max, wide);
    if constexpr (!is_float_v<T>) bit_reductions_of<T>(wide);
  }
  template <class T>
  void bit_reductions_of(std::size_t wide) {
    reduction<And, T, T>(ScalarOpcode::bit_and, wide);
    reduction<Or, T, T>(ScalarOpcode::bit_or, wide);
    reduction<Xor, T, T>(ScalarOpcode::bit_xor, wide);
  }

  void all() {
    operations();
    functions();
    of_three<float>(f32);
    of_three<double>(f64);
    of_three<std::int64_t>(i64);
    of_three<std::uint64_t>(u64);
    of_three<Bool>(boolean);
    conversions();
    memory<double>(Dtype::f64);
    memory<float>(Dtype::f32);
    memory<F16>(Dtype::f16);
    memory<Bf16>(Dtype::bf16);
    memory<std::int64_t>(Dtype::i64);
    memory<std::int32_t>(Dtype::i32);
    memory<std::int16_t>(Dtype::i16);
    memory<std::int8_t>(Dtype::i8);
    memory<std::uint8_t>(Dtype::u8);
    memory<std::uint16_t>(Dtype::u16);
    memory<std::uint32_t>(Dtype::u32);
    memory<std::uint64_t>(Dtype::u64);
    memory<BoolByte>(Dtype::boolean);
    table.count_up = &count_up;
    reductions_of<float>(f32);
    reductions_of<double>(f64);
    reductions_of<std::int64_t>(i64);
    reductions_of<std::uint64_t>(u64);
    bit_reductions_of<Bool>(boolean);
    reduction<Min, Bool, Bool>(ScalarOpcode::min, boolean);
    reduction<Max, Bool, Bool>(ScalarOpcode::max, boolean);
    table.reduce[static_cast<std::size_t>(ScalarOpcode::mul)][f32] = &reduce_product;
  }
};

}  // namespace

const LoopTable& loops() {
  static const LoopTable table = [] {
    Filler filler;
    filler.all();
    return filler.table;
  }();
  return table;
}

}  // namespace tessera::kernel::TESSERA_LOOPS

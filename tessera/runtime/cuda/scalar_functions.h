// The functions that generated sources begin with, as text. Where the device has an instruction for it there
// is inline PTX; the other branch is what the emulator of the tests runs.
#pragma once

#include <string_view>

namespace tessera::runtime::cuda {

/// Conversions of the 16-bit floats, rounding to nearest, ties to even.
inline constexpr std::string_view half_functions = R"(
static __device__ __forceinline__ float f16_value(unsigned short h) {
#ifdef __CUDA_ARCH__
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(h));
  return out;
#else
  const unsigned magnitude = h & 0x7fffu;
  const unsigned number = __float_as_uint(__uint_as_float(magnitude << 13) * 5.192296858534828e33f);
  return __uint_as_float((magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : number) | (h & 0x8000u) << 16);
#endif
}
static __device__ __forceinline__ unsigned short f16_bits(float x) {
#ifdef __CUDA_ARCH__
  unsigned short out;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
  return out;
#else
  const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7fffu);
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (magnitude < 0x38800000u)
    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13);
#endif
}
static __device__ __forceinline__ float bf16_value(unsigned short h) { return __uint_as_float((unsigned)h << 16); }
static __device__ __forceinline__ unsigned short bf16_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)(bits >> 16 | 0x40u);
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
static __device__ __forceinline__ float rounded_to_f16(float x) { return f16_value(f16_bits(x)); }
static __device__ __forceinline__ float rounded_to_bf16(float x) { return bf16_value(bf16_bits(x)); }
// Rounded to odd, so that the second rounding is the only one.
static __device__ __forceinline__ float to_float_for_half(double x) {
  const float rounded = (float)x;
  const unsigned bits = __float_as_uint(rounded);
  if ((double)rounded == x || x != x || (bits & 1)) return rounded;
  return __uint_as_float(((double)rounded < x) == (x > 0.0) ? bits + 1 : bits - 1);
}
)";

/// Floats to integers: truncated, what is too large is the largest, NaN is 0.
inline constexpr std::string_view saturation_functions = R"(
template <class T>
static __device__ __forceinline__ long long saturated(T x, T low, T limit, long long least, long long most) {
  return x >= limit ? most : x <= low ? least : x == x ? (long long)x : 0;
}
template <class T>
static __device__ __forceinline__ unsigned long long saturated_u64(T x) {
  return x >= (T)18446744073709551616.0 ? ~0ULL : x > (T)0 ? (unsigned long long)x : 0;
}
)";

inline constexpr std::string_view float_functions = R"(
// NaN if either is.
template <class T>
static __device__ __forceinline__ T float_min(T a, T b) { return a != a || a < b ? a : b; }
template <class T>
static __device__ __forceinline__ T float_max(T a, T b) { return a != a || a > b ? a : b; }
static __device__ __forceinline__ float extreme_min(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float out;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
#else
  return float_min(a, b);
#endif
}
static __device__ __forceinline__ float extreme_max(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float out;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
#else
  return float_max(a, b);
#endif
}
template <class T>
static __device__ __forceinline__ T float_sign(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); }
static __device__ __forceinline__ bool float_is_inf(float a) { return (__float_as_uint(a) & 0x7fffffffu) == 0x7f800000u; }
static __device__ __forceinline__ bool float_is_inf(double a) {
  return (__double_as_longlong(a) & 0x7fffffffffffffffLL) == 0x7ff0000000000000LL;
}
static __device__ __forceinline__ double float_floor_mod(double a, double b) {
  const double r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
static __device__ __forceinline__ float float_floor_mod(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
// The exact quotient rounded down: a / b may round up to an integer that the quotient does not reach.
static __device__ __forceinline__ double float_floor_div(double a, double b) {
  if (b == 0.0) return a / b;
  const double r = fmod(a, b);
  return rint((a - r) / b - (r != 0.0 && (r < 0.0) != (b < 0.0) ? 1.0 : 0.0));
}
static __device__ __forceinline__ float float_floor_div(float a, float b) {
  return (float)float_floor_div((double)a, (double)b);
}
)";

/// 64-bit integers that wrap; dividing by zero gives 0, and the remainder is the dividend.
inline constexpr std::string_view integer_functions = R"(
typedef unsigned long long u64;
template <class T>
static __device__ __forceinline__ T int_add(T a, T b) { return (T)((u64)a + (u64)b); }
template <class T>
static __device__ __forceinline__ T int_sub(T a, T b) { return (T)((u64)a - (u64)b); }
template <class T>
static __device__ __forceinline__ T int_mul(T a, T b) { return (T)((u64)a * (u64)b); }
template <class T>
static __device__ __forceinline__ T int_fma(T a, T b, T c) { return (T)((u64)a * (u64)b + (u64)c); }
template <class T>
static __device__ __forceinline__ T int_neg(T a) { return (T)(0 - (u64)a); }
template <class T>
static __device__ __forceinline__ T int_abs(T a) { return a < 0 ? int_neg(a) : a; }
template <class T>
static __device__ __forceinline__ T int_sign(T a) { return (T)((a > 0) - (a < 0)); }
template <class T>
static __device__ __forceinline__ T int_min(T a, T b) { return a < b ? a : b; }
template <class T>
static __device__ __forceinline__ T int_max(T a, T b) { return a > b ? a : b; }
template <class T>
static __device__ __forceinline__ bool int_is_minus_one(T a) { return (T)-1 < 0 && a == (T)-1; }
template <class T>
static __device__ __forceinline__ T int_div(T a, T b) {
  return b == 0 ? 0 : int_is_minus_one(b) ? int_neg(a) : a / b;
}
template <class T>
static __device__ __forceinline__ T int_fmod(T a, T b) { return b == 0 ? a : int_is_minus_one(b) ? 0 : a % b; }
template <class T>
static __device__ __forceinline__ T int_floor_div(T a, T b) {
  const T q = int_div(a, b);
  return b != 0 && int_fmod(a, b) != 0 && (a < 0) != (b < 0) ? int_sub(q, (T)1) : q;
}
template <class T>
static __device__ __forceinline__ T int_floor_mod(T a, T b) {
  const T r = int_fmod(a, b);
  return b != 0 && r != 0 && (r < 0) != (b < 0) ? int_add(r, b) : r;
}
template <class T>
static __device__ __forceinline__ T int_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == (T)-1 ? (exponent & 1 ? (T)-1 : (T)1) : 0;
  T out = 1;
  for (u64 e = (u64)exponent; e != 0; e >>= 1, base = int_mul(base, base))
    if (e & 1) out = int_mul(out, base);
  return out;
}
// By a negative amount or by the width and more everything is pushed out.
template <class T>
static __device__ __forceinline__ T int_shl(T a, T by) { return (u64)by > 63 ? 0 : (T)((u64)a << (u64)by); }
template <class T>
static __device__ __forceinline__ T int_shr(T a, T by) { return (u64)by > 63 ? (a < 0 ? (T)-1 : 0) : a >> (u64)by; }
template <class T>
static __device__ __forceinline__ T int_popcount(T a) { return (T)__popcll((u64)a); }
)";

}  // namespace tessera::runtime::cuda

// Included behind blocked_gemm_impl.h, once per instruction set: the softmax of rows of scores, between the
// two products of an attention.
#include "tessera/kernel/vector_math.h"
#include "tessera/runtime/cpu/row_softmax.h"

namespace tessera::runtime::cpu::TESSERA_GEMM {
namespace {

using Integers [[gnu::vector_size(vector_bytes)]] = std::int32_t;

/// What vector_math.h computes with.
struct OnVector {
  static Vector number(double value) { return Vector{} + static_cast<float>(value); }
  static Integers integer(std::int32_t value) { return Integers{} + value; }
  static Vector mul_add(const Vector& a, const Vector& b, const Vector& c) { return a * b + c; }
  static Vector scaled(const Vector& p, const Vector& n) {
    return kernel::math::scaled_in_steps<OnVector>(p, n);
  }
  /// Adding 1.5 * 2^23 leaves no bits behind the point. |x| < 2^22 here.
  static Vector round(const Vector& x) { return (x + 12582912.0f) - 12582912.0f; }
  static Vector floor(const Vector& x) {
    const Vector nearest = round(x);
    return nearest > x ? nearest - 1.0f : nearest;
  }
  static Vector select(const Integers& c, const Vector& a, const Vector& b) { return c ? a : b; }
  static Integers to_int(const Vector& x) { return __builtin_convertvector(x, Integers); }
  static Vector from_bits(const Integers& x) { return reinterpret_cast<Vector>(x); }
  static Integers shift_left(const Integers& x, int by) { return x << by; }
};

template <int step, int... e>
Vector with_lanes_swapped(const Vector& v, std::integer_sequence<int, e...>) {
  return __builtin_shufflevector(v, v, (e ^ step)...);
}

/// All lanes joined, in every lane.
template <int step = lanes / 2, class Join>
Vector join_lanes(const Vector& v, Join&& join) {
  const Vector joined = join(v, with_lanes_swapped<step>(v, std::make_integer_sequence<int, lanes>()));
  if constexpr (step == 1)
    return joined;
  else
    return join_lanes<step / 2>(joined, join);
}

Vector larger(const Vector& a, const Vector& b) { return a > b ? a : b; }
Vector sum_of(const Vector& a, const Vector& b) { return a + b; }

/// Lanes behind the last column hold minus infinity: nothing of them is left by exp.
Vector load_scores(const RowSoftmax& scores, const float* row, std::int64_t column) {
  const Vector values = load(row + column) * scores.scale;
  const std::int64_t left = scores.columns - column;
  if (left >= lanes) return values;
  Integers place;
  for (int i = 0; i < lanes; ++i) place[i] = i;
  return place < static_cast<std::int32_t>(left) ? values : Vector{} - __builtin_inff();
}

/// Several rows at once: each step of one row waits for the one before.
template <int rows>
void softmax_some(const RowSoftmax& scores, float* data) {
  Vector largest[rows], sum[rows] = {};
  for (int r = 0; r < rows; ++r) largest[r] = Vector{} - __builtin_inff();
  for (std::int64_t j = 0; j < scores.columns; j += lanes)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      largest[r] = larger(largest[r], load_scores(scores, data + r * scores.stride, j));
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) largest[r] = join_lanes(largest[r], larger);
  for (std::int64_t j = 0; j < scores.columns; j += lanes)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      float* const at = data + r * scores.stride;
      const Vector power = kernel::math::exp<OnVector>(load_scores(scores, at, j) - largest[r]);
      sum[r] += power;
      store(power, at + j);
    }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) sum[r] = 1.0f / join_lanes(sum[r], sum_of);
  for (std::int64_t j = 0; j < scores.columns; j += lanes)
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      float* const at = data + r * scores.stride + j;
      store(load(at) * sum[r], at);
    }
}

}  // namespace

void softmax_rows(const RowSoftmax& scores) {
  constexpr int at_once = 4;
  std::int64_t row = 0;
  for (; row + at_once <= scores.rows; row += at_once)
    softmax_some<at_once>(scores, scores.data + row * scores.stride);
  for (; row < scores.rows; ++row) softmax_some<1>(scores, scores.data + row * scores.stride);
}

}  // namespace tessera::runtime::cpu::TESSERA_GEMM

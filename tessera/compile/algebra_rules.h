// The rules of simplify_algebra, as algebra: left side, right side, and the numbers they hold for.
//
//   x, y, p    any value; the same letter twice is the same value. Whether a rule holds is asked for the
//              dtype of x
//   a, b       constants
//   0, 1, -1   that number in every element; -0.0 is the negative zero of floats
//   add(x, y)  a call of an op; where the op is commutative, in either order
#pragma once

#include <optional>

#include "tessera/compile/pass.h"

namespace tessera::compiler {

struct AlgebraRule {
  const char* from;
  const char* to;
  bool integers = true;  ///< holds for integers, which wrap, and for booleans
  /// The least that floats must allow; nothing: it never holds for them.
  std::optional<FloatRules> floats = FloatRules::exact;
};

inline constexpr bool integers = true, no_integers = false;
inline constexpr auto not_floats = std::nullopt;

inline constexpr AlgebraRule algebra_rules[] = {
    // sums: x + 0 is not x for x = -0, but x + -0 and x - 0 are
    {"add(x, 0)", "x", integers, FloatRules::fast},
    {"add(x, -0.0)", "x", no_integers, FloatRules::exact},
    {"sub(x, 0)", "x"},
    {"sub(0, x)", "neg(x)", integers, FloatRules::fast},
    {"sub(x, x)", "0", integers, not_floats},
    {"neg(neg(x))", "x"},
    {"neg(sub(x, y))", "sub(y, x)", integers, FloatRules::fast},
    {"add(x, neg(y))", "sub(x, y)"},
    {"sub(x, neg(y))", "add(x, y)"},
    {"add(add(x, a), b)", "add(x, add(a, b))", integers, FloatRules::fast},
    // products: x * 0 is not 0 for NaN, infinities and negative x
    {"mul(x, 1)", "x"},
    {"mul(x, -1)", "neg(x)"},
    {"mul(x, 0)", "0", integers, not_floats},
    {"mul(neg(x), neg(y))", "mul(x, y)"},
    {"mul(mul(x, a), b)", "mul(x, mul(a, b))", integers, FloatRules::fast},
    {"div(x, 1)", "x"},
    {"div(neg(x), neg(y))", "div(x, y)", no_integers, FloatRules::exact},
    {"floor_div(x, 1)", "x", integers, not_floats},
    // powers
    {"pow(x, 1)", "x"},
    {"pow(x, 2)", "square(x)", integers, FloatRules::rounding},
    {"square(neg(x))", "square(x)"},
    {"square(abs(x))", "square(x)"},
    {"sqrt(square(x))", "abs(x)", no_integers, FloatRules::fast},
    // what does nothing the second time
    {"abs(abs(x))", "abs(x)"},
    {"abs(neg(x))", "abs(x)", no_integers, FloatRules::exact},
    {"relu(relu(x))", "relu(x)"},
    {"floor(floor(x))", "floor(x)"},
    {"ceil(ceil(x))", "ceil(x)"},
    {"round(round(x))", "round(x)"},
    {"trunc(trunc(x))", "trunc(x)"},
    {"maximum(x, x)", "x"},
    {"minimum(x, x)", "x"},
    {"maximum(maximum(x, a), b)", "maximum(x, maximum(a, b))", integers, FloatRules::fast},
    {"minimum(minimum(x, a), b)", "minimum(x, minimum(a, b))", integers, FloatRules::fast},
    // activations as models write them out
    {"mul(x, sigmoid(x))", "silu(x)", no_integers, FloatRules::rounding},
    {"div(mul(x, clip(add(x, 3), 0, 6)), 6)", "hard_swish(x)", no_integers, FloatRules::rounding},
    {"mul(x, div(clip(add(x, 3), 0, 6), 6))", "hard_swish(x)", no_integers, FloatRules::rounding},
    {"div(mul(x, minimum(maximum(add(x, 3), 0), 6)), 6)", "hard_swish(x)", no_integers, FloatRules::rounding},
    {"mul(x, div(minimum(maximum(add(x, 3), 0), 6), 6))", "hard_swish(x)", no_integers, FloatRules::rounding},
    // bits
    {"bit_and(x, x)", "x"},
    {"bit_and(x, 0)", "0"},
    {"bit_or(x, x)", "x"},
    {"bit_or(x, 0)", "x"},
    {"bit_xor(x, 0)", "x"},
    {"bit_xor(x, x)", "0"},
    {"bit_not(bit_not(x))", "x"},
    {"shift_left(x, 0)", "x"},
    {"shift_right(x, 0)", "x"},
    // truth: these apply where x is boolean, since the type of a value never changes
    {"logical_not(logical_not(x))", "x"},
    {"logical_and(x, x)", "x"},
    {"logical_and(x, 1)", "x"},
    {"logical_and(x, 0)", "0"},
    {"logical_or(x, x)", "x"},
    {"logical_or(x, 0)", "x"},
    // comparisons: a NaN equals nothing, also not itself
    {"eq(x, x)", "1", integers, not_floats},
    {"ne(x, x)", "0", integers, not_floats},
    {"le(x, x)", "1", integers, not_floats},
    {"ge(x, x)", "1", integers, not_floats},
    {"lt(x, x)", "0"},
    {"gt(x, x)", "0"},
    {"logical_not(eq(x, y))", "ne(x, y)"},
    {"logical_not(ne(x, y))", "eq(x, y)"},
    {"logical_not(lt(x, y))", "ge(x, y)", integers, not_floats},
    {"logical_not(le(x, y))", "gt(x, y)", integers, not_floats},
    {"logical_not(gt(x, y))", "le(x, y)", integers, not_floats},
    {"logical_not(ge(x, y))", "lt(x, y)", integers, not_floats},
    // choices
    {"where(p, x, x)", "x"},
    {"where(1, x, y)", "x"},
    {"where(0, y, x)", "x"},
    {"where(logical_not(p), x, y)", "where(p, y, x)"},
};

}  // namespace tessera::compiler

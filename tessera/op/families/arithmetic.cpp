// Arithmetic of one and two operands.
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace tessera::op::formula {  // here `exp` means the one of formula.h
namespace {

struct Add {
  static auto value(const auto& a, const auto& b) { return a + b; }
  static Values gradient(GradientCall& g) { return {g.dy(), g.dy()}; }
};
struct Sub {
  static auto value(const auto& a, const auto& b) { return a - b; }
  static Values gradient(GradientCall& g) { return {g.dy(), -g.dy()}; }
};
struct Mul {
  static auto value(const auto& a, const auto& b) { return a * b; }
  static Values gradient(GradientCall& g) { return {g.dy() * g.x(1), g.dy() * g.x(0)}; }
};
struct Div {
  static auto value(const auto& a, const auto& b) { return a / b; }
  static Values gradient(GradientCall& g) {
    const Value da = g.dy() / g.x(1);
    return {da, -(da * g.y())};
  }
};
struct FloorDiv {
  static auto value(const auto& a, const auto& b) { return floor_div(a, b); }
  static Values gradient(GradientCall&) { return {Value(), Value()}; }
};
struct Mod {
  static auto value(const auto& a, const auto& b) { return floor_mod(a, b); }
  static Values gradient(GradientCall& g) { return {g.dy(), -(g.dy() * unary("floor", g.x(0) / g.x(1)))}; }
};
struct Fmod {
  static auto value(const auto& a, const auto& b) { return fmod(a, b); }
  static Values gradient(GradientCall& g) { return {g.dy(), -(g.dy() * unary("trunc", g.x(0) / g.x(1)))}; }
};
struct Pow {
  static auto value(const auto& a, const auto& b) { return pow(a, b); }
  static Values gradient(GradientCall& g) {
    const Value a = g.x(0), b = g.x(1), zero = g.b.constant(0, a.dtype());
    // d(a^0) is 0 also where a^-1 is infinite; a^b log a is 0 where a is 0, and has no real value where a is
    // negative.
    const Value da = where(g.b.call("eq", {b, zero}), zero, b * g.b.call("pow", {a, b - 1.0}));
    const Value db = where(g.b.call("eq", {a, zero}), zero, g.y() * unary("log", a));
    return {g.dy() * da, g.dy() * db};
  }
};

/// Where the operands are equal, each gets half.
Values extreme_gradient(GradientCall& g, std::string_view wins) {
  const Value a = g.x(0), b = g.x(1), half = g.dy() * 0.5, zero = zeros_like(g.dy());
  const Value tie = g.b.call("eq", {a, b});
  return {where(g.b.call(wins, {a, b}), g.dy(), where(tie, half, zero)),
          where(g.b.call(wins, {b, a}), g.dy(), where(tie, half, zero))};
}
struct Maximum {
  static auto value(const auto& a, const auto& b) { return maximum(a, b); }
  static Values gradient(GradientCall& g) { return extreme_gradient(g, "gt"); }
};
struct Minimum {
  static auto value(const auto& a, const auto& b) { return minimum(a, b); }
  static Values gradient(GradientCall& g) { return extreme_gradient(g, "lt"); }
};
struct Atan2 {
  static auto value(const auto& y, const auto& x) { return atan2(y, x); }
  static Values gradient(GradientCall& g) {
    const Value y = g.x(0), x = g.x(1), scale = g.dy() / (x * x + y * y);
    return {scale * x, -(scale * y)};
  }
};

struct Neg {
  static auto value(const auto& x) { return -x; }
  static Values gradient(GradientCall& g) { return {-g.dy()}; }
};
struct Abs {
  static auto value(const auto& x) { return abs(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("sign", g.x())}; }
};
struct Sign {
  static auto value(const auto& x) { return sign(x); }
  static Values gradient(GradientCall&) { return {Value()}; }
};
struct Square {
  static auto value(const auto& x) { return x * x; }
  static Values gradient(GradientCall& g) { return {g.dy() * (2.0 * g.x())}; }
};
struct Reciprocal {
  static auto value(const auto& x) { return 1.0 / x; }
  static Values gradient(GradientCall& g) { return {-(g.dy() * g.y() * g.y())}; }
};
struct Sqrt {
  static auto value(const auto& x) { return sqrt(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * 0.5 / g.y()}; }
};
struct Rsqrt {
  static auto value(const auto& x) { return rsqrt(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * -0.5 * g.y() / g.x()}; }
};

}  // namespace
}  // namespace tessera::op::formula

namespace {

using namespace tessera::op::formula;

constexpr Input inputs_yx[] = {{"y"}, {"x"}};

constexpr Card arithmetic_family[] = {
    number_unary<Abs>({.name = "abs",
                       .summary = "absolute value",
                       .onnx = {"Abs"},
                       .spellings = "absolute",
                       .oracle = "torch:abs"}),
    number_binary<Add>({.name = "add",
                        .summary = "a + b",
                        .traits = {.commutative = true, .associative = true},
                        .onnx = {"Add"},
                        .spellings = "+",
                        .oracle = "torch:add"}),
    float_binary<Atan2>({.name = "atan2",
                         .summary = "angle of the point (x, y)",
                         .inputs = inputs_yx,
                         .spellings = "arctan2",
                         .oracle = "torch:atan2"}),
    number_binary<Div>({.name = "div",
                        .summary = "a / b; integers truncate, by zero they give 0",
                        .onnx = {"Div"},
                        .spellings = "/ divide true_divide truediv",
                        .oracle = "torch:true_divide"}),
    number_binary<FloorDiv>({.name = "floor_div",
                             .summary = "a / b rounded down; integers by zero give 0",
                             .spellings = "// floor_divide floordiv",
                             .oracle = "torch:floor_divide"}),
    number_binary<Fmod>(
        {.name = "fmod",
         .summary = "remainder of truncating division: has the sign of a; integers by zero give a",
         .oracle = "torch:fmod"}),
    number_binary<Maximum>({.name = "maximum",
                            .summary = "the larger of a and b; NaN if either is",
                            .traits = {.commutative = true, .associative = true},
                            .onnx = {"Max"},
                            .oracle = "torch:maximum"}),
    number_binary<Minimum>({.name = "minimum",
                            .summary = "the smaller of a and b; NaN if either is",
                            .traits = {.commutative = true, .associative = true},
                            .onnx = {"Min"},
                            .oracle = "torch:minimum"}),
    number_binary<Mod>(
        {.name = "mod",
         .summary = "remainder of flooring division: has the sign of b; integers by zero give a",
         .spellings = "% Mod remainder",
         .oracle = "torch:remainder"}),
    number_binary<Mul>({.name = "mul",
                        .summary = "a * b",
                        .traits = {.commutative = true, .associative = true},
                        .onnx = {"Mul"},
                        .spellings = "* multiply",
                        .oracle = "torch:mul"}),
    number_unary<Neg>(
        {.name = "neg", .summary = "-x", .onnx = {"Neg"}, .spellings = "negative", .oracle = "torch:neg"}),
    number_binary<Pow>({.name = "pow",
                        .summary = "a to the power b; integers wrap, negative exponents truncate",
                        .spellings = "** Pow",
                        .oracle = "torch:pow"}),
    float_unary<Reciprocal>(
        {.name = "reciprocal", .summary = "1 / x", .onnx = {"Reciprocal"}, .oracle = "torch:reciprocal"}),
    float_unary<Rsqrt>({.name = "rsqrt", .summary = "1 / sqrt(x)", .oracle = "torch:rsqrt"}),
    number_unary<Sign>(
        {.name = "sign", .summary = "-1, 0 or 1; NaN of NaN", .onnx = {"Sign"}, .oracle = "torch:sign"}),
    float_unary<Sqrt>({.name = "sqrt", .summary = "square root", .onnx = {"Sqrt"}, .oracle = "torch:sqrt"}),
    number_unary<Square>({.name = "square", .summary = "x * x", .oracle = "torch:square"}),
    number_binary<Sub>({.name = "sub",
                        .summary = "a - b",
                        .onnx = {"Sub"},
                        .spellings = "- subtract",
                        .oracle = "torch:sub"}),
};

}  // namespace

std::span<const Card> tessera::op::arithmetic_cards() { return arithmetic_family; }

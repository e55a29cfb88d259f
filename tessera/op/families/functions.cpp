// Exponentials, logarithms, trigonometry and hyperbolics with their inverses, error functions, rounding.
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace tessera::op::formula {
namespace {

constexpr double ln2 = 0.69314718055994530942;
constexpr double ln10 = 2.30258509299404568402;
constexpr double two_over_sqrt_pi = 1.12837916709551257390;

struct Exp {
  static auto value(const auto& x) { return exp(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * g.y()}; }
};
struct Exp2 {
  static auto value(const auto& x) { return exp2(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * g.y() * ln2}; }
};
struct Expm1 {
  static auto value(const auto& x) { return expm1(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * (g.y() + 1.0)}; }
};
struct Log {
  static auto value(const auto& x) { return log(x); }
  static Values gradient(GradientCall& g) { return {g.dy() / g.x()}; }
};
struct Log2 {
  static auto value(const auto& x) { return log2(x); }
  static Values gradient(GradientCall& g) { return {g.dy() / (g.x() * ln2)}; }
};
struct Log10 {
  static auto value(const auto& x) { return log(x) * (1.0 / ln10); }
  static double value(double x) { return std::log10(x); }
  static Values gradient(GradientCall& g) { return {g.dy() / (g.x() * ln10)}; }
};
struct Log1p {
  static auto value(const auto& x) { return log1p(x); }
  static Values gradient(GradientCall& g) { return {g.dy() / (g.x() + 1.0)}; }
};
struct Sin {
  static auto value(const auto& x) { return sin(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("cos", g.x())}; }
};
struct Cos {
  static auto value(const auto& x) { return cos(x); }
  static Values gradient(GradientCall& g) { return {-(g.dy() * unary("sin", g.x()))}; }
};
struct Tan {
  static auto value(const auto& x) { return tan(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * (1.0 + g.y() * g.y())}; }
};
struct Asin {
  static auto value(const auto& x) { return asin(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("rsqrt", 1.0 - g.x() * g.x())}; }
};
struct Acos {
  static auto value(const auto& x) { return acos(x); }
  static Values gradient(GradientCall& g) { return {-(g.dy() * unary("rsqrt", 1.0 - g.x() * g.x()))}; }
};
struct Atan {
  static auto value(const auto& x) { return atan(x); }
  static Values gradient(GradientCall& g) { return {g.dy() / (1.0 + g.x() * g.x())}; }
};
struct Sinh {
  static auto value(const auto& x) { return sinh(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("cosh", g.x())}; }
};
struct Cosh {
  static auto value(const auto& x) { return cosh(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("sinh", g.x())}; }
};
struct Tanh {
  static auto value(const auto& x) { return tanh(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * (1.0 - g.y() * g.y())}; }
};
struct Asinh {
  static auto value(const auto& x) { return asinh(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("rsqrt", g.x() * g.x() + 1.0)}; }
};
struct Acosh {
  static auto value(const auto& x) { return acosh(x); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("rsqrt", g.x() * g.x() - 1.0)}; }
};
struct Atanh {
  static auto value(const auto& x) { return atanh(x); }
  static Values gradient(GradientCall& g) { return {g.dy() / (1.0 - g.x() * g.x())}; }
};
struct Erf {
  static auto value(const auto& x) { return erf(x); }
  static Values gradient(GradientCall& g) {
    return {g.dy() * unary("exp", -(g.x() * g.x())) * two_over_sqrt_pi};
  }
};
struct Erfc {
  static auto value(const auto& x) { return erfc(x); }
  static Values gradient(GradientCall& g) {
    return {g.dy() * unary("exp", -(g.x() * g.x())) * -two_over_sqrt_pi};
  }
};

/// Piecewise constant: no gradient flows.
Values nothing(GradientCall&) { return {Value()}; }
struct Floor {
  static auto value(const auto& x) { return floor(x); }
  static Values gradient(GradientCall& g) { return nothing(g); }
};
struct Ceil {
  static auto value(const auto& x) { return ceil(x); }
  static Values gradient(GradientCall& g) { return nothing(g); }
};
struct Round {
  static auto value(const auto& x) { return round(x); }
  static Values gradient(GradientCall& g) { return nothing(g); }
};
struct Trunc {
  static auto value(const auto& x) { return trunc(x); }
  static Values gradient(GradientCall& g) { return nothing(g); }
};

}  // namespace
}  // namespace tessera::op::formula

namespace {

using namespace tessera::op::formula;

constexpr Card function_family[] = {
    float_unary<Acos>({.name = "acos",
                       .summary = "arc cosine",
                       .onnx = {"Acos"},
                       .spellings = "arccos",
                       .oracle = "torch:acos"}),
    float_unary<Acosh>({.name = "acosh",
                        .summary = "inverse hyperbolic cosine",
                        .onnx = {"Acosh"},
                        .spellings = "arccosh",
                        .oracle = "torch:acosh"}),
    float_unary<Asin>({.name = "asin",
                       .summary = "arc sine",
                       .onnx = {"Asin"},
                       .spellings = "arcsin",
                       .oracle = "torch:asin"}),
    float_unary<Asinh>({.name = "asinh",
                        .summary = "inverse hyperbolic sine",
                        .onnx = {"Asinh"},
                        .spellings = "arcsinh",
                        .oracle = "torch:asinh"}),
    float_unary<Atan>({.name = "atan",
                       .summary = "arc tangent",
                       .onnx = {"Atan"},
                       .spellings = "arctan",
                       .oracle = "torch:atan"}),
    float_unary<Atanh>({.name = "atanh",
                        .summary = "inverse hyperbolic tangent",
                        .onnx = {"Atanh"},
                        .spellings = "arctanh",
                        .oracle = "torch:atanh"}),
    float_unary<Ceil>({.name = "ceil", .summary = "rounded up", .onnx = {"Ceil"}, .oracle = "torch:ceil"}),
    float_unary<Cos>({.name = "cos", .summary = "cosine", .onnx = {"Cos"}, .oracle = "torch:cos"}),
    float_unary<Cosh>(
        {.name = "cosh", .summary = "hyperbolic cosine", .onnx = {"Cosh"}, .oracle = "torch:cosh"}),
    float_unary<Erf>({.name = "erf", .summary = "error function", .onnx = {"Erf"}, .oracle = "torch:erf"}),
    float_unary<Erfc>({.name = "erfc", .summary = "1 - erf(x)", .oracle = "torch:erfc"}),
    float_unary<Exp>({.name = "exp", .summary = "e to the x", .onnx = {"Exp"}, .oracle = "torch:exp"}),
    float_unary<Exp2>({.name = "exp2", .summary = "2 to the x", .oracle = "torch:exp2"}),
    float_unary<Expm1>({.name = "expm1", .summary = "exp(x) - 1, exact near 0", .oracle = "torch:expm1"}),
    float_unary<Floor>(
        {.name = "floor", .summary = "rounded down", .onnx = {"Floor"}, .oracle = "torch:floor"}),
    float_unary<Log>({.name = "log", .summary = "natural logarithm", .onnx = {"Log"}, .oracle = "torch:log"}),
    float_unary<Log10>({.name = "log10", .summary = "logarithm to base 10", .oracle = "torch:log10"}),
    float_unary<Log1p>({.name = "log1p", .summary = "log(1 + x), exact near 0", .oracle = "torch:log1p"}),
    float_unary<Log2>({.name = "log2", .summary = "logarithm to base 2", .oracle = "torch:log2"}),
    float_unary<Round>({.name = "round",
                        .summary = "rounded to the nearest integer, ties to even",
                        .onnx = {"Round"},
                        .oracle = "torch:round"}),
    float_unary<Sin>({.name = "sin", .summary = "sine", .onnx = {"Sin"}, .oracle = "torch:sin"}),
    float_unary<Sinh>(
        {.name = "sinh", .summary = "hyperbolic sine", .onnx = {"Sinh"}, .oracle = "torch:sinh"}),
    float_unary<Tan>({.name = "tan", .summary = "tangent", .onnx = {"Tan"}, .oracle = "torch:tan"}),
    float_unary<Tanh>({.name = "tanh",
                       .summary = "hyperbolic tangent",
                       .traits = {.activation = true},
                       .onnx = {"Tanh"},
                       .oracle = "torch:tanh"}),
    float_unary<Trunc>(
        {.name = "trunc", .summary = "rounded towards zero", .spellings = "fix", .oracle = "torch:trunc"}),
};

}  // namespace

std::span<const Card> tessera::op::function_cards() { return function_family; }

// Activations: element-wise ops that neural networks use, each also as simpler ops.
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace tessera::op::formula {
namespace {

constexpr double inverse_sqrt2 = 0.70710678118654752440;
constexpr double inverse_sqrt_two_pi = 0.39894228040143267794;
constexpr double sqrt_two_over_pi = 0.79788456080286535588;
constexpr double gelu_cubic = 0.044715;
constexpr double selu_alpha = 1.67326324235437728481;
constexpr double selu_scale = 1.05070098735548049342;

Value positive(Value x) { return x.builder->call("gt", {x, x.builder->constant(0, x.dtype())}); }
/// 1 where x is positive, else 0.
Value step(Value x) { return cast(positive(x), x.dtype()); }

struct Relu {
  static auto value(const auto& x) { return maximum(x, decltype(x + x)(0.0)); }
  /// Of the result, which is there anyway: nobody has to keep the input.
  static Values gradient(GradientCall& g) { return {g.dy() * step(g.y())}; }
  static Values decompose(Builder& b, const CallInfo&, std::span<const Value> x) {
    return {b.call("maximum", {x[0], b.constant(0, x[0].dtype())})};
  }
};
struct LeakyRelu {
  static auto value(const auto& x, const auto& alpha) { return select(x > 0.0, x, x * alpha); }
  static Values gradient(GradientCall& g) {
    return {where(positive(g.x()), g.dy(), g.dy() * g.x(1)), Value()};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {where(positive(x[0]), x[0], x[0] * x[1])};
  }
};
struct Prelu {
  static auto value(const auto& x, const auto& slope) { return select(x > 0.0, x, x * slope); }
  static Values gradient(GradientCall& g) {
    const Value zero = zeros_like(g.dy());
    return {where(positive(g.x()), g.dy(), g.dy() * g.x(1)), where(positive(g.x()), zero, g.dy() * g.x())};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {where(positive(x[0]), x[0], x[0] * x[1])};
  }
};
struct Elu {
  static auto value(const auto& x, const auto& alpha) { return select(x > 0.0, x, alpha * expm1(x)); }
  static Values gradient(GradientCall& g) {
    return {where(positive(g.x()), g.dy(), g.dy() * (g.x(1) * unary("exp", g.x()))), Value()};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {where(positive(x[0]), x[0], x[1] * unary("expm1", x[0]))};
  }
};
struct Selu {
  static auto value(const auto& x) { return selu_scale * select(x > 0.0, x, selu_alpha * expm1(x)); }
  static Values gradient(GradientCall& g) {
    return {where(positive(g.x()), g.dy() * selu_scale,
                  g.dy() * (unary("exp", g.x()) * (selu_scale * selu_alpha)))};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {where(positive(x[0]), x[0], unary("expm1", x[0]) * selu_alpha) * selu_scale};
  }
};
struct Gelu {
  /// On numbers so that something is left of it far below 0; runtimes that compute it otherwise know its
  /// formula.
  static auto value(const auto& x) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, double>)
      return 0.5 * x * erfc(x * -inverse_sqrt2);
    else
      return 0.5 * x * (1.0 + erf(x * inverse_sqrt2));
  }
  static Values gradient(GradientCall& g) {
    const Value cdf = 0.5 * (1.0 + unary("erf", g.x() * inverse_sqrt2));
    const Value density = unary("exp", g.x() * g.x() * -0.5) * inverse_sqrt_two_pi;
    return {g.dy() * (cdf + g.x() * density)};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {0.5 * x[0] * (1.0 + unary("erf", x[0] * inverse_sqrt2))};
  }
};
/// 0.5 x (1 + tanh(u)), written as x / (1 + exp(-2u)): where tanh(u) is nearly -1 nothing cancels.
struct GeluTanh {
  static auto value(const auto& x) {
    return x / (1.0 + exp(-2.0 * sqrt_two_over_pi * (x + gelu_cubic * x * x * x)));
  }
  static Values gradient(GradientCall& g) {
    const Value x = g.x(), square = x * x;
    const Value t = unary("tanh", sqrt_two_over_pi * (x + gelu_cubic * (square * x)));
    const Value slope = (1.0 - t * t) * (sqrt_two_over_pi * (1.0 + 3.0 * gelu_cubic * square));
    return {g.dy() * (0.5 * (1.0 + t) + 0.5 * (x * slope))};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    const Value cube = x[0] * x[0] * x[0];
    return {x[0] / (1.0 + unary("exp", -2.0 * sqrt_two_over_pi * (x[0] + gelu_cubic * cube)))};
  }
};
struct Sigmoid {
  static auto value(const auto& x) { return 1.0 / (1.0 + exp(-x)); }
  static Values gradient(GradientCall& g) { return {g.dy() * g.y() * (1.0 - g.y())}; }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {1.0 / (1.0 + unary("exp", -x[0]))};
  }
};
struct Silu {
  static auto value(const auto& x) { return x / (1.0 + exp(-x)); }
  static Values gradient(GradientCall& g) {
    const Value s = unary("sigmoid", g.x());
    return {g.dy() * (s * (1.0 + g.x() * (1.0 - s)))};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {x[0] * unary("sigmoid", x[0])};
  }
};
struct Softplus {
  // max(x, 0) + log(1 + exp(-|x|)) does not overflow.
  static auto value(const auto& x) { return maximum(x, decltype(x + x)(0.0)) + log1p(exp(-abs(x))); }
  static Values gradient(GradientCall& g) { return {g.dy() * unary("sigmoid", g.x())}; }
  static Values decompose(Builder& b, const CallInfo&, std::span<const Value> x) {
    return {b.call("maximum", {x[0], b.constant(0, x[0].dtype())}) +
            unary("log1p", unary("exp", -unary("abs", x[0])))};
  }
};
struct HardSigmoid {
  static auto value(const auto& x, const auto& alpha, const auto& beta) {
    return minimum(maximum(alpha * x + beta, decltype(x + x)(0.0)), decltype(x + x)(1.0));
  }
  static Values gradient(GradientCall& g) {
    const Value inside = positive(g.y() * (1.0 - g.y()));
    return {where(inside, g.dy() * g.x(1), zeros_like(g.dy())), Value(), Value()};
  }
  static Values decompose(Builder& b, const CallInfo&, std::span<const Value> x) {
    return {b.call("clip", {x[1] * x[0] + x[2], b.constant(0, x[0].dtype()), b.constant(1, x[0].dtype())})};
  }
};
struct HardSwish {
  static auto value(const auto& x) {
    return x * minimum(maximum(x * (1.0 / 6.0) + 0.5, decltype(x + x)(0.0)), decltype(x + x)(1.0));
  }
  static Values gradient(GradientCall& g) {
    const Value x = g.x(), gate = x * (1.0 / 6.0) + 0.5;
    const Value above = g.b.call("ge", {gate, g.b.constant(1, x.dtype())}),
                below = g.b.call("le", {gate, g.b.constant(0, x.dtype())});
    return {where(above, g.dy(), where(below, zeros_like(g.dy()), g.dy() * (x * (1.0 / 3.0) + 0.5)))};
  }
  static Values decompose(Builder& b, const CallInfo&, std::span<const Value> x) {
    return {x[0] * b.call("clip", {x[0] * (1.0 / 6.0) + 0.5, b.constant(0, x[0].dtype()),
                                   b.constant(1, x[0].dtype())})};
  }
};
struct Softsign {
  static auto value(const auto& x) { return x / (1.0 + abs(x)); }
  static Values gradient(GradientCall& g) {
    const Value d = 1.0 + unary("abs", g.x());
    return {g.dy() / (d * d)};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {x[0] / (1.0 + unary("abs", x[0]))};
  }
};
struct Mish {
  static auto value(const auto& x) { return x * tanh(Softplus::value(x)); }
  static Values gradient(GradientCall& g) {
    const Value t = unary("tanh", unary("softplus", g.x()));
    return {g.dy() * (t + g.x() * ((1.0 - t * t) * unary("sigmoid", g.x())))};
  }
  static Values decompose(Builder&, const CallInfo&, std::span<const Value> x) {
    return {x[0] * unary("tanh", unary("softplus", x[0]))};
  }
};

}  // namespace
}  // namespace tessera::op::formula

namespace {

using namespace tessera::op::formula;

template <class F, std::size_t arity = 1>
constexpr Card activation(Card card) {
  card.traits.composite = true;
  card.traits.activation = true;
  card.decompose = &F::decompose;
  card.T = float_dtypes;
  return elementwise<F, arity, Domain::floats>(card);
}

constexpr Input leaky_inputs[] = {{"x"}, {"alpha", "T", InputKind::scalar, 0.01}};
constexpr Input elu_inputs[] = {{"x"}, {"alpha", "T", InputKind::scalar, 1.0}};
constexpr Input prelu_inputs[] = {{"x"}, {"slope"}};
constexpr Input hard_sigmoid_inputs[] = {
    {"x"}, {"alpha", "T", InputKind::scalar, 1.0 / 6.0}, {"beta", "T", InputKind::scalar, 0.5}};

constexpr Card activation_family[] = {
    activation<Elu, 2>({.name = "elu",
                        .summary = "x if positive, else alpha * (exp(x) - 1)",
                        .inputs = elu_inputs,
                        .spellings = "ELU Elu",
                        .oracle = "torch:nn.functional.elu"}),
    activation<Gelu>({.name = "gelu",
                      .summary = "x times the normal distribution function of x",
                      .onnx = {"Gelu"},
                      .spellings = "GELU",
                      .oracle = "torch:nn.functional.gelu"}),
    activation<GeluTanh>({.name = "gelu_tanh",
                          .summary = "gelu by its tanh approximation",
                          .oracle = "torch:nn.functional.gelu"}),
    activation<HardSigmoid, 3>({.name = "hard_sigmoid",
                                .summary = "alpha * x + beta limited to [0, 1]",
                                .inputs = hard_sigmoid_inputs,
                                .spellings = "HardSigmoid Hardsigmoid hardsigmoid",
                                .oracle = "torch:nn.functional.hardsigmoid"}),
    activation<HardSwish>({.name = "hard_swish",
                           .summary = "x * hard_sigmoid(x)",
                           .onnx = {"HardSwish"},
                           .spellings = "Hardswish hardswish",
                           .oracle = "torch:nn.functional.hardswish"}),
    activation<LeakyRelu, 2>({.name = "leaky_relu",
                              .summary = "x if positive, else alpha * x",
                              .inputs = leaky_inputs,
                              .spellings = "LeakyReLU LeakyRelu",
                              .oracle = "torch:nn.functional.leaky_relu"}),
    activation<Mish>({.name = "mish",
                      .summary = "x * tanh(softplus(x))",
                      .onnx = {"Mish"},
                      .oracle = "torch:nn.functional.mish"}),
    activation<Prelu, 2>({.name = "prelu",
                          .summary = "x if positive, else slope * x with a slope per element",
                          .inputs = prelu_inputs,
                          .onnx = {"PRelu"},
                          .spellings = "PReLU",
                          .oracle = "torch:nn.functional.prelu"}),
    activation<Relu>({.name = "relu",
                      .summary = "x if positive, else 0",
                      .onnx = {"Relu"},
                      .spellings = "ReLU",
                      .oracle = "torch:nn.functional.relu"}),
    activation<Selu>({.name = "selu",
                      .summary = "scaled elu with the constants of self-normalising networks",
                      .spellings = "SELU Selu",
                      .oracle = "torch:nn.functional.selu"}),
    activation<Sigmoid>({.name = "sigmoid",
                         .summary = "1 / (1 + exp(-x))",
                         .onnx = {"Sigmoid"},
                         .spellings = "expit",
                         .oracle = "torch:sigmoid"}),
    activation<Silu>({.name = "silu",
                      .summary = "x * sigmoid(x)",
                      .spellings = "SiLU Swish swish",
                      .oracle = "torch:nn.functional.silu"}),
    activation<Softplus>({.name = "softplus",
                          .summary = "log(1 + exp(x))",
                          .onnx = {"Softplus"},
                          .oracle = "torch:nn.functional.softplus"}),
    activation<Softsign>({.name = "softsign",
                          .summary = "x / (1 + |x|)",
                          .onnx = {"Softsign"},
                          .oracle = "torch:nn.functional.softsign"}),
};

}  // namespace

std::span<const Card> tessera::op::activation_cards() { return activation_family; }

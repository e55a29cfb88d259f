// Comparisons, logic, bits, tests, and the ops that choose or convert: where, clip, cast.
#include "tessera/op/families/make.h"

using namespace tessera;
using namespace tessera::op;

namespace tessera::op::formula {
namespace {

struct Eq {
  static auto value(const auto& a, const auto& b) { return a == b; }
};
struct Ne {
  static auto value(const auto& a, const auto& b) { return a != b; }
};
struct Lt {
  static auto value(const auto& a, const auto& b) { return a < b; }
};
struct Le {
  static auto value(const auto& a, const auto& b) { return a <= b; }
};
struct Gt {
  static auto value(const auto& a, const auto& b) { return a > b; }
};
struct Ge {
  static auto value(const auto& a, const auto& b) { return a >= b; }
};
struct LogicalAnd {
  static auto value(const auto& a, const auto& b) { return both(is_true(a), is_true(b)); }
};
struct LogicalOr {
  static auto value(const auto& a, const auto& b) { return either(is_true(a), is_true(b)); }
};
struct LogicalXor {
  static auto value(const auto& a, const auto& b) { return differ(is_true(a), is_true(b)); }
};
struct LogicalNot {
  static auto value(const auto& x) { return no(is_true(x)); }
};
struct BitAnd {
  static auto value(const auto& a, const auto& b) { return a & b; }
};
struct BitOr {
  static auto value(const auto& a, const auto& b) { return a | b; }
};
struct BitXor {
  static auto value(const auto& a, const auto& b) { return a ^ b; }
};
struct BitNot {
  static auto value(const auto& x) { return ~x; }
};
struct ShiftLeft {
  static auto value(const auto& a, const auto& b) { return shift_left(a, b); }
};
struct ShiftRight {
  static auto value(const auto& a, const auto& b) { return shift_right(a, b); }
};
struct IsNan {
  static auto value(const auto& x) { return is_nan(x); }
};
struct IsInf {
  static auto value(const auto& x) { return is_inf(x); }
};
struct IsFinite {
  static auto value(const auto& x) { return no(either(is_nan(x), is_inf(x))); }
};

struct Where {
  static auto value(const auto& condition, const auto& a, const auto& b) {
    return select(is_true(condition), a, b);
  }
  static Values gradient(GradientCall& g) {
    const Value zero = zeros_like(g.dy());
    return {Value(), where(g.x(0), g.dy(), zero), where(g.x(0), zero, g.dy())};
  }
};
struct Clip {
  static auto value(const auto& x, const auto& low, const auto& high) {
    return minimum(maximum(x, low), high);
  }
  static Values gradient(GradientCall& g) {
    const Value inside =
        g.b.call("logical_and", {g.b.call("ge", {g.x(0), g.x(1)}), g.b.call("le", {g.x(0), g.x(2)})});
    return {where(inside, g.dy(), zeros_like(g.dy())), Value(), Value()};
  }
};
struct Same {
  static auto value(const auto& x) { return x; }
};
struct Cast : Same {
  static Values gradient(GradientCall& g) {
    return {ir::is_float(g.x().dtype()) && ir::is_float(g.y().dtype()) ? cast(g.dy(), g.x().dtype())
                                                                       : Value()};
  }
};
struct Identity : Same {
  static Values gradient(GradientCall& g) { return {g.dy()}; }
};

}  // namespace
}  // namespace tessera::op::formula

namespace {

using namespace tessera::op::formula;

template <class F>
constexpr Card comparison(Card card) {
  card.T = all_dtypes;
  card.no_gradient = "the result is boolean";
  return elementwise<F, 2, Domain::numbers>(card);
}
template <class F>
constexpr Card bits(Card card) {
  card.T = integer_dtypes | bool_dtypes;
  card.no_gradient = "defined on integers";
  return elementwise<F, 2, Domain::integers>(card);
}
template <class F>
constexpr Card test(Card card) {
  card.no_gradient = "the result is boolean";
  return float_unary<F>(card);
}

Result<ValueTypes> infer_cast(const CallInfo& call) {
  return ValueTypes{{call.dtype("dtype"), call.input(0).shape}};
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Input where_inputs[] = {{"condition", "bool"}, {"a"}, {"b"}};
constexpr Input clip_inputs[] = {
    {"x"}, {"low", "T", InputKind::scalar, -infinity}, {"high", "T", InputKind::scalar, infinity}};
constexpr AttributeSpec cast_attributes[] = {{"dtype", AttributeKind::dtype, true}};

std::optional<Layout> view_same(const CallInfo&, const Layout& layout) { return layout; }

constexpr Card logic_family[] = {
    bits<BitAnd>({.name = "bit_and",
                  .summary = "bitwise and",
                  .traits = {.commutative = true, .associative = true},
                  .spellings = "& BitwiseAnd and_ bitwise_and __rand__",
                  .oracle = "torch:bitwise_and"}),
    elementwise<BitNot, 1, Domain::integers>({.name = "bit_not",
                                              .summary = "all bits inverted",
                                              .T = integer_dtypes,
                                              .spellings = "BitwiseNot bitwise_not inv invert ~",
                                              .oracle = "torch:bitwise_not",
                                              .no_gradient = "defined on integers"}),
    bits<BitOr>({.name = "bit_or",
                 .summary = "bitwise or",
                 .traits = {.commutative = true, .associative = true},
                 .spellings = "BitwiseOr bitwise_or or_ |",
                 .oracle = "torch:bitwise_or"}),
    bits<BitXor>({.name = "bit_xor",
                  .summary = "bitwise exclusive or",
                  .traits = {.commutative = true, .associative = true},
                  .spellings = "BitwiseXor ^ bitwise_xor xor",
                  .oracle = "torch:bitwise_xor"}),
    elementwise<Cast, 1, Domain::numbers>(
        {.name = "cast",
         .summary = "converted to another dtype; floats to integers "
                    "truncate and saturate, NaN gives 0; integers wrap",
         .attributes = cast_attributes,
         .T = all_dtypes,
         .onnx = {"Cast"},
         .spellings = "Tensor.bfloat16 Tensor.bool Tensor.double Tensor.float Tensor.half Tensor.int "
                      "Tensor.long Tensor.short Tensor.to Tensor.type astype",
         .oracle = "numpy:astype",
         .infer = infer_cast}),
    elementwise<Clip, 3, Domain::numbers>({.name = "clip",
                                           .summary = "x limited to [low, high]; if low > high, high",
                                           .inputs = clip_inputs,
                                           .T = number_dtypes,
                                           .traits = {.activation = true},
                                           .spellings = "Clip clamp",
                                           .oracle = "torch:clamp"}),
    comparison<Eq>({.name = "eq",
                    .summary = "a == b",
                    .traits = {.commutative = true},
                    .onnx = {"Equal"},
                    .spellings = "==",
                    .oracle = "torch:eq"}),
    comparison<Ge>({.name = "ge",
                    .summary = "a >= b",
                    .onnx = {"GreaterOrEqual"},
                    .spellings = ">= greater_equal",
                    .oracle = "torch:ge"}),
    comparison<Gt>({.name = "gt",
                    .summary = "a > b",
                    .onnx = {"Greater"},
                    .spellings = "> greater",
                    .oracle = "torch:gt"}),
    elementwise<Identity, 1, Domain::numbers>({.name = "identity",
                                               .summary = "x",
                                               .T = all_dtypes,
                                               .traits = {.view = true},
                                               .onnx = {"Identity"},
                                               .spellings = "contiguous",
                                               .oracle = "numpy:copy",
                                               .view = view_same}),
    test<IsFinite>({.name = "isfinite", .summary = "neither NaN nor infinite", .oracle = "torch:isfinite"}),
    test<IsInf>({.name = "isinf",
                 .summary = "plus or minus infinity",
                 .spellings = "IsInf",
                 .oracle = "torch:isinf"}),
    test<IsNan>({.name = "isnan", .summary = "not a number", .onnx = {"IsNaN"}, .oracle = "torch:isnan"}),
    comparison<Le>({.name = "le",
                    .summary = "a <= b",
                    .onnx = {"LessOrEqual"},
                    .spellings = "<= less_equal",
                    .oracle = "torch:le"}),
    comparison<LogicalAnd>({.name = "logical_and",
                            .summary = "both are not 0",
                            .traits = {.commutative = true},
                            .onnx = {"And"},
                            .oracle = "torch:logical_and"}),
    elementwise<LogicalNot, 1, Domain::numbers>({.name = "logical_not",
                                                 .summary = "x is 0",
                                                 .T = all_dtypes,
                                                 .onnx = {"Not"},
                                                 .spellings = "not_",
                                                 .oracle = "torch:logical_not",
                                                 .no_gradient = "the result is boolean"}),
    comparison<LogicalOr>({.name = "logical_or",
                           .summary = "one is not 0",
                           .traits = {.commutative = true},
                           .onnx = {"Or"},
                           .oracle = "torch:logical_or"}),
    comparison<LogicalXor>({.name = "logical_xor",
                            .summary = "exactly one is not 0",
                            .traits = {.commutative = true},
                            .onnx = {"Xor"},
                            .oracle = "torch:logical_xor"}),
    comparison<Lt>(
        {.name = "lt", .summary = "a < b", .onnx = {"Less"}, .spellings = "< less", .oracle = "torch:lt"}),
    comparison<Ne>({.name = "ne",
                    .summary = "a != b",
                    .traits = {.commutative = true},
                    .spellings = "!= not_equal",
                    .oracle = "torch:ne"}),
    bits<ShiftLeft>(
        {.name = "shift_left",
         .summary = "a * 2^b, wrapping; everything is pushed out if b is negative or the width and more",
         .spellings = "<< bitwise_left_shift lshift",
         .oracle = "torch:bitwise_left_shift"}),
    bits<ShiftRight>(
        {.name = "shift_right",
         .summary = "a / 2^b rounded down; everything is pushed out if b is negative or the width and more",
         .spellings = ">> bitwise_right_shift rshift",
         .oracle = "torch:bitwise_right_shift"}),
    elementwise<Same, 1, Domain::numbers>({.name = "stop_gradient",
                                           .summary = "x, through which no gradient flows",
                                           .T = all_dtypes,
                                           .traits = {.view = true},
                                           .spellings = "detach",
                                           .oracle = "numpy:copy",
                                           .no_gradient = "that is its purpose",
                                           .view = view_same}),
    elementwise<Where, 3, Domain::numbers>({.name = "where",
                                            .summary = "a where the condition holds, else b",
                                            .inputs = where_inputs,
                                            .T = all_dtypes,
                                            .onnx = {"Where"},
                                            .oracle = "torch:where"}),
};

}  // namespace

std::span<const Card> tessera::op::logic_cards() { return logic_family; }

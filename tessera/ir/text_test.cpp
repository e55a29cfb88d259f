// The text form: what is printed reads back, and what is wrong is said with its place.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/ir/dim.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/to_json.h"
#include "tests/support/growth.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

void expect_round_trip(const Node& node) {
  const std::string text = print(node);
  const auto again = parse(text);
  ASSERT_TRUE(again) << again.error().to_text() << "\n" << text.substr(0, 2000);
  const auto mismatch = first_mismatch(node, **again, CompareMode::mapping);
  EXPECT_FALSE(mismatch) << mismatch->to_text() << "\n" << text.substr(0, 2000);
}

std::string printed(std::string_view text) { return print(*value_or_throw(parse(text))); }

std::string error_of(std::string_view text) {
  const auto result = parse(text, {.file = "f"});
  return result ? "no error" : result.error().to_text();
}

TEST(Print, WritesWhatAPersonWouldWrite) {
  const std::string text = R"(func main[N, M: i64 in 1..1024](x: f32[N, 784], w: f32[784, 10], n, s: f32) {
  a: f32[N, 10] = matmul(x, w)
  b: f32[N, 10] = mul(a, $0:f32) {axes = [0, 1], eps = 1e-05, mode = "reflect", `type` = bf16}
  c: f32[2 * N + 1, M] = pad(b) {empty = [:float], keep = true, to = shape[2 * N + 1, M]}
  return b, c
}
)";
  EXPECT_EQ(printed(text), text);
}

TEST(Print, WritesRegionsWithTheirBodies) {
  const std::string text = R"(func main[N](x: f32[N], p: bool[]) {
  a: f32[N] = if p with [N](x) [N](y: f32[N]) {
    t: f32[N] = relu(y)
    return t
  } else [N](y: f32[N]) {
    return y
  }
  b: f32[N] = switch 1 with [N](a) [[N](y: f32[N]) {
    return y
  }, [N](y: f32[N]) {
    return y
  }]
  c: f32[N], k: i64[] = while (b, dense i64[] [0]) with [N](x) limit 100 [N](y: f32[N], k: i64[], z: f32[N]) {
    more: bool[] = less(k, 10)
    return more
  } do [N](y: f32[N], k: i64[], z: f32[N]) {
    u: f32[N] = add(y, z)
    v: i64[] = add(k, 1)
    return u, v
  }
  d: f32[N] = for 3 (c) with [N]() [N](i: i64[], y: f32[N]) {
    return y
  }
  return d
}
)";
  EXPECT_EQ(printed(text), text);
  expect_round_trip(*value_or_throw(parse(text)));
}

TEST(Print, ModulesAndCalls) {
  const std::string text = R"(module
func twice(x: f32[2]) {
  y: f32[2] = add(x, x)
  return y
}
func main(x: f32[2]) {
  a: f32[2] = call @twice(x)
  b: (f32[2], i64) = tuple(a, 7)
  c: f32[2] = item(b, 0)
  return c
}
)";
  EXPECT_EQ(printed(text), text);
}

TEST(Print, SharedFunctionsAreWrittenOnce) {
  const auto p = variable("p", scalar_type(Dtype::boolean));
  const auto body = function({.params = {p}, .results = {p}});
  auto region = std::make_unique<IfRegion>();
  const auto q = variable("p", scalar_type(Dtype::boolean)), r = variable("r", scalar_type(Dtype::boolean));
  region->condition = q;
  region->captures = {q};
  region->then_body = region->else_body = body;
  const auto f =
      function({.name = "main", .params = {q}, .body = {assign(r, seal(std::move(region)))}, .results = {r}});
  EXPECT_EQ(print(*f), R"(local func body(p: bool) {
  return p
}
func main(p: bool) {
  r: bool = if p with (p) @body else @body
  return r
}
)");
  expect_round_trip(*f);
}

TEST(Print, PrecedenceNeedsNoMoreParenthesesThanItMust) {
  for (const char* text :
       {"free a\nfree b\nfree c\nexpr a + b * c - 1\n", "free a\nfree b\nfree c\nexpr (a + b) * c\n",
        "free a\nfree b\nfree c\nexpr a - (b - c)\n", "free a\nfree b\nfree c\nexpr a // b % c\n",
        "free a\nfree b\nexpr a < b & (b < a | a == b)\n",
        "free x: f32\nexpr f32.select(x < 0.0, f32.exp(x) - 1.0, x)\n",
        "free a\nexpr i32.cast(i64.min(a, -3)) + 2:i32\n"})
    EXPECT_EQ(printed(text), text);
}

TEST(Print, SharedSubexpressionsAreWrittenOnce) {
  const auto x = variable("x", scalar_type(Dtype::i64));
  ExprRef e = scalar_op(ScalarOpcode::add, {x, int_const(1)});
  for (int i = 0; i < 3; ++i) e = scalar_op(ScalarOpcode::mul, {e, e});
  EXPECT_EQ(print(*e), "free x\nexpr let !0 = x + 1; !1 = !0 * !0; !2 = !1 * !1 in !2 * !2\n");
  expect_round_trip(*e);
  for (int i = 0; i < 1000; ++i) e = scalar_op(ScalarOpcode::add, {e, e});
  EXPECT_LT(print(*e).size(), 50000u);
  expect_round_trip(*e);
}

TEST(Print, AMillionLevelsDeep) {
  const auto x = variable("x", scalar_type(Dtype::i64));
  ExprRef left = x, right = x;
  constexpr int levels = fixture::repeats(1'000'000);
  for (int i = 0; i < levels; ++i) left = scalar_op(ScalarOpcode::add, {left, int_const(1)});
  for (int i = 0; i < levels; ++i) right = scalar_op(ScalarOpcode::sub, {int_const(1), right});
  expect_round_trip(*left);
  expect_round_trip(*right);
}

TEST(Print, NamesAreMadeUniqueAndQuoted) {
  const auto type = tensor_type(Dtype::f32, {2});
  const auto a = variable("x", type), b = variable("x", type), c = variable("if", type),
             d = variable("a/b:0\n`\xff", type);
  const auto f = function({.name = "f 1", .params = {a, b, c, d}, .results = {d, c, b, a}});
  EXPECT_EQ(print(*f),
            "func `f 1`(x: f32[2], x_1: f32[2], `if`: f32[2], `a/b:0\\n\\`\\xff`: f32[2]) {\n"
            "  return `a/b:0\\n\\`\\xff`, `if`, x_1, x\n}\n");
  expect_round_trip(*f);
}

TEST(Print, ClashingSizesKeepTheirOrder) {
  const auto n2 = size_symbol("N"), n1 = size_symbol("N"), m = size_symbol("NA"), k = size_symbol("N_1");
  const auto x = variable("x", tensor_type(Dtype::f32, {Dim(n1) + Dim(n2) + Dim(m) + Dim(k)}));
  expect_round_trip(*function({.dims = {n1, m, k, n2}, .params = {x}, .results = {x}}));
}

TEST(Print, FreeVariablesNeverTakeTheNameOfADefinition) {
  const auto type = tensor_type(Dtype::f32, {2});
  const auto free = variable("x", type), bound = variable("x", type), y = variable("y", type);
  const auto f = function(
      {.name = "f", .params = {bound}, .body = {assign(y, call("add", {bound, free}))}, .results = {y}});
  expect_round_trip(*f);
  expect_round_trip(*module({function({.name = "g", .params = {y}, .results = {free, y}}), f}));
}

TEST(Print, EveryLiteralReadsBackToTheSameBits) {
  for (double v : {0.0, -0.0, 0.1, 1e30, 3.14159274, 16777215.0, 1e-45, 65504.0, 5.9604644775390625e-08})
    for (Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16})
      expect_round_trip(*float_const(v, dtype));
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (double v : {nan, -nan, inf, -inf, std::bit_cast<double>(0x7ff8000012345678ULL)})
    expect_round_trip(*float_const(v, Dtype::f64));
  for (std::int64_t v : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                         std::numeric_limits<std::int64_t>::max()}) {
    expect_round_trip(*int_const(v));
    expect_round_trip(*int_const(v, Dtype::u64));
  }
  expect_round_trip(*call("op", {},
                          {{"a", nan},
                           {"b", -inf},
                           {"c", std::string("\x00\x1b\"\\", 4)},
                           {"d", std::vector<std::string>{"", "x"}}}));
}

TEST(Print, DenseTensors) {
  std::vector<std::byte> data(8);
  data[3] = std::byte{0x80};
  expect_round_trip(*dense(tensor_type(Dtype::f32, {2}), Bytes::own(data)));
  data[2] = std::byte{0xc0};
  data[3] = std::byte{0x7f};
  expect_round_trip(*dense(tensor_type(Dtype::f32, {2}), Bytes::own(data)));
  expect_round_trip(
      *dense(tensor_type(Dtype::boolean, {8}), Bytes::own(std::vector<std::byte>(8, std::byte{1}))));
  expect_round_trip(*dense(tensor_type(Dtype::u8, {1000}), Bytes::own(std::vector<std::byte>(1000))));
  expect_round_trip(*dense(tensor_type(Dtype::f64, {0, 5}), Bytes()));
}

TEST(Parse, DimensionsAreSimplified) {
  const auto type = [](std::string_view text) { return value_or_throw(parse(text)); };
  FreeVariables free;
  const auto a = value_or_throw(parse("free N free M type f32[N + 1 + N, M * N]", {.free_variables = &free}));
  const auto b = value_or_throw(parse("free N free M type f32[1 + 2 * N, N * M]", {.free_variables = &free}));
  EXPECT_TRUE(structural_equal(*a, *b, CompareMode::strict));
  EXPECT_EQ(print(*type("type f32[2 + 3]")), "type f32[5]\n");
}

TEST(Parse, TheSameNameAndTypeInTwoTextsIsTheSameFreeVariable) {
  FreeVariables free;
  const auto a = value_or_throw(parse("free x: f32 expr x * 2.0", {.free_variables = &free}));
  const auto b = value_or_throw(parse("free x: f32 expr x * 2.0", {.free_variables = &free}));
  const auto c = value_or_throw(parse("free x: f64 expr x * 2.0:f64", {.free_variables = &free}));
  EXPECT_TRUE(structural_equal(*a, *b, CompareMode::strict));
  EXPECT_FALSE(structural_equal(*a, *c, CompareMode::strict));
}

TEST(Parse, ErrorsHaveLineColumnCaretAndWhatWasExpected) {
  EXPECT_EQ(error_of("func main(x: f32[2]) {\n  y: f32[2] = relu(z)\n  return y\n}"),
            "f:2:20: unknown variable 'z'\n    y: f32[2] = relu(z)\n                     ^");
  EXPECT_EQ(error_of("func main(x f32[2]) { return x }"),
            "f:1:13: expected ')', got 'f32'\n  func main(x f32[2]) { return x }\n              ^");
}

TEST(Parse, RefusesWhatIsWrong) {
  const auto message = [](std::string_view text) {
    const auto result = parse(text);
    return result ? "no error" : result.error().message();
  };
  EXPECT_EQ(message(""),
            "expected 'free', 'func', 'local', 'module', 'expr', 'stmt' or 'type', got the end of the text");
  EXPECT_EQ(message("hello"),
            "expected 'free', 'func', 'local', 'module', 'expr', 'stmt' or 'type', got 'hello'");
  EXPECT_EQ(message("expr 1 +"), "expected an expression, got the end of the text");
  EXPECT_EQ(message("expr (1"), "expected ')', got the end of the text");
  EXPECT_EQ(message("expr 1)"), "expected the end of the text, got ')'");
  EXPECT_EQ(message("expr 99999999999999999999"), "99999999999999999999 does not fit i64");
  EXPECT_EQ(message("expr 300:u8"), "300 does not fit u8");
  EXPECT_EQ(message("expr 1e999"), "1e999 is out of range for f32");
  EXPECT_EQ(message("expr $4294967295:f32"), "parameter 4294967295 is out of range");
  EXPECT_EQ(message("expr f32.foo(1.0)"), "unknown scalar function 'foo'");
  EXPECT_EQ(message("expr f32.exp(1.0, 2.0)"), "'exp' takes 1 operands, got 2");
  EXPECT_EQ(message("expr f32.exp(1.0:f64)"), "'exp' of these operands is f64, not f32");
  EXPECT_EQ(message("expr !0"), "shared expression !0 is not defined here");
  EXPECT_EQ(message("expr 7:f99"),
            "expected a dtype (f64 f32 f16 bf16 i64 i32 i16 i8 u8 u16 u32 u64 bool), got 'f99'");
  EXPECT_EQ(message("type f33[2]"),
            "expected a type (dtypes: f64 f32 f16 bf16 i64 i32 i16 i8 u8 u16 u32 u64 bool), got 'f33'");
  EXPECT_EQ(message("type f32[1.5]"), "expected a dimension: an i64 expression");
  EXPECT_EQ(message("func f(x, x) { return x }"), "'x' is defined twice");
  EXPECT_EQ(message("func f() { return } func f() { return }"), "function 'f' is defined twice");
  EXPECT_EQ(message("func f() { x: i64 = call @g() return x }"), "unknown function 'g'");
  EXPECT_EQ(message("func f() { x: i64 = g() {a = 1, a = 2} return x }"), "attribute 'a' is given twice");
  EXPECT_EQ(message("func f() { x: i64 = g() {a = [1, 2.0]} return x }"),
            "the elements of a list have one type");
  EXPECT_EQ(message("expr dense f32[2] [1.0]"), "dense [2] has 2 elements of 4 bytes, got 4 bytes");
  EXPECT_EQ(message("expr dense i8[1] [128]"), "expected an element of dtype i8");
  EXPECT_EQ(message("free x free x expr x"), "free variable 'x' is declared twice");
  EXPECT_EQ(message("func f() { x: i64 = 1"),
            "expected a statement or 'return', with which a function ends, got the end of the text");
  EXPECT_EQ(message("func `abc() { return }"), "missing closing `");
}

TEST(Parse, HostileTextsEndInAMessage) {
  const auto fails = [](const std::string& text) { return !parse(text).ok(); };
  EXPECT_TRUE(fails("expr " + std::string(1000000, '(')));
  EXPECT_TRUE(fails("type " + std::string(1000000, '(')));
  std::string regions = "func f(p: bool[]) { ";
  for (int i = 0; i < 100000; ++i) regions += "a: bool[] = if p with (p) (p: bool[]) { ";
  EXPECT_TRUE(fails(regions));
  std::string binary(100000, '\0');
  for (std::size_t i = 0; i < binary.size(); ++i) binary[i] = static_cast<char>(i * 7919);
  EXPECT_TRUE(fails(binary));
  EXPECT_TRUE(fails("expr f32." + std::string(100000, 'a')));
  std::string deep = "expr ";
  for (int i = 0; i < 1000000; ++i) deep += "i64.neg(";
  EXPECT_TRUE(fails(deep));
  EXPECT_FALSE(fails(deep + "1" + std::string(1000000, ')')));
  std::string dim = "type f32[";
  for (int i = 0; i < 100000; ++i) dim += "i64.min(1, ";
  EXPECT_FALSE(fails(dim + "2" + std::string(100000, ')') + "]"));
}

TEST(ToJson, SharesNodesByIndex) {
  const auto x = variable("x", scalar_type(Dtype::i64));
  const auto e = scalar_op(ScalarOpcode::add, {x, x});
  JsonWriter json;
  write_graph_json(json, *e);
  EXPECT_EQ(
      json.text(),
      R"({"root":2,"nodes":[{"kind":"scalar_type","dtype":"i64","range":{"lower":null,"upper":null}},)"
      R"({"kind":"var","name":"x","type":0},{"kind":"scalar_op","opcode":"add","dtype":"i64","operands":[1,1]}]})");
}

TEST(Literal, HalfPrecisionRoundsToNearestEven) {
  EXPECT_EQ(float_const(65519.0, Dtype::f16)->value, 65504.0);
  EXPECT_TRUE(std::isinf(float_const(65520.0, Dtype::f16)->value));
  EXPECT_EQ(float_const(1.0 + 1.0 / 2048, Dtype::f16)->value, 1.0);
  EXPECT_EQ(float_const(1.0 + 3.0 / 2048, Dtype::f16)->value, 1.0 + 4.0 / 2048);
  EXPECT_EQ(float_const(5.9604644775390625e-08 / 2, Dtype::f16)->value, 0.0);
  EXPECT_EQ(float_const(5.9604644775390625e-08 * 1.5, Dtype::f16)->value, 5.9604644775390625e-08 * 2);
  EXPECT_EQ(float_const(1.0 + 1.0 / 256, Dtype::bf16)->value, 1.0);
  EXPECT_EQ(float_const(1.0 + 3.0 / 256, Dtype::bf16)->value, 1.0 + 4.0 / 256);
}

TEST(Parse, BitsAreThoseOfTheDtype) {
  const auto value_of = [](std::string_view text) {
    const NodeRef node = value_or_throw(parse(text));
    EXPECT_TRUE(structural_equal(*node, *value_or_throw(parse(print(*node))), CompareMode::strict)) << text;
    return as<FloatConst>(node)->value;
  };
  EXPECT_EQ(value_of("expr f32.bits(0x3f800000)"), 1.0);
  EXPECT_EQ(value_of("expr f16.bits(0xbc00)"), -1.0);
  EXPECT_EQ(value_of("expr bf16.bits(0x4049)"), 3.140625);
  EXPECT_EQ(value_of("expr f64.bits(0x3ff0000000000000)"), 1.0);
  for (const char* nan : {"f32.bits(0x7fc00001)", "f32.bits(0xff800001)", "f16.bits(0x7c01)",
                          "f16.bits(0xfe00)", "bf16.bits(0x7f81)", "f64.bits(0x7ff0000000000001)"}) {
    EXPECT_TRUE(std::isnan(value_of(cat("expr ", nan))));
    EXPECT_EQ(print(*value_or_throw(parse(cat("expr ", nan)))), cat("expr ", nan, "\n"));
  }
  EXPECT_FALSE(static_cast<bool>(parse("expr f16.bits(0x10000)")));
  EXPECT_FALSE(static_cast<bool>(parse("expr f32.bits(0x100000000)")));
}

TEST(Parse, EveryErrorHasACaret) {
  for (const char* text :
       {"", "func f() { }", "free x free x expr x", "func f(x: i64, x: i64) { return x }",
        "func f() { return } func f() { return }", "func f() { y: i64 = call @g()\n return y }",
        "type f32[1.5]", "func f(x: f32[2]) { y: f32[2] = g(x) {a = 1, a = 2}\n return y }",
        "free N expr dense f32[N] [1.0]", "expr f32.bits(1)", "expr i32.inf", "type"}) {
    const auto result = parse(text);
    ASSERT_FALSE(static_cast<bool>(result)) << text;
    EXPECT_NE(result.error().to_text().find("^"), std::string::npos) << result.error().to_text();
    EXPECT_GT(result.error().span().line, 0u) << text;
  }
}

/// A function whose statements all define names of one base, which must be numbered.
std::string repeated_definitions(std::size_t statements, std::string_view (*name)(std::size_t)) {
  std::string out = "func main(x: f32) {\n";
  for (std::size_t i = 0; i < statements; ++i) out += cat("  ", name(i), ": f32 = neg(x)\n");
  return out + "  return x\n}\n";
}

TEST(Print, Trap_U18_NumbersNamesWithoutCountingFromTheStart) {
  const auto same = [](std::size_t) -> std::string_view { return "y"; };
  const auto alternating = [](std::size_t i) -> std::string_view { return i % 2 == 0 ? "y" : "y_40"; };
  for (const auto name : {+same, +alternating}) {
    const NodeRef small = value_or_throw(parse(repeated_definitions(2'000, name)));
    const NodeRef large = value_or_throw(parse(repeated_definitions(32'000, name)));
    EXPECT_LT(fixture::times_as_long([&] { (void)print(*small); }, [&] { (void)print(*large); }), 80)
        << "the square would be 256";
  }
  const std::string text = printed(repeated_definitions(90, alternating));
  EXPECT_NE(text.find("y_39: f32"), std::string::npos);
  EXPECT_EQ(printed(text), text) << "each name once";
}

TEST(Print, Trap_U18_NumbersNamesInRegionsAndOfFreeVariables) {
  const auto nested = [](std::size_t count) {
    std::string out = "func main(p: bool, x: f32) {\n";
    for (std::size_t i = 0; i < count; ++i)
      out += "  y: f32 = if p with (x) (y: f32) { y: f32 = neg(y) return y } else (y: f32) { return y }\n";
    return value_or_throw(parse(out + "  return x\n}\n"));
  };
  const NodeRef small = nested(500), large = nested(8'000);
  EXPECT_LT(fixture::times_as_long([&] { (void)print(*small); }, [&] { (void)print(*large); }), 80);
}

TEST(Parse, Trap_U19_ATextOfTooManyNodesIsRefusedBeforeItTakesMemory) {
  std::string text = "expr 1";
  for (int i = 0; i < 1'000; ++i) text += "+1";
  const auto refused = parse(text, {.file = "f", .max_nodes = 2'000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::limit);
  EXPECT_EQ(refused.error().message(), "the text has more than 2000 nodes");
  EXPECT_EQ(refused.error().span().line, 1U);
  EXPECT_TRUE(parse(text, {.max_nodes = 2'001}));
  EXPECT_FALSE(parse("func f(x: f32) { a: f32 = neg(x) b: f32 = neg(a) return b }", {.max_nodes = 4}));
}

TEST(Parse, Trap_U18_FreeVariablesAreFoundByName) {
  const auto declared = [](std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += cat("free v", i, ": f32\n");
    return out + "expr v0";
  };
  const std::string small = declared(1'000), large = declared(16'000);
  EXPECT_LT(
      fixture::times_as_long([&] { value_or_throw(parse(small)); }, [&] { value_or_throw(parse(large)); }),
      80)
      << "the square would be 256";
}

}  // namespace

#include "tessera/ir/verify.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/rewrite.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

std::vector<std::string> errors_of(std::string_view text) {
  std::vector<std::string> out;
  for (const Error& error : verify_all(*value_or_throw(parse(text)))) out.push_back(error.message());
  return out;
}
using Errors = std::vector<std::string>;

TEST(Verify, AcceptsCorrectCode) {
  EXPECT_EQ(errors_of(R"(func main[N](x: f32[N], p: bool[]) {
    a: f32[N] = if p with [N](x) [M](y: f32[M]) { return y } else [K](z: f32[K]) { t: f32[K] = relu(z) return t }
    k: i64[] = while (dense i64[] [0]) with () (k: i64[]) { c: bool[] = less(k, 3) return c } do (k: i64[]) { n: i64[] = add(k, 1) return n }
    r: f32[N] = for 3 (a) with [N]() [S](i: i64[], y: f32[S]) { return y }
    u: (f32[N], i64) = tuple(r, N + 1)
    v: f32[N] = item(u, 0)
    return v })"),
            Errors{});
}

TEST(Verify, FindsScopeErrors) {
  const auto x = variable("x", tensor_type(Dtype::f32, {2})), y = variable("y", tensor_type(Dtype::f32, {2}));
  const auto use_before =
      function({.name = "f", .params = {x}, .body = {assign(x, call("relu", {y}))}, .results = {x}});
  const auto errors = verify_all(*use_before);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].message(), "'y' is used but not defined before");
  EXPECT_EQ(errors[1].message(), "'x' is assigned twice");
  EXPECT_EQ(errors[0].notes()[0], "in function 'f'");
  // A body does not see the code around it.
  const auto inner = function({.results = {x}});
  auto region = std::make_unique<ForRegion>();
  region->count = int_const(1);
  region->body = inner;
  const auto outer = function({.params = {x}, .body = {assign(y, seal(std::move(region)))}, .results = {y}});
  EXPECT_EQ(verify_all(*outer)[0].message(), "'x' is used but not defined before");
}

TEST(Verify, FindsSizesThatHaveNoValue) {
  EXPECT_EQ(errors_of("type f32[(0 - 7) / 2]"), Errors{"dimension -3 is negative"});
  EXPECT_EQ(errors_of("type f32[8 / 2, 7 % 4, 1 << 3, i64.min(3, 4), i64.select(3 < 4, 5, 0 - 5)]"),
            Errors{});
  EXPECT_EQ(errors_of("type f32[i64.neg(7)]"), Errors{"dimension -7 is negative"});
  EXPECT_EQ(errors_of("type f32[8 / 0]"), Errors{"dimension 8 / 0 divides by zero"});
  EXPECT_EQ(errors_of("type f32[8 // 0, 4]"), Errors{"dimension 8 // 0 divides by zero"});
  EXPECT_EQ(errors_of("free N type f32[N % (2 - 2) + 1]"), Errors{"dimension N % 0 + 1 divides by zero"});
  EXPECT_EQ(errors_of("free N type f32[8 // (N - N)]"), Errors{"dimension 8 // 0 divides by zero"});
  EXPECT_EQ(errors_of("type f32[9223372036854775807 + 1]"),
            Errors{"dimension 1 + 9223372036854775807 does not fit 64 bits"});
  EXPECT_EQ(errors_of("type f32[i64.pow(2, 64)]"), Errors{"dimension i64.pow(2, 64) does not fit 64 bits"});
  EXPECT_EQ(errors_of("type f32[1 << 63]"), Errors{"dimension 1 << 63 does not fit 64 bits"});
  EXPECT_EQ(errors_of("free N: i64 in 1.. type f32[(0 - N) // 2]").size(), 1u);
  EXPECT_EQ(errors_of("free N type f32[4 + 1:i32]"),
            Errors{"operands of scalar 'add' have different dtypes: i64 and i32"});
}

TEST(Verify, SizesGivenToAFunctionAreInItsBounds) {
  const std::string_view callee = "local func f[N: i64 in 2..4](x: f32[N]) { return x }\n";
  const auto given = [&](std::string_view size) {
    return errors_of(
        cat(callee, "func g(x: f32[", size, "]) { y: f32[", size, "] = call @f[", size, "](x) return y }"));
  };
  EXPECT_EQ(given("6 / 2"), Errors{});
  EXPECT_EQ(given("1"), Errors{"size 'N' of the callee is at least 2, but 1 is given"});
  EXPECT_EQ(given("5"), Errors{"size 'N' of the callee is at most 4, but 5 is given"});
}

TEST(Verify, AnExpressionSaysWhereItIsWrong) {
  const auto errors = verify_all(*value_or_throw(parse("free a: f32\nexpr 1.0 + f32.select(a, a, 1.0)")));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].span().line, 2u);
  EXPECT_EQ(errors[0].span().column, 12u);
}

TEST(Verify, FindsSizesThatCannotBe) {
  EXPECT_EQ(errors_of("free N type f32[N, -3]"), Errors{"dimension -3 is negative"});
  EXPECT_EQ(errors_of("free N: i64 in 5..2 type (f32[N], f32[N])"), Errors{"no number is in the range 5..2"});
  EXPECT_EQ(errors_of("func f[N: i64 in 1..0](x: f32[N]) { return x }"),
            Errors{"no number is in the range 1..0"});
  EXPECT_EQ(errors_of("func f[N: i64 in 0..3](x: f32[N - 5]) { return x }"),
            Errors{"dimension N - 5 is at most -2, which is negative"});
  EXPECT_EQ(errors_of("func f[N](x: f32[N - 5], y: f32[0]) { return x }"), Errors{});
}

TEST(Verify, FindsTypeErrors) {
  EXPECT_EQ(errors_of("func f(x: f32[2], p: f32[]) { a: f32[2] = if p with (x) (y: f32[2]) { return y } else "
                      "(y: f32[2]) { return y } return a }"),
            Errors{"the condition of 'if' must be one boolean, not f32[]"});
  EXPECT_EQ(errors_of("func f(x: f32[2], p: bool[]) { a: f32[2] = if p with (x) (y: f32[3]) { return y } "
                      "else (y: f32[2]) { return y } return a }"),
            (Errors{"parameter 'y' of the 'then' body has type f32[3], but the value has type f32[2]",
                    "the two bodies of 'if' disagree in result 0: f32[3] and f32[2]",
                    "target 'a' has type f32[2], but its value has type f32[3]"}));
  EXPECT_EQ(errors_of("func f(x: f32[2]) { a: f32[2], b: f32[2] = for 3 (x) with () (i: i64[], y: f32[2]) { "
                      "return y } return a }"),
            Errors{"expected 1 target, got 2"});
  EXPECT_EQ(
      errors_of("func f(x: f32[2]) { a: f32[2] = for 3 (x) with () (y: f32[2]) { return y } return a }"),
      Errors{"the body of 'for' takes 1 values, got 2"});
  EXPECT_EQ(errors_of("free a: f32 expr f32.select(a, a, 1.0:f64)"),
            (Errors{"the condition of 'select' is f32, not bool",
                    "operands of scalar 'select' have different dtypes: f32 and f64"}));
  EXPECT_EQ(errors_of("func f(x: f32[2]) { a: f32[2] = item(x, 0) return a }"),
            Errors{"'item' needs a tuple, not f32[2]"});
  EXPECT_EQ(errors_of("func f(x: f32[2]) { a: (f32[2]) = tuple(x) b: f32[2] = item(a, 1) return b }"),
            Errors{"index 1 is outside a tuple of 1"});
  EXPECT_EQ(errors_of("func f(x: f32[-1]) { return x }"), Errors{"dimension -1 is negative"});
}

TEST(Verify, TensorCodeIsFlat) {
  const auto x = variable("x", tensor_type(Dtype::f32, {2})), y = variable("y", tensor_type(Dtype::f32, {2}));
  const auto nested =
      function({.params = {x}, .body = {assign(y, call("relu", {call("tanh", {x})}))}, .results = {y}});
  EXPECT_EQ(
      verify_all(*nested)[0].message(),
      "an argument must be a variable, a constant or a scalar expression, not 'tanh': tensor code is flat");
}

TEST(Verify, ASlotHasOneDtypeInAFunctionAndThoseBelow) {
  EXPECT_EQ(errors_of("func f(x: f32[4], i: i64[4]) {"
                      " a: f32[4] = mul(x, $0:f32) b: i64[4] = mul(i, $0:i64) return a, b }"),
            Errors{"parameter $0 is i64 here and f32 elsewhere: a slot has one dtype"});
  EXPECT_EQ(errors_of("func f(x: f32[4]) { n: i64 = $1:i64 + 1"
                      " a: f32[4] = add(x, f32.exp($1:f32)) return a, n }"),
            Errors{"parameter $1 is f32 here and i64 elsewhere: a slot has one dtype"});
  EXPECT_EQ(errors_of("func f(x: f32[4], p: bool[]) { a: f32[4] = mul(x, $0:f32)"
                      " b: f32[4] = if p with (x) (y: f32[4]) { c: f32[4] = mul(y, $0:f64) return c }"
                      " else (y: f32[4]) { return y } return b }"),
            Errors{"parameter $0 is f32 here and f64 elsewhere: a slot has one dtype"});
  EXPECT_EQ(errors_of("func f(x: f32[4]) { a: f32[4] = mul(x, $0:f32) b: f32[4] = add(a, $0:f32) return b }"),
            Errors{});
  EXPECT_EQ(errors_of("func f(x: f32[2]) { y: f32[2] = mul(x, $0:f32) return y }"
                      " func g(x: i64[2]) { y: i64[2] = mul(x, $0:i64) return y }"),
            Errors{});
}

TEST(Verify, SaysWhere) {
  const auto node =
      value_or_throw(parse("func f(x: f32[2]) {\n  a: f32[3] = tuple(x)\n  return a\n}", {.file = "f.tsr"}));
  EXPECT_EQ(verify(*node).error().to_text(),
            "f.tsr:2:3: target 'a' has type f32[3], but its value has type (f32[2])\n  in function 'f'");
}

TEST(Rewrite, UnchangedComesBackAsTheSameObject) {
  const NodeRef f = value_or_throw(parse("func f(x: f32[2]) { a: f32[2] = relu(x) return a }"));
  EXPECT_EQ(rewrite(f, [](const NodeRef& node) { return node; }), f);
}

TEST(Rewrite, ReplacesBottomUpAndKeepsTheRest) {
  const NodeRef f =
      value_or_throw(parse("func f(x: f32[2]) { a: f32[2] = relu(x) b: f32[2] = tanh(a) return b }"));
  const NodeRef g = rewrite(f, [](const NodeRef& node) -> NodeRef {
    const auto* c = as<Call>(node);
    return c != nullptr && c->op == "relu" ? NodeRef(call("gelu", c->args)) : node;
  });
  const NodeRef wanted =
      value_or_throw(parse("func f(x: f32[2]) { a: f32[2] = gelu(x) b: f32[2] = tanh(a) return b }"));
  EXPECT_TRUE(structural_equal(*g, *wanted, CompareMode::strict));
  EXPECT_EQ(static_cast<const Function&>(*g).body[1], static_cast<const Function&>(*f).body[1]);
}

TEST(Rewrite, ReplacesUsesOfVariablesNotDefinitions) {
  const NodeRef e = value_or_throw(parse("free x expr x * x + 1"));
  const NodeRef out = replace_variables(e, [](const Var&) { return ExprRef(int_const(3)); });
  EXPECT_EQ(print(*out), "expr 3 * 3 + 1\n");
}

TEST(Walk, VisitsEveryNodeOnceChildrenFirst) {
  const auto x = variable("x", scalar_type(Dtype::i64));
  ExprRef e = x;
  for (int i = 0; i < 100; ++i) e = scalar_op(ScalarOpcode::add, {e, e});
  const auto order = post_order(*e);
  EXPECT_EQ(order.size(), 102u);
  EXPECT_EQ(order.back(), e.get());
}

}  // namespace

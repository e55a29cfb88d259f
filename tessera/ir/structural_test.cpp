// Structural equality and hash: the traps E1 to E14 and every example of the seed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <unordered_set>

#include "tessera/ir/cse.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"
#include "tessera/ir/structural_set.h"
#include "tests/support/growth.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr auto strict = CompareMode::strict;
constexpr auto mapping = CompareMode::mapping;

Ref<Var> scalar(std::string name, Dtype dtype = Dtype::i64) {
  return variable(std::move(name), scalar_type(dtype));
}
ExprRef add(const ExprRef& a, const ExprRef& b) { return scalar_op(ScalarOpcode::add, {a, b}); }
ExprRef one() { return int_const(1); }

/// Equal, and equal hashes: the law that holds in both modes, always.
void expect_equal(const Node& a, const Node& b, CompareMode mode) {
  EXPECT_TRUE(structural_equal(a, b, mode)) << first_mismatch(a, b, mode)->to_text();
  EXPECT_TRUE(structural_equal(b, a, mode));
  EXPECT_EQ(structural_hash(a, mode), structural_hash(b, mode));
  EXPECT_FALSE(first_mismatch(a, b, mode));
}

/// Different both ways; also that the hash, which need not differ, does.
void expect_different(const Node& a, const Node& b, CompareMode mode) {
  EXPECT_FALSE(structural_equal(a, b, mode));
  EXPECT_FALSE(structural_equal(b, a, mode));
  EXPECT_NE(structural_hash(a, mode), structural_hash(b, mode));
  EXPECT_TRUE(first_mismatch(a, b, mode));
}

FunctionRef parsed(std::string_view text) { return value_or_throw(parse_function(text)); }

TEST(StructuralEqual, Trap_E1_FreeVariablesAreTheSameOnlyUnderMapping) {
  const auto x = scalar("x"), y = scalar("y");
  expect_different(*add(x, one()), *add(y, one()), strict);
  expect_equal(*add(x, one()), *add(y, one()), mapping);
}

TEST(StructuralEqual, Trap_E2_TheMappingIsOneToOne) {
  const auto x = scalar("x"), y = scalar("y"), z = scalar("z"), a = scalar("a");
  expect_equal(*add(x, x), *add(y, y), mapping);
  expect_different(*add(x, x), *add(y, z), mapping);
  expect_different(*add(x, y), *add(a, a), mapping);
}

TEST(StructuralEqual, Trap_E3_ThePointerShortcutKeepsTheBijection) {
  const auto x = scalar("x"), y = scalar("y");
  expect_different(*add(x, y), *add(y, y), mapping);
  expect_different(*add(y, x), *add(y, y), mapping);
  // The same object on both sides under a mapping that is not the identity.
  const auto shared = add(x, y);
  expect_different(*add(x, shared), *add(y, shared), mapping);
  expect_equal(*add(add(x, y), add(y, x)), *add(add(y, x), add(x, y)), mapping);
}

TEST(StructuralEqual, Trap_E4_AUseOfAMappedDefinitionIsMapped) {
  const auto a = scalar("a"), b = scalar("b");
  const auto f = function({.body = {assign(a, one())}, .results = {a}});
  const auto g = function({.body = {assign(b, one())}, .results = {b}});
  expect_equal(*f, *g, strict);
  expect_equal(*f, *g, mapping);
}

TEST(StructuralEqual, Trap_E5_TheValueIsComparedBeforeTheTargetIsBound) {
  const auto x = scalar("x"), y = scalar("y");
  expect_different(*assign(x, add(x, one())), *assign(y, add(y, one())), strict);
  expect_equal(*assign(x, add(x, one())), *assign(y, add(y, one())), mapping);
  // After the assignment the name means the new value.
  const auto f = function({.body = {assign(x, add(x, one()))}, .results = {x}});
  const auto g = function({.body = {assign(y, add(x, one()))}, .results = {y}});
  const auto h = function({.body = {assign(y, add(x, one()))}, .results = {x}});
  expect_equal(*f, *g, strict);
  expect_different(*f, *h, strict);
  expect_different(*f, *h, mapping);
}

TEST(StructuralEqual, Trap_E6_InitialValuesOfLoopsCount) {
  const auto loop = [](std::string_view init) {
    return parsed(cat(R"(
      func main(x: f32[4]) {
        r: f32[] = for 10 ()",
                      init, R"() with () (i: i64[], acc: f32[]) {
          next: f32[] = relu(acc)
          return next
        }
        return r
      })"));
  };
  expect_different(*loop("dense f32[] [0.0]"), *loop("dense f32[] [1.0]"), strict);
  expect_different(*loop("dense f32[] [0.0]"), *loop("dense f32[] [1.0]"), mapping);
  expect_equal(*loop("dense f32[] [0.0]"), *loop("dense f32[] [0.0]"), strict);
}

ExprRef doubled(int depth) {
  ExprRef e = add(scalar("x"), one());
  for (int i = 0; i < depth; ++i) e = add(e, e);
  return e;
}

TEST(StructuralEqual, Trap_E7_SharedGraphsAreLinear) {
  expect_equal(*doubled(64), *doubled(64), mapping);
  expect_equal(*doubled(20000), *doubled(20000), mapping);
  expect_different(*doubled(64), *doubled(65), mapping);
}

TEST(StructuralEqual, Trap_E7_NestingOfAMillionDoesNotOverflow) {
  const auto nested = [](const ExprRef& leaf) {
    ExprRef e = leaf;
    for (int i = 0; i < fixture::repeats(1'000'000); ++i) e = add(e, one());
    return e;
  };
  const auto x = scalar("x");
  expect_equal(*nested(x), *nested(x), strict);
  expect_different(*nested(x), *nested(scalar("y")), strict);
  expect_equal(*nested(x), *nested(scalar("y")), mapping);
}

TEST(StructuralEqual, Trap_E7_SharedRegionsAreLinear) {
  // Both bodies of each `if` are one function object; written out, there would be 2^60 of them.
  const auto build = [] {
    const auto leaf = scalar("p", Dtype::boolean);
    FunctionRef f = function({.params = {leaf}, .results = {leaf}});
    for (int i = 0; i < 60; ++i) {
      const auto p = scalar("p", Dtype::boolean), r = scalar("r", Dtype::boolean);
      auto region = std::make_unique<IfRegion>();
      region->condition = p;
      region->captures = {p};
      region->then_body = region->else_body = f;
      f = function({.params = {p}, .body = {assign(r, seal(std::move(region)))}, .results = {r}});
    }
    return f;
  };
  expect_equal(*build(), *build(), strict);
  expect_equal(*build(), *build(), mapping);
}

TEST(StructuralEqual, DifferentSharingOfEqualPartsIsNotQuadratic) {
  // Each level has `width` equal nodes; the two graphs connect them in different ways.
  const auto build = [](int width, int stride) {
    const auto x = scalar("x");
    std::vector<ExprRef> level(static_cast<std::size_t>(width), nullptr);
    for (auto& e : level) e = add(x, one());
    for (int depth = 0; depth < 40; ++depth) {
      std::vector<ExprRef> next(static_cast<std::size_t>(width), nullptr);
      for (int i = 0; i < width; ++i)
        next[static_cast<std::size_t>(i)] =
            add(level[static_cast<std::size_t>(i)], level[static_cast<std::size_t>((i + stride) % width)]);
      level = std::move(next);
    }
    ExprRef sum = level[0];
    for (const auto& e : level) sum = add(sum, e);
    return sum;
  };
  const auto compare = [&](int width) { expect_equal(*build(width, 1), *build(width, 7), mapping); };
  EXPECT_LT(fixture::growth(100, 800, compare), 24) << "quadratic would be 64";
}

TEST(StructuralEqual, Trap_E8_FloatsCompareByBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_different(*float_const(0.0), *float_const(-0.0), strict);
  expect_equal(*float_const(nan), *float_const(nan), strict);
  expect_different(*float_const(nan), *float_const(-nan), strict);
  expect_different(*float_const(1.0, Dtype::f32), *float_const(1.0, Dtype::f64), strict);
  const auto with = [](double v) { return call("op", {}, {{"eps", v}}); };
  expect_different(*with(0.0), *with(-0.0), strict);
  expect_equal(*with(nan), *with(nan), strict);
}

TEST(StructuralEqual, Trap_E9_AbsentIsNotEmptyAndNotZero) {
  using Ints = std::vector<std::int64_t>;
  expect_different(*call("op", {}, {{"axes", Ints{}}}), *call("op", {}), strict);
  expect_different(*call("op", {}, {{"axes", Ints{}}}), *call("op", {}, {{"axes", std::vector<double>{}}}),
                   strict);
  expect_different(*scalar_type(Dtype::i64, {0, {}}), *scalar_type(Dtype::i64), strict);
  expect_different(*scalar_type(Dtype::i64, {0, {}}), *scalar_type(Dtype::i64, {{}, 0}), strict);
  const auto loop = [](std::optional<std::int64_t> limit) {
    auto region = std::make_unique<WhileRegion>();
    region->limit = limit;
    region->condition = region->body = function({});
    return seal(std::move(region));
  };
  expect_different(*loop(0), *loop({}), strict);
  // An attribute that is absent is not one with an absent-looking value.
  expect_different(*call("op", {}, {{"a", false}}), *call("op", {}), strict);
  expect_different(*call("op", {}, {{"a", std::int64_t{0}}}), *call("op", {}, {{"a", false}}), strict);
}

TEST(StructuralEqual, Trap_E10_TheOrderOfAttributesDoesNotCount) {
  const std::int64_t axis = 1;
  expect_equal(*call("sum", {}, {{"axis", axis}, {"keep", true}}),
               *call("sum", {}, {{"keep", true}, {"axis", axis}}), strict);
}

TEST(StructuralEqual, Trap_E11_SpansAndNamesDoNotCount) {
  const auto build = [](std::string name, std::string var, std::uint32_t line) {
    const Span span{SourceFile::create(name + ".cpp"), line, 1};
    const auto x = variable(var, tensor_type(Dtype::f32, {2}), span);
    const auto y = variable(var + "y", tensor_type(Dtype::f32, {2}), span);
    return function(
        {.name = name, .params = {x}, .body = {assign(y, call("relu", {x}, {}, span), span)}, .results = {y}},
        span);
  };
  expect_equal(*build("f", "x", 1), *build("g", "input", 99), strict);
  expect_equal(*build("f", "x", 1), *build("g", "input", 99), mapping);
}

TEST(StructuralEqual, Trap_E12_AMismatchIsReportedAsAPath) {
  const auto f = parsed("func main(x: f32[2]) { a: f32[2] = relu(x)\n b: f32[2] = add(a, x)\n return b }");
  const auto g = parsed("func main(x: f32[2]) { a: f32[2] = relu(x)\n b: f32[2] = sub(a, x)\n return b }");
  const auto mismatch = first_mismatch(*f, *g, strict);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->to_text(), "main.body[1].value: add ≠ sub");
  EXPECT_EQ(mismatch->reason, "different op");
  EXPECT_THROW(assert_structural_equal(*f, *g, strict), Exception);
  EXPECT_NO_THROW(assert_structural_equal(*f, *f, strict));
}

std::string difference(std::string_view a, std::string_view b, CompareMode mode = strict) {
  FreeVariables free;
  const auto x = value_or_throw(parse(a, {.free_variables = &free}));
  const auto y = value_or_throw(parse(b, {.free_variables = &free}));
  const auto mismatch = first_mismatch(*x, *y, mode);
  return mismatch ? mismatch->to_text() + " (" + mismatch->reason + ")" : "equal";
}

TEST(StructuralEqual, MismatchesSayWhatDiffers) {
  EXPECT_EQ(difference("func f(x: f32[2]) { return x }", "func f(x: f32[3]) { return x }"),
            "f.params[0].shape[0]: 2 ≠ 3 (different value)");
  EXPECT_EQ(difference("func f(x: f32[2]) { return x }", "func f(x: f64[2]) { return x }"),
            "f.params[0].dtype: f32 ≠ f64 (different value)");
  EXPECT_EQ(difference("func f(x: f32[2]) { y: f32[1] = sum(x) {axis = 0}\n return y }",
                       "func f(x: f32[2]) { y: f32[1] = sum(x) {axis = 1}\n return y }"),
            "f.body[0].value.attrs.axis: 0 ≠ 1 (different attribute)");
  EXPECT_EQ(difference("func f(x: f32[2]) { y: f32[1] = sum(x) {axis = 0}\n return y }",
                       "func f(x: f32[2]) { y: f32[1] = sum(x) {axis = 0, keep = true}\n return y }"),
            "f.body[0].value.attrs.keep: absent ≠ true (attribute on one side only)");
  EXPECT_EQ(
      difference("func f(x: f32[2], y: f32[2]) { return x }", "func f(x: f32[2], y: f32[2]) { return y }"),
      "f.results[0]: x ≠ y (uses of different definitions)");
  EXPECT_EQ(
      difference("func f(x: f32[2]) { return x }", "func f(x: f32[2]) { a: f32[2] = relu(x)\n return a }"),
      "f.body[0]: absent ≠ a: f32[2] = relu(x) (different number of elements)");
  EXPECT_EQ(difference("expr 1", "expr true"), "int_const: 1 ≠ true (different kind of node)");
  EXPECT_EQ(difference("free x: f32[2] expr x", "free x: f32[3] expr x"),
            "var: x: f32[2] ≠ x: f32[3] (different free variables)");
  EXPECT_EQ(difference("expr f32.nan", "expr f32.bits(0x7fc00001)"),
            "float_const: f32.bits(0x7fc00000) ≠ f32.bits(0x7fc00001) (different value)");
  EXPECT_EQ(difference("func f(x: f32[2]) { a: f32[2] = pad(x) {mode = \"absent\"} return x }",
                       "func f(x: f32[2]) { a: f32[2] = pad(x) return x }"),
            "f.body[0].value.attrs.mode: \"absent\" ≠ absent (attribute on one side only)");
  EXPECT_EQ(difference("free x free y expr x + 1", "free x free y expr y + 1"),
            "scalar_op.operands[0]: x ≠ y (different free variables)");
}

TEST(StructuralEqual, TheFirstDifferenceInTheOrderOfTheTextIsReported) {
  EXPECT_EQ(difference("func f(x: f32[2]) { a: f32[2] = relu(x)\n return a }",
                       "func f(x: f32[2]) { a: f32[2] = tanh(x)\n b: f32[2] = relu(a)\n return b }"),
            "f.body[0].value: relu ≠ tanh (different op)");
}

TEST(StructuralEqual, Trap_E13_SharingIsNotStructure) {
  const auto x = scalar("x");
  const auto t = add(x, one());
  expect_equal(*add(t, t), *add(add(x, one()), add(x, one())), strict);
  expect_equal(*add(t, t), *add(add(x, one()), add(x, one())), mapping);
  // Also where the first occurrence of a free variable is inside the shared part, and for functions.
  const auto id = [] {
    const auto p = scalar("p");
    return function({.params = {p}, .results = {add(p, one())}});
  };
  const auto shared = id();
  expect_equal(*module({shared, shared}), *module({id(), id()}), strict);
  expect_equal(*module({shared, shared}), *module({id(), id()}), mapping);
}

TEST(StructuralEqual, Trap_E14_TheStrictHashKnowsTheVariable) {
  StructuralSet set(strict);
  std::unordered_set<Hash128> hashes;
  for (int i = 0; i < 100000; ++i) {
    const auto e = add(scalar("x"), one());
    hashes.insert(structural_hash(*e, strict));
    EXPECT_EQ(set.insert(e), e);
  }
  EXPECT_EQ(set.size(), 100000u);
  EXPECT_EQ(hashes.size(), 100000u);
}

TEST(StructuralEqual, AForcedCollisionCostsTimeNotAnAnswer) {
  StructuralSet set(strict, [](const Node&, CompareMode) { return Hash128{}; });
  const auto x = scalar("x");
  const NodeRef a = set.insert(add(x, one())), b = set.insert(add(x, int_const(2))),
                c = set.insert(add(x, one()));
  EXPECT_FALSE(a == b);
  EXPECT_EQ(a, c);
}

// The examples of the seed.

TEST(SeedExamples, ConstantsAndKindsOfNodes) {
  expect_equal(*int_const(42), *int_const(42), strict);
  expect_different(*scalar("x"), *one(), strict);
}

TEST(SeedExamples, VariablesOfOneNameAreTwoVariables) {
  expect_different(*scalar("x"), *scalar("x"), strict);
  expect_equal(*scalar("x"), *scalar("x"), mapping);
}

TEST(SeedExamples, AssignmentsMapTheirTargets) {
  const auto x = scalar("x"), y = scalar("y"), a = scalar("a"), b = scalar("b");
  expect_equal(*assign(x, y), *assign(a, b), mapping);
  expect_different(*assign(x, y), *assign(a, b), strict);
  expect_equal(*assign(x, y), *assign(a, y), strict);
}

TEST(SeedExamples, TypesAreComparedBeforeVariablesAreMapped) {
  expect_different(*scalar("x", Dtype::i64), *scalar("x", Dtype::f32), mapping);
  expect_different(*function({.params = {scalar("x", Dtype::f32)}}),
                   *function({.params = {scalar("x", Dtype::i32)}}), strict);
  expect_different(*add(scalar("x", Dtype::i32), int_const(1, Dtype::i32)), *add(scalar("y"), one()),
                   mapping);
}

TEST(SeedExamples, DeduplicationReusesEqualExpressions) {
  StructuralSet cache(strict);
  const auto x = scalar("x");
  const NodeRef first = cache.insert(add(x, int_const(5)));
  EXPECT_EQ(cache.insert(add(x, int_const(5))), first);
  EXPECT_FALSE(cache.insert(add(x, int_const(6))) == first);
}

TEST(StructuralEqual, ShadowingFollowsTheLatestDefinition) {
  const auto x = scalar("x"), a = scalar("a"), b = scalar("b");
  const auto f = function({.body = {assign(x, one()), assign(x, int_const(2))}, .results = {x}});
  const auto g = function({.body = {assign(a, one()), assign(b, int_const(2))}, .results = {b}});
  const auto h = function({.body = {assign(a, one()), assign(b, int_const(2))}, .results = {a}});
  expect_equal(*f, *g, strict);
  expect_different(*f, *h, strict);
  // A shared value whose variable changes its meaning in between is not remembered wrongly.
  const auto v = add(x, one()), va = add(a, one()), vb = add(b, one());
  const auto u = scalar("u"), w = scalar("w");
  const auto p = function(
      {.body = {assign(x, one()), assign(u, v), assign(x, int_const(2)), assign(w, v)}, .results = {u, w}});
  const auto q = function(
      {.body = {assign(a, one()), assign(u, va), assign(b, int_const(2)), assign(w, vb)}, .results = {u, w}});
  const auto r = function(
      {.body = {assign(a, one()), assign(u, va), assign(b, int_const(2)), assign(w, va)}, .results = {u, w}});
  expect_equal(*p, *q, strict);
  expect_different(*p, *r, strict);
}

TEST(StructuralEqual, AFunctionDoesNotSeeTheVariablesAroundIt) {
  // One variable object defined in two functions: each has its own.
  const auto x = scalar("x"), y = scalar("y");
  const auto f = function({.params = {x}, .results = {add(x, one())}});
  const auto g = function({.params = {y}, .results = {add(y, one())}});
  expect_equal(*module({f, f}), *module({f, g}), strict);
  expect_equal(*module({g, f}), *module({f, f}), mapping);
}

TEST(StructuralEqual, SymbolicShapesAreComparedByPosition) {
  const auto build = [](std::string name) {
    const auto n = size_symbol(std::move(name));
    const auto x = variable("x", tensor_type(Dtype::f32, {Dim(n), Dim(n) * Dim(2) + Dim(1)}));
    return function({.dims = {n}, .params = {x}, .results = {x}});
  };
  expect_equal(*build("N"), *build("batch"), strict);
  EXPECT_NE(structural_hash(*tensor_type(Dtype::f32, {Dim(size_symbol("N")), 5}), mapping),
            structural_hash(*tensor_type(Dtype::f32, {5, Dim(size_symbol("N"))}), mapping));
}

TEST(StructuralHash, IsTheSameInEveryProcess) {
  const auto f =
      parsed("func main[N](x: f32[N, 2 * N + 1]) { a: f32[N, 3] = matmul(x, x) {axis = 1}\n return a }");
  EXPECT_EQ(structural_hash(*f, strict).to_hex(), "870d6166ca84d2b7d9739e6b3c7316bd");
  EXPECT_EQ(structural_hash(*add(scalar("x"), one()), mapping).to_hex(), "31bc89d1a29b8c2210bb408c96af6ed5");
  const auto free = value_or_throw(parse("free x: f32 expr x * 2.0"));
  EXPECT_EQ(structural_hash(*free, strict).to_hex(), "e1b6be2add2e7e0d65820ddb5938b328");
}

/// A graph whose nodes lie far from those they use, with a tuple of very many that many others use.
ExprRef scattered(const ExprRef& x, std::size_t gap) {
  std::vector<ExprRef> nodes{x, one()};
  std::vector<ExprRef> between;
  for (std::size_t i = 2; i < 20000; ++i) {
    nodes.push_back(add(nodes[i * i / 3 % i], nodes[i / 2]));
    for (std::size_t k = 0; k < gap; ++k) between.push_back(one());
  }
  auto wide = std::make_unique<Tuple>();
  wide->elements.assign(nodes.begin(), nodes.end());
  const ExprRef elements = seal(std::move(wide));
  std::vector<ExprRef> users;
  for (std::int64_t i = 0; i < 2000; ++i) {
    auto user = std::make_unique<Tuple>();
    user->elements.push_back(int_const(i));
    user->elements.push_back(elements);
    users.push_back(seal(std::move(user)));
  }
  auto root = std::make_unique<Tuple>();
  root->elements.assign(users.begin(), users.end());
  return seal(std::move(root));
}

TEST(StructuralHash, DoesNotDependOnWhereNodesLie) {
  const ExprRef x = scalar("x");
  const ExprRef dense = scattered(x, 0), sparse = scattered(x, 5);
  for (const CompareMode mode : {strict, mapping}) {
    const auto compare_with = [&](const ExprRef& other) { expect_equal(*dense, *other, mode); };
    EXPECT_LT(fixture::growth(scattered(x, 0), sparse, compare_with), 10);
  }
}

TEST(Nodes, MayBeBuiltSharedAndReleasedByManyThreads) {
  const auto shared = doubled(200);
  std::vector<std::thread> threads;
  std::vector<ExprRef> made(4);
  for (std::size_t t = 0; t < made.size(); ++t)
    threads.emplace_back([&, t] {
      ExprRef e = shared;
      for (int i = 0; i < 2000; ++i) e = add(e, i % 3 == 0 ? shared : e);
      EXPECT_TRUE(structural_equal(*shared, *doubled(200), mapping));
      made[t] = e;
    });
  for (auto& thread : threads) thread.join();
  expect_equal(*made[0], *made[3], strict);
}

TEST(Cse, DropsWhatIsComputedTwice) {
  const auto f = parsed(R"(func main(x: f32[2]) {
      a: f32[2] = relu(x)
      b: f32[2] = relu(x)
      c: f32[2] = add(a, b)
      d: f32[2] = add(b, a)
      r: f32[2] = rand()
      s: f32[2] = rand()
      return c, d, r, s
    })");
  const auto wanted = parsed(R"(func main(x: f32[2]) {
      a: f32[2] = relu(x)
      c: f32[2] = add(a, a)
      r: f32[2] = rand()
      s: f32[2] = rand()
      return c, c, r, s
    })");
  const auto may_merge = [](const Expr& value) {
    return !is<Call>(value) || static_cast<const Call&>(value).op != "rand";
  };
  const auto out = eliminate_common_subexpressions(f, may_merge);
  expect_equal(*out, *wanted, strict);
  EXPECT_EQ(eliminate_common_subexpressions(out, may_merge), out);
}

TEST(Cse, KeepsScalarsThatTypesMention) {
  const auto f = parsed(R"(func main(n: i64[]) {
      rows: i64 = identity(n)
      more: i64 = identity(n)
      a: f32[rows] = full(0.0) {shape = shape[rows]}
      b: f32[more] = full(0.0) {shape = shape[more]}
      return a, b
    })");
  EXPECT_EQ(eliminate_common_subexpressions(f, [](const Expr&) { return true; }), f);
}

TEST(Cse, OfOneFunctionLeavesItsBodiesAlone) {
  const auto f = parsed(R"(func main(n: i64[], x: f32[2]) {
      a: f32[2] = relu(x)
      b: f32[2] = relu(x)
      y: f32[2] = for n (b) with (a) (i: i64[], c: f32[2], a: f32[2]) {
        p: f32[2] = relu(a)
        q: f32[2] = relu(a)
        s: f32[2] = add(p, q)
        return s
      }
      return y
    })");
  const auto out = merge_equal_statements(f, [](const Expr&) { return true; });
  ASSERT_EQ(out->body.size(), 2u);
  const auto* loop = as<ForRegion>(out->body[1]->value);
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->inits[0], loop->captures[0]);
  EXPECT_EQ(loop->body, as<ForRegion>(f->body[2]->value)->body);
}

}  // namespace

// Laws of symbolic sizes: how symbols are called and which was made first never counts, and what can be
// matched one to one is found to be equal, checked against trying all ways to match.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/function.h"
#include "tessera/ir/integers.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/scalar_fold.h"
#include "tessera/ir/size_form.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

constexpr CompareMode both_modes[] = {CompareMode::strict, CompareMode::mapping};

/// A size by numbers of symbols, so that it can be written over any symbols.
struct Recipe {
  enum class Kind { symbol, constant, add, sub, mul, div, mod, min, max } kind = Kind::constant;
  std::int64_t value = 0;
  std::vector<Recipe> parts = {};

  [[nodiscard]] Dim over(const std::vector<Ref<Var>>& symbols) const {
    if (kind == Kind::symbol) return Dim(ExprRef(symbols[static_cast<std::size_t>(value)]));
    if (kind == Kind::constant) return value;
    const Dim a = parts[0].over(symbols), b = parts[1].over(symbols);
    switch (kind) {
      case Kind::add:
        return a + b;
      case Kind::sub:
        return a - b;
      case Kind::mul:
        return a * b;
      case Kind::div:
        return floor_div(a, b);
      case Kind::mod:
        return floor_mod(a, b);
      case Kind::min:
        return ir::min(a, b);
      default:
        return ir::max(a, b);
    }
  }
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  Recipe size(std::size_t symbols, int depth) {
    if (depth == 0 || below(4) == 0) {
      if (below(5) == 0) return {Recipe::Kind::constant, static_cast<std::int64_t>(below(4))};
      return {Recipe::Kind::symbol, static_cast<std::int64_t>(below(symbols))};
    }
    constexpr Recipe::Kind kinds[] = {Recipe::Kind::add, Recipe::Kind::add, Recipe::Kind::mul,
                                      Recipe::Kind::mul, Recipe::Kind::sub, Recipe::Kind::div,
                                      Recipe::Kind::mod, Recipe::Kind::min, Recipe::Kind::max};
    return {kinds[below(std::size(kinds))], 0, {size(symbols, depth - 1), size(symbols, depth - 1)}};
  }
  std::vector<Recipe> shape(std::size_t symbols) {
    std::vector<Recipe> out;
    for (std::size_t i = 0; i < 1 + below(3); ++i) out.push_back(size(symbols, static_cast<int>(below(4))));
    return out;
  }
  /// Symbols in which nothing follows from the names or from the order they were made in.
  std::vector<Ref<Var>> symbols(std::size_t count, bool bounded) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<Ref<Var>> out(count);
    for (const std::size_t i : order) {
      const Range range = bounded && i % 2 == 1 ? Range{2, {}} : Range{};
      out[i] = size_symbol(std::string(1, static_cast<char>('A' + below(26))) + cat(below(3)), range);
    }
    return out;
  }

 private:
  std::mt19937_64 random_;
};

TypeRef type_over(const std::vector<Recipe>& shape, const std::vector<Ref<Var>>& symbols) {
  Shape dims;
  for (const Recipe& size : shape) dims.push_back(size.over(symbols));
  return tensor_type(Dtype::f32, std::move(dims));
}

/// The types of several values, as a module has them: later ones say more about symbols of earlier ones.
NodeRef types_over(const std::vector<std::vector<Recipe>>& shapes, const std::vector<Ref<Var>>& symbols) {
  std::vector<TypeRef> types;
  for (const auto& shape : shapes) types.push_back(type_over(shape, symbols));
  return tuple_type(std::move(types));
}

FunctionRef function_over(const std::vector<std::vector<Recipe>>& shapes, std::vector<Ref<Var>> symbols) {
  FunctionParts parts{.name = "f", .dims = symbols};
  for (const auto& shape : shapes) parts.params.push_back(variable("x", type_over(shape, symbols)));
  if (!parts.params.empty()) parts.results.push_back(parts.params[0]);
  return ir::function(std::move(parts));
}

std::vector<std::vector<Recipe>> shapes(Random& random, std::size_t symbols) {
  std::vector<std::vector<Recipe>> out;
  for (std::size_t i = 0; i < 1 + random.below(3); ++i) out.push_back(random.shape(symbols));
  return out;
}

TEST(SizeLaws, RenamingNeverCounts) {
  for (std::uint64_t seed = 0; seed < fixture::repeats(4000U); ++seed) {
    Random random(seed);
    const std::size_t count = 1 + random.below(5);
    const auto sizes = shapes(random, count);
    const auto a = random.symbols(count, seed % 2 == 0), b = random.symbols(count, seed % 2 == 0);
    const FunctionRef f = function_over(sizes, a), g = function_over(sizes, b);
    for (const CompareMode mode : both_modes) {
      ASSERT_TRUE(structural_equal(*f, *g, mode)) << seed << "\n" << print(*f) << print(*g);
      ASSERT_EQ(structural_hash(*f, mode), structural_hash(*g, mode)) << seed << "\n"
                                                                      << print(*f) << print(*g);
    }
    const NodeRef s = types_over(sizes, a), t = types_over(sizes, b);
    ASSERT_TRUE(structural_equal(*s, *t, CompareMode::mapping)) << seed << "\n" << print(*s) << print(*t);
    ASSERT_EQ(structural_hash(*s, CompareMode::mapping), structural_hash(*t, CompareMode::mapping))
        << seed << "\n"
        << print(*s) << print(*t);
    ASSERT_FALSE(first_mismatch(*s, *t, CompareMode::mapping)) << seed;
  }
}

TEST(SizeLaws, TextsReadBackAreEqual) {
  for (std::uint64_t seed = 0; seed < fixture::repeats(1000U); ++seed) {
    Random random(seed);
    const std::size_t count = 1 + random.below(5);
    const auto sizes = shapes(random, count);
    const FunctionRef f = function_over(sizes, random.symbols(count, false));
    const auto g = parse(print(*f));
    ASSERT_TRUE(static_cast<bool>(g)) << print(*f) << g.error().to_text();
    for (const CompareMode mode : both_modes) {
      ASSERT_TRUE(structural_equal(*f, **g, mode)) << seed << "\n" << print(*f) << print(**g);
      ASSERT_EQ(structural_hash(*f, mode), structural_hash(**g, mode)) << seed;
    }
  }
}

/// Whether some way to put the symbols of `b` for those of `a` makes all sizes equal.
bool can_be_matched(const std::vector<std::vector<Recipe>>& a, const std::vector<Ref<Var>>& symbols,
                    const NodeRef& b, const std::vector<Ref<Var>>& others) {
  std::vector<std::size_t> order(symbols.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    std::vector<Ref<Var>> permuted;
    for (const std::size_t i : order) permuted.push_back(others[i]);
    if (structural_equal(*types_over(a, permuted), *b, CompareMode::strict)) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST(SizeLaws, MappingAgreesWithTryingAllWays) {
  std::size_t equal = 0, different = 0;
  for (std::uint64_t seed = 0; seed < fixture::repeats(3000U); ++seed) {
    Random random(seed);
    const std::size_t count = 2 + random.below(3);
    auto sizes = shapes(random, count);
    auto changed = sizes;
    // Another size with the same symbols, or one symbol put for another somewhere.
    auto& shape = changed[random.below(changed.size())];
    Recipe& place = shape[random.below(shape.size())];
    place = Recipe{Recipe::Kind::add, 0, {place, random.size(count, 1)}};
    const auto& other = seed % 3 == 0 ? sizes : changed;
    const auto a = random.symbols(count, false), b = random.symbols(count, false);
    const NodeRef s = types_over(sizes, a), t = types_over(other, b);
    const bool expected = can_be_matched(sizes, a, t, b);
    (expected ? equal : different)++;
    ASSERT_EQ(structural_equal(*s, *t, CompareMode::mapping), expected) << seed << "\n"
                                                                        << print(*s) << print(*t);
    ASSERT_EQ(structural_equal(*t, *s, CompareMode::mapping), expected) << seed;
    if (expected) {
      ASSERT_EQ(structural_hash(*s, CompareMode::mapping), structural_hash(*t, CompareMode::mapping)) << seed;
    }
  }
  EXPECT_GT(equal, fixture::repeats(500U));
  EXPECT_GT(different, fixture::repeats(500U));
}

/// Sums of products of two symbols are graphs: these two are regular of degree 2, one in one piece.
TEST(SizeLaws, SumsThatLookAlikeEverywhereAreToldApart) {
  const auto cycle_sum = [](const std::vector<std::vector<std::size_t>>& cycles) {
    std::vector<Ref<Var>> symbols;
    for (int i = 0; i < 6; ++i) symbols.push_back(size_symbol(cat("S", 7 * i % 6)));
    Dim out = 0;
    for (const auto& cycle : cycles)
      for (std::size_t i = 0; i < cycle.size(); ++i)
        out = out + Dim(ExprRef(symbols[cycle[i]])) * Dim(ExprRef(symbols[cycle[(i + 1) % cycle.size()]]));
    return tensor_type(Dtype::f32, {out});
  };
  const auto hexagon = cycle_sum({{0, 1, 2, 3, 4, 5}}), other_hexagon = cycle_sum({{3, 0, 5, 1, 4, 2}});
  const auto triangles = cycle_sum({{0, 1, 2}, {3, 4, 5}});
  EXPECT_TRUE(structural_equal(*hexagon, *other_hexagon, CompareMode::mapping));
  EXPECT_EQ(structural_hash(*hexagon, CompareMode::mapping),
            structural_hash(*other_hexagon, CompareMode::mapping));
  EXPECT_FALSE(structural_equal(*hexagon, *triangles, CompareMode::mapping));
  const auto mismatch = first_mismatch(*hexagon, *triangles, CompareMode::mapping);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->path, "tensor_type.shape[0]");
}

TEST(SizeLaws, LongSumsOfFreeSymbolsAreQuick) {
  const auto build = [](std::size_t count, bool reverse) {
    std::vector<Ref<Var>> symbols;
    for (std::size_t i = 0; i < count; ++i) symbols.push_back(size_symbol(cat("S", reverse ? count - i : i)));
    Dim out = 0;
    for (std::size_t i = 0; i < count; i += 2)
      out = out + Dim(ExprRef(symbols[i])) * Dim(ExprRef(symbols[i + 1]));
    return tensor_type(Dtype::f32, {out});
  };
  const auto a = build(200, false), b = build(200, true);
  EXPECT_TRUE(structural_equal(*a, *b, CompareMode::mapping));
  EXPECT_EQ(structural_hash(*a, CompareMode::mapping), structural_hash(*b, CompareMode::mapping));
}

TEST(SizeLaws, ASymbolMetAloneBetweenTwoUsesOfASharedSize) {
  // The size stands in one type object that is used twice, and in two that are used once; in between, a
  // symbol of it is met alone.
  const auto build = [](bool shared) {
    const auto a = size_symbol(shared ? "A" : "Z"), b = size_symbol("B");
    const auto both = [&] { return tensor_type(Dtype::f32, {Dim(ExprRef(a)) + Dim(ExprRef(b))}); };
    const TypeRef first = both(), second = shared ? first : TypeRef(both());
    return tuple_type({first, tensor_type(Dtype::f32, {Dim(ExprRef(b))}), second, second});
  };
  EXPECT_TRUE(structural_equal(*build(true), *build(false), CompareMode::mapping));
  EXPECT_EQ(structural_hash(*build(true), CompareMode::mapping),
            structural_hash(*build(false), CompareMode::mapping));
}

TEST(SizeLaws, SharingIsNotStructure) {
  for (std::uint64_t seed = 0; seed < fixture::repeats(2000U); ++seed) {
    Random random(seed);
    const std::size_t count = 2 + random.below(3);
    const auto sizes = shapes(random, count);
    const auto a = random.symbols(count, false), b = random.symbols(count, false);
    const auto build = [&](const std::vector<Ref<Var>>& symbols, bool shared) {
      const TypeRef once = TypeRef(static_cast<const Type*>(types_over(sizes, symbols).get()));
      std::vector<TypeRef> out{once};
      Random order(seed);
      for (int i = 0; i < 4; ++i) {
        const auto& shape = sizes[order.below(sizes.size())];
        out.push_back(type_over(shape, symbols));
        if (!shared) out.push_back(TypeRef(static_cast<const Type*>(types_over(sizes, symbols).get())));
        if (shared) out.push_back(once);
      }
      return tuple_type(std::move(out));
    };
    const auto s = build(a, true), t = build(b, false);
    ASSERT_TRUE(structural_equal(*s, *t, CompareMode::mapping)) << seed;
    ASSERT_EQ(structural_hash(*s, CompareMode::mapping), structural_hash(*t, CompareMode::mapping))
        << seed << "\n"
        << print(*s);
  }
}

TEST(SizeLaws, TheExamplesThatPeopleWrite) {
  const auto same = [](std::string_view a, std::string_view b, CompareMode mode) {
    const auto x = value_or_throw(parse(a)), y = value_or_throw(parse(b));
    const bool equal = structural_equal(*x, *y, mode);
    EXPECT_EQ(equal, structural_hash(*x, mode) == structural_hash(*y, mode)) << a;
    return equal;
  };
  EXPECT_TRUE(same("func f[A, B](x: f32[A * B + A]) { return x }",
                   "func f[Z, B](x: f32[Z * B + Z]) { return x }", CompareMode::strict));
  EXPECT_TRUE(same("func f[A, B](x: f32[A], y: f32[B], z: f32[A + B]) { return x }",
                   "func f[B, A](x: f32[B], y: f32[A], z: f32[A + B]) { return x }", CompareMode::strict));
  EXPECT_FALSE(same("func f[A, B](x: f32[A], y: f32[B], z: f32[2 * A + B]) { return x }",
                    "func f[A, B](x: f32[A], y: f32[B], z: f32[A + 2 * B]) { return x }",
                    CompareMode::strict));
  EXPECT_TRUE(
      same("free A free B type f32[A + 2 * B]", "free A free B type f32[B + 2 * A]", CompareMode::mapping));
  EXPECT_TRUE(
      same("free A free B type f32[A + B, A]", "free C free D type f32[C + D, D]", CompareMode::mapping));
  EXPECT_FALSE(same("free A free B type f32[A + B, A, A]", "free C free D type f32[C + D, D, C]",
                    CompareMode::mapping));
  EXPECT_FALSE(same("free A free B: i64 in 1.. type f32[A + 2 * B]",
                    "free A: i64 in 1.. free B type f32[A + 2 * B]", CompareMode::mapping));
  EXPECT_TRUE(same("free A free B type f32[i64.min(A, B) // (A * B), B]",
                   "free Q free P type f32[i64.min(P, Q) // (P * Q), Q]", CompareMode::mapping));
}

/// Any scalar expression of integers, with the value it has by the rules of the language.
class Arithmetic {
 public:
  explicit Arithmetic(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) symbols_.push_back(size_symbol(cat("N", i), {i == 2 ? -9 : i, {}}));
  }

  [[nodiscard]] ExprRef expression(int depth) {
    if (depth == 0 || random_.below(5) == 0) {
      if (random_.below(2) == 0) return symbols_[random_.below(symbols_.size())];
      return int_const(static_cast<std::int64_t>(random_.below(9)) - 3);
    }
    constexpr ScalarOpcode opcodes[] = {
        ScalarOpcode::add,     ScalarOpcode::sub,    ScalarOpcode::mul,     ScalarOpcode::div,
        ScalarOpcode::div,     ScalarOpcode::fmod,   ScalarOpcode::min,     ScalarOpcode::max,
        ScalarOpcode::shl,     ScalarOpcode::shr,    ScalarOpcode::bit_and, ScalarOpcode::bit_xor,
        ScalarOpcode::bit_or,  ScalarOpcode::pow,    ScalarOpcode::neg,     ScalarOpcode::abs,
        ScalarOpcode::sign,    ScalarOpcode::select, ScalarOpcode::cast,    ScalarOpcode::floor_div,
        ScalarOpcode::bit_not, ScalarOpcode::mul,    ScalarOpcode::add,     ScalarOpcode::floor_mod};
    const ScalarOpcode opcode = opcodes[random_.below(std::size(opcodes))];
    if (opcode == ScalarOpcode::cast)
      return scalar_cast(Dtype::i64, scalar_cast(Dtype::i16, expression(depth - 1)));
    SmallVector<ExprRef, 2> operands;
    if (opcode == ScalarOpcode::select)
      operands.push_back(scalar_op(ScalarOpcode::lt, {expression(depth - 1), expression(depth - 1)}));
    while (operands.size() < info(opcode).arity) operands.push_back(expression(depth - 1));
    return scalar_op(opcode, std::move(operands));
  }
  void choose_values() {
    values_ = {static_cast<std::int64_t>(random_.below(20)), 1 + static_cast<std::int64_t>(random_.below(20)),
               static_cast<std::int64_t>(random_.below(30)) - 9};
  }
  [[nodiscard]] std::optional<std::int64_t> value_of(const Var& var) const {
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].get() == &var) return values_[i];
    return std::nullopt;
  }
  /// One step at a time, nothing simplified. Nothing if a step does not fit.
  [[nodiscard]] std::optional<std::int64_t> value(const Expr& expr) const {
    if (const auto* constant = as<IntConst>(expr)) return constant->value;
    if (const auto* var = as<Var>(expr)) return value_of(*var);
    const auto& op = static_cast<const ScalarOp&>(expr);
    std::vector<std::int64_t> in;
    for (const ExprRef& operand : op.operands) {
      const auto one = value(*operand);
      if (!one) return std::nullopt;
      in.push_back(*one);
    }
    if (op.opcode == ScalarOpcode::lt) return in[0] < in[1] ? 1 : 0;
    if (op.opcode == ScalarOpcode::select) return in[0] != 0 ? in[1] : in[2];
    if (op.opcode == ScalarOpcode::cast)
      return op.dtype == Dtype::i16 ? static_cast<std::int16_t>(in[0]) : in[0];
    return evaluate_integers(op.opcode, in[0], in.size() > 1 ? in[1] : 0);
  }

 private:
  Random random_;
  std::vector<Ref<Var>> symbols_;
  std::vector<std::int64_t> values_;
};

TEST(SizeLaws, SimplifyingKeepsTheValue) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < fixture::repeats(30000U); ++seed) {
    Arithmetic random(seed);
    const ExprRef expr = random.expression(1 + static_cast<int>(seed % 5));
    const Dim simple = simplified(expr);
    const Range range = bounds(simple);
    for (int round = 0; round < 3; ++round) {
      random.choose_values();
      const auto expected = random.value(*expr);
      const auto got = evaluate(simple, [&](const Var& var) { return random.value_of(var); });
      if (!expected || !got) continue;
      ++compared;
      ASSERT_EQ(got, expected) << seed << ": " << print(*expr) << to_text(simple);
      ASSERT_LE(range.lower.value_or(*got), *got) << seed << ": " << to_text(simple);
      ASSERT_GE(range.upper.value_or(*got), *got) << seed << ": " << to_text(simple);
    }
    if (simple.is_constant()) continue;
    const Dim again = simplified(simple.expr());
    ASSERT_EQ(again, simple) << seed << ": " << to_text(again) << " and " << to_text(simple);
    const auto type = tensor_type(Dtype::f32, {simple}), other = tensor_type(Dtype::f32, {again});
    ASSERT_EQ(structural_hash(*type, CompareMode::mapping), structural_hash(*other, CompareMode::mapping));
  }
  EXPECT_GT(compared, fixture::repeats(30000U));
}

}  // namespace

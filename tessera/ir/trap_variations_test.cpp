// Further inputs for the rows of TRAPS.md, section E, as pairs of texts: whether they are equal in each mode,
// and with them their hashes.
#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

struct Pair {
  const char* trap;
  std::string left;
  std::string right;
  bool strict;
  bool mapping;
};

/// Two texts whose free variables of one name and type are the same variable.
struct Parsed {
  explicit Parsed(const Pair& pair)
      : left(value_or_throw(parse(pair.left, {.free_variables = &free}))),
        right(value_or_throw(parse(pair.right, {.free_variables = &free}))) {}

  FreeVariables free;
  NodeRef left;
  NodeRef right;
};

void check(const Pair& pair) {
  const Parsed parsed(pair);
  for (const auto mode : {CompareMode::strict, CompareMode::mapping}) {
    const bool wanted = mode == CompareMode::strict ? pair.strict : pair.mapping;
    const auto says = cat(pair.trap, mode == CompareMode::strict ? ", strict: " : ", mapping: ", pair.left,
                          " and ", pair.right);
    EXPECT_EQ(structural_equal(*parsed.left, *parsed.right, mode), wanted) << says;
    EXPECT_EQ(structural_equal(*parsed.right, *parsed.left, mode), wanted) << says;
    EXPECT_EQ(structural_hash(*parsed.left, mode) == structural_hash(*parsed.right, mode), wanted) << says;
    EXPECT_EQ(first_mismatch(*parsed.left, *parsed.right, mode).has_value(), !wanted) << says;
  }
}

/// A function of one call with these attributes.
std::string with(std::string_view attributes) {
  return cat("func f(x: f32[2]) { y: f32[2] = op(x) {", attributes, "} return y }");
}

/// A loop from `init` to the negation of the last value.
std::string loop(std::string_view init, std::string_view count = "3", std::string_view carried = "c") {
  return cat("func f(a: f32[2], b: f32[2]) { y: f32[2] = for ", count, " (", init, ") with () (i: i64[], ",
             carried, ": f32[2]) { d: f32[2] = neg(", carried, ") return d } return y }");
}

TEST(StructuralVariations, Trap_E1_E2_E3_FreeVariables) {
  const std::string xyz = "free x: f32 free y: f32 free z: f32 expr ";
  const Pair pairs[] = {
      {"E1", "free x: f32 expr f32.exp(x) * x", "free y: f32 expr f32.exp(y) * y", false, true},
      {"E1", "free x: f32 expr x + 1.0", "free x: f64 expr x + 1.0:f64", false, false},
      {"E1", "free N type f32[N, N]", "free M type f32[M, M]", false, true},
      {"E2", xyz + "x + y", xyz + "y + x", false, true},
      {"E2", xyz + "(x + y) + z", xyz + "(x + y) + x", false, false},
      {"E2", "free N free M type f32[N, M]", "free N type f32[N, N]", false, false},
      {"E3", xyz + "(x + y) * (y + x)", xyz + "(x + y) * (x + y)", false, false},
      {"E3", xyz + "(x + y) * (y + z)", xyz + "(y + z) * (z + x)", false, true},
  };
  for (const Pair& pair : pairs) check(pair);
}

TEST(StructuralVariations, Trap_E4_E5_E6_Definitions) {
  const auto twice = [](const char* args, const char* result) {
    return cat("func f(x: f32[2]) { a: f32[2] = neg(x) b: f32[2] = add(", args, ") return ", result, " }");
  };
  const Pair pairs[] = {
      {"E4", twice("a, a", "b"), "func g(q: f32[2]) { u: f32[2] = neg(q) v: f32[2] = add(u, u) return v }",
       true, true},
      {"E4", twice("a, x", "b"), twice("x, a", "b"), false, false},
      {"E4", twice("a, x", "b"), twice("a, x", "a"), false, false},
      {"E4", "func f[N, M](x: f32[N, M]) { return x }", "func f[N, M](x: f32[M, N]) { return x }", false,
       false},
      {"E4", "func f[N, M](x: f32[N]) { return x }", "func f[N](x: f32[N]) { return x }", false, false},
      {"E5", "free x: f32[2] stmt y: f32[2] = neg(x)", "free z: f32[2] stmt y: f32[2] = neg(z)", false, true},
      {"E6", loop("a"), loop("b"), false, false},
      {"E6", loop("a"), loop("a", "3", "other"), true, true},
      {"E6", loop("a"), loop("a", "4"), false, false},
  };
  for (const Pair& pair : pairs) check(pair);
}

TEST(StructuralVariations, Trap_E8_E9_E10_Values) {
  const Pair pairs[] = {
      {"E8", "expr f32.bits(0x7fc00000)", "expr f32.bits(0x7fc00001)", false, false},
      {"E8", "expr f32.bits(0x7fc00000)", "expr f32.bits(0xffc00000)", false, false},
      {"E8", "expr f32.nan", "expr f32.bits(0x7fc00000)", true, true},
      {"E8", "expr 1", "expr 1:i32", false, false},
      {"E8", with("a = 0.0"), with("a = -0.0"), false, false},
      {"E9", with("a = []"), with(""), false, false},
      {"E9", with("a = []"), with("a = [:float]"), false, false},
      {"E9", with("a = 0"), with(""), false, false},
      {"E9", with("a = 1"), with("a = true"), false, false},
      {"E9", with("a = 1"), with("a = 1.0"), false, false},
      {"E9", with("a = 1"), with("a = [1]"), false, false},
      {"E10", with("a = 1, b = 2, c = \"z\""), with("c = \"z\", b = 2, a = 1"), true, true},
      {"E10", with("a = 1, b = 2"), with("a = 2, b = 1"), false, false},
  };
  for (const Pair& pair : pairs) check(pair);
}

TEST(StructuralVariations, Trap_E11_E13_NamesAndSharing) {
  const Pair pairs[] = {
      {"E11", "func f(x: f32[2]) { y: f32[2] = neg(x) return y }",
       "# elsewhere\n\nfunc g(\nz: f32[2]) { `a b`: f32[2] = neg(z)\n\nreturn `a b` }", true, true},
      {"E11", "func f(x: f32[2]) { y: f32[2] = neg(x) return y }",
       "func f(x: f32[2]) { y: f32[2] = abs(x) return y }", false, false},
      {"E13", "free x: f32 expr let !0 = x + 1.0 in !0 * !0", "free x: f32 expr (x + 1.0) * (x + 1.0)", true,
       true},
      {"E13", "free x: f32 expr let !0 = x + 1.0 in (!0 * !0) + !0",
       "free x: f32 expr let !0 = x + 1.0 in (!0 * (x + 1.0)) + !0", true, true},
      {"E13", "func f[N](x: f32[2 * N + 1]) { return x }", "func f[N](x: f32[1 + N + N]) { return x }", true,
       true},
  };
  for (const Pair& pair : pairs) check(pair);
}

std::string mismatch(const std::string& left, const std::string& right) {
  const Parsed parsed({"E12", left, right, false, false});
  const auto found = first_mismatch(*parsed.left, *parsed.right, CompareMode::strict);
  return found ? cat(found->to_text(), " (", found->reason, ")") : "equal";
}

TEST(StructuralVariations, Trap_E12_BothSidesCanBeToldApart) {
  EXPECT_EQ(mismatch("expr f64.bits(0x7ff8000000000000)", "expr f64.bits(0x7ff8000000000001)"),
            "float_const: f64.bits(0x7ff8000000000000) ≠ f64.bits(0x7ff8000000000001) (different value)");
  const std::string same(80, 's');
  const std::string text = mismatch(with(cat("a = \"", same, "1\"")), with(cat("a = \"", same, "2\"")));
  EXPECT_NE(text.find("(different attribute, further on than is shown)"), std::string::npos) << text;
  EXPECT_EQ(mismatch(loop("a"), loop("b")),
            "f.body[0].value.inits[0]: a ≠ b (uses of different definitions)");
}

}  // namespace

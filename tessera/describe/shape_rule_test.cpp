#include "tessera/describe/shape_rule.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::description;

namespace {

std::string shape_of(std::string_view rule, const std::vector<Extents>& inputs, const SizeNames& names = {}) {
  const auto parsed = parse_shape_rule(rule);
  if (!parsed) return cat("column ", parsed.error().span().column, ": ", parsed.error().message());
  const auto shape = evaluate(*parsed, inputs, names);
  return shape ? to_text(*shape) : shape.error().message();
}

}  // namespace

TEST(ShapeRule, TheFourOfTheSeed) {
  EXPECT_EQ(shape_of("same", {{2, 3}, {4}}), "[2, 3]");
  EXPECT_EQ(shape_of("same(1)", {{2, 3}, {4}}), "[4]");
  EXPECT_EQ(shape_of("broadcast(0,1)", {{2, 1, 3}, {5, 1}}), "[2, 5, 3]");
  EXPECT_EQ(shape_of("[N, 16]", {{7, 9}}), "[7, 16]");
}

TEST(ShapeRule, SizesAreExpressions) {
  EXPECT_EQ(shape_of("[2*N+1, (M - 1) / 2, dim(1, 0) % 4]", {{7, 9}, {10}}), "[15, 4, 2]");
  EXPECT_EQ(shape_of("[N, K]", {{7, 9}}, {{"K", 3}}), "[7, 3]");
  EXPECT_EQ(shape_of("[]", {}), "[]");
  EXPECT_EQ(shape_of(" [ N ,16 ] ", {{7}}), "[7, 16]");
  EXPECT_EQ(shape_of("[10 - 2 - 3]", {}), "[5]");
  EXPECT_EQ(shape_of("[dim]", {{4}}), "[4]");
}

TEST(ShapeRule, ErrorsHaveTheColumn) {
  EXPECT_EQ(shape_of("", {}), "column 1: expected same, broadcast or '['");
  EXPECT_EQ(shape_of("same(x)", {}), "column 6: expected a number");
  EXPECT_EQ(shape_of("same(0", {}), "column 7: expected ')'");
  EXPECT_EQ(shape_of("broadcast()", {}), "column 11: expected a number");
  EXPECT_EQ(shape_of("[N, ]", {}), "column 5: expected a number, a name, dim(input, axis) or '('");
  EXPECT_EQ(shape_of("[N 16]", {}), "column 4: expected ']'");
  EXPECT_EQ(shape_of("[N] x", {}), "column 5: expected the end of the rule");
  EXPECT_EQ(shape_of("[-1]", {}), "column 2: expected a number, a name, dim(input, axis) or '('");
  EXPECT_EQ(shape_of("[99999999999999999999]", {}), "column 2: the number does not fit 64 bits");
}

TEST(ShapeRule, NothingOverflowsOrRecurses) {
  EXPECT_EQ(shape_of("[9223372036854775807 + 1]", {}), "the size at axis 0 overflows or divides by 0");
  EXPECT_EQ(shape_of("[N / (N - N)]", {{3}}), "the size at axis 0 overflows or divides by 0");
  EXPECT_EQ(shape_of("[2 - N]", {{3}}), "the size at axis 0 would be -1");
  EXPECT_EQ(shape_of("[" + std::string(3000, '(') + "]", {}), "column 66: nested deeper than 64 levels");
  EXPECT_EQ(shape_of(std::string(5000, 'a'), {}), "column 1: a rule has at most 4096 characters");
  std::string many = "[1";
  for (int i = 0; i < 20; ++i) many += ",1";
  EXPECT_EQ(shape_of(many + "]", {}), "rank 21 is more than 16");
}

TEST(ShapeRule, InputsThatAreNotThere) {
  EXPECT_EQ(shape_of("same", {}), "the rule names input 0, the node reads 0");
  EXPECT_EQ(shape_of("same(2)", {{1}}), "the rule names input 2, the node reads 1");
  EXPECT_EQ(shape_of("same(18446744073709551615)", {{1}}), "column 6: the number does not fit 64 bits");
  EXPECT_EQ(shape_of("[16, M]", {{7}}), "the rule takes axis 1 of input 0, which has shape [7]");
  EXPECT_EQ(shape_of("[N]", {}), "size 'N' stands for a size of an input, there is none");
  EXPECT_EQ(shape_of("broadcast(0,1)", {{2}, {3}}),
            "input 1 of shape [3] does not broadcast: 3 and 2 do not agree");
  EXPECT_EQ(shape_of("broadcast(0,1)", {{1}, {0}}), "[0]");
}

TEST(ShapeRule, NamesMeanOneSizeInANode) {
  SizeNames names;
  const auto rule = *parse_shape_rule("[N, K]");
  EXPECT_TRUE(bind_names(rule, {2, 3}, names));
  EXPECT_TRUE(bind_names(*parse_shape_rule("[K, M]"), {3, 5}, names));
  EXPECT_EQ(names, (SizeNames{{"N", 2}, {"K", 3}, {"M", 5}}));
  EXPECT_EQ(bind_names(*parse_shape_rule("[K]"), {4}, names).error().message(),
            "size 'K' is 3 elsewhere in the node, axis 0 of shape [4] has 4");
  EXPECT_EQ(bind_names(rule, {2}, names).error().message(), "expected rank 2, got shape [2]");
  EXPECT_EQ(check_shape(rule, {2, 4}, {}, names).error().message(), "expected shape [2, 3], got [2, 4]");
}

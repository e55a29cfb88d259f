#include "tessera/base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

Result<int> parse_axis(int axis, int rank) {
  if (axis < -rank || axis >= rank)
    return Error(ErrorCode::invalid_argument, cat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
  return axis < 0 ? axis + rank : axis;
}

Result<int> twice(int axis, int rank) {
  auto parsed = parse_axis(axis, rank);
  if (!parsed) return std::move(parsed).error().note("inferring the shape of 'sum'").at({"model.cpp", 7, 0});
  return 2 * TESSERA_TRY(parse_axis(*parsed, rank));
}

Result<void> only_even(int value) {
  if (value % 2 != 0) return Error(ErrorCode::invalid_argument, "odd");
  return {};
}

Result<std::unique_ptr<int>> boxed(int value) {
  TESSERA_TRY(only_even(value));
  return std::make_unique<int>(value);
}

TEST(Result, CarriesAValue) {
  EXPECT_EQ(*twice(-1, 3), 4);
  EXPECT_EQ(**boxed(4), 4);
}

TEST(Result, CarriesTheErrorThroughTry) {
  const auto bad = boxed(3);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(bad.error().message(), "odd");
}

TEST(Error, TextHasPlaceMessageAndNotes) {
  EXPECT_EQ(twice(5, 3).error().to_text(),
            "model.cpp:7: axis 5 is outside [-3, 3)\n  inferring the shape of 'sum'");
}

TEST(Error, TheInnermostPlaceWins) {
  const Error e = Error(ErrorCode::shape, "x").at({"inner", 1, 2}).at({"outer", 3, 4});
  EXPECT_EQ(e.span().to_text(), "inner:1:2");
}

TEST(Check, ThrowsAnInternalErrorInsteadOfAborting) {
  try {
    TESSERA_CHECK(1 + 1 == 3, "arithmetic");
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code(), ErrorCode::internal);
    EXPECT_NE(std::string(e.what()).find("arithmetic (1 + 1 == 3 does not hold)"), std::string::npos);
  }
}

TEST(Check, TakingTheValueOfAFailedResultIsInternal) {
  auto bad = parse_axis(9, 1);
  EXPECT_THROW((void)*bad, Exception);
}

TEST(ValueOrThrow, ThrowsTheSameError) {
  try {
    (void)value_or_throw(parse_axis(9, 1));
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().message(), "axis 9 is outside [-1, 1)");
  }
}

}  // namespace

#include "tessera/base/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/base/source_text.h"

using namespace tessera;

namespace {

TEST(Text, NumbersAreShortestAndExact) {
  EXPECT_EQ(cat(0.1, " ", 1.0, " ", -0.0, " ", 3.14159274f, " ", 16777215.0f),
            "0.1 1.0 -0.0 3.1415927 16777215.0");
  EXPECT_EQ(
      cat(1e300, " ", std::numeric_limits<double>::infinity(), " ", -std::numeric_limits<float>::infinity()),
      "1e+300 inf -inf");
  EXPECT_EQ(cat(std::numeric_limits<std::int64_t>::min(), " ", true, 'x'), "-9223372036854775808 truex");
}

TEST(Text, QuoteEscapesWhatJsonEscapes) {
  EXPECT_EQ(quote("a\"b\\c\n\t\x01 ü"), "\"a\\\"b\\\\c\\n\\t\\u0001 ü\"");
}

TEST(Text, PrintableShowsTerminalEscapes) {
  EXPECT_EQ(printable("red \x1b[31m\xc2\x9b ok ü \xff"), "red \\x1b[31m\\xc2\\x9b ok ü \\xff");
}

TEST(Text, ShortenedNeverCutsACharacter) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("aüb", 2), "a…");
}

TEST(Text, KnowsUtf8) {
  EXPECT_TRUE(is_valid_utf8("aü€😀"));
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_FALSE(is_valid_utf8(bad)) << printable(bad);
}

TEST(SourceText, FindsLineColumnAndCaret) {
  const SourceText source("f.txt", "one\ntwü three\n");
  const Error e = source.error_at(9, "expected a number");
  EXPECT_EQ(e.to_text(), "f.txt:2:5: expected a number\n  twü three\n      ^");
}

TEST(SourceText, ShowsAnExcerptOfALongLine) {
  const SourceText source("f", std::string(1000000, 'x'));
  EXPECT_LT(source.error_at(500000, "bad").to_text().size(), 400u);
  EXPECT_EQ(source.span_at(500000).column, 500001u);
}

}  // namespace

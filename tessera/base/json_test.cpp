#include "tessera/base/json.h"

#include <gtest/gtest.h>

#include <optional>

using namespace tessera;

namespace {

std::string error_of(std::string text) {
  auto parsed = JsonDocument::parse("f.json", std::move(text));
  return parsed ? "no error" : parsed.error().message();
}

TEST(Json, ReadsEveryKindOfValue) {
  auto doc = JsonDocument::parse("f", R"({"a": [1, -2.5e3, true, null, "x\u00fc\ud83d\ude00\n"], "b": {}})");
  ASSERT_TRUE(doc) << doc.error().to_text();
  const auto items = *(*doc->cursor().field("a")).array();
  EXPECT_EQ(*items[0].integer(), 1);
  EXPECT_EQ(*items[1].number(), -2500.0);
  EXPECT_EQ(*items[2].boolean(), true);
  EXPECT_TRUE(items[3].is(Json::Kind::null));
  EXPECT_EQ(*items[4].string(), "xü😀\n");
  EXPECT_TRUE((*doc->cursor().field("b")).members()->empty());
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_EQ(error_of(""), "expected a value, got the end of the text");
  EXPECT_EQ(error_of("[1,]"), "expected a value after ','");
  EXPECT_EQ(error_of("[1 2]"), "expected ',' or ']'");
  EXPECT_EQ(error_of("{a: 1}"), "expected a member name in double quotes");
  EXPECT_EQ(error_of("{\"a\": 1, \"a\": 2}"), "member \"a\" is given twice");
  EXPECT_EQ(error_of("01"), "a number may not begin with 0");
  EXPECT_EQ(error_of("1 x"), "expected the end of the text");
  EXPECT_EQ(error_of("\"\xff\""), "string is not valid UTF-8");
  EXPECT_EQ(error_of("\"\\ud800\""), "expected the second half of a surrogate pair");
  EXPECT_EQ(error_of("\"abc"), "string is not closed");
  EXPECT_EQ(error_of(std::string("\"a\0b\"", 5)), "control character in a string");
  EXPECT_EQ(error_of("nul"), "expected a value");
}

TEST(Json, RefusesDeepNestingWithoutOverflow) {
  EXPECT_EQ(error_of(std::string(1000000, '[')), "nested deeper than 256 levels");
}

TEST(Json, ReportsWhereAFieldIsWrong) {
  auto doc = JsonDocument::parse("g.json", "{\"nodes\": [\n  {\"op\": 7}]}");
  const auto node = (*(*doc->cursor().field("nodes")).array())[0];
  EXPECT_EQ((*node.field("op")).string().error().to_text(),
            "g.json:2:10: nodes[0].op: expected a string, got a number\n    {\"op\": 7}]}\n           ^");
  EXPECT_EQ(node.field("id").error().message(), "nodes[0]: missing field \"id\"");
  EXPECT_EQ(node.only_fields({"id"}).error().message(), "nodes[0]: unknown field \"op\", expected one of id");
}

TEST(Json, NumbersKeepTheirRange) {
  auto doc = JsonDocument::parse("f", "[9223372036854775807, 9223372036854775808, 1e999, 0.5]");
  const auto items = *doc->cursor().array();
  EXPECT_EQ(*items[0].integer(), 9223372036854775807);
  EXPECT_FALSE(items[1].integer());
  EXPECT_FALSE(items[2].number());
  EXPECT_FALSE(items[3].integer());
}

struct Point {
  int x = 1;
  std::optional<double> y;
  std::vector<std::string> tags{"a", "b"};
  static constexpr auto fields() {
    return std::tuple{usual("x", &Point::x), usual("y", &Point::y), usual("tags", &Point::tags)};
  }
};

TEST(JsonWriter, WritesReflectedTypes) {
  JsonWriter json;
  write_json(json, Point{});
  EXPECT_EQ(json.text(), R"({"x":1,"y":null,"tags":["a","b"]})");
  EXPECT_EQ(to_text(Point{}), R"(x=1, y=null, tags=["a","b"])");
}

TEST(JsonWriter, IndentsAndReadsBack) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object()
      .member("a", 0.5)
      .key("b")
      .begin_array()
      .value(1)
      .null()
      .end_array()
      .key("c")
      .begin_object();
  json.end_object().end_object();
  EXPECT_EQ(json.text(), "{\n  \"a\": 0.5,\n  \"b\": [\n    1,\n    null\n  ],\n  \"c\": {}\n}");
  EXPECT_TRUE(JsonDocument::parse("f", json.text()));
}

}  // namespace

#include "tessera/base/json.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/support/growth.h"

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

TEST(Json, PathsAndKeysWithEscapes) {
  auto doc = JsonDocument::parse("f", R"({"a\u0062": {"x": [1, [2, {"y\n": true}]]}, "c": null})");
  ASSERT_TRUE(doc) << doc.error().to_text();
  const auto ab = *doc->cursor().field("ab");
  const auto inner = (*(*(*ab.field("x")).array())[1].array())[1];
  EXPECT_EQ((*inner.field("y\n")).path(), "ab.x[1][1].y\n");
  EXPECT_FALSE(*doc->cursor().optional_field("c"));
  std::string members;
  for (const auto& [name, value] : *doc->cursor().members())
    members += cat(name, " ", describe(value.value().kind()), ";");
  EXPECT_EQ(members, "ab an object;c null;");
  EXPECT_EQ(error_of(R"({"ab": 1, "b": 2, "a\u0062": 3})"), "member \"ab\" is given twice");
}

/// How much memory the process has at most held, in bytes.
std::size_t peak_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

TEST(Json, Trap_U19_TakesAtMostTenTimesItsText) {
  const auto repeated = [](std::string_view item, std::size_t bytes) {
    std::string out = "[";
    while (out.size() < bytes) out += item;
    out.back() = ']';
    return out;
  };
  const auto members = [](std::size_t bytes) {
    std::string out = "{";
    for (std::size_t i = 0; out.size() < bytes; ++i) out += cat("\"", i, "\":1,");
    out.back() = '}';
    return out;
  };
  constexpr std::size_t bytes = 8'000'000;
  for (const std::string& text : {repeated("1,", bytes), repeated("\"\",", bytes), repeated("[],", bytes),
                                  repeated("{\"a\":[1]},", bytes), members(bytes)}) {
    // In a process of its own: what others have held counts as the peak of this one.
    const pid_t child = fork();
    if (child == 0) {
      const std::size_t before = peak_memory();
      const auto doc = JsonDocument::parse("f", text);
      const bool is_small = doc && peak_memory() - before < 10 * bytes;
      _exit(is_small ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text.substr(0, 30);
  }
}

TEST(Json, FieldsOfManyObjectsAreFoundInLinearTime) {
  const auto read = [](std::size_t objects) {
    std::string text = "[";
    for (std::size_t i = 0; i < objects; ++i) text += R"({"id":"a","op":"b","inputs":[1]},)";
    text.back() = ']';
    const auto doc = value_or_throw(JsonDocument::parse("f", std::move(text)));
    for (const JsonCursor item : *doc.cursor().array()) {
      EXPECT_TRUE(item.only_fields({"id", "op", "inputs"}));
      EXPECT_EQ(item.field("op")->string()->size(), 1U);
      EXPECT_EQ(item.field("inputs")->array()->size(), 1U);
    }
  };
  EXPECT_LT(fixture::growth(std::size_t{1'000}, std::size_t{16'000}, read), 80) << "the square would be 256";
}

}  // namespace

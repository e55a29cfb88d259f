#include "tessera/pattern/in_place.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/pattern/match_listing.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

std::string op_of(std::string_view nodes, NodeId node, std::string_view outputs = "") {
  const Graph graph = graph_from(cat("{\"nodes\":[", nodes, "]", outputs, "}"));
  return graph.op_name(graph.op(node));
}

constexpr const char* relu_in_place =
    R"({"id":"1","op":"matmul","inputs":["x","w"]},{"id":"2","op":"relu_","inputs":["1"]})";

TEST(InPlace, MeansTheSameWhereNobodyReadsTheOldValue) { EXPECT_EQ(op_of(relu_in_place, 1), "relu"); }

TEST(InPlace, StaysAnOpOfItsOwnWhereTheOldValueIsReadLater) {
  EXPECT_EQ(op_of(cat(relu_in_place, R"(,{"id":"3","op":"add","inputs":["1","2"]})"), 1), "relu_");
}

TEST(InPlace, AReadBeforeTheWriteIsNoHazard) {
  EXPECT_EQ(op_of(R"({"id":"1","op":"matmul","inputs":["x","w"]},{"id":"2","op":"exp","inputs":["1"]},
                     {"id":"3","op":"relu_","inputs":["1"]})",
                  2),
            "relu");
}

TEST(InPlace, AViewSharesTheStorage) {
  const char* through_view =
      R"({"id":"1","op":"matmul","inputs":["x","w"]},{"id":"2","op":"reshape","inputs":["1"]},
      {"id":"3","op":"relu_","inputs":["2"]},{"id":"4","op":"exp","inputs":["1"]})";
  EXPECT_EQ(op_of(through_view, 2), "relu_");
}

TEST(InPlace, AGraphOutputIsReadAtTheEnd) {
  EXPECT_EQ(op_of(relu_in_place, 1, R"(,"outputs":["1","2"])"), "relu_");
  EXPECT_EQ(op_of(relu_in_place, 1, R"(,"outputs":["2"])"), "relu");
}

TEST(InPlace, ReadersStayOnTheirSideOfAHazard) {
  // 3 reads what 2 has overwritten, under its old name: it must run after 2.
  const Graph graph = graph_from(R"({"nodes":[{"id":"1","op":"matmul","inputs":["x","w"]},
      {"id":"2","op":"relu_","inputs":["1"]},{"id":"3","op":"exp","inputs":["1"]}]})");
  const auto before = graph.predecessors(2);
  EXPECT_NE(std::find(before.begin(), before.end(), 1U), before.end());
}

TEST(InPlace, AnInPlaceSpellingInAPatternMeansTheOp) {
  EXPECT_EQ(matches("1:mm->2:relu", "a:mm->b:relu_").size(), 1U);
}

}  // namespace

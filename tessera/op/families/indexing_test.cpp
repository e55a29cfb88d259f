#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_call.h"

using namespace tessera;
using namespace tessera::op;
using namespace tessera::fixture;

namespace {

using Numbers = std::vector<double>;

HostTensor indices(Extents shape, const std::vector<std::int64_t>& values) {
  return HostTensor::of<std::int64_t>(Dtype::i64, std::move(shape), values);
}

/// The message of a call that the kernel refuses.
std::string refused(std::string_view op, const std::vector<HostTensor>& inputs, Attributes attributes = {}) {
  try {
    (void)call_all(op, inputs, attributes);
  } catch (const Exception& error) {
    return error.error().message();
  }
  return "accepted";
}

// ---- gather

TEST(Gather, TakesPartsInAnyOrder) {
  const HostTensor x = counting({3, 2});
  EXPECT_EQ(doubles(call("gather", {x, indices({3}, {2, 0, 2})})), (Numbers{4, 5, 0, 1, 4, 5}));
  EXPECT_EQ(doubles(call("gather", {x, indices({2}, {-1, -3})})), (Numbers{4, 5, 0, 1}));
  const HostTensor y = call("gather", {x, indices({1, 2}, {1, 0})}, {{"axis", -1}});
  EXPECT_EQ(y.shape(), (Extents{3, 1, 2}));
  EXPECT_EQ(doubles(y), (Numbers{1, 0, 3, 2, 5, 4}));
  EXPECT_EQ(call("gather", {x, indices({}, {1})}).shape(), (Extents{2}));
  EXPECT_EQ(call("gather", {x, indices({0}, {})}).shape(), (Extents{0, 2}));
}

TEST(Gather, NeverReadsOutside) {
  const HostTensor x = counting({3, 2});
  EXPECT_EQ(refused("gather", {x, indices({1}, {3})}),
            "gather: index 3 is outside [-3, 3) for axis 0 of size 3");
  EXPECT_EQ(refused("gather", {x, indices({2}, {0, -3})}, {{"axis", 1}}),
            "gather: index -3 is outside [-2, 2) for axis 1 of size 2");
  EXPECT_EQ(refused("gather", {x, indices({1}, {lowest_integer})}),
            "gather: index -9223372036854775808 is outside [-3, 3) for axis 0 of size 3");
  EXPECT_EQ(refused("gather", {x, indices({1}, {highest_integer})}),
            "gather: index 9223372036854775807 is outside [-3, 3) for axis 0 of size 3");
  EXPECT_EQ(refused("gather", {tensor({0}, {}), indices({1}, {0})}),
            "gather: index 0 is outside [0, 0) for axis 0 of size 0");
  EXPECT_EQ(refused("gather", {tensor({3, 0}, {}), indices({1}, {5})}),
            "gather: index 5 is outside [-3, 3) for axis 0 of size 3");
}

TEST(Gather, SaysWhatIsWrong) {
  EXPECT_EQ(inferred("gather", {{Dtype::f32, {3}}, {Dtype::i64, {2}}}, {{"axis", 1}}),
            "gather: axis 1 is outside [-1, 1) for a tensor of rank 1");
  EXPECT_EQ(inferred("gather", {{Dtype::f32, {3}}, {Dtype::f32, {2}}}),
            "gather: input 'indices' has dtype f32, expected one of i64 i32");
  EXPECT_EQ(inferred("gather", {{Dtype::f32, {}}, {Dtype::i64, {}}}),
            "gather: axis 0 is outside [0, 0) for a tensor of rank 0");
}

// ---- gather_elements

TEST(GatherElements, TakesOneElementPerIndex) {
  const HostTensor x = counting({2, 3});
  EXPECT_EQ(doubles(call("gather_elements", {x, indices({2, 2}, {2, 0, -1, -3})}, {{"axis", 1}})),
            (Numbers{2, 0, 5, 3}));
  EXPECT_EQ(doubles(call("gather_elements", {x, indices({1, 3}, {1, 0, 1})})), (Numbers{3, 1, 5}));
  EXPECT_EQ(call("gather_elements", {x, indices({0, 3}, {})}).shape(), (Extents{0, 3}));
}

TEST(GatherElements, SaysWhatDisagrees) {
  const auto gather = [](Shape x, Shape at, std::int64_t axis) {
    return inferred("gather_elements", {{Dtype::f32, x}, {Dtype::i64, at}}, {{"axis", axis}});
  };
  EXPECT_EQ(gather({2, 3}, {2}, 0), "gather_elements: 'x' has rank 2, 'indices' has rank 1");
  EXPECT_EQ(gather({2, 3}, {3, 3}, 1),
            "gather_elements: axis 0 of 'indices' has size 3, more than 'x', which has 2");
  EXPECT_EQ(gather({2, 3}, {7, 3}, 0), "f32[7, 3]");
  EXPECT_EQ(gather({2, 3}, {2, 3}, 2), "gather_elements: axis 2 is outside [-2, 2) for a tensor of rank 2");
  EXPECT_EQ(refused("gather_elements", {counting({2, 3}), indices({1, 1}, {2})}),
            "gather_elements: index 2 is outside [-2, 2) for axis 0 of size 2");
}

// ---- gather_nd

TEST(GatherNd, TakesThePartsThatRowsName) {
  const HostTensor x = counting({2, 3});
  EXPECT_EQ(doubles(call("gather_nd", {x, indices({2, 2}, {0, 1, -1, -1})})), (Numbers{1, 5}));
  EXPECT_EQ(doubles(call("gather_nd", {x, indices({2, 1}, {1, 0})})), (Numbers{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(doubles(call("gather_nd", {x, indices({2, 1}, {2, 0})}, {{"batch_dims", 1}})), (Numbers{2, 3}));
  // A row that names no axis takes everything.
  EXPECT_EQ(call("gather_nd", {x, indices({2, 0}, {})}).shape(), (Extents{2, 2, 3}));
  EXPECT_EQ(call("gather_nd", {x, indices({0, 2}, {})}).shape(), (Extents{0}));
}

TEST(GatherNd, SaysWhatDisagrees) {
  const auto gather = [](Shape x, Shape at, std::int64_t batch) {
    return inferred("gather_nd", {{Dtype::f32, x}, {Dtype::i64, at}}, {{"batch_dims", batch}});
  };
  EXPECT_EQ(gather({2, 3}, {4, 3}, 0), "gather_nd: the rows of 'indices' name 3 axes, 'x' has 2");
  EXPECT_EQ(gather({2, 3}, {2, 2}, 1), "gather_nd: the rows of 'indices' name 2 axes, 'x' has 1");
  EXPECT_EQ(gather({2, 3}, {}, 0), "gather_nd: 'indices' has rank 0, at least 1 is needed");
  EXPECT_EQ(gather({2, 3}, {4, 1}, 1), "gather_nd: axis 0 of 'x' and 'indices': 2 and 4 do not agree");
  EXPECT_EQ(gather({2, 3}, {2, 1}, 2),
            "gather_nd: 'batch_dims' is 2, but 'x' has rank 2 and 'indices' has rank 2");
  EXPECT_EQ(gather({2, 3}, {2, 1}, -1),
            "gather_nd: 'batch_dims' is -1, but 'x' has rank 2 and 'indices' has rank 2");
  EXPECT_EQ(gather({2, 3}, {2, Dim(ir::size_symbol("K"))}, 0),
            "gather_nd: the last axis of 'indices' has size K, which must be a number");
  EXPECT_EQ(refused("gather_nd", {counting({2, 3}), indices({1, 2}, {0, 3})}),
            "gather_nd: index 3 is outside [-3, 3) for axis 1 of size 3");
}

// ---- one_hot, nonzero

TEST(OneHot, SetsOnePlace) {
  const HostTensor on = tensor({}, {5}), off = tensor({}, {-1});
  EXPECT_EQ(doubles(call("one_hot", {indices({2}, {2, -3}), on, off}, {{"depth", 3}})),
            (Numbers{-1, -1, 5, 5, -1, -1}));
  EXPECT_EQ(doubles(call("one_hot", {indices({2}, {0, 1}), on, off}, {{"depth", 2}, {"axis", 0}})),
            (Numbers{5, -1, -1, 5}));
  EXPECT_EQ(call("one_hot", {indices({0}, {}), on, off}, {{"depth", 0}}).shape(), (Extents{0, 0}));
  EXPECT_EQ(refused("one_hot", {indices({1}, {3}), on, off}, {{"depth", 3}}),
            "one_hot: index 3 is outside [-3, 3) for axis 1 of size 3");
  EXPECT_EQ(inferred("one_hot", {{Dtype::i64, {2}}, {Dtype::f32, {}}, {Dtype::f32, {}}}, {{"depth", -1}}),
            "one_hot: 'depth' is -1, at least 0 is needed");
}

TEST(Nonzero, ListsPlacesInOrderAndCountsThem) {
  const auto results = call_all("nonzero", {tensor({2, 3}, {0, 1, 0, -2, 0, std::nan("")})});
  EXPECT_EQ(doubles(results[0]), (Numbers{0, 1, 1, 0, 1, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(doubles(results[1]), Numbers{3});
  const auto none = call_all("nonzero", {tensor({0, 3}, {})});
  EXPECT_EQ(none[0].shape(), (Extents{0, 2}));
  EXPECT_EQ(doubles(none[1]), Numbers{0});
  const auto scalar = call_all("nonzero", {tensor({}, {-0.0})});
  EXPECT_EQ(scalar[0].shape(), (Extents{1, 0}));
  EXPECT_EQ(doubles(scalar[1]), Numbers{0});
}

// ---- scatters

TEST(ScatterElements, LastUpdateStays) {
  const HostTensor x = counting({4}), at = indices({4}, {1, -1, 1, 0}),
                   updates = tensor({4}, {10, 20, 30, 40});
  EXPECT_EQ(doubles(call("scatter_elements", {x, at, updates})), (Numbers{40, 30, 2, 20}));
}

TEST(ScatterElements, CombinesAllUpdates) {
  const HostTensor x = tensor({3}, {5, 6, 7}), at = indices({3}, {0, 0, 2}), updates = tensor({3}, {2, 9, 3});
  const auto scattered = [&](const std::string& reduction) {
    return doubles(call("scatter_elements", {x, at, updates}, {{"reduction", reduction}}));
  };
  EXPECT_EQ(scattered("add"), (Numbers{16, 6, 10}));
  EXPECT_EQ(scattered("mul"), (Numbers{90, 6, 21}));
  EXPECT_EQ(scattered("max"), (Numbers{9, 6, 7}));
  EXPECT_EQ(scattered("min"), (Numbers{2, 6, 3}));
}

TEST(ScatterElements, RoundsOnceAndWraps) {
  // In f16 2048 + 1 is 2048; two ones together are seen.
  const HostTensor x = tensor({1}, {2048}, Dtype::f16), ones = tensor({2}, {1, 1}, Dtype::f16);
  EXPECT_EQ(
      doubles(call("scatter_elements", {x, indices({2}, {0, 0}), ones}, {{"reduction", std::string("add")}})),
      Numbers{2050});
  const HostTensor most = indices({1}, {highest_integer}), one = indices({1}, {1});
  EXPECT_EQ(call("scatter_elements", {most, indices({1}, {0}), one}, {{"reduction", std::string("add")}})
                .values<std::int64_t>()[0],
            lowest_integer);
}

TEST(ScatterElements, WithoutUpdatesIsX) {
  EXPECT_EQ(doubles(call("scatter_elements", {counting({3}), indices({0}, {}), tensor({0}, {})})),
            (Numbers{0, 1, 2}));
  EXPECT_EQ(call("scatter_elements", {tensor({0}, {}), indices({0}, {}), tensor({0}, {})}).size(), 0);
}

TEST(ScatterElements, SaysWhatDisagrees) {
  const auto scatter = [](Shape x, Shape at, Shape updates, const std::string& reduction = "none") {
    return inferred("scatter_elements", {{Dtype::f32, x}, {Dtype::i64, at}, {Dtype::f32, updates}},
                    {{"reduction", reduction}});
  };
  EXPECT_EQ(scatter({2, 3}, {2, 3}, {2, 2}),
            "scatter_elements: axis 1 of 'indices' and 'updates': 3 and 2 do not agree");
  EXPECT_EQ(scatter({2, 3}, {2, 3}, {2}), "scatter_elements: 'indices' has rank 2, 'updates' has rank 1");
  EXPECT_EQ(scatter({2, 3}, {2, 4}, {2, 4}),
            "scatter_elements: axis 1 of 'indices' has size 4, more than 'x', which has 3");
  EXPECT_EQ(scatter({2}, {2}, {2}, "mean"),
            "scatter_elements: 'reduction' is \"mean\", expected one of none add mul max min");
  EXPECT_EQ(refused("scatter_elements", {counting({2}), indices({1}, {-3}), tensor({1}, {0})}),
            "scatter_elements: index -3 is outside [-2, 2) for axis 0 of size 2");
}

TEST(ScatterNd, WritesPartsInOrder) {
  const HostTensor x = counting({3, 2});
  EXPECT_EQ(doubles(call("scatter_nd", {x, indices({2, 1}, {2, 2}), tensor({2, 2}, {7, 8, 9, 10})})),
            (Numbers{0, 1, 2, 3, 9, 10}));
  EXPECT_EQ(doubles(call("scatter_nd", {x, indices({2, 2}, {0, -1, 0, 1}), tensor({2}, {7, 8})},
                         {{"reduction", std::string("add")}})),
            (Numbers{0, 16, 2, 3, 4, 5}));
  EXPECT_EQ(doubles(call("scatter_nd", {x, indices({0, 2}, {}), tensor({0}, {})})),
            (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(ScatterNd, SaysWhatDisagrees) {
  const auto scatter = [](Shape x, Shape at, Shape updates) {
    return inferred("scatter_nd", {{Dtype::f32, x}, {Dtype::i64, at}, {Dtype::f32, updates}});
  };
  EXPECT_EQ(scatter({3, 2}, {4, 1}, {4, 3}), "scatter_nd: 'updates' has shape [4, 3], expected [4, 2]");
  EXPECT_EQ(scatter({3, 2}, {4, 1}, {4}), "scatter_nd: 'updates' has shape [4], expected [4, 2]");
  EXPECT_EQ(scatter({3, 2}, {4, 3}, {4}), "scatter_nd: the rows of 'indices' name 3 axes, 'x' has 2");
  EXPECT_EQ(refused("scatter_nd", {counting({3, 2}), indices({1, 2}, {0, 2}), tensor({1}, {0})}),
            "scatter_nd: index 2 is outside [-2, 2) for axis 1 of size 2");
}

}  // namespace

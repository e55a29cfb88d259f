#include "tessera/compile/tiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "tessera/compile/constants.h"
#include "tessera/compile/plan_function.h"
#include "tessera/op/ir_builder.h"
#include "tessera/pattern/tile_source.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// The regions of another source, on a machine that does something else in between.
class BusyRegions final : public pattern::TileSource {
 public:
  [[nodiscard]] std::string name() const override { return regions_->name(); }
  [[nodiscard]] Result<void> list(const pattern::Graph& graph, pattern::CandidateList& out) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return regions_->list(graph, out);
  }
  void describe(const pattern::Graph& graph, const pattern::CandidateList& list, std::size_t i,
                pattern::Tile& out) const override {
    regions_->describe(graph, list, i, out);
  }
  [[nodiscard]] std::string name_of(const pattern::CandidateList& list, std::size_t i) const override {
    return regions_->name_of(list, i);
  }

 private:
  std::shared_ptr<const pattern::TileSource> regions_ = fused_regions();
};

/// Element-wise ops that read any of what came just before, and now and then a product: many regions overlap.
ir::FunctionRef woven_function() {
  std::mt19937 random(3);
  op::IrBuilder b;
  std::vector<op::Value> values{b.parameter("x", {ir::Dtype::f32, {16, 16}}),
                                b.parameter("y", {ir::Dtype::f32, {16, 16}})};
  for (int i = 0; i < 150; ++i) {
    const auto recent = [&] {
      return values[values.size() - 1 - random() % std::min<std::size_t>(values.size(), 8)];
    };
    const op::Value left = recent(), right = recent();
    values.push_back(b.call(i % 10 == 9 ? "matmul" : "maximum", {left, right}));
  }
  return value_or_throw(b.function("main", std::span(values).last(8)));
}

std::string plan_text(std::shared_ptr<const pattern::TileSource> source, std::optional<std::uint64_t> work) {
  const pattern::Target target{.name = "test", .sources = {std::move(source)}};
  PlanOptions options;
  options.tiling.work = work;
  return plan::to_text(*value_or_throw(plan_function(woven_function(), target, options)).plan);
}

}  // namespace

TEST(Tiling, ABusyMachineGetsTheSamePlan) {
  const std::string usual = plan_text(fused_regions(), TilingOptions().work);
  EXPECT_TRUE(plan_text(std::make_shared<BusyRegions>(), TilingOptions().work) == usual);
  const std::string hasty = plan_text(fused_regions(), 1'000'000);
  EXPECT_TRUE(hasty != usual) << "so little work finds another plan";
  EXPECT_TRUE(plan_text(std::make_shared<BusyRegions>(), 1'000'000) == hasty);
}

/// The listing of a long function is as complete as that of a short one, which a limit that is the same for
/// all would cut.
TEST(Tiling, WorkGrowsWithTheStatements) {
  EXPECT_EQ(usual_work(10), usual_work(10'000));
  EXPECT_EQ(usual_work(400'000), 10 * usual_work(40'000));
  const pattern::Target target{.name = "test", .sources = {fused_regions()}};
  op::IrBuilder builder;
  op::Value x = builder.parameter("x", {ir::Dtype::f32, {16, 16}});
  for (int i = 0; i < 5'000; ++i) {
    const op::Value a = op::unary("tanh", x), b = a * x, c = op::unary("exp", x) + b, d = c * a + b;
    x = op::matmul(d + c, x);
  }
  const auto function = value_or_throw(builder.function("main", std::vector{x}));
  EXPECT_TRUE(value_or_throw(tile(*function, target)).tiling.gaps.empty());
  EXPECT_FALSE(value_or_throw(tile(*function, target, {.work = usual_work(1)})).tiling.gaps.empty());
}

namespace {

/// The kernels of a function whose products keep its element-wise ops apart.
std::vector<std::shared_ptr<const kernel::Kernel>> kernels_of(const ir::FunctionRef& function) {
  const pattern::Target target{.name = "test", .sources = {fused_regions()}};
  std::vector<std::shared_ptr<const kernel::Kernel>> out;
  for (const TiledPart& part : value_or_throw(tile(*function, target)).parts)
    if (part.kernel != nullptr) out.push_back(part.kernel);
  return out;
}

}  // namespace

TEST(Tiling, RegionsThatAreAlikeShareAKernel) {
  op::IrBuilder b;
  op::Value x = b.parameter("x", {ir::Dtype::f32, {16, 16}});
  for (const double factor : {0.5, 0.5, 0.7, 0.5}) x = op::matmul(op::unary("tanh", x * factor + x), x);
  const auto kernels = kernels_of(value_or_throw(b.function("main", std::vector{x})));
  ASSERT_EQ(kernels.size(), 4U);
  EXPECT_EQ(kernels[0], kernels[1]);
  EXPECT_EQ(kernels[0], kernels[3]);
  EXPECT_FALSE(equal(*kernels[0], *kernels[2])) << "the number is part of the kernel";
}

// Equal constants are one value to the tiler, but each is an operand of its own.
TEST(Tiling, ARegionThatReadsOneConstantTwiceIsNotOneThatReadsTwo) {
  const op::HostTensor ones = value_or_throw(op::HostTensor::allocate(ir::Dtype::f32, {16}));
  std::fill(ones.values<float>().begin(), ones.values<float>().end(), 1.0F);
  const auto first = dense_constant(ones), second = dense_constant(ones);
  op::IrBuilder b;
  op::Value x = b.parameter("x", {ir::Dtype::f32, {16, 16}});
  for (const auto& other : {first, second, first}) {
    const op::ValueType type{ir::Dtype::f32, {16}};
    const op::Value sum = x + b.import(first, type);
    x = op::matmul(sum * b.import(other, type), x);
  }
  const auto kernels = kernels_of(value_or_throw(b.function("main", std::vector{x})));
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0]->input_count, 2U);
  EXPECT_EQ(kernels[1]->input_count, 3U);
  EXPECT_EQ(kernels[0], kernels[2]);
}

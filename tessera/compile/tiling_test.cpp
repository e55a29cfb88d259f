#include "tessera/compile/tiling.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

/// Rows of sums and of element-wise ops that all read what the two before gave: many regions overlap.
ir::FunctionRef woven_function() {
  op::IrBuilder b;
  op::Value x = b.parameter("x", {ir::Dtype::f32, {16, 16}});
  op::Value y = op::unary("exp", x);
  for (int i = 0; i < 40; ++i) {
    const op::Value next = i % 7 == 6 ? op::matmul(x, y) : op::unary("tanh", x + y) * x;
    x = y;
    y = next;
  }
  return value_or_throw(b.function("main", std::vector{x, y}));
}

std::string plan_text(std::shared_ptr<const pattern::TileSource> source, std::optional<std::uint64_t> work) {
  const pattern::Target target{.name = "test", .sources = {std::move(source)}};
  PlanOptions options;
  options.tiling.work = work;
  return plan::to_text(*value_or_throw(plan_function(woven_function(), target, options)).plan);
}

}  // namespace

TEST(Tiling, ABusyMachineGetsTheSamePlan) {
  EXPECT_EQ(TilingOptions().work, 200'000'000U);
  const std::string usual = plan_text(fused_regions(), TilingOptions().work);
  EXPECT_EQ(plan_text(std::make_shared<BusyRegions>(), TilingOptions().work), usual);
  const std::string hasty = plan_text(fused_regions(), 20'000);
  EXPECT_NE(hasty, usual) << "so little work finds another plan";
  EXPECT_EQ(plan_text(std::make_shared<BusyRegions>(), 20'000), hasty);
}

// What memory the CPU takes for plans, against the bound: the most live bytes over the steps in their order.
#include <gtest/gtest.h>

#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_executable.h"
#include "tests/support/compile_graphs.h"

using namespace tessera;

namespace {

std::shared_ptr<runtime::cpu::CpuDevice> device_of(unsigned threads) {
  auto options = runtime::cpu::CpuOptions{.threads = threads};
  options.target = value_or_throw(engine::find_device("cpu"))->target();
  return std::make_shared<runtime::cpu::CpuDevice>(std::move(options));
}

/// An executable that is prepared, as the device would run it.
class Prepared {
 public:
  explicit Prepared(const ir::FunctionRef& function, unsigned threads = 2) {
    const auto device = device_of(threads);
    const auto plan = value_or_throw(compiler::plan_function(function, device->target())).plan;
    const auto layouts = value_or_throw(plan::contiguous_inputs(*plan, {}));
    executable_ = std::make_unique<runtime::cpu::CpuExecutable>(device, plan, runtime::MemoryPool::create());
    value_or_throw(executable_->prepare({}, layouts));
    EXPECT_EQ(value_or_throw(device->plan_memory(plan, {}, layouts)).memory.offsets, memory().offsets)
        << "what is reported is not what is run";
  }

  [[nodiscard]] const MemoryLayout& memory() const { return executable_->binding().memory; }
  [[nodiscard]] double ratio() const {
    return static_cast<double>(memory().bytes) / static_cast<double>(memory().lower_bound);
  }
  [[nodiscard]] bool runs_side_by_side() const { return !executable_->waves().empty(); }

 private:
  std::unique_ptr<runtime::cpu::CpuExecutable> executable_;
};

TEST(Memory, BenchmarksTakeATenthMoreThanTheBoundAtMost) {
  for (const unsigned threads : {1U, 2U, 8U}) {
    EXPECT_LE(Prepared(fixture::Transformer().build(1000), threads).ratio(), 1.10) << threads;
    EXPECT_LE(Prepared(fixture::training_step(), threads).ratio(), 1.10) << threads;
    EXPECT_LE(Prepared(fixture::mlp(), threads).ratio(), 1.10) << threads;
  }
}

/// Chains of products of square matrices that share their weights, and a sum of what they end in.
ir::FunctionRef chains(int count, std::int64_t size) {
  const std::string type = cat("f32[", size, ", ", size, "]");
  std::string text = cat("func f(w: ", type), results;
  for (int c = 0; c < count; ++c) text += cat(", x", c, ": ", type);
  text += ") {\n";
  for (int c = 0; c < count; ++c) {
    for (int i = 0; i < 8; ++i)
      text += cat("  y", c, "_", i, ": ", type, " = matmul(", i == 0 ? cat("x", c) : cat("y", c, "_", i - 1),
                  ", w)\n");
    text += cat("  s", c, ": f32[] = sum(y", c, "_7)\n");
    results += cat(c == 0 ? "" : ", ", "s", c);
  }
  return value_or_throw(ir::parse_function(cat(text, "  return ", results, "\n}")));
}

TEST(Memory, TwoChainsThatAreAllOfTheWorkRunSideBySideInTwiceTheBound) {
  for (const std::int64_t size : {64, 256, 512}) {
    const Prepared two(chains(2, size));
    EXPECT_TRUE(two.runs_side_by_side()) << size;
    EXPECT_LE(two.ratio(), 2.0) << size;
  }
}

TEST(Memory, ManyChainsTakeNoMoreThanAsManyAsThereAreThreads) {
  const Prepared many(chains(16, 256));
  EXPECT_TRUE(many.runs_side_by_side());
  EXPECT_LE(many.ratio(), 2.0);
  const Prepared wide(chains(16, 256), 8);
  EXPECT_LE(wide.ratio(), 2.0);
}

}  // namespace

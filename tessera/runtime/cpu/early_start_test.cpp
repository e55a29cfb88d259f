#include "tessera/runtime/cpu/early_start.h"

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_device.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

ir::FunctionRef function_from(std::string_view text) { return value_or_throw(ir::parse_function(text)); }

constexpr std::string_view bytes =
    "func f(x: i32[4, 8], w: i32[8, 4]) { y: i32[4, 4] = matmul(x, w) return y }";

}  // namespace

TEST(EarlyStart, BeginsWhatLibrariesWillCompute) {
  const auto begun = start_early(*function_from(bytes), KernelCode::may_be_stored);
  ASSERT_TRUE(begun.valid());
  begun.wait();
}

TEST(EarlyStart, LeavesWhatNoLibraryComputes) {
  const auto function = function_from("func f(x: f32[4]) { y: f32[4] = exp(x) return y }");
  EXPECT_FALSE(start_early(*function, KernelCode::may_be_stored).valid());
}

TEST(EarlyStart, OpensTheCompilerWhereCodeMustBeMade) {
  const auto function = function_from("func f(x: f32[4, 8]) { y: f32[4] = sum(x) {axes = [1]} return y }");
  EXPECT_FALSE(start_early(*function, KernelCode::may_be_stored).valid());
  EXPECT_TRUE(start_early(*function, KernelCode::to_be_made).valid());
}

TEST(EarlyStart, OneThreadHasNoOtherBesideIt) {
  const auto device = std::make_shared<CpuDevice>(CpuOptions{.threads = 1});
  EXPECT_FALSE(device->expect(*function_from(bytes)).valid());
}

#include "tessera/model/device_diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/engine/devices.h"
#include "tests/support/onnx_file.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

/// The reference, but for one op, whose results are off.
class PerturbedDevice final : public runtime::Device {
 public:
  PerturbedDevice(std::string op, float by) : op_(std::move(op)), by_(by) {}
  std::string_view name() const override { return "perturbed"; }
  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) override {
    TESSERA_TRY(reference_->run(call, inputs, results));
    if (call.card().name == op_) reinterpret_cast<float*>(results[0].data)[1] += by_;
    return {};
  }
  const pattern::Target& target() const override { return reference_->target(); }
  Result<std::unique_ptr<runtime::Executable>> load(
      plan::PlanRef plan, const std::shared_ptr<runtime::MemoryPool>& pool) override {
    return reference_->load(std::move(plan), pool);
  }

 private:
  std::shared_ptr<runtime::Device> reference_ = value_or_throw(engine::find_device("reference"));
  std::string op_;
  float by_;
};

Result<DeviceDiff> diff_with(runtime::Device& other) {
  const auto reference = value_or_throw(engine::find_device("reference"));
  const onnx::Model model = value_or_throw(onnx::read_model(dense_layer().write("device_diff.onnx")));
  const std::vector<float> x{1, 1};
  const onnx::DataValue input{onnx::DataValue::Kind::tensor,
                              {op::HostTensor::of<float>(ir::Dtype::f32, {1, 2}, std::span<const float>(x))}};
  return diff_devices(model, std::span(&input, 1), *reference, other);
}

}  // namespace

TEST(DeviceDiff, ADeviceAgreesWithItself) {
  const auto same = value_or_throw(engine::find_device("reference"));
  const DeviceDiff diff = value_or_throw(diff_with(*same));
  EXPECT_FALSE(diff.first);
  EXPECT_EQ(diff.calls, 3U);
  EXPECT_EQ(diff.different, 0U);
}

TEST(DeviceDiff, NamesTheNodeAndTheSizeOfTheError) {
  PerturbedDevice other("add", 0.25F);
  const DeviceDiff diff = value_or_throw(diff_with(other));
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->node, "node 'add' (Add)");
  EXPECT_EQ(diff.first->position, 2U);
  EXPECT_EQ(diff.first->op, "add");
  EXPECT_EQ(diff.first->element, 1);
  EXPECT_EQ(diff.first->first, -93);
  EXPECT_EQ(diff.first->second, -92.75);
  EXPECT_EQ(diff.first->largest, 0.25);
  EXPECT_EQ(diff.different, 1U) << "an error is not carried on";
}

TEST(DeviceDiff, SmallDifferencesAreNone) {
  PerturbedDevice other("matmul", 1e-4F);
  EXPECT_FALSE(value_or_throw(diff_with(other)).first);
}

TEST(DeviceDiff, NoNumberOnOneSideIsADifference) {
  PerturbedDevice other("relu", std::numeric_limits<float>::quiet_NaN());
  const DeviceDiff diff = value_or_throw(diff_with(other));
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->node, "node 'cut' (Relu)");
  EXPECT_TRUE(std::isinf(diff.first->largest));
}

TEST(Devices, AnUnknownNameListsThoseThereAre) {
  const auto none = engine::find_device("abacus");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("'abacus'"), std::string::npos);
  EXPECT_NE(none.error().message().find("reference"), std::string::npos);
}

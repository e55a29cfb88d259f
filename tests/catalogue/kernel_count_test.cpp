// How many kernels device_test.cpp takes on a GPU, counted without one: programs are made for the emulated
// device, which has the capability of a GPU and what a library of products takes from it, and nothing runs.
#include <gtest/gtest.h>

#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tests/catalogue/device_cases.h"

using namespace tessera;
using fixture::DeviceCase;
using runtime::cuda::CudaDevice;

namespace {

/// Arrays of these types in memory of a device, contiguous.
class Arrays {
 public:
  Arrays(runtime::MemoryPool& pool, const op::ValueTypes& types) {
    for (const op::ValueType& type : types) {
      const op::Extents shape = op::extents_of(type.shape);
      const auto bytes = static_cast<std::size_t>(op::element_count(shape)) * ir::size_of(type.dtype);
      held_.push_back(value_or_throw(pool.allocate(bytes)));
      all.push_back({type.dtype, op::contiguous(shape), held_.back()->data()});
    }
  }

  std::vector<op::Array> all;

 private:
  std::vector<Ref<runtime::Buffer>> held_;
};

class CountedKernels : public testing::Test {
 protected:
  void SetUp() override {
    auto opened =
        runtime::cuda::open_test_device(runtime::cuda::TestDevice::emulated,
                                        {.target = engine::gpu_target(), .plan_body = &engine::plan_body});
    if (!opened) GTEST_SKIP() << opened.error().to_text();
    device_ = *std::move(opened);
    pool_ = runtime::MemoryPool::create({}, device_->memory_space());
  }

  Result<void> make_call(const DeviceCase& one) {
    const op::Attributes given = one.sample->attributes_with(&one.sizes);
    const op::ValueTypes types = one.sample->types(one.dtype, &one.sizes);
    const op::Attributes attributes = TESSERA_TRY(op::complete_attributes(*one.sample->card, given));
    const op::CallInfo call(*one.sample->card, types, attributes);
    const Arrays from(*pool_, types), to(*pool_, TESSERA_TRY(op::infer(*one.sample->card, types, given)));
    TESSERA_TRY(device_->program_of(call, from.all, to.all));
    return {};
  }

  Result<void> make_plan(const DeviceCase& one) {
    op::IrBuilder builder;
    op::Values parameters;
    std::vector<op::Layout> layouts;
    for (const op::ValueType& type : one.sample->types(one.dtype, &one.sizes)) {
      parameters.push_back(builder.parameter(cat("x", parameters.size()), type));
      layouts.push_back(op::contiguous(op::extents_of(type.shape)));
    }
    const auto values =
        builder.call_all(one.sample->card->name, parameters, one.sample->attributes_with(&one.sizes));
    const auto function = TESSERA_TRY(builder.function("call", values));
    const auto planned = TESSERA_TRY(compiler::plan_function(function, device_->target()));
    return TESSERA_TRY(device_->load(planned.plan, pool_))->prepare({}, layouts);
  }

  /// Those that there are behind these cases.
  template <class Make>
  void count(std::string_view name, const std::vector<DeviceCase>& cases, const Make& make) {
    const std::size_t before = device_->kernel_count();
    for (const DeviceCase& one : cases) {
      const Result<void> made = make(one);
      if (made) continue;
      const auto inputs = one.sample->values(one.dtype, one.sizes, 1);
      EXPECT_FALSE(fixture::run(*one.sample, inputs, one.sizes))
          << one.text << ": " << made.error().to_text();
    }
    std::printf("%s: %zu cases, %zu more kernels\n", std::string(name).c_str(), cases.size(),
                device_->kernel_count() - before);
  }

  std::shared_ptr<CudaDevice> device_;
  std::shared_ptr<runtime::MemoryPool> pool_;
};

TEST_F(CountedKernels, of_every_op_are_few) {
  const auto call = [this](const DeviceCase& one) { return make_call(one); };
  count("calls", fixture::calls_of_every_op(), call);
  count("plans", fixture::plans_of_every_op(), [this](const DeviceCase& one) { return make_plan(one); });
  count("sizes of zero and many", fixture::calls_of_zero_and_many(), call);
  count("sizes of one", fixture::calls_of_one(), call);
  std::printf("%zu different kernels, at most %zu\n", device_->kernel_count(), fixture::most_kernels);
  EXPECT_LE(device_->kernel_count(), fixture::most_kernels);
}

}  // namespace

// Every op on a device, as a single call and as a plan, on its samples, against the reference. TESSERA_DEVICE
// says which device; without it there is nothing to compare. A device that compiles kernels takes most of the
// time for that: calls are made by many threads.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/host_access.h"
#include "tessera/runtime/makes_kernels.h"
#include "tests/catalogue/device_cases.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"
#include "tests/support/side_by_side.h"

using namespace tessera;
using namespace tessera::op;
using fixture::DeviceCase;
using fixture::Sample;
using runtime::Storage;

namespace {

/// A call with its inputs, and what came out.
struct Case {
  DeviceCase of;
  std::vector<HostTensor> inputs;
  std::optional<Result<std::vector<HostTensor>>> got;
};

class DeviceCatalogue : public testing::Test {
 public:
  static void TearDownTestSuite() { device_ = nullptr; }
  void SetUp() override {
    const char* name = std::getenv("TESSERA_DEVICE");
    if (name == nullptr) GTEST_SKIP() << "TESSERA_DEVICE names no device";
    if (device_ == nullptr) {
      auto found = engine::find_device(name);
      if (!found) GTEST_SKIP() << found.error().to_text();
      device_ = *std::move(found);
      device_->settle();  // what stands in for a library until that is there would be kernels, too
    }
    pool_ = runtime::MemoryPool::create({}, device_->memory_space());
  }

  [[nodiscard]] Result<std::vector<Storage>> copied_in(const std::vector<HostTensor>& tensors) {
    std::vector<Storage> out;
    for (const HostTensor& tensor : tensors)
      out.push_back(TESSERA_TRY(runtime::copy_of(tensor.array(), *pool_)));
    return out;
  }

  [[nodiscard]] static Result<HostTensor> copied_out(const Storage& storage, Dtype dtype) {
    auto out = TESSERA_TRY(HostTensor::allocate(dtype, storage.layout.shape));
    if (storage.buffer->is_host()) {
      copy_elements(storage.array(dtype), out.array());
      return out;
    }
    const auto bytes = TESSERA_TRY(runtime::host_elements(storage, dtype));
    std::copy(bytes.begin(), bytes.end(), out.array().data);
    return out;
  }

  [[nodiscard]] Result<std::vector<HostTensor>> by_call(const Sample& sample, Dtype dtype,
                                                        const Sample::Sizes& sizes,
                                                        const std::vector<HostTensor>& inputs) {
    const ValueTypes types = sample.types(dtype, &sizes);
    const Attributes attributes =
        TESSERA_TRY(complete_attributes(*sample.card, sample.attributes_with(&sizes)));
    const CallInfo call(*sample.card, types, attributes);
    const auto stored = TESSERA_TRY(copied_in(inputs));
    std::vector<Array> from, to;
    for (std::size_t i = 0; i < stored.size(); ++i) from.push_back(stored[i].array(inputs[i].dtype()));
    std::vector<Storage> results;
    const auto result_types = TESSERA_TRY(infer(*sample.card, types, sample.attributes_with(&sizes)));
    for (const ValueType& type : result_types) {
      const Extents shape = extents_of(type.shape);
      const auto bytes = static_cast<std::size_t>(element_count(shape)) * ir::size_of(type.dtype);
      Storage result{TESSERA_TRY(pool_->allocate(bytes)), contiguous(shape)};
      TESSERA_TRY(runtime::clear(*result.buffer));
      to.push_back(result.array(type.dtype));
      results.push_back(std::move(result));
    }
    TESSERA_TRY(device_->run(call, from, to));
    std::vector<HostTensor> out;
    for (std::size_t i = 0; i < results.size(); ++i)
      out.push_back(TESSERA_TRY(copied_out(results[i], to[i].dtype)));
    return out;
  }

  [[nodiscard]] Result<std::vector<HostTensor>> by_plan(const Sample& sample, Dtype dtype,
                                                        const Sample::Sizes& sizes,
                                                        const std::vector<HostTensor>& inputs) {
    IrBuilder builder;
    Values parameters;
    const ValueTypes types = sample.types(dtype, &sizes);
    for (std::size_t i = 0; i < types.size(); ++i)
      parameters.push_back(builder.parameter(cat("x", i), types[i]));
    const Values values = builder.call_all(sample.card->name, parameters, sample.attributes_with(&sizes));
    const auto function = TESSERA_TRY(builder.function("call", values));
    const auto planned = TESSERA_TRY(compiler::plan_function(function, device_->target()));
    const auto executable = TESSERA_TRY(device_->load(planned.plan, pool_));
    const auto stored = TESSERA_TRY(copied_in(inputs));
    std::vector<Layout> layouts;
    std::vector<std::byte*> from, to;
    for (const Storage& input : stored) {
      layouts.push_back(input.layout);
      from.push_back(input.buffer->data());
    }
    TESSERA_TRY(executable->prepare({}, layouts));
    std::vector<Storage> buffers;
    for (const plan::OutputBuffer& buffer : executable->binding().buffers) {
      buffers.push_back({TESSERA_TRY(pool_->allocate(static_cast<std::size_t>(buffer.bytes))), {}});
      to.push_back(buffers.back().buffer->data());
    }
    // Twice: what is resident must not depend on what the last launch left behind.
    for (int turn = 0; turn < 2; ++turn)
      TESSERA_TRY(executable->run({.inputs = from, .parameters = {}, .outputs = to}));
    std::vector<HostTensor> out;
    for (std::size_t i = 0; i < planned.plan->outputs.size(); ++i) {
      const plan::Place& place = executable->binding().output(*planned.plan, i);
      const Storage& in = place.where == plan::Where::input ? stored[place.index] : buffers[place.index];
      const Dtype result = planned.plan->values[planned.plan->outputs[i]].type.dtype;
      out.push_back(TESSERA_TRY(copied_out({in.buffer, place.layout}, result)));
    }
    return out;
  }

  using Way = Result<std::vector<HostTensor>> (DeviceCatalogue::*)(const Sample&, Dtype, const Sample::Sizes&,
                                                                   const std::vector<HostTensor>&);

  /// All of them, side by side, and then what came out.
  void check(std::vector<DeviceCase> list, Way way) {
    std::vector<Case> cases;
    for (DeviceCase& one : list) {
      Case& made = cases.emplace_back();
      made.inputs = one.sample->values(one.dtype, one.sizes, 1);
      made.of = std::move(one);
    }
    fixture::side_by_side(cases.size(), [&](std::size_t i) {
      Case& one = cases[i];
      one.got.emplace((this->*way)(*one.of.sample, one.of.dtype, one.of.sizes, one.inputs));
    });
    for (const Case& one : cases) {
      SCOPED_TRACE(one.of.text);
      check(one);
    }
  }

  static void check(const Case& one) {
    const auto expected = fixture::run(*one.of.sample, one.inputs, one.of.sizes);
    const auto& got = *one.got;
    ASSERT_EQ(static_cast<bool>(expected), static_cast<bool>(got))
        << (got ? expected.error().to_text() : got.error().to_text());
    if (!expected) return;
    ASSERT_EQ(got->size(), expected->size());
    for (std::size_t k = 0; k < got->size(); ++k)
      EXPECT_LE(fixture::largest_difference((*got)[k], (*expected)[k]),
                10 * fixture::tolerance((*expected)[k].dtype()))
          << "result " << k;
  }

  static inline std::shared_ptr<runtime::Device> device_;  ///< of all tests: kernels are compiled once
  std::shared_ptr<runtime::MemoryPool> pool_;
};

TEST_F(DeviceCatalogue, every_op_as_a_call) {
  check(fixture::calls_of_every_op(), &DeviceCatalogue::by_call);
}

TEST_F(DeviceCatalogue, every_op_as_a_plan) {
  check(fixture::plans_of_every_op(), &DeviceCatalogue::by_plan);
}

TEST_F(DeviceCatalogue, sizes_of_zero_and_many) {
  check(fixture::calls_of_zero_and_many(), &DeviceCatalogue::by_call);
}

TEST_F(DeviceCatalogue, sizes_of_one) { check(fixture::calls_of_one(), &DeviceCatalogue::by_call); }

/// Behind all the others.
TEST_F(DeviceCatalogue, takes_few_kernels) {
  const auto* kernels = dynamic_cast<const runtime::MakesKernels*>(device_.get());
  if (kernels == nullptr) GTEST_SKIP() << device_->name() << " does not say how many kernels it compiled";
  std::printf("%zu different kernels, at most %zu\n", kernels->kernel_count(), fixture::most_kernels);
  EXPECT_LE(kernels->kernel_count(), fixture::most_kernels);
}

}  // namespace

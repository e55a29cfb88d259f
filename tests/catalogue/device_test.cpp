// Every op on a device, as a single call and as a plan, on its samples, against the reference. TESSERA_DEVICE
// says which device; without it there is nothing to compare. A device that compiles kernels takes most of the
// time for that: calls are made by many threads, and all of it takes at most 400 different kernels
// (cuda_ops_test.cpp has all dtypes).
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <set>
#include <thread>

#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/host_access.h"
#include "tessera/runtime/makes_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::op;
using fixture::dtypes_of;
using fixture::op_samples;
using fixture::Sample;
using runtime::Storage;

namespace {

constexpr std::size_t most_kernels = 400;
constexpr std::size_t most_threads = 16;

/// A call with its inputs, and what came out.
struct Case {
  const Sample* sample = nullptr;
  Dtype dtype = Dtype::f32;
  Sample::Sizes sizes;
  std::string text;
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

  /// Nothing for sizes that do not make a call.
  void add(const Sample& sample, Dtype dtype, const Sample::Sizes& sizes) {
    if (!infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes))) return;
    Case& one = cases_.emplace_back();
    one.sample = &sample;
    one.dtype = dtype;
    one.sizes = sizes;
    one.text = cat(sample.text, " in ", to_string(dtype));
    for (const auto& [name, size] : sizes) one.text += cat(", ", name, " = ", size);
    one.inputs = sample.values(dtype, sizes, 1);
  }

  /// All of them, side by side, and then what came out.
  void check(Way way) {
    std::atomic<std::size_t> next{0};
    const auto take = [&] {
      for (std::size_t i = next++; i < cases_.size(); i = next++) {
        Case& one = cases_[i];
        one.got.emplace((this->*way)(*one.sample, one.dtype, one.sizes, one.inputs));
      }
    };
    std::vector<std::thread> helpers;
    const std::size_t machine = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(machine, most_threads); ++i) helpers.emplace_back(take);
    take();
    for (std::thread& helper : helpers) helper.join();
    for (const Case& one : cases_) {
      SCOPED_TRACE(one.text);
      check(one);
    }
  }

  static void check(const Case& one) {
    const auto expected = fixture::run(*one.sample, one.inputs, one.sizes);
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
  std::deque<Case> cases_;
};

/// One of each kind.
std::vector<Dtype> few_dtypes(const Card& card) {
  std::vector<Dtype> out;
  for (const Dtype dtype : dtypes_of(card))
    if (dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::i64 || dtype == Dtype::u8 ||
        dtype == Dtype::boolean)
      out.push_back(dtype);
  return out.empty() ? dtypes_of(card) : out;
}

/// Samples of an op take the dtypes in turns, every other one the first again.
TEST_F(DeviceCatalogue, every_op_as_a_call) {
  std::map<std::string_view, std::size_t> turns;
  std::size_t count = 0;
  for (const Sample& sample : op_samples()) {
    if (sample.card->view != nullptr) continue;  // devices are not asked
    const auto dtypes = few_dtypes(*sample.card);
    const std::size_t turn = turns[sample.card->name]++;
    add(sample, dtypes[++count % 2 == 0 ? 0 : turn % dtypes.size()], sample.sizes);
  }
  check(&DeviceCatalogue::by_call);
}

TEST_F(DeviceCatalogue, every_op_as_a_plan) {
  for (const Sample& sample : op_samples())
    if (!sample.card->traits.data_dependent)  // its size is not known to a plan
      add(sample, few_dtypes(*sample.card).front(), sample.sizes);
  check(&DeviceCatalogue::by_plan);
}

TEST_F(DeviceCatalogue, sizes_of_zero_and_many) {
  std::set<std::string_view> seen;
  for (const Sample& sample : op_samples()) {
    if (sample.card->view != nullptr || !seen.insert(sample.card->name).second) continue;
    for (const std::int64_t size : {0, 67})
      for (const auto& [name, symbol] : sample.symbols) {
        Sample::Sizes sizes = sample.sizes;
        sizes[name] = size;
        add(sample, few_dtypes(*sample.card).front(), sizes);
      }
  }
  check(&DeviceCatalogue::by_call);
}

/// Axes of one element are left out of kernels, which are others then; those of pointwise ops all alike, so
/// few do.
TEST_F(DeviceCatalogue, sizes_of_one) {
  std::set<std::string_view> seen;
  std::size_t pointwise = 0;
  for (const Sample& sample : op_samples()) {
    if (sample.card->view != nullptr || !seen.insert(sample.card->name).second) continue;
    if (sample.card->pointwise != nullptr && ++pointwise % 12 != 0) continue;
    Sample::Sizes sizes = sample.sizes;
    for (const auto& [name, symbol] : sample.symbols) sizes[name] = 1;
    add(sample, few_dtypes(*sample.card).front(), sizes);
  }
  check(&DeviceCatalogue::by_call);
}

/// Behind all the others.
TEST_F(DeviceCatalogue, takes_few_kernels) {
  const auto* kernels = dynamic_cast<const runtime::MakesKernels*>(device_.get());
  if (kernels == nullptr) GTEST_SKIP() << device_->name() << " does not say how many kernels it compiled";
  std::printf("%zu different kernels, at most %zu\n", kernels->kernel_count(), most_kernels);
  EXPECT_LE(kernels->kernel_count(), most_kernels);
}

}  // namespace

#include "tessera/runtime/cuda/cuda_executable.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "tessera/base/text.h"
#include "tessera/kernel/build.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/runtime/host_access.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;
using op::Dtype;
using op::HostTensor;
using plan::ValueId;

namespace {

/// Writes plans by hand: every size is the one symbol, or a number.
class PlanMaker {
 public:
  PlanMaker() { plan_->dims = {symbol_}; }

  [[nodiscard]] op::Dim n() const { return op::Dim(ir::ExprRef(symbol_)); }

  ValueId input(op::Shape shape, Dtype dtype = Dtype::f32) {
    const auto index = static_cast<std::uint32_t>(plan_->inputs.size());
    plan_->inputs.push_back(add({.kind = plan::ValueKind::input, .type = {dtype, shape}, .index = index}));
    return plan_->inputs.back();
  }
  ValueId parameter(Dtype dtype = Dtype::f32) {
    const auto slot = static_cast<std::uint32_t>(plan_->parameters.size());
    plan_->parameters.push_back(dtype);
    return add({.kind = plan::ValueKind::parameter, .type = {dtype, {}}, .index = slot});
  }
  ValueId constant(HostTensor tensor) {
    const auto index = static_cast<std::uint32_t>(plan_->constants.size());
    const op::ValueType type{tensor.dtype(), ir::shape_of(std::span<const std::int64_t>(tensor.shape()))};
    plan_->constants.push_back(std::move(tensor));
    return add({.kind = plan::ValueKind::constant, .type = type, .index = index});
  }
  ValueId call(std::string_view name, std::vector<ValueId> inputs, const op::Attributes& given = {}) {
    plan::Step step{.kind = plan::StepKind::call, .card = op::find_card(name)};
    step.attributes = value_or_throw(op::complete_attributes(*step.card, given));
    op::ValueTypes types;
    for (const ValueId value : inputs) types.push_back(plan_->values[value].type);
    step.inputs = std::move(inputs);
    op::Assumptions assumptions;
    return finish(std::move(step),
                  value_or_throw(op::infer(*step.card, types, step.attributes, &assumptions)));
  }
  /// x * p + y as one kernel, where p is the parameter of `slot`.
  ValueId scaled_sum(ValueId x, ValueId y, std::uint32_t slot) {
    op::IrBuilder builder;
    builder.adopt_size(symbol_);
    op::Value p;
    for (std::uint32_t i = 0; i <= slot; ++i) p = builder.scalar_parameter(plan_->parameters[i]);
    const op::ValueType type = plan_->values[x].type;
    const op::Value a = builder.parameter("x", type), b = builder.parameter("y", type);
    const op::Value product = builder.call("mul", {a, p});
    const op::Value results[] = {builder.call("add", {product, b})};
    plan::Step step{.kind = plan::StepKind::kernel,
                    .function = value_or_throw(builder.function("f", results))};
    step.kernel = std::make_shared<kernel::Kernel>(value_or_throw(kernel::build(*step.function)));
    step.inputs = {x, y};
    return finish(std::move(step), {type});
  }

  /// x less the largest element of each row, as one kernel.
  ValueId less_largest(ValueId x) {
    op::IrBuilder builder;
    builder.adopt_size(symbol_);
    const op::ValueType type = plan_->values[x].type;
    const op::Value a = builder.parameter("x", type);
    const op::Value largest =
        builder.call("max", {a}, {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", true}});
    const op::Value results[] = {builder.call("sub", {a, largest})};
    plan::Step step{.kind = plan::StepKind::kernel,
                    .function = value_or_throw(builder.function("f", results))};
    step.kernel = std::make_shared<kernel::Kernel>(value_or_throw(kernel::build(*step.function)));
    step.inputs = {x};
    return finish(std::move(step), {type});
  }

  /// relu(x @ w + bias + added) as one step of a library.
  ValueId finished_product(ValueId x, ValueId w, ValueId bias, ValueId added) {
    op::IrBuilder builder;
    builder.adopt_size(symbol_);
    std::vector<op::Value> in;
    for (const ValueId value : {x, w, bias, added})
      in.push_back(builder.parameter("x", plan_->values[value].type));
    const op::Value product = builder.call("matmul", {in[0], in[1]});
    const op::Value sum = builder.call("add", {builder.call("add", {product, in[2]}), in[3]});
    const op::Value results[] = {builder.call("relu", {sum})};
    plan::Step step{.kind = plan::StepKind::library,
                    .function = value_or_throw(builder.function("matmul+add+add+relu", results))};
    step.inputs = {x, w, bias, added};
    const op::ValueTypes types{results[0].type()};
    return finish(std::move(step), types);
  }

  /// x, to which it is added `count` times.
  ValueId repeated_sum(ValueId count, ValueId x) {
    const op::ValueType type = plan_->values[x].type, number{Dtype::i64, {}};
    op::IrBuilder builder;
    static_cast<void>(builder.parameter("i", number));
    const op::Value sum = builder.parameter("sum", type), captured = builder.parameter("x", type);
    const op::Value next[] = {builder.call("add", {sum, captured})};
    const auto region = Ref<ir::ForRegion>(new ir::ForRegion);
    auto* to = const_cast<ir::ForRegion*>(region.get());
    const auto k = ir::variable("k", op::ir_type(number)), start = ir::variable("x", op::ir_type(type));
    const auto target = ir::variable("y", op::ir_type(type));
    to->count = k;
    to->inits = {start};
    to->captures = {start};
    to->body = value_or_throw(builder.function("body", next));
    ir::FunctionParts parts{.name = "for", .params = {k, start}};
    parts.body = {ir::assign({target}, region)};
    parts.results = {target};
    plan::Step step{.kind = plan::StepKind::function, .function = ir::function(std::move(parts))};
    step.inputs = {count, x};
    return finish(std::move(step), {type});
  }

  plan::PlanRef finish(std::vector<ValueId> outputs) {
    plan_->outputs = std::move(outputs);
    return plan_;
  }

 private:
  ValueId add(plan::Value value) {
    plan_->values.push_back(std::move(value));
    return static_cast<ValueId>(plan_->values.size() - 1);
  }
  ValueId finish(plan::Step step, const op::ValueTypes& types) {
    for (const op::ValueType& type : types)
      step.results.push_back(add({.type = type, .index = static_cast<std::uint32_t>(plan_->steps.size())}));
    const ValueId first = step.results[0];
    plan_->steps.push_back(std::move(step));
    return first;
  }

  Ref<ir::Var> symbol_ = ir::variable("n", ir::scalar_type(Dtype::i64));
  std::shared_ptr<plan::Plan> plan_ = std::make_shared<plan::Plan>();
};

HostTensor numbers(op::Extents shape, float first, float step = 0.5f) {
  HostTensor out = value_or_throw(HostTensor::allocate(Dtype::f32, std::move(shape)));
  float next = first;
  for (float& value : out.values<float>()) value = std::exchange(next, next + step);
  return out;
}

HostTensor indices(std::vector<std::int64_t> values) {
  return HostTensor::of<std::int64_t>(Dtype::i64, {static_cast<std::int64_t>(values.size())}, values);
}

std::uint64_t bits(double number) { return std::bit_cast<std::uint64_t>(number); }

/// A plan on the device, beside the same on the reference.
class PlanOnDevice {
 public:
  PlanOnDevice(CudaDevice& device, const plan::PlanRef& plan)
      : plan_(plan),
        pool_(MemoryPool::create({}, device.memory_space())),
        loaded_(value_or_throw(device.load(plan, pool_))),
        reference_(value_or_throw(ReferenceDevice().load(plan, MemoryPool::create()))) {}

  [[nodiscard]] CudaExecutable& executable() { return static_cast<CudaExecutable&>(*loaded_); }

  /// Runs both; the outputs must be equal to the last bit.
  void run(std::int64_t size, const std::vector<HostTensor>& inputs,
           const std::vector<std::uint64_t>& parameters = {}, std::size_t misalignment = 0) {
    const auto done = try_run(size, inputs, parameters, misalignment);
    ASSERT_TRUE(done) << done.error().to_text();
    const auto& expected = reference_outputs(size, inputs, parameters);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      std::vector<std::byte> got(expected[i].byte_size());
      const auto read = outputs_[i]->space()->copy_out(outputs_[i]->data(), got);
      ASSERT_TRUE(read) << read.error().to_text();
      ASSERT_TRUE(std::equal(got.begin(), got.end(), expected[i].array().data)) << "output " << i;
    }
  }

  Result<void> try_run(std::int64_t size, const std::vector<HostTensor>& inputs,
                       const std::vector<std::uint64_t>& parameters = {}, std::size_t misalignment = 0) {
    if (size != size_) TESSERA_TRY(prepare(*loaded_, size, inputs));
    size_ = size;
    std::vector<std::byte*> from, to;
    inputs_.resize(inputs.size());
    for (const HostTensor& input : inputs) {
      Ref<Buffer>& buffer = inputs_[from.size()];
      const std::size_t bytes = input.byte_size() + misalignment;
      if (buffer == nullptr || buffer->size() != bytes) buffer = TESSERA_TRY(pool_->allocate(bytes));
      from.push_back(buffer->data() + misalignment);
      TESSERA_TRY(pool_->space()->copy_in(from.back(), {input.array().data, input.byte_size()}));
    }
    if (outputs_.size() != loaded_->binding().buffers.size() || moves_outputs) outputs_.clear();
    for (const plan::OutputBuffer& buffer : loaded_->binding().buffers) {
      const std::size_t i = to.size();
      if (i == outputs_.size() || outputs_[i]->size() < static_cast<std::size_t>(buffer.bytes)) {
        outputs_.resize(std::max(outputs_.size(), i + 1));
        outputs_[i] = TESSERA_TRY(pool_->allocate(static_cast<std::size_t>(buffer.bytes)));
      }
      to.push_back(outputs_[i]->data());
    }
    return loaded_->run({.inputs = from, .parameters = parameters, .outputs = to, .times = times});
  }

  [[nodiscard]] std::vector<float> output(std::size_t i) const {
    std::vector<float> out(static_cast<std::size_t>(loaded_->binding().buffers[i].bytes) / sizeof(float));
    value_or_throw(
        outputs_[i]->space()->copy_out(outputs_[i]->data(), std::as_writable_bytes(std::span(out))));
    return out;
  }

  /// The next run reads and writes other buffers; after as many calls as there are sets, the same again.
  void change_buffers(std::size_t sets = 2) {
    sets_.resize(sets);
    sets_[set_] = {std::move(inputs_), std::move(outputs_)};
    set_ = (set_ + 1) % sets;
    std::tie(inputs_, outputs_) = std::exchange(sets_[set_], {});
  }

  bool moves_outputs = false;
  std::vector<TimedStep>* times = nullptr;

 private:
  static Result<void> prepare(Executable& executable, std::int64_t size,
                              const std::vector<HostTensor>& inputs) {
    std::vector<op::Layout> layouts;
    for (const HostTensor& input : inputs) layouts.push_back(input.array().layout);
    return executable.prepare({&size, 1}, layouts);
  }

  std::vector<HostTensor> reference_outputs(std::int64_t size, const std::vector<HostTensor>& inputs,
                                            const std::vector<std::uint64_t>& parameters) {
    value_or_throw(prepare(*reference_, size, inputs));
    std::vector<std::byte*> from, to;
    std::vector<HostTensor> out;
    for (const HostTensor& input : inputs) from.push_back(input.array().data);
    for (const plan::OutputBuffer& buffer : reference_->binding().buffers) {
      out.push_back(value_or_throw(HostTensor::allocate(Dtype::u8, {buffer.bytes})));
      to.push_back(out.back().array().data);
    }
    value_or_throw(reference_->run({.inputs = from, .parameters = parameters, .outputs = to}));
    return out;
  }

  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  std::unique_ptr<Executable> loaded_, reference_;
  std::int64_t size_ = -1;
  std::vector<Ref<Buffer>> inputs_, outputs_;
  std::vector<std::pair<std::vector<Ref<Buffer>>, std::vector<Ref<Buffer>>>> sets_;
  std::size_t set_ = 0;
};

class CudaPlans : public OnTestDevice {};

/// Two sums of products with parameters, their difference and a view between.
plan::PlanRef two_branches() {
  PlanMaker make;
  const ValueId x = make.input({make.n(), 4}), y = make.input({make.n(), 4});
  static_cast<void>(make.parameter());
  static_cast<void>(make.parameter());
  const ValueId a = make.scaled_sum(x, y, 0), b = make.scaled_sum(y, x, 1);
  const ValueId c = make.call("sub", {a, b}), d = make.call("maximum", {a, y});
  return make.finish({c, make.call("add", {d, b})});
}

}  // namespace

TEST_P(CudaPlans, AreRightInEveryLaunch) {
  PlanOnDevice plan(*device_, two_branches());
  for (int i = 0; i < 6; ++i) {
    const auto x = numbers({3, 4}, static_cast<float>(i)), y = numbers({3, 4}, -1.0f);
    ASSERT_NO_FATAL_FAILURE(plan.run(3, {x, y}, {bits(2.5), bits(i)}));
  }
}

TEST_P(CudaPlans, PatchOnlyWhatChanged) {
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({8, 4}, 1.0f), y = numbers({8, 4}, -3.0f);
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(2), bits(3)}));
  EXPECT_EQ(plan.executable().last_update(), (GraphUpdate{.is_instantiated = true}));
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(2), bits(3)}));
  EXPECT_EQ(plan.executable().last_update(), GraphUpdate());
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(2), bits(4)}));
  EXPECT_EQ(plan.executable().last_update(), (GraphUpdate{.patched = 1}));
  plan.moves_outputs = true;
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(5), bits(4)}));
  EXPECT_FALSE(plan.executable().last_update().is_instantiated);
}

TEST_P(CudaPlans, KeepAGraphForEachSetOfBuffersThatComesBack) {
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({8, 4}, 1.0f), y = numbers({8, 4}, -3.0f);
  for (int i = 0; i < 12; ++i) {
    ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(2), bits(3)}));
    if (i > 3) {
      EXPECT_EQ(plan.executable().last_update(), GraphUpdate()) << i;
    }
    plan.change_buffers();
  }
  EXPECT_EQ(plan.executable().replica_count(), 2u);
  // A number is patched in each of them when it is used.
  for (int i = 0; i < 4; ++i) {
    ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(2), bits(4)}));
    EXPECT_EQ(plan.executable().last_update().patched, i < 2 ? 1u : 0u);
    plan.change_buffers();
  }
  ASSERT_NO_FATAL_FAILURE(plan.run(3, {numbers({3, 4}, 1.0f), numbers({3, 4}, 2.0f)}, {bits(2), bits(4)}));
  EXPECT_EQ(plan.executable().replica_count(), 1u);
}

TEST_P(CudaPlans, KeepFewGraphsForBuffersThatChangeForEver) {
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({8, 4}, 1.0f), y = numbers({8, 4}, -3.0f);
  for (int i = 0; i < 40; ++i) {
    ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, y}, {bits(i), bits(3)}));
    plan.change_buffers(9);
  }
  EXPECT_LE(plan.executable().replica_count(), 4u);
}

TEST_P(CudaPlans, ReadManyNumbersFromMemory) {
  PlanMaker make;
  const ValueId x = make.input({make.n()});
  for (int i = 0; i < 20; ++i) static_cast<void>(make.parameter());
  ValueId y = x;
  for (std::uint32_t i = 0; i < 20; ++i) y = make.scaled_sum(y, x, i);
  PlanOnDevice plan(*device_, make.finish({y}));
  std::vector<std::uint64_t> parameters(20, bits(0.5));
  ASSERT_NO_FATAL_FAILURE(plan.run(33, {numbers({33}, 1.0f, 1.0f)}, parameters));
  for (int i = 0; i < 3; ++i) {
    for (std::uint64_t& parameter : parameters) parameter = bits(i);
    ASSERT_NO_FATAL_FAILURE(plan.run(33, {numbers({33}, 1.0f, 1.0f)}, parameters));
    EXPECT_EQ(plan.executable().last_update(), GraphUpdate()) << "no node holds a number";
  }
}

TEST_P(CudaPlans, FollowSizesWithoutANewGraph) {
  PlanOnDevice plan(*device_, two_branches());
  for (const std::int64_t n : {4, 1, 300, 4}) {
    const auto x = numbers({n, 4}, 1.0f), y = numbers({n, 4}, -3.0f);
    ASSERT_NO_FATAL_FAILURE(plan.run(n, {x, y}, {bits(2), bits(3)}));
  }
  EXPECT_FALSE(plan.executable().last_update().is_instantiated);
}

/// The function of a node is replaced by one that asks for all that a block can have.
TEST_P(CudaPlans, HoldLongRowsInTheMemoryOfTheDevicesBlocks) {
  PlanMaker make;
  const ValueId x = make.input({64, make.n()});
  PlanOnDevice plan(*device_, make.finish({make.less_largest(x)}));
  for (const std::int64_t n : {1000, 60'000, 98'304}) {
    ASSERT_NO_FATAL_FAILURE(plan.run(n, {numbers({64, n}, -1.0f, 0.25f)})) << n;
    if (is_emulated()) {
      const PlanNode& node = plan.executable().program().nodes.at(0);
      // A multiprocessor would have one block of the longest, and there are more of those than rows.
      EXPECT_EQ(node.source->entry, n == 98'304 ? "long_rows" : "rows");
      EXPECT_EQ(node.shared_bytes > usual_shared_bytes, n == 60'000) << node.shared_bytes;
    }
  }
}

TEST(CudaPlansOnSmallBlocks, ReadLongRowsOnceAPass) {
  emulated_state().shared_bytes = usual_shared_bytes;
  emulated_state().multiprocessors = 16;
  const auto device = open_test_device(TestDevice::emulated);
  emulated_state().shared_bytes = EmulatedState().shared_bytes;
  emulated_state().multiprocessors = EmulatedState().multiprocessors;
  if (!device) GTEST_SKIP() << device.error().to_text();
  PlanMaker make;
  const ValueId x = make.input({64, make.n()});
  PlanOnDevice plan(**device, make.finish({make.less_largest(x)}));
  for (const std::int64_t n : {51'200, 51'204}) {
    ASSERT_NO_FATAL_FAILURE(plan.run(n, {numbers({64, n}, -1.0f, 0.25f)})) << n;
    EXPECT_EQ(plan.executable().program().nodes.at(0).source->entry, n == 51'200 ? "rows" : "long_rows");
  }
}

TEST_P(CudaPlans, HaveNothingToDoForNoElements) {
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({0, 4}, 1.0f), y = numbers({0, 4}, -3.0f);
  ASSERT_NO_FATAL_FAILURE(plan.run(0, {x, y}, {bits(2), bits(3)}));
  const auto more = numbers({2, 4}, 1.0f);
  ASSERT_NO_FATAL_FAILURE(plan.run(2, {more, more}, {bits(2), bits(3)}));
}

TEST_P(CudaPlans, ReadInputsThatAreNotAligned) {
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({64, 4}, 1.0f), y = numbers({64, 4}, -3.0f);
  for (const std::size_t misalignment : {0, 4, 8, 12, 0})
    ASSERT_NO_FATAL_FAILURE(plan.run(64, {x, y}, {bits(2), bits(3)}, misalignment));
}

/// Twelve values that live for different times, in memory that is used again; the emulated device runs what
/// is not ordered in any order.
TEST_P(CudaPlans, Trap_G3_ReuseMemoryOnlyBehindItsReaders) {
  PlanMaker make;
  const ValueId x = make.input({make.n()});
  std::vector<ValueId> values{x};
  for (int i = 0; i < 12; ++i) {
    const ValueId left = values[static_cast<std::size_t>(i) / 2];
    values.push_back(make.call(i % 3 == 0 ? "sub" : "add", {values.back(), left}));
  }
  PlanOnDevice plan(*device_, make.finish({values.back(), values[5]}));
  for (int i = 0; i < 10; ++i)
    ASSERT_NO_FATAL_FAILURE(plan.run(100, {numbers({100}, static_cast<float>(i))}));
}

/// relu(x w + b + r) of small whole numbers, which every order of additions gives exactly; between steps with
/// memory of their own, so that the workspace lies behind it.
static plan::PlanRef product_plan() {
  PlanMaker make;
  const ValueId x = make.input({make.n(), 3}), w = make.input({3, 5}), b = make.input({5}),
                r = make.input({make.n(), 5}), i = make.input({2}, Dtype::i64);
  const ValueId y = make.finished_product(x, w, b, r);
  const ValueId chosen = make.call("cumsum", {make.call("gather", {y, i})}, {{"axis", std::int64_t{1}}});
  return make.finish({y, make.call("matmul", {chosen, make.call("transpose", {w})})});
}

static std::vector<HostTensor> product_inputs(std::int64_t n, float first) {
  return {numbers({n, 3}, first, 1.0f), numbers({3, 5}, -6.0f, 1.0f), numbers({5}, 2.0f, 1.0f),
          numbers({n, 5}, -20.0f, 1.0f), indices({0, 1})};
}

TEST_P(CudaPlans, Trap_G1_G9_ReadAndFinishProductsOfALibrary) {
  PlanOnDevice plan(*device_, product_plan());
  for (int turn = 0; turn < 6; ++turn) {
    ASSERT_NO_FATAL_FAILURE(plan.run(4, product_inputs(4, static_cast<float>(turn))));
    plan.change_buffers(3);
  }
  if (is_emulated()) {
    EXPECT_GE(emulated_blas_state().products, 12u);
  }
}

/// What the library needs for a product is as much as its algorithm does, and products that wait for each
/// other have it one after another.
TEST_P(CudaPlans, HoldTheMemoryThatTheirProductsNeed) {
  const auto scratch_of = [this](bool side_by_side) {
    PlanMaker make;
    const ValueId x = make.input({make.n(), 40}), w = make.input({40, 40});
    const ValueId y = make.call("matmul", {x, w}), z = make.call("matmul", {side_by_side ? x : y, w});
    PlanOnDevice plan(*device_, make.finish({y, z}));
    plan.run(40, {numbers({40, 40}, 1.0f, 0.0f), numbers({40, 40}, 2.0f, 0.0f)});
    EXPECT_EQ(plan.executable().scratch_bytes(), plan.executable().program().scratch_bytes);
    return plan.executable().scratch_bytes();
  };
  if (!is_emulated()) {
    EXPECT_LT(scratch_of(true), static_cast<std::uint64_t>(product_workspace));
    return;
  }
  const auto needed = static_cast<std::uint64_t>(emulated_blas_state().workspace_bytes);
  EXPECT_EQ(scratch_of(false), needed);
  EXPECT_EQ(scratch_of(true), 2 * needed);
}

TEST_P(CudaPlans, Trap_G7_G14_CaptureProductsAgainForOtherSizesAndBuffers) {
  PlanOnDevice plan(*device_, product_plan());
  for (const std::int64_t n : {2, 64, 3, 128}) {
    ASSERT_NO_FATAL_FAILURE(plan.run(n, product_inputs(n, 1.0f)));
    plan.moves_outputs = true;
    ASSERT_NO_FATAL_FAILURE(plan.run(n, product_inputs(n, 2.0f)));
  }
}

/// Numbers, buffers and so the captured product change with every launch, and nobody waits between them.
TEST_P(CudaPlans, Trap_G6_G16_AreChangedWhileTheyAreUnderWay) {
  constexpr std::size_t launches = 12;
  PlanMaker make;
  const ValueId x = make.input({make.n(), 3}), w = make.input({3, 5}), r = make.input({make.n(), 5});
  static_cast<void>(make.parameter());
  PlanOnDevice plan(*device_, make.finish({make.scaled_sum(make.call("matmul", {x, w}), r, 0)}));
  const auto a = numbers({4, 3}, 1.0f, 1.0f), b = numbers({3, 5}, -6.0f, 1.0f),
             c = numbers({4, 5}, 2.0f, 1.0f);
  for (std::size_t i = 0; i < launches; ++i) {
    value_or_throw(plan.try_run(4, {a, b, c}, {bits(static_cast<double>(i))}));
    plan.change_buffers(launches);
  }
  for (std::size_t i = 0; i < launches; ++i) {
    const auto y = plan.output(0);
    for (std::size_t at = 0; at < y.size(); ++at) {
      float product = 0;
      for (std::size_t k = 0; k < 3; ++k)
        product += a.values<float>()[at / 5 * 3 + k] * b.values<float>()[k * 5 + at % 5];
      EXPECT_EQ(y[at], product * static_cast<float>(i) + c.values<float>()[at]) << i << ", " << at;
    }
    plan.change_buffers(launches);
  }
}

TEST_P(CudaPlans, ComputeProductsThemselvesWhileTheLibraryIsBeingOpened) {
  if (!is_emulated()) GTEST_SKIP() << "the real library is there by now";
  device_->expect_products();
  PlanOnDevice plan(*device_, product_plan());
  const std::uint64_t before = emulated_blas_state().products;
  ASSERT_NO_FATAL_FAILURE(plan.run(4, product_inputs(4, 1.0f)));
  ASSERT_NO_FATAL_FAILURE(plan.run(4, product_inputs(4, 2.0f)));
  EXPECT_EQ(emulated_blas_state().products, before) << "nobody waits for it";
  device_->open_products();
  ASSERT_FALSE(device_->awaits_products());
  ASSERT_NO_FATAL_FAILURE(plan.run(4, product_inputs(4, 3.0f)));
  EXPECT_GT(emulated_blas_state().products, before) << "it is taken as soon as it is there";
}

TEST_P(CudaPlans, KeepWhatIsNoNumberThroughAnActivation) {
  PlanOnDevice plan(*device_, product_plan());
  auto inputs = product_inputs(4, 1.0f);
  inputs[0].values<float>()[0] = std::nanf("");
  value_or_throw(plan.try_run(4, inputs));
  const auto y = plan.output(0);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i < 5) << i;
}

TEST_P(CudaPlans, FinishProductsThemselvesIfTheLibraryDoesNot) {
  if (!is_emulated()) GTEST_SKIP() << "the real library has them";
  emulated_blas_state().has_ends = false;
  PlanOnDevice plan(*device_, product_plan());
  const auto done = plan.try_run(4, product_inputs(4, 1.0f));
  emulated_blas_state().has_ends = true;
  ASSERT_TRUE(done) << done.error().to_text();
  ASSERT_NO_FATAL_FAILURE(plan.run(4, product_inputs(4, 3.0f)));
}

/// What goes wrong once is tried again with everything that there is.
TEST_P(CudaPlans, LeaveEndsOfProductsToTheLibraryAfterOtherErrors) {
  if (!is_emulated()) GTEST_SKIP() << "a real driver does not fail on demand";
  PlanOnDevice plan(*device_, product_plan());
  emulated_state().loading = CUDA_ERROR_UNKNOWN;
  const auto failed = plan.try_run(4, product_inputs(4, 1.0f));
  emulated_state().loading = CUDA_SUCCESS;
  ASSERT_FALSE(failed);
  ASSERT_NO_FATAL_FAILURE(plan.run(4, product_inputs(4, 1.0f)));
  const auto& nodes = plan.executable().program().nodes;
  EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [](const PlanNode& node) {
    return node.product != nullptr && node.product->finish != Product::Finish();
  })) << to_text(plan.executable().program());
}

TEST_P(CudaPlans, SayWhatWasQueuedWhenADeviceFails) {
  if (!is_emulated()) GTEST_SKIP() << "a real device does not fail on demand";
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({8, 4}, 1.0f);
  ASSERT_TRUE(plan.try_run(8, {x, x}, {bits(2), bits(3)}));
  emulated_state().failure = "an address outside";
  const auto failed = device_->synchronize();
  emulated_state().failure.clear();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().to_text().find(
                "queued since the last wait: the plan of kernel, kernel, sub, maximum, add"),
            std::string::npos)
      << failed.error().to_text();
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, x}, {bits(2), bits(3)}));
}

/// An op that reads one and writes the other would be taken for one in place.
TEST(Placeholders, OfManyArraysDoNotOverlap) {
  const auto place = [](Address::Base base, std::uint32_t index) {
    return reinterpret_cast<std::uintptr_t>(placeholder({base, index, 0}));
  };
  std::set<std::uintptr_t> places;
  const std::uint32_t indices[] = {0, 1, 16'383, 16'384, 16'385, 65'536, 1'048'575};
  for (int base = 0; base <= static_cast<int>(Address::Base::status); ++base)
    for (const std::uint32_t index : indices) places.insert(place(static_cast<Address::Base>(base), index));
  EXPECT_EQ(places.size(), std::size(indices) * 9);
  std::uintptr_t last = 0;
  for (const std::uintptr_t at : places) {
    EXPECT_GE(at - last, std::uintptr_t{1} << 40);
    last = at;
  }
  plan::Plan plan;
  plan.inputs.resize((1 << 20) + 1);
  const auto refused = plan_program(plan, {}, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "a plan with 1048577 arrays of a kind, at most 1048576 are possible");
}

TEST_P(CudaPlans, HaveConstantsViewsAndNumbersAsArrays) {
  PlanMaker make;
  const ValueId x = make.input({make.n(), 4});
  const ValueId p = make.parameter(), c = make.constant(numbers({4}, 2.0f));
  const ValueId turned = make.call("transpose", {x}, {{"permutation", std::vector<std::int64_t>{1, 0}}});
  const ValueId flat = make.call("reshape", {turned}, {{"shape", op::Shape{make.n() * 4}}});
  const ValueId sum = make.call("add", {x, c}), product = make.call("mul", {sum, p});
  PlanOnDevice plan(*device_, make.finish({flat, product, turned}));
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(plan.run(5, {numbers({5, 4}, 1.0f)}, {bits(i + 0.5)}));
}

TEST_P(CudaPlans, Trap_G19_RunRegionsBetweenTheirSteps) {
  PlanMaker make;
  const ValueId k = make.input({}, Dtype::i64), x = make.input({make.n()});
  const ValueId before = make.call("neg", {x}), sum = make.repeated_sum(k, before);
  PlanOnDevice plan(*device_, make.finish({make.call("add", {sum, x}), sum}));
  for (const std::int64_t count : {3, 0, 7}) {
    const auto times = HostTensor::of<std::int64_t>(Dtype::i64, {}, std::vector<std::int64_t>{count});
    ASSERT_NO_FATAL_FAILURE(plan.run(5, {times, numbers({5}, 1.0f)}));
  }
}

TEST_P(CudaPlans, ReportIndicesThatAreOutside) {
  PlanMaker make;
  const ValueId x = make.input({make.n(), 4}), i = make.input({3}, Dtype::i64);
  PlanOnDevice plan(*device_, make.finish({make.call("gather", {x, i})}));
  ASSERT_NO_FATAL_FAILURE(plan.run(5, {numbers({5, 4}, 1.0f), indices({0, 4, -1})}));
  const auto wrong = plan.try_run(5, {numbers({5, 4}, 1.0f), indices({0, 5, 1})});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("gather"), std::string::npos) << wrong.error().message();
  ASSERT_NO_FATAL_FAILURE(plan.run(5, {numbers({5, 4}, 1.0f), indices({1, 2, 3})}));
  EXPECT_FALSE(plan.try_run(5, {numbers({5, 4}, 1.0f), indices({0, 5, 1})}));
  ASSERT_NO_FATAL_FAILURE(plan.run(7, {numbers({7, 4}, 1.0f), indices({6, 5, -7})})) << "for other sizes";
  EXPECT_FALSE(plan.try_run(7, {numbers({7, 4}, 1.0f), indices({0, 7, 1})}));
}

TEST_P(CudaPlans, FindOutAboutIndicesWithoutACopy) {
  if (!is_emulated()) GTEST_SKIP() << "the emulated driver counts copies";
  PlanMaker make;
  const ValueId x = make.input({make.n(), 4}), i = make.input({3}, Dtype::i64);
  PlanOnDevice plan(*device_, make.finish({make.call("gather", {x, i})}));
  const std::uint64_t before = emulated_state().copied_out;
  ASSERT_TRUE(plan.try_run(5, {numbers({5, 4}, 1.0f), indices({0, 4, -1})}));
  ASSERT_FALSE(plan.try_run(5, {numbers({5, 4}, 1.0f), indices({0, 5, -1})}));
  EXPECT_EQ(emulated_state().copied_out, before);
}

TEST_P(CudaPlans, Trap_G18_AreRefusedIfTheyNeedMoreMemoryThanThereIs) {
  PlanMaker make;
  const ValueId x = make.input({make.n()});
  const ValueId y = make.call("add", {x, x}), z = make.call("sub", {y, x});
  PlanOnDevice plan(*device_, make.finish({make.call("mul", {z, y})}));
  ASSERT_NO_FATAL_FAILURE(plan.run(10, {numbers({10}, 1.0f)}));
  const std::int64_t large = std::int64_t{1} << 42;
  const op::Layout layout = op::contiguous({large});
  const auto refused = plan.executable().prepare({&large, 1}, {&layout, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::memory);
  // y, z and the result, and what there is.
  EXPECT_EQ(refused.error().message().rfind(cat("the plan needs ", 12 * large, " bytes, 0 of them"), 0), 0u)
      << refused.error().message();
  EXPECT_NE(refused.error().message().find(std::to_string(device_->context()->memory_bytes())),
            std::string::npos);
  ASSERT_NO_FATAL_FAILURE(plan.run(10, {numbers({10}, 2.0f)}));
}

TEST_P(CudaPlans, OfThousandsOfStepsRunInTurn) {
  PlanMaker make;
  const ValueId x = make.input({make.n()});
  ValueId y = x;
  for (int i = 0; i < 4200; ++i) y = make.call(i % 2 == 0 ? "neg" : "relu", {y});
  PlanOnDevice plan(*device_, make.finish({y}));
  ASSERT_NO_FATAL_FAILURE(plan.run(3, {numbers({3}, -1.0f)}));
}

/// What changes while steps are timed is in what runs after, and the other way round.
TEST_P(CudaPlans, TimeTheirSteps) {
  PlanOnDevice plan(*device_, two_branches());
  std::vector<TimedStep> times;
  const auto x = numbers({8, 4}, 1.0f);
  for (int i = 0; i < 9; ++i) {
    times.clear();
    plan.times = i % 3 == 2 ? nullptr : &times;
    ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, x}, {bits(2), bits(i)}));
    plan.change_buffers();
    if (plan.times == nullptr) continue;
    ASSERT_EQ(times.size(), 5u);
    std::vector<plan::StepId> steps;
    for (const TimedStep& time : times) {
      steps.push_back(time.step);
      EXPECT_GT(time.end, time.begin);
      EXPECT_LE(time.end, TimedStep::Clock::now());
    }
    EXPECT_TRUE(
        std::is_permutation(steps.begin(), steps.end(), std::vector<plan::StepId>{0, 1, 2, 3, 4}.begin()));
    EXPECT_GT(steps.back(), 1u) << "the last step waits for others";
  }
}

TEST_P(CudaPlans, TimeRegionsThatTheHostDrives) {
  PlanMaker make;
  const ValueId count = make.input({}, Dtype::i64), x = make.input({make.n()});
  const ValueId sum = make.repeated_sum(count, make.call("neg", {x}));
  PlanOnDevice plan(*device_, make.finish({make.call("relu", {sum})}));
  std::vector<TimedStep> times;
  plan.times = &times;
  const auto three = HostTensor::of<std::int64_t>(Dtype::i64, {}, std::vector<std::int64_t>{3});
  ASSERT_NO_FATAL_FAILURE(plan.run(12000, {three, numbers({12000}, -9.0f)}));
  ASSERT_EQ(times.size(), 3u);
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].step, i);
    EXPECT_EQ(times[i].thread, 0u) << "one after the other";
  }
}

TEST_P(CudaPlans, AreMadeAnewIfTheDriverRefusesAPatch) {
  if (!is_emulated()) GTEST_SKIP() << "a real driver does not refuse on demand";
  PlanOnDevice plan(*device_, two_branches());
  const auto x = numbers({8, 4}, 1.0f);
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, x}, {bits(2), bits(3)}));
  emulated_state().refuses_updates = true;
  ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, x}, {bits(2), bits(7)}));
  emulated_state().refuses_updates = false;
  EXPECT_TRUE(plan.executable().last_update().is_instantiated);
}

TEST_P(CudaPlans, GiveEverythingBack) {
  if (!is_emulated()) GTEST_SKIP() << "only the emulated driver counts";
  const std::uint64_t graphs = emulated_state().live_graphs;
  {
    PlanOnDevice plan(*device_, two_branches());
    const auto x = numbers({8, 4}, 1.0f);
    for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(plan.run(8, {x, x}, {bits(2), bits(i)}));
  }
  EXPECT_EQ(emulated_state().live_graphs, graphs);
  device_->memory().trim();
  EXPECT_EQ(device_->memory().kept_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaPlans, all_test_devices(), test_device_name);

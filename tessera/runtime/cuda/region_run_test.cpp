#include "tessera/runtime/cuda/region_run.h"

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tessera/kernel/kernel_case.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/cuda/cuda_executable.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/runtime/host_access.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;
using kernel::number;
using op::Dtype;
using op::HostTensor;

namespace {

/// One step that is a function, and the negative of its first result behind it.
plan::PlanRef plan_of(const std::string& text) {
  auto out = std::make_shared<plan::Plan>();
  const auto add = [&](plan::Value value) {
    out->values.push_back(std::move(value));
    return static_cast<plan::ValueId>(out->values.size() - 1);
  };
  plan::Step region{.kind = plan::StepKind::function, .function = value_or_throw(ir::parse_function(text))};
  for (const auto& param : region.function->params) {
    const auto index = static_cast<std::uint32_t>(out->inputs.size());
    out->inputs.push_back(
        add({.kind = plan::ValueKind::input, .type = *op::value_type(*param->type), .index = index}));
  }
  region.inputs = out->inputs;
  for (const auto& result : region.function->results)
    region.results.push_back(add({.type = *op::value_type(*static_cast<const ir::Var&>(*result).type)}));
  plan::Step after{.kind = plan::StepKind::call, .card = op::find_card("neg")};
  after.inputs = {region.results[0]};
  after.results = {add({.type = out->values[region.results[0]].type, .index = 1})};
  out->outputs = region.results;
  out->outputs.push_back(after.results[0]);
  out->steps = {std::move(region), std::move(after)};
  return out;
}

/// The outputs of a plan on a device, each in its own buffer.
class Loaded {
 public:
  Loaded(Device& device, const plan::PlanRef& plan)
      : plan_(plan),
        pool_(MemoryPool::create({}, device.memory_space())),
        executable_(value_or_throw(device.load(plan, pool_))) {}

  [[nodiscard]] Executable& executable() { return *executable_; }

  Result<std::vector<std::vector<float>>> run(const std::vector<HostTensor>& inputs) {
    std::vector<op::Layout> layouts;
    std::vector<Ref<Buffer>> held;
    std::vector<std::byte*> from, to;
    const auto take = [&](std::size_t bytes) {
      held.push_back(value_or_throw(pool_->allocate(bytes)));
      return held.back()->data();
    };
    for (const HostTensor& input : inputs) {
      layouts.push_back(input.array().layout);
      from.push_back(take(input.byte_size()));
      value_or_throw(runtime::write_bytes(*held.back(), {input.array().data, input.byte_size()}));
    }
    if (!is_prepared_) TESSERA_TRY(executable_->prepare({}, layouts));
    is_prepared_ = true;
    for (const plan::OutputBuffer& buffer : executable_->binding().buffers)
      to.push_back(take(static_cast<std::size_t>(buffer.bytes)));
    TESSERA_TRY(executable_->run({.inputs = from, .parameters = {}, .outputs = to}));
    std::vector<std::vector<float>> out;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto& buffer = held[inputs.size() + i];
      out.emplace_back(static_cast<std::size_t>(executable_->binding().buffers[i].bytes) / sizeof(float));
      const auto bytes = std::as_writable_bytes(std::span(out.back()));
      if (buffer->space() != nullptr)
        TESSERA_TRY(buffer->space()->copy_out(buffer->data(), bytes));
      else
        std::copy_n(buffer->data(), bytes.size(), bytes.begin());
    }
    return out;
  }

 private:
  plan::PlanRef plan_;
  std::shared_ptr<MemoryPool> pool_;
  std::unique_ptr<Executable> executable_;
  bool is_prepared_ = false;
};

HostTensor matrix(float first) {
  HostTensor out = value_or_throw(HostTensor::allocate(Dtype::f32, {2, 2}));
  for (float& value : out.values<float>()) value = std::exchange(first, first + 0.5f);
  return out;
}
HostTensor truth(bool value) {
  HostTensor out = value_or_throw(HostTensor::allocate(Dtype::boolean, {}));
  *out.array().data = std::byte{value};
  return out;
}

class CudaRegions : public OnTestDevice {
 protected:
  /// Runs it with each list of inputs, on the device and on the reference. A product keeps it from being a
  /// kernel of one block.
  void expect_same(const std::string& text, const std::vector<std::vector<HostTensor>>& turns) {
    const auto plan = plan_of(text);
    ReferenceDevice reference;
    Loaded here(*device_, plan), there(reference, plan);
    for (const auto& inputs : turns) {
      const auto got = here.run(inputs), wanted = there.run(inputs);
      ASSERT_TRUE(got && wanted) << (got ? wanted : got).error().to_text();
      EXPECT_EQ(*got, *wanted);
    }
    EXPECT_EQ(static_cast<CudaExecutable&>(here.executable()).program().driven.size(), 1u);
  }
};

}  // namespace

TEST_P(CudaRegions, Trap_G4_AnIfThatIsFalseGivesZeros) {
  expect_same(R"(func f(c: bool[], x: f32[2, 2]) {
  y: f32[2, 2] = if c with (x) (a: f32[2, 2]) {
    p: f32[2, 2] = matmul(a, a)
    return p
  } else (a: f32[2, 2]) {
    z: f32[2, 2] = sub(a, a)
    return z
  }
  return y
})",
              {{truth(true), matrix(1)}, {truth(false), matrix(1)}, {truth(true), matrix(2)}});
}

TEST_P(CudaRegions, Trap_G19_AForOfAnyCountWithAnIfInside) {
  expect_same(R"(func f(n: i64[], x: f32[2, 2]) {
  y: f32[2, 2] = for n (x) with (x) (i: i64[], s: f32[2, 2], w: f32[2, 2]) {
    p: f32[2, 2] = matmul(s, w)
    q: f32[2, 2] = mul(p, 0.25:f32)
    odd: i64[] = mod(i, 2:i64)
    c: bool[] = eq(odd, 1:i64)
    r: f32[2, 2] = if c with (q) (a: f32[2, 2]) {
      t: f32[2, 2] = neg(a)
      return t
    } else (a: f32[2, 2]) {
      return a
    }
    return r
  }
  return y
})",
              {{number(3), matrix(1)}, {number(0), matrix(1)}, {number(6), matrix(-1)}});
}

TEST_P(CudaRegions, Trap_G19_AWhileThatIsFalseAtTheStartChangesNothing) {
  expect_same(R"(func f(e: f32[2, 2], x: f32[2, 2]) {
  y: f32[2, 2] = while (x) with (e) limit 50 (s: f32[2, 2], e: f32[2, 2]) {
    a: f32[] = sum(s)
    b: f32[] = sum(e)
    m: bool[] = gt(a, b)
    return m
  } do (s: f32[2, 2], e: f32[2, 2]) {
    p: f32[2, 2] = matmul(s, s)
    q: f32[2, 2] = sub(s, 1.0:f32)
    z: f32[2, 2] = mul(p, 0.0:f32)
    r: f32[2, 2] = add(q, z)
    return r
  }
  return y
})",
              {{matrix(1), matrix(4)}, {matrix(9), matrix(4)}, {matrix(0), matrix(3)}});
}

TEST_P(CudaRegions, Trap_G12_AWhileThatNeverEndsSaysSo) {
  const auto plan = plan_of(R"(func f(x: f32[2, 2]) {
  y: f32[2, 2] = while (x) with () limit 10 (s: f32[2, 2]) {
    return true
  } do (s: f32[2, 2]) {
    p: f32[2, 2] = matmul(s, s)
    return p
  }
  return y
})");
  Loaded here(*device_, plan);
  const auto done = here.run({matrix(0)});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::limit);
  EXPECT_NE(done.error().message().find("10"), std::string::npos) << done.error().message();
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaRegions, all_test_devices(), test_device_name);

// Regions as conditional nodes, with bodies that the compiler made plans of: on the emulated device, and on a
// GPU where there is one.
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_function.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cuda/cuda_executable.h"
#include "tessera/runtime/cuda/emulator/nvrtc_check.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/runtime/host_access.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::runtime;
using op::Dtype;
using op::HostTensor;
using runtime::cuda::CudaExecutable;

namespace {

using Floats = std::vector<float>;

HostTensor floats(const op::Extents& shape, float first) {
  HostTensor out = value_or_throw(HostTensor::allocate(Dtype::f32, shape));
  for (float& value : out.values<float>()) value = std::exchange(first, first + 0.125f);
  return out;
}
HostTensor truth(bool value) {
  HostTensor out = value_or_throw(HostTensor::allocate(Dtype::boolean, {}));
  *out.array().data = std::byte{value};
  return out;
}
HostTensor number(std::int64_t value) {
  return HostTensor::of<std::int64_t>(Dtype::i64, {}, std::vector{value});
}
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// A plan on a device with its inputs and outputs, which stay where they are unless they are moved.
class Loaded {
 public:
  Loaded(Device& device, const plan::PlanRef& plan)
      : pool_(MemoryPool::create({}, device.memory_space())),
        executable_(value_or_throw(device.load(plan, pool_))) {}

  Result<std::vector<Floats>> run(const std::vector<HostTensor>& inputs,
                                  const std::vector<std::uint64_t>& parameters,
                                  std::vector<TimedStep>* times = nullptr) {
    if (inputs_.empty()) TESSERA_TRY(prepare(inputs));
    std::vector<std::byte*> from, to;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TESSERA_TRY(runtime::write_bytes(*inputs_[i], {inputs[i].array().data, inputs[i].byte_size()}));
      from.push_back(inputs_[i]->data());
    }
    for (const auto& output : outputs_) to.push_back(output->data());
    TESSERA_TRY(executable_->run({.inputs = from, .parameters = parameters, .outputs = to, .times = times}));
    std::vector<Floats> out;
    for (std::size_t i = 0; i < to.size(); ++i) out.push_back(TESSERA_TRY(read(i)));
    return out;
  }
  /// Other memory for everything.
  Result<void> move(const std::vector<HostTensor>& inputs) {
    const auto old_inputs = std::move(inputs_), old_outputs = std::move(outputs_);
    return take(inputs);
  }
  /// Of the plan's symbols, before the first run.
  void set_sizes(std::vector<std::int64_t> sizes) { sizes_ = std::move(sizes); }
  [[nodiscard]] CudaExecutable& on_gpu() { return static_cast<CudaExecutable&>(*executable_); }

 private:
  Result<void> prepare(const std::vector<HostTensor>& inputs) {
    std::vector<op::Layout> layouts;
    for (const HostTensor& input : inputs) layouts.push_back(input.array().layout);
    TESSERA_TRY(executable_->prepare(sizes_, layouts));
    return take(inputs);
  }
  Result<void> take(const std::vector<HostTensor>& inputs) {
    inputs_.clear();
    outputs_.clear();
    for (const HostTensor& input : inputs) inputs_.push_back(TESSERA_TRY(pool_->allocate(input.byte_size())));
    for (const plan::OutputBuffer& buffer : executable_->binding().buffers)
      outputs_.push_back(TESSERA_TRY(pool_->allocate(static_cast<std::size_t>(buffer.bytes))));
    return {};
  }
  Result<Floats> read(std::size_t i) {
    Floats out(static_cast<std::size_t>(executable_->binding().buffers[i].bytes) / sizeof(float));
    const auto bytes = std::as_writable_bytes(std::span(out));
    if (outputs_[i]->space() != nullptr)
      TESSERA_TRY(outputs_[i]->space()->copy_out(outputs_[i]->data(), bytes));
    else
      std::copy_n(outputs_[i]->data(), bytes.size(), bytes.begin());
    return out;
  }

  std::shared_ptr<MemoryPool> pool_;
  std::unique_ptr<Executable> executable_;
  std::vector<std::int64_t> sizes_;
  std::vector<Ref<Buffer>> inputs_, outputs_;
};

/// Inputs and numbers of one launch.
struct Turn {
  std::vector<HostTensor> inputs;
  std::vector<std::uint64_t> parameters = {};
};

class RegionsOnDevice : public cuda::OnTestDevice {
 protected:
  [[nodiscard]] cuda::CudaOptions options() const override {
    return {.target = {.name = "cuda", .sources = {compiler::fused_regions()}},
            .plan_body = &engine::plan_body};
  }
  void TearDown() override {
    cuda::emulated_state().refuses_conditionals = false;
    cuda::emulated_state().loading = cuda::emulated_state().instantiation = CUDA_SUCCESS;
  }

  [[nodiscard]] plan::PlanRef plan_of(const std::string& text) const {
    return value_or_throw(
               compiler::plan_function(value_or_throw(ir::parse_function(text)), device_->target()))
        .plan;
  }

  /// Runs it with the inputs and numbers of each turn, on the device and on the reference.
  void expect_same(const std::string& text, const std::vector<Turn>& turns) {
    const auto plan = plan_of(text);
    ReferenceDevice reference;
    Loaded here(*device_, plan), there(reference, plan);
    for (const Turn& turn : turns) {
      const auto got = here.run(turn.inputs, turn.parameters),
                 wanted = there.run(turn.inputs, turn.parameters);
      ASSERT_TRUE(got && wanted) << (got ? wanted : got).error().to_text();
      ASSERT_EQ(got->size(), wanted->size());
      for (std::size_t i = 0; i < got->size(); ++i) expect_near((*got)[i], (*wanted)[i]);
    }
    EXPECT_TRUE(here.on_gpu().program().driven.empty());
    EXPECT_GT(here.on_gpu().program().bodies, 0u);
  }
  /// NVRTC takes them, too.
  static std::size_t nodes_in_bodies(const cuda::PlanProgram& program) {
    std::size_t out = 0;
    for (const cuda::PlanNode& node : program.nodes) {
      if (node.graph == 0) continue;
      ++out;
      if (!cuda::why_no_nvrtc().empty() || node.source == nullptr) continue;
      const auto taken = cuda::check_by_nvrtc(*node.source, "sm_90");
      EXPECT_TRUE(taken) << taken.error().to_text();
    }
    return out;
  }
  static void expect_near(const Floats& got, const Floats& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << i;
  }
};

constexpr const char* branches = R"(func f(c: bool[], x: f32[3, 3]) {
  w: f32[3, 3] = exp(x)
  y: f32[3, 3] = if c with (x, w) (a: f32[3, 3], b: f32[3, 3]) {
    p: f32[3, 3] = matmul(a, b)
    r: f32[3, 3] = relu(p)
    return r
  } else (a: f32[3, 3], b: f32[3, 3]) {
    z: f32[3, 3] = sub(a, a)
    return z
  }
  n: f32[3, 3] = neg(y)
  return y, n
})";

/// The `if` keeps it from being one kernel.
constexpr const char* counted = R"(func f(n: i64[], x: f32[20, 20]) {
  y: f32[20, 20] = for n (x) with (x) (i: i64[], s: f32[20, 20], w: f32[20, 20]) {
    k: f32[] = cast(i) {dtype = f32}
    p: f32[20, 20] = mul(s, 0.5:f32)
    q: f32[20, 20] = add(p, k)
    odd: i64[] = mod(i, 2:i64)
    c: bool[] = eq(odd, 1:i64)
    r: f32[20, 20] = if c with (q, w) (a: f32[20, 20], b: f32[20, 20]) {
      t: f32[20, 20] = sub(a, b)
      return t
    } else (a: f32[20, 20], b: f32[20, 20]) {
      return a
    }
    return r
  }
  return y
})";

constexpr const char* until_small = R"(func f(e: f32[], x: f32[4, 4]) {
  y: f32[4, 4], m: f32[4, 4] = while (x, x) with (e) limit 50 (s: f32[4, 4], t: f32[4, 4], e: f32[]) {
    a: f32[] = sum(s)
    more: bool[] = gt(a, e)
    return more
  } do (s: f32[4, 4], t: f32[4, 4], e: f32[]) {
    p: f32[4, 4] = matmul(s, s)
    q: f32[4, 4] = mul(p, 0.125:f32)
    r: f32[4, 4] = minimum(q, s)
    u: f32[4, 4] = sub(r, 0.25:f32)
    return u, s
  }
  return y, m
})";

}  // namespace

TEST_P(RegionsOnDevice, Trap_G4_AnIfIsANodeWithTwoBodies) {
  expect_same(branches, {{{truth(true), floats({3, 3}, 1)}},
                         {{truth(false), floats({3, 3}, 1)}},
                         {{truth(true), floats({3, 3}, -1)}}});
}

TEST_P(RegionsOnDevice, ASwitchTakesTheLastBodyForWhatIsOutside) {
  const char* text = R"(func f(k: i32[1], x: f32[2, 2]) {
  y: f32[2, 2] = switch k with (x) [(a: f32[2, 2]) {
    p: f32[2, 2] = matmul(a, a)
    return p
  }, (a: f32[2, 2]) {
    return a
  }, (a: f32[2, 2]) {
    t: f32[2, 2] = transpose(a) {permutation = [1, 0]}
    return t
  }]
  return y
})";
  std::vector<Turn> turns;
  for (const std::int32_t index : {0, 1, 2, 7, -1, 0})
    turns.push_back({{HostTensor::of<std::int32_t>(Dtype::i32, {1}, std::vector{index}), floats({2, 2}, 1)}});
  expect_same(text, turns);
}

TEST_P(RegionsOnDevice, Trap_G19_AForCountsOnTheDeviceWithAnIfInside) {
  const HostTensor x = floats({20, 20}, -20);
  expect_same(counted, {{{number(3), x}}, {{number(0), x}}, {{number(-2), x}}, {{number(6), x}}});
}

TEST_P(RegionsOnDevice, BodiesHoldLongRowsInTheMemoryOfTheDevicesBlocks) {
  const char* text = R"(func f(n: i64[], x: f32[64, 60000]) {
  y: f32[64, 60000] = for n (x) with () (i: i64[], s: f32[64, 60000]) {
    m: f32[64, 1] = max(s) {axes = [1], keepdims = true}
    d: f32[64, 60000] = sub(s, m)
    r: f32[64, 60000] = mul(d, 0.5:f32)
    return r
  }
  return y
})";
  const HostTensor x = floats({64, 60000}, -20);
  expect_same(text, {{{number(2), x}}, {{number(0), x}}});
  Loaded here(*device_, plan_of(text));
  ASSERT_TRUE(here.run({number(1), x}, {}));
  const auto& nodes = here.on_gpu().program().nodes;
  const auto is_long_row = [](const cuda::PlanNode& node) {
    return node.graph != 0 && node.shared_bytes > cuda::usual_shared_bytes;
  };
  if (is_emulated()) {
    EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), is_long_row));
  }
}

TEST_P(RegionsOnDevice, WhatALoopCarriesIsComputedInItsPlace) {
  const char* text = R"(func f(n: i64[], x: f32[220, 220], w: f32[220, 220]) {
  y: f32[220, 220], z: f32[220, 220], k: f32[220, 220] = for n (x, w, w) with (w) (i: i64[], s: f32[220, 220], t: f32[220, 220], u: f32[220, 220], w: f32[220, 220]) {
    p: f32[220, 220] = mul(s, 0.5:f32)
    q: f32[220, 220] = add(p, w)
    r: f32[220, 220] = transpose(t) {permutation = [1, 0]}
    v: f32[220, 220] = add(r, 1.0:f32)
    return q, v, u
  }
  return y, z, k
})";
  const HostTensor x = floats({220, 220}, -20), w = floats({220, 220}, 3);
  expect_same(text, {{{number(3), x, w}}, {{number(4), w, x}}, {{number(0), x, w}}});
  Loaded here(*device_, plan_of(text));
  ASSERT_TRUE(here.run({number(1), x, w}, {}));
  const auto& nodes = here.on_gpu().program().nodes;
  const auto takes_its_place = [](const cuda::PlanNode& node) {
    return node.graph != 0 && node.source != nullptr && node.source->entry == "tessera_copy" &&
           node.arguments[1].address.base == cuda::Address::Base::output;
  };
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), takes_its_place), 1)
      << to_text(here.on_gpu().program());
}

TEST_P(RegionsOnDevice, ASmallTurnIsOneKernel) {
  const auto text = [](int size) {
    return cat("func f(n: i64[], x: f32[", size, "], order: i64[", size, "]) {\n  y: f32[", size,
               "] = for n (x) with (order) (i: i64[], s: f32[", size, "], o: i64[", size, "]) {\n    g: f32[",
               size, "] = gather(s, o) {axis = 0}\n    return g\n  }\n  return y\n}");
  };
  const auto order = [](int size, std::int64_t first) {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < size; ++i) out.push_back((first + i * 7) % size);
    return HostTensor::of<std::int64_t>(Dtype::i64, {size}, out);
  };
  const auto nodes_of_turn = [&](int size) {
    Loaded here(*device_, plan_of(text(size)));
    EXPECT_TRUE(here.run({number(1), floats({size}, 1), order(size, 0)}, {}));
    return nodes_in_bodies(here.on_gpu().program());
  };
  for (const int size : {40, 1000, 5000})
    expect_same(text(size), {{{number(3), floats({size}, 1), order(size, 2)}},
                             {{number(0), floats({size}, 1), order(size, 2)}},
                             {{number(8), floats({size}, 5), order(size, 0)}}});
  EXPECT_EQ(nodes_of_turn(40), 1u);
  EXPECT_EQ(nodes_of_turn(1000), 1u);
  EXPECT_EQ(nodes_of_turn(5000), 2u) << "more than a block should do";
  Loaded here(*device_, plan_of(text(40)));
  const auto outside = here.run({number(3), floats({40}, 1), order(40, 40)}, {});
  ASSERT_TRUE(outside) << outside.error().to_text();
  HostTensor wrong = order(40, 0);
  wrong.values<std::int64_t>()[7] = 40;
  const auto refused = here.run({number(3), floats({40}, 1), wrong}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("index 40 is outside"), std::string::npos)
      << refused.error().to_text();
}

TEST_P(RegionsOnDevice, ASmallTurnThatFindsOutWhetherThereIsAnotherIsOneKernel) {
  const char* text = R"(func f(e: f32[], x: f32[8], order: i64[8]) {
  y: f32[8] = while (x) with (e, order) limit 50 (s: f32[8], e: f32[], o: i64[8]) {
    w: f32[8] = mul(s, s)
    a: f32[] = sum(w)
    more: bool[] = gt(a, e)
    return more
  } do (s: f32[8], e: f32[], o: i64[8]) {
    g: f32[8] = gather(s, o) {axis = 0}
    return g
  }
  return y
})";
  const auto order =
      HostTensor::of<std::int64_t>(Dtype::i64, {8}, std::vector<std::int64_t>{0, 0, 1, 2, 3, 4, 5, 6});
  const auto above = [](float e) { return HostTensor::of<float>(Dtype::f32, {}, Floats{e}); };
  expect_same(text, {{{above(10), floats({8}, 1), order}},
                     {{above(9), floats({8}, 1), order}},
                     {{above(1e9f), floats({8}, 1), order}}});
  Loaded here(*device_, plan_of(text));
  ASSERT_TRUE(here.run({above(10), floats({8}, 1), order}, {}));
  EXPECT_EQ(nodes_in_bodies(here.on_gpu().program()), 1u) << to_text(here.on_gpu().program());
  const auto endless = here.run({above(-1), floats({8}, 1), order}, {});
  ASSERT_FALSE(endless) << "a block that goes on by itself counts its turns, too";
  EXPECT_NE(endless.error().message().find("limit of 50"), std::string::npos) << endless.error().message();
  ASSERT_TRUE(here.run({above(10), floats({8}, 1), order}, {}));
}

/// What was compiled of the body relies on the range of its symbol.
TEST_P(RegionsOnDevice, BodiesRefuseSizesThatTheyAreNotFor) {
  const auto plan = plan_of(R"(func f[n](c: bool[], x: f32[n]) {
  y: f32[4] = if c with [n](x) [m: i64 in 4..100](a: f32[m]) {
    s: f32[4] = slice(a) {starts = shape[0], stops = shape[4]}
    r: f32[4] = exp(s)
    return r
  } else [m: i64 in 4..100](a: f32[m]) {
    z: f32[4] = full(2.0:f32) {shape = shape[4]}
    return z
  }
  return y
})");
  Loaded here(*device_, plan);
  here.set_sizes({3});
  const auto refused = here.run({truth(true), floats({3}, 1)}, {});
  ASSERT_FALSE(refused) << "it read behind the end";
  EXPECT_NE(refused.error().message().find("expected [4]"), std::string::npos) << refused.error().to_text();
}

TEST_P(RegionsOnDevice, Trap_G19_AWhileCarriesSeveralValues) {
  expect_same(until_small, {{{HostTensor::of<float>(Dtype::f32, {}, Floats{1}), floats({4, 4}, 1)}},
                            {{HostTensor::of<float>(Dtype::f32, {}, Floats{1e9f}), floats({4, 4}, 1)}},
                            {{HostTensor::of<float>(Dtype::f32, {}, Floats{-9}), floats({4, 4}, 0)}}});
}

TEST_P(RegionsOnDevice, Trap_G12_AWhileThatNeverEndsSaysSoAndWorksAgain) {
  const auto plan = plan_of(R"(func f(c: bool[], x: f32[2, 2]) {
  y: f32[2, 2] = while (x) with (c) limit 10 (s: f32[2, 2], c: bool[]) {
    return c
  } do (s: f32[2, 2], c: bool[]) {
    p: f32[2, 2] = matmul(s, s)
    return p
  }
  return y
})");
  Loaded here(*device_, plan);
  const auto endless = here.run({truth(true), floats({2, 2}, 0)}, {});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), ErrorCode::limit);
  EXPECT_NE(endless.error().message().find("limit of 10"), std::string::npos) << endless.error().message();
  const auto done = here.run({truth(false), floats({2, 2}, 3)}, {});
  ASSERT_TRUE(done) << done.error().to_text();
  EXPECT_EQ((*done)[0], (Floats{3, 3.125f, 3.25f, 3.375f}));
}

TEST_P(RegionsOnDevice, NumbersInBodiesChangeWithoutANewGraph) {
  const auto plan = plan_of(R"(func f(c: bool[], x: f32[3, 3]) {
  y: f32[3, 3] = if c with (x) (a: f32[3, 3]) {
    p: f32[3, 3] = matmul(a, a)
    r: f32[3, 3] = mul(p, $0:f32)
    return r
  } else (a: f32[3, 3]) {
    z: f32[3, 3] = add(a, $1:f32)
    return z
  }
  return y
})");
  ReferenceDevice reference;
  Loaded here(*device_, plan), there(reference, plan);
  bool is_first = true;
  for (const double value : {2.0, 3.0, 5.5})
    for (const bool way : {true, false}) {
      const std::vector<HostTensor> inputs{truth(way), floats({3, 3}, 1)};
      const auto got = here.run(inputs, {bits(value), bits(-value)});
      const auto wanted = there.run(inputs, {bits(value), bits(-value)});
      ASSERT_TRUE(got && wanted) << (got ? wanted : got).error().to_text();
      expect_near((*got)[0], (*wanted)[0]);
      EXPECT_EQ(here.on_gpu().last_update().is_instantiated, std::exchange(is_first, false));
    }
}

TEST_P(RegionsOnDevice, Trap_G14_BodiesFollowBuffersThatMove) {
  const auto plan = plan_of(branches);
  Loaded here(*device_, plan);
  const std::vector<HostTensor> inputs{truth(true), floats({3, 3}, 1)};
  const auto first = here.run(inputs, {});
  ASSERT_TRUE(first) << first.error().to_text();
  for (int turn = 0; turn < 3; ++turn) {
    value_or_throw(here.move(inputs));
    const auto again = here.run(inputs, {});
    ASSERT_TRUE(again) << again.error().to_text();
    EXPECT_EQ(*again, *first);
  }
}

TEST_P(RegionsOnDevice, StepsAreMeasuredAroundThem) {
  const auto plan = plan_of(branches);
  Loaded here(*device_, plan);
  const std::vector<HostTensor> inputs{truth(true), floats({3, 3}, 1)};
  const auto plain = here.run(inputs, {});
  ASSERT_TRUE(plain) << plain.error().to_text();
  std::vector<TimedStep> times;
  const auto timed = here.run(inputs, {}, &times);
  ASSERT_TRUE(timed) << timed.error().to_text();
  EXPECT_EQ(*timed, *plain);
  for (plan::StepId step = 0; step < plan->steps.size(); ++step)
    EXPECT_EQ(std::count_if(times.begin(), times.end(), [&](const TimedStep& t) { return t.step == step; }),
              1)
        << plan->steps[step].name();
  EXPECT_EQ(*value_or_throw(here.run(inputs, {})).data(), *plain->data());
}

TEST_P(RegionsOnDevice, ALaunchIsOneGraph) {
  if (!is_emulated()) GTEST_SKIP() << "the emulated driver counts launches";
  const auto plan = plan_of(until_small);
  Loaded here(*device_, plan);
  const std::vector<HostTensor> inputs{HostTensor::of<float>(Dtype::f32, {}, Floats{1}), floats({4, 4}, 1)};
  ASSERT_TRUE(here.run(inputs, {}));
  const std::uint64_t before = cuda::emulated_state().launched;
  ASSERT_TRUE(here.run(inputs, {}));
  EXPECT_EQ(cuda::emulated_state().launched, before + 1);
}

TEST_P(RegionsOnDevice, TheHostDrivesThemIfTheDriverRefusesTheNodes) {
  if (!is_emulated()) GTEST_SKIP() << "the emulated driver refuses when it is told to";
  cuda::emulated_state().refuses_conditionals = true;
  const auto plan = plan_of(branches);
  ReferenceDevice reference;
  Loaded here(*device_, plan), there(reference, plan);
  for (const bool way : {true, false}) {
    const std::vector<HostTensor> inputs{truth(way), floats({3, 3}, 1)};
    const auto got = here.run(inputs, {}), wanted = there.run(inputs, {});
    ASSERT_TRUE(got && wanted) << (got ? wanted : got).error().to_text();
    for (std::size_t i = 0; i < got->size(); ++i) expect_near((*got)[i], (*wanted)[i]);
  }
  EXPECT_EQ(here.on_gpu().program().driven.size(), 1u);
  const std::string why = here.on_gpu().driven_by_host();
  EXPECT_NE(why.find("': cuGraphAddNode: "), std::string::npos) << why;
}

/// A step that the host drives fails behind one that found an index outside: the next run knows nothing of
/// it.
TEST_P(RegionsOnDevice, WhatAFailedRunFoundIsNotOfTheNext) {
  if (!is_emulated()) GTEST_SKIP() << "the emulated driver refuses when it is told to";
  cuda::emulated_state().refuses_conditionals = true;
  Loaded here(*device_, plan_of(R"(func f(e: f32[], x: f32[4, 4], i: i64[2]) {
  g: f32[2, 4] = gather(x, i) {axis = 0}
  y: f32[4, 4] = while (x) with (e) limit 5 (s: f32[4, 4], e: f32[]) {
    a: f32[] = sum(s)
    more: bool[] = gt(a, e)
    return more
  } do (s: f32[4, 4], e: f32[]) {
    p: f32[4, 4] = matmul(s, s)
    q: f32[4, 4] = mul(p, 0.125:f32)
    u: f32[4, 4] = sub(q, 0.25:f32)
    return u
  }
  return g, y
})"));
  const auto inputs = [](float until, std::int64_t index) {
    return std::vector<HostTensor>{HostTensor::of<float>(Dtype::f32, {}, Floats{until}), floats({4, 4}, 1),
                                   HostTensor::of<std::int64_t>(Dtype::i64, {2}, std::vector{index, index})};
  };
  ASSERT_TRUE(here.run(inputs(1e9f, 1), {}));
  EXPECT_EQ(here.on_gpu().program().driven.size(), 1u);
  const auto both = here.run(inputs(-1e9f, 7), {});
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message().find("index 7 is outside"), std::string::npos) << both.error().to_text();
  const auto right = here.run(inputs(1e9f, 2), {});
  EXPECT_TRUE(right) << right.error().to_text();
  const auto endless = here.run(inputs(-1e9f, 2), {});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), ErrorCode::limit) << endless.error().to_text();
}

/// In a file, a constant without elements lies where the next one begins.
TEST_P(RegionsOnDevice, LoadedConstantsWithoutElementsAreNotTheNextOnes) {
  const auto function = value_or_throw(ir::parse_function(R"(func f(n: i64[]) {
  zero: i64[] = full(0) {shape = shape[]}
  count: i64[] = while (zero) with (n) limit 5 (i: i64[], k: i64[]) {
    c: bool[] = lt(i, k)
    return c
  } do (i: i64[], k: i64[]) {
    j: i64[] = add(i, 1)
    return j
  }
  none: f32[2, 0] = full(0.0) {shape = shape[2, 0]}
  some: f32[5, 9] = full(0.5) {shape = shape[5, 9]}
  a: f32[2, 0], b: f32[5, 9] = for count (none, some) with () (step: i64[], p: f32[2, 0], q: f32[5, 9]) {
    same: f32[2, 0] = full(0.0) {shape = shape[2, 0]}
    one: f32[5, 9] = full(1.0) {shape = shape[5, 9]}
    more: f32[5, 9] = add(q, one)
    return same, more
  }
  return a, b
})"));
  auto planned = value_or_throw(compiler::plan_program(function, device_->target()));
  const auto package = compiler::package(*function, {std::move(planned.program)}, "any");
  const std::string file = value_or_throw(plan::to_bytes(package));
  auto loaded = value_or_throw(plan::from_bytes(Bytes::copy(std::as_bytes(std::span(file))), "saved"));
  auto runner = value_or_throw(engine::PlanRunner::create(std::move(loaded), *device_));
  const std::vector<HostTensor> inputs{number(2)};
  value_or_throw(runner.run(inputs, {}, {}));
  const std::uint64_t before = cuda::emulated_state().copied_out;
  const auto results = value_or_throw(runner.run(inputs, {}, {}));
  EXPECT_EQ(results[0].size(), 0);
  for (const float element : results[1].values<float>()) EXPECT_EQ(element, 2.5f);
  // Nothing is read of what has no elements.
  if (is_emulated()) {
    EXPECT_EQ(cuda::emulated_state().copied_out, before + 1);
  }
}

/// Memory that is missing once, or a module that does not load, says nothing about what the driver can do.
TEST_P(RegionsOnDevice, AreNodesAgainAfterAnErrorThatPasses) {
  if (!is_emulated()) GTEST_SKIP() << "the emulated driver fails when it is told to";
  Loaded here(*device_, plan_of(branches));
  const std::vector<HostTensor> inputs{truth(true), floats({3, 3}, 1)};
  cuda::emulated_state().loading = CUDA_ERROR_UNKNOWN;
  EXPECT_FALSE(here.run(inputs, {}));
  cuda::emulated_state().loading = CUDA_SUCCESS;
  for (const CUresult passing : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED}) {
    cuda::emulated_state().instantiation = passing;
    const auto failed = here.run(inputs, {});
    cuda::emulated_state().instantiation = CUDA_SUCCESS;
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().to_text().find("making ready the plan of "), std::string::npos)
        << failed.error().to_text();
  }
  ASSERT_TRUE(here.run(inputs, {}));
  EXPECT_GT(here.on_gpu().program().bodies, 0u);
  EXPECT_EQ(here.on_gpu().driven_by_host(), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, RegionsOnDevice, cuda::all_test_devices(), cuda::test_device_name);

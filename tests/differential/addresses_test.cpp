// Launches whose arrays lie elsewhere each time, some of them where they lay before: what was prepared for
// one set of addresses serves that set alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tessera/base/text.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_executable.h"
#include "tests/differential/runs.h"

namespace tessera::differential {
namespace {

using runtime::Buffer;

/// Small kernels, which code alone runs; products; a chain over rows; a kernel behind a transpose; an update.
constexpr const char* step_text =
    "func f(x: f32[24, 320], g: f32[24, 192], w: f32[320, 192], s: f32[6]) { "
    "t: f32[320, 24] = transpose(x) {permutation = [1, 0]} d: f32[320, 192] = matmul(t, g) "
    "c: f32[320, 192] = mul(d, 0.125) n: f32[320, 192] = sub(w, c) "
    "p: f32[24, 192] = matmul(x, n) q: f32[24, 192] = softmax(p) {axis = -1} "
    "r: f32[192, 24] = transpose(q) {permutation = [1, 0]} h: f32[192, 24] = cumsum(r) {axis = 0} "
    "e: f32[6] = exp(s) f: f32[6] = cumsum(e) {axis = 0} k: f32[6] = sqrt(f) return n, h, k }";

/// A plan with several buffers for each of its inputs and outputs, of which a launch takes some.
class Launches {
 public:
  Launches(unsigned threads, std::size_t choices) {
    program_.function = value_or_throw(ir::parse_function(step_text));
    device_ = std::make_shared<runtime::cpu::CpuDevice>(runtime::cpu::CpuOptions{
        .threads = threads, .target = {.name = "cpu", .sources = {compiler::fused_regions()}}});
    const auto plan = value_or_throw(compiler::plan_function(program_.function, device_->target())).plan;
    executable_ = value_or_throw(device_->load(plan, pool_));
    std::vector<op::Layout> layouts;
    for (const auto& param : program_.function->params) {
      op::Extents shape;
      for (const ir::Dim& dim : static_cast<const ir::TensorType&>(*param->type).shape)
        shape.push_back(dim.value());
      layouts.push_back(op::contiguous(shape));
      program_.inputs.push_back(value_or_throw(op::HostTensor::allocate(op::Dtype::f32, shape)));
      add_buffers(inputs_.emplace_back(), program_.inputs.back().byte_size(), choices);
    }
    value_or_throw(executable_->prepare({}, layouts));
    for (const plan::OutputBuffer& output : executable_->binding().buffers)
      add_buffers(outputs_.emplace_back(), static_cast<std::size_t>(output.bytes), choices);
  }

  /// With the buffers of one choice, or of one for each array.
  void expect_right(std::size_t choice, std::mt19937* mixed, const std::string& when) {
    const auto chosen = [&](std::size_t among) { return mixed == nullptr ? choice : (*mixed)() % among; };
    std::vector<std::byte*> inputs, outputs;
    std::vector<const Buffer*> buffers;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Buffer& buffer = *inputs_[i][chosen(inputs_[i].size())];
      const auto values = program_.inputs[i].values<float>();
      std::copy_n(reinterpret_cast<const float*>(buffer.data()), values.size(), values.begin());
      inputs.push_back(buffer.data());
      buffers.push_back(&buffer);
    }
    for (const auto& output : outputs_) outputs.push_back(output[chosen(output.size())]->data());
    value_or_throw(
        executable_->run({.inputs = inputs, .parameters = {}, .outputs = outputs, .buffers = buffers}));
    const auto wanted = value_or_throw(run_reference(*program_.function, program_, {}));
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      const auto values = wanted[r].values<float>();
      const auto* const got = reinterpret_cast<const float*>(outputs[r]);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(got[i], values[i], 1e-4 * std::max(1.0f, std::abs(values[i])))
            << when << ", result " << r << ", element " << i;
    }
  }

 private:
  using Buffers = std::vector<Ref<Buffer>>;

  void add_buffers(Buffers& to, std::size_t bytes, std::size_t count) {
    std::uniform_real_distribution<float> from(-1.0f, 1.0f);
    for (std::size_t i = 0; i < count; ++i) {
      to.push_back(value_or_throw(pool_->allocate(bytes)));
      std::generate_n(reinterpret_cast<float*>(to.back()->data()), bytes / sizeof(float),
                      [&] { return from(source_); });
    }
  }

  std::mt19937 source_{7};
  Program program_;
  std::shared_ptr<runtime::MemoryPool> pool_ = runtime::MemoryPool::create();
  std::shared_ptr<runtime::cpu::CpuDevice> device_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<Buffers> inputs_, outputs_;
};

TEST(Addresses, that_come_back_in_turn_are_served_as_before) {
  for (const std::size_t sets : {1U, 2U, 3U, 4U, 5U, 7U}) {
    Launches launches(2, sets);
    for (std::size_t launch = 0; launch < 24; ++launch)
      launches.expect_right(launch % sets, nullptr, cat(sets, " sets, launch ", launch));
  }
}

TEST(Addresses, of_any_mixture_are_served) {
  std::mt19937 source(3);
  for (const unsigned threads : {1U, 2U}) {
    Launches launches(threads, 2);
    for (std::size_t launch = 0; launch < 60; ++launch)
      launches.expect_right(0, &source, cat(threads, " threads, launch ", launch));
  }
}

}  // namespace
}  // namespace tessera::differential

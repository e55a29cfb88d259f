#include "tessera/runtime/cpu/epilogue.h"

#include <algorithm>
#include <cstring>

#include "tessera/kernel/block_loops.h"
#include "tessera/runtime/cpu/epilogue_function.h"

using namespace tessera::runtime::cpu;
using tessera::ir::Dtype;
using tessera::ir::ScalarOpcode;
using tessera::kernel::LoopForm;

namespace {

/// The precompiled loops over f32, by name.
class Loops {
 public:
  explicit Loops(std::size_t count) : count_(count) {}

  [[nodiscard]] std::size_t count() const { return count_; }
  void unary(ScalarOpcode opcode, const float* a, float* out) const {
    of(opcode, LoopForm::vectors)(a, nullptr, nullptr, out, count_);
  }
  void gelu(float* x) const { tessera::kernel::block_loops().gelu(x, nullptr, nullptr, x, count_); }
  void with(ScalarOpcode opcode, const float* a, const float* b, float* out) const {
    of(opcode, LoopForm::vectors)(a, b, nullptr, out, count_);
  }
  void with(ScalarOpcode opcode, const float* a, float b, float* out) const {
    of(opcode, LoopForm::scalar_second)(a, &b, nullptr, out, count_);
  }
  void from(ScalarOpcode opcode, float a, const float* b, float* out) const {
    of(opcode, LoopForm::scalar_first)(&a, b, nullptr, out, count_);
  }

 private:
  static tessera::kernel::LoopTable::Operation of(ScalarOpcode opcode, LoopForm form) {
    return tessera::kernel::block_loops().operation[static_cast<std::size_t>(
        opcode)][tessera::kernel::wide_index(Dtype::f32)][static_cast<std::size_t>(form)];
  }

  std::size_t count_;
};

/// x / (1 + exp(-2 u)) is 0.5 x (1 + tanh(u)), where u is nearly x: nothing cancels if tanh(u) is nearly -1.
void gelu_tanh(const Loops& loops, float* x, float* workspace) {
  loops.with(ScalarOpcode::mul, x, x, workspace);
  loops.with(ScalarOpcode::mul, workspace, 0.044715f, workspace);
  loops.with(ScalarOpcode::add, workspace, 1.0f, workspace);
  loops.with(ScalarOpcode::mul, workspace, x, workspace);
  loops.with(ScalarOpcode::mul, workspace, -2.0f * 0.79788456080286536f, workspace);
  loops.unary(ScalarOpcode::exp, workspace, workspace);
  loops.with(ScalarOpcode::add, workspace, 1.0f, workspace);
  loops.with(ScalarOpcode::div, x, workspace, x);
}

void sigmoid(const Loops& loops, float* x) {
  loops.unary(ScalarOpcode::neg, x, x);
  loops.unary(ScalarOpcode::exp, x, x);
  loops.with(ScalarOpcode::add, x, 1.0f, x);
  loops.from(ScalarOpcode::div, 1.0f, x, x);
}

/// x / (1 + exp(-x))
void silu(const Loops& loops, float* x, float* workspace) {
  loops.unary(ScalarOpcode::neg, x, workspace);
  loops.unary(ScalarOpcode::exp, workspace, workspace);
  loops.with(ScalarOpcode::add, workspace, 1.0f, workspace);
  loops.with(ScalarOpcode::div, x, workspace, x);
}

void hard_swish(const Loops& loops, float* x, float* workspace) {
  loops.with(ScalarOpcode::mul, x, 1.0f / 6.0f, workspace);
  loops.with(ScalarOpcode::add, workspace, 0.5f, workspace);
  loops.with(ScalarOpcode::max, workspace, 0.0f, workspace);
  loops.with(ScalarOpcode::min, workspace, 1.0f, workspace);
  loops.with(ScalarOpcode::mul, x, workspace, x);
}

void leaky_relu(const Loops& loops, float slope, float* x, float* workspace) {
  loops.with(ScalarOpcode::min, x, 0.0f, workspace);
  loops.with(ScalarOpcode::mul, workspace, slope, workspace);
  loops.with(ScalarOpcode::max, x, 0.0f, x);
  loops.with(ScalarOpcode::add, x, workspace, x);
}

void clip(const Loops& loops, float least, float most, float* x) {
  loops.with(ScalarOpcode::max, x, least, x);
  loops.with(ScalarOpcode::min, x, most, x);
}

void activate(const Epilogue& epilogue, const Loops& loops, float* x, float* workspace) {
  switch (epilogue.activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return loops.with(ScalarOpcode::max, x, 0.0f, x);
    case Activation::tanh:
      return loops.unary(ScalarOpcode::tanh, x, x);
    case Activation::sigmoid:
      return sigmoid(loops, x);
    case Activation::gelu_erf:
      return loops.gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(loops, x, workspace);
    case Activation::silu:
      return silu(loops, x, workspace);
    case Activation::hard_swish:
      return hard_swish(loops, x, workspace);
    case Activation::leaky_relu:
      return leaky_relu(loops, epilogue.alpha, x, workspace);
    case Activation::clip:
      return clip(loops, epilogue.alpha, epilogue.beta, x);
    case Activation::by_card: {
      const float more[] = {epilogue.alpha, epilogue.beta};
      return epilogue.function->apply(x, loops.count(), more);
    }
  }
}

}  // namespace

void tessera::runtime::cpu::finish_row(const Epilogue& epilogue, const EpilogueRow& row, float* product,
                                       float* destination, float* workspace, std::size_t count) {
  const Loops loops(count);
  const bool has_residual = epilogue.residual != Residual::none;
  // What is added may be what the destination held: then it is written last.
  float* const out = row.residual == destination ? product : destination;
  float* at = product;
  const auto apply = [&](ScalarOpcode opcode, auto with) { loops.with(opcode, at, with, out), at = out; };
  if (epilogue.has_scale) apply(ScalarOpcode::mul, row.scale);
  if (epilogue.has_bias && row.bias_of_row) apply(ScalarOpcode::add, *row.bias);
  if (epilogue.has_bias && !row.bias_of_row) apply(ScalarOpcode::add, row.bias);
  if (has_residual && epilogue.place == ResidualPlace::before_activation)
    apply(ScalarOpcode::add, row.residual);
  activate(epilogue, loops, at, workspace);
  if (has_residual && epilogue.place == ResidualPlace::after_activation)
    loops.with(ScalarOpcode::add, at, row.residual, destination);
  else if (at != destination)
    std::memcpy(destination, at, count * sizeof(float));
}

void tessera::runtime::cpu::finish_in_place(const Epilogue& epilogue, float* x, const float* residual,
                                            std::size_t count) {
  float workspace[512];
  const std::size_t most = epilogue.activation == Activation::by_card ? count : std::size(workspace);
  for (std::size_t begin = 0; begin < count; begin += most) {
    const Loops loops(std::min(count - begin, most));
    activate(epilogue, loops, x + begin, workspace);
    if (residual != nullptr) loops.with(ScalarOpcode::add, x + begin, residual + begin, x + begin);
  }
}

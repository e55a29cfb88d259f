#include "tessera/kernel/build.h"

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

TEST(KernelBuild, WritesFormulasOverBroadcastOperands) {
  EXPECT_EQ(to_text(built("func f(x: f32[4, 3], b: f32[3]) {\n"
                          "  s: f32[4, 3] = add(x, b)\n  y: f32[4, 3] = relu(s)\n  return y\n}")),
            "kernel over (i0, i1)\n"
            "  a0: f32 = in0[i0, i1]\n"
            "  a1: f32 = in1[i1]\n"
            "  a2: f32 = out0[i0, i1]\n"
            "  v0: f32 = load a0\n"
            "  v1: f32 = load a1\n"
            "  v2: f32 = add v0 v1\n"
            "  v3: f32 = 0.0\n"
            "  v4: f32 = max v2 v3\n"
            "  store a2 v4\n");
}

TEST(KernelBuild, WritesViewsAsMapsOfIndices) {
  const Kernel kernel = built(
      "func f(x: f32[4, 6], y: f32[3, 4]) {\n"
      "  t: f32[6, 4] = transpose(x)\n"
      "  s: f32[3, 4] = slice(t) {starts = [1], stops = [6], steps = [2], axes = [0]}\n"
      "  g: f32[3, 4] = flip(s) {axes = [1]}\n"
      "  z: f32[3, 4] = add(g, y)\n  return z\n}");
  EXPECT_NE(to_text(kernel).find("in0[-1*i1 + 3, 2*i0 + 1]"), std::string::npos) << to_text(kernel);
}

TEST(KernelBuild, SizesAreNotPartOfAKernel) {
  const auto text = [](const char* n) {
    return cat("func f(x: f32[", n, ", 8]) {\n  y: f32[", n, ", 8] = softmax(x)\n  return y\n}");
  };
  const Kernel small = built(text("4")), large = built(text("4096"));
  const Kernel symbolic = built("func f[N](x: f32[N, 8]) {\n  y: f32[N, 8] = softmax(x)\n  return y\n}");
  EXPECT_TRUE(equal(small, large));
  EXPECT_TRUE(equal(small, symbolic));
  EXPECT_EQ(hash(small), hash(symbolic));
}

TEST(KernelBuild, WhichInputsAreOneIsPartOfAKernel) {
  const Kernel same = built("func f(x: f32[4], y: f32[4]) {\n  z: f32[4] = mul(x, x)\n  return z\n}");
  const Kernel other = built("func f(x: f32[4], y: f32[4]) {\n  z: f32[4] = mul(x, y)\n  return z\n}");
  EXPECT_FALSE(equal(same, other));
  EXPECT_NE(hash(same), hash(other));
}

TEST(KernelBuild, ValuesOfParametersAreNotPartOfAKernelButSlotsAre) {
  const Kernel two = built(
      "func f(x: f32[4]) {\n  a: f32[4] = mul(x, $3:f32)\n  b: f32[4] = mul(x, $5:f32)\n"
      "  y: f32[4] = add(a, b)\n  return y\n}");
  const Kernel one = built(
      "func f(x: f32[4]) {\n  a: f32[4] = mul(x, $3:f32)\n  b: f32[4] = mul(x, $3:f32)\n"
      "  y: f32[4] = add(a, b)\n  return y\n}");
  EXPECT_EQ(two.slots, (std::vector<std::uint32_t>{3, 5}));
  EXPECT_FALSE(equal(two, one));
}

TEST(KernelBuild, Trap_S21_EveryBitOfAConstantSurvives) {
  const auto text = [](const char* a, const char* b) {
    return cat("func f(x: f32[4]) {\n  a: f32[4] = mul(x, ", a, ":f32)\n  y: f32[4] = add(a, ", b,
               ":f32)\n  return y\n}");
  };
  EXPECT_FALSE(equal(built(text("1", "11")), built(text("11", "1"))));
  EXPECT_NE(hash(built(text("1", "11"))), hash(built(text("11", "1"))));
  const std::string exact = text("16777215", "3.14159274");
  const Kernel kernel = built(exact);
  const op::HostTensor x = op::HostTensor::of<float>(Dtype::f32, {2}, std::vector<float>{1, 0});
  const op::HostTensor y = value_or_throw(op::HostTensor::allocate(Dtype::f32, {2}));
  Scratch scratch;
  ASSERT_TRUE(run(Interpreter(kernel), arrays_of({x}), arrays_of({y}), {}, scratch));
  EXPECT_EQ(y.values<float>()[0], 16777215.0f + 3.14159274f);
  EXPECT_EQ(y.values<float>()[1], 3.14159274f);
}

TEST(KernelBuild, AnyOneFieldMakesAnotherKernel) {
  const Kernel base = built(
      "func f(x: f32[4, 6]) {\n  m: f32[4, 1] = mean(x) {axes = [1], keepdims = true}\n"
      "  y: f32[4, 6] = sub(x, m)\n  return y\n}");
  std::vector<Kernel> changed(8, base);
  changed[0].input_count++;
  changed[1].outer_axes++;
  changed[2].fixed_sizes[0] = 3;
  changed[3].operands[0].terms[0].step = 2;
  changed[4].operands[0].starts[0].value = 1;
  changed[5].body[1].opcode = ScalarOpcode::max;
  changed[6].stores[0].value--;
  changed[7].parameters.push_back(Dtype::f32);
  for (const Kernel& other : changed) {
    EXPECT_FALSE(equal(base, other)) << to_text(other);
    EXPECT_NE(hash(base), hash(other));
  }
}

struct Refused {
  const char* text;
  const char* message;
};

TEST(KernelBuild, RefusesWhatIsNotOneKernelAndSaysWhy) {
  const Refused cases[] = {
      {"func f(x: f32[4, 4]) {\n  y: f32[4, 4] = matmul(x, x)\n  return y\n}",
       "<text>:2:3: matmul: has no element formula, and no decomposition into ops that do"},
      {"func f(x: f32[4, 4]) {\n  r: f32[4, 4] = relu(x)\n  t: f32[4, 4] = transpose(r)\n"
       "  y: f32[4, 4] = add(r, t)\n  return y\n}",
       "a value is combined with itself in another order of its axes"},
      {"func f(x: f32[4, 6]) {\n  a: f32[4, 1] = sum(x) {axes = [1], keepdims = true}\n"
       "  b: f32[1, 6] = sum(x) {axes = [0], keepdims = true}\n  y: f32[4, 6] = add(a, b)\n  return y\n}",
       "reductions over different axes"},
      {"func f(x: f32[4, 6], z: f32[6]) {\n  a: f32[4, 6] = relu(x)\n  b: f32[6] = relu(z)\n"
       "  return a, b\n}",
       "results over different axes"},
      {"func f(x: f32[4, 6]) {\n  a: f32[4, 6] = relu(x)\n  b: f32[24] = reshape(a) {shape = shape[24]}\n"
       "  y: f32[24] = relu(b)\n  return y\n}",
       "a reshaped value is used inside the region"},
  };
  for (const Refused& refused : cases) {
    const auto kernel = build(*parsed(refused.text));
    ASSERT_FALSE(kernel) << refused.text;
    EXPECT_EQ(kernel.error().code(), ErrorCode::unsupported);
    EXPECT_NE(kernel.error().to_text().find(refused.message), std::string::npos)
        << kernel.error().to_text() << "\nexpected " << refused.message;
  }
}

}  // namespace

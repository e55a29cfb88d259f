// A program that ends while its threads evaluate, compile and load: exit_program WAY MICROSECONDS FOLDER.
// Its exit status is 42. exit_test.cpp runs it.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/custom.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/saved_plan.h"
#include "tessera/tensor/scope.h"

using namespace tessera;

namespace {

constexpr int status = 42;
std::atomic<bool> ends_now{false};

/// Tensors of the program that go when it ends, after others may have gone.
Tensor& static_tensor() {
  static Tensor kept = ones({64, 64}) * 2.0F;
  return kept;
}

Tensor network(const Tensor& x, const Tensor& w, float scale) {
  return softmax(layer_norm(gelu(matmul(x * scale, w)) + x));
}

[[noreturn]] void evaluate_for_ever() {
  const Tensor w = ones({128, 128}) * 0.01F, filters = ones({8, 4, 3, 3}) * 0.1F;
  for (int i = 0;; ++i) {
    const std::int64_t rows = i / 4 % 2 == 0 ? 8 : 64;
    network(ones({rows, 128}), w, 1.0F / static_cast<float>(i + 1)).eval();
    if (i % 8 == 0) relu(conv(ones({1, 4, 16, 16}), filters)).eval();
  }
}

/// Structures and kernels that were not seen before: plans are made, and code, here and beside.
[[noreturn]] void compile_for_ever() {
  for (int i = 0;; ++i) {
    Tensor y = ones({16, 32});
    for (int k = 0; k < 2 + i % 7; ++k)
      y = k % 3 == i % 3 ? tanh(y) * y : sum(exp(y) + y, {.axes = {1}, .keepdims = true}) - y;
    for (int k = 0; k < i % 5; ++k) y = sqrt(abs(y) + 1.0F) / (y + static_cast<float>(k));
    for (int again = 0; again < 5; ++again) (y * static_cast<float>(again + 1)).eval();
  }
}

[[noreturn]] void load_for_ever(const std::string& path) {
  for (;;) {
    const SavedPlan plan = load_plan(path);
    static_cast<void>(plan({ones({8, 16})}));
  }
}

[[noreturn]] void make_engines_for_ever() {
  for (;;) {
    const auto engine = Engine::create({.plans = {.threshold = 1}});
    exp(ones({32, 32}, {.engine = engine}) * 0.5F).eval();
  }
}

/// Ends the program from inside an evaluation.
const Custom& ending() {
  static const auto& op = *new Custom(custom({.name = "test_ending", .run = [](auto xs, auto ys) {
                                                if (ends_now) std::exit(status);
                                                ys[0].template data<float>()[0] =
                                                    xs[0].template data<const float>()[0];
                                              }}));
  return op;
}

int end_by(std::string_view way) {
  if (way == "return") return status;
  if (way == "_exit") _exit(status);
  if (way == "quick_exit") std::quick_exit(status);
  if (way == "stranger") std::thread([] { std::exit(status); }).join();
  if (way == "thread") std::thread([] { exp(ones({2})).eval(), std::exit(status); }).join();
  if (way == "callback") {
    ends_now = true;
    ending()({ones({1})})[0].eval();
  }
  std::exit(status);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  alarm(120);  // far away: what hangs is ended by a signal
  const std::string_view way = arguments[1];
  const std::string path = std::string(arguments[3]) + "/plan.tessera";
  if (way == "prepare") {
    save_plan(path, compile([](const Tensor& x) { return tanh(x) * 2.0F; }), ones({8, 16}));
    return status;
  }
  static_tensor();
  std::thread(evaluate_for_ever).detach();
  std::thread(evaluate_for_ever).detach();
  std::thread(compile_for_ever).detach();
  std::thread(load_for_ever, path).detach();
  std::thread(make_engines_for_ever).detach();
  usleep(static_cast<useconds_t>(std::atoi(arguments[2])));
  return end_by(way);
}

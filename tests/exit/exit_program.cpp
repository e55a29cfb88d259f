// A program that ends, or forks, while its threads evaluate, compile and load: exit_program WAY MICROSECONDS
// FOLDER. Its exit status is 42, or that of its child. exit_test.cpp runs it.
#include <sys/wait.h>
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

/// What the child of a fork may do is done; the rest is an error that says so.
template <class F>
void expect_refusal(F&& f) {
  try {
    f();
  } catch (const Exception& error) {
    if (error.error().message().find("this process was forked from one that") != std::string::npos) return;
    std::fprintf(stderr, "%s\n", error.error().to_text().c_str());
  }
  _exit(3);
}

/// What a child does, all by one name, before it ends.
[[noreturn]] void live_as_child(std::string_view what, const std::string& path, Tensor known, Tensor lazy,
                                std::shared_ptr<Engine> engine, Pending pending) {
  alarm(60);  // far away: what hangs is ended by a signal
  const auto is = [&](std::string_view name) { return what == name || what == "all"; };
  if (is("read") && known.item<float>({3}) != 3) _exit(4);
  if (is("wait")) {
    engine->wait_for_plans();
    Engine::default_engine()->wait_for_plans();
  }
  if (is("evaluate")) {
    expect_refusal([&] { lazy.eval(); });
    expect_refusal([&] { (known + 1.0F).eval(); });
    expect_refusal([&] { ones({3}).eval(); });
  }
  if (is("compile")) {
    expect_refusal([&] { static_cast<void>(compile([](const Tensor& x) { return exp(x); })(known)); });
    expect_refusal([&] { static_cast<void>(Engine::create()); });
  }
  if (is("async")) {
    expect_refusal([&] { eval_async({known}).wait(); });
    try {
      pending.wait();
    } catch (const Exception&) {  // it was not done
    }
  }
  if (is("load")) expect_refusal([&] { static_cast<void>(load_plan(path)); });
  if (is("ask")) {
    expect_refusal([&] { static_cast<void>(explain()); });
    expect_refusal([&] { static_cast<void>(stats()); });
    static_cast<void>(memory());
  }
  if (is("drop")) {
    known = lazy = Tensor();
    engine = nullptr;
    pending = Pending();
  }
  std::exit(status);
}

/// The status of a child, or 100 and the signal that ended it.
int status_of_child(std::string_view what, const std::string& path) {
  const auto engine = Engine::create({.plans = {.threshold = 1}});
  const Tensor known = from_vector<float>({0, 1, 2, 3}, {4}, {.engine = engine});
  const Tensor lazy = exp(known) * 2.0F;
  const Pending pending = eval_async({tanh(ones({64, 64}))});
  for (int i = 0; i < 2; ++i) (exp(known) - static_cast<float>(i)).eval();  // a plan is being made
  const pid_t child = fork();
  if (child == 0) live_as_child(what, path, known, lazy, engine, pending);
  int out = 0;
  if (waitpid(child, &out, 0) != child) return 99;
  return WIFEXITED(out) ? WEXITSTATUS(out) : 100 + WTERMSIG(out);
}

int end_by(std::string_view way, const std::string& path) {
  if (way.starts_with("fork ")) _exit(status_of_child(way.substr(5), path));
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
  return end_by(way, path);
}

#include "tessera/tensor/saved_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"

using namespace tessera;

namespace {

/// A file that is gone at the end of a test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const char* name)
      : path_((std::filesystem::temp_directory_path() / cat("tessera_", getpid(), "_", name)).string()) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string bare_message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.error().message();
  }
  return "";
}

}  // namespace

TEST(SavedPlan, GivesWhatTheFunctionGives) {
  const TemporaryFile file("function.plan");
  const Tensor w = from_vector<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor x = from_vector<float>({1, -1, 2, 0, 3, -2}, {2, 3});
  const auto step = compile([&](const Tensor& a, const Tensor& rate) {
    const Tensor product = matmul(a, w);
    return std::vector<Tensor>{relu(product) * rate, sum(product)};
  });
  save_plan(file.path(), step, x, 0.5);
  const SavedPlan loaded = load_plan(file.path());
  EXPECT_EQ(loaded.inputs().size(), 2U);
  EXPECT_EQ(loaded.outputs().size(), 2U);
  EXPECT_EQ(loaded.inputs()[0].shape, (std::vector<std::int64_t>{2, 3}));
  for (const double rate : {0.5, -2.0}) {
    const auto expected = step(x, rate);
    const auto got = loaded({x, full({}, rate)});
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].shape(), expected[0].shape());
    EXPECT_EQ(got[0].to_vector<float>(), expected[0].to_vector<float>());
    EXPECT_EQ(got[1].to_vector<float>(), expected[1].to_vector<float>());
  }
}

TEST(SavedPlan, ReadsInputsWhereTheyLie) {
  const TemporaryFile file("views.plan");
  const Tensor wide = from_vector<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4});
  const Tensor x = wide.slice({{}, {1, 3}});
  save_plan(file.path(), compile([](const Tensor& a) { return sum(a * 2.0, {.axes = {1}}); }), x);
  const SavedPlan loaded = load_plan(file.path());
  const std::vector<float> expected{6, 22, 38};
  EXPECT_EQ(loaded({x})[0].to_vector<float>(), expected);
  EXPECT_EQ(loaded({x.eval() * 1.0})[0].to_vector<float>(), expected) << "an input that is lazy";
  const auto other = engine::Engine::create();
  const Tensor elsewhere = from_vector<float>({1, 2, 5, 6, 9, 10}, {3, 2}, {.engine = other});
  EXPECT_EQ(loaded({elsewhere})[0].to_vector<float>(), expected) << "an input of another engine";
}

TEST(SavedPlan, OutputsThatAreHeldStayAndOthersUseTheirMemoryAgain) {
  const TemporaryFile file("held.plan");
  const auto engine = engine::Engine::create();
  const Tensor x = zeros({8}, {.engine = engine}).eval();
  save_plan(file.path(), compile([](const Tensor& a) { return a + 1.0; }), x);
  const SavedPlan loaded = load_plan(file.path(), {.engine = engine});
  std::vector<Tensor> held{x};
  for (int i = 0; i < 10; ++i) held.push_back(loaded({held.back()})[0]);
  for (int i = 0; i < 11; ++i)
    EXPECT_EQ(held[static_cast<std::size_t>(i)].item<float>({7}), static_cast<float>(i));
  held.clear();
  std::set<const void*> places;
  for (int i = 0; i < 10; ++i) places.insert(loaded({x})[0].storage());
  EXPECT_LE(places.size(), 2U);
}

TEST(SavedPlan, ServesSeveralThreadsAtOnce) {
  const TemporaryFile file("threads.plan");
  const Tensor w = ones({16, 16}).eval();
  save_plan(file.path(), compile([&](const Tensor& a) { return matmul(a, w) * 0.0625; }), w);
  const SavedPlan loaded = load_plan(file.path());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Tensor x = full({16, 16}, t);
      for (int i = 0; i < 50; ++i) x = loaded({x})[0];
      wrong += x.item<float>({3, 5}) != static_cast<float>(t);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SavedPlan, RunsAreReportedAndCounted) {
  const TemporaryFile file("reported.plan");
  const auto engine = engine::Engine::create();
  const Tensor x = ones({4}, {.engine = engine}).eval();
  save_plan(file.path(), compile([](const Tensor& a) { return a * 2.0; }), x);
  const SavedPlan loaded = load_plan(file.path(), {.engine = engine});
  const std::uint64_t before = engine->statistics().evaluations;
  for (int i = 0; i < 2; ++i) static_cast<void>(loaded({x}));
  EXPECT_EQ(engine->statistics().evaluations, before + 2);
  EXPECT_NE(engine->explain().find("reported.plan: plan none"), std::string::npos) << engine->explain();
}

TEST(SavedPlan, InputsThatDoNotFitAreErrorsAtTheCall) {
  const TemporaryFile file("fit.plan");
  const Tensor x = ones({2, 3});
  save_plan(file.path(), compile([](const Tensor& a) { return a + 1; }), x);
  const SavedPlan loaded = load_plan(file.path());
  EXPECT_EQ(bare_message([&] { loaded({ones({3, 2})}); }), "input 'x0' is f32[3, 2], expected f32[2, 3]");
  EXPECT_EQ(bare_message([&] { loaded({}); }), "the plan has 1 inputs, got 0");
  EXPECT_EQ(bare_message([&] { loaded({Tensor()}); }), "input 0 of a plan is an empty tensor");
  EXPECT_EQ(loaded({x})[0].to_vector<float>(), std::vector<float>(6, 2));
}

TEST(SavedPlan, FilesThatAreNoPlansAreRefused) {
  const TemporaryFile file("none.plan");
  std::ofstream(file.path()) << "something else";
  EXPECT_EQ(bare_message([&] { (void)load_plan(file.path()); }), "the file is no plan");
  EXPECT_NE(bare_message([&] { (void)load_plan(file.path() + ".missing"); }), "");
}

TEST(SavedPlan, ErrorsSayWhoCalled) {
  const auto text_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Exception& exception) {
      return exception.what();
    }
    return "no error";
  };
  const TemporaryFile file("none.plan");
  std::ofstream(file.path()) << "something else";
  const std::string loaded = text_of([&] { (void)load_plan(file.path()); });
  EXPECT_NE(loaded.find(cat("load_plan at ", __FILE__, ":", __LINE__ - 1)), std::string::npos) << loaded;
  const auto step = compile([](const Tensor& a) { return a + 1; });
  const std::string saved = text_of([&] { save_plan("/no/such/folder/x.plan", step, ones({2})); });
  EXPECT_NE(saved.find(cat(__FILE__, ":", __LINE__ - 1)), std::string::npos) << saved;
}

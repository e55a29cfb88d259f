#include "tessera/tensor/saved_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tessera/base/text.h"
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

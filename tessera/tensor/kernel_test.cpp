// Kernels of the program's own and captured calls, on the emulated device and on a GPU where there is one.
#include "tessera/tensor/kernel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/tensor/captured.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/custom.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tests/support/message.h"

using namespace tessera;
using fixture::message_of;
namespace p = tessera::parameter;

namespace {

constexpr const char* scale_text = R"(
extern "C" __global__ void scale(const float* x, float* y, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * by;
})";

/// Kernels have names for life: each test and device has its own.
std::string fresh_name(std::string_view stem) {
  static int count = 0;
  return cat(stem, "_", ++count);
}

DeviceParameters scale_parameters() {
  return {p::read("x", {.dtype = f32, .shape = "[N]"}), p::write("y"), p::scalar("by", 2.0),
          p::size("n", "N", Dtype::i32)};
}

Kernel scale_kernel(std::string text = scale_text) {
  return Kernel({.name = fresh_name("scale"),
                 .source = std::move(text),
                 .entry = "scale",
                 .parameters = scale_parameters(),
                 .grid = "[(N + 63) / 64]",
                 .block = {64}});
}

class DeviceOps : public runtime::cuda::OnTestDevice {
 protected:
  void SetUp() override {
    OnTestDevice::SetUp();
    if (device_ == nullptr) return;
    engine_ = engine::Engine::create({.plans = {.threshold = 2, .wait = true}, .device = device_});
  }
  [[nodiscard]] Tensor counted(std::int64_t size) const {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return from_vector<float>(values, {size}, {.engine = engine_});
  }
  [[nodiscard]] engine::Tier tier() const { return engine_->report().components.at(0).tier; }
  [[nodiscard]] const runtime::cuda::Driver& driver() const { return device_->context()->driver(); }

  std::shared_ptr<engine::Engine> engine_;
};

TEST_P(DeviceOps, AKernelIsAnOpOfPlansOfEverySize) {
  const Kernel scale = scale_kernel();
  for (const std::int64_t size : {100, 100, 100, 7, 64, 65, 1}) {
    const Tensor y = scale(counted(size) + 1.0, 3.0) - 1.0;
    const auto values = y.to_vector<float>();
    for (std::int64_t i = 0; i < size; ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(3 * (i + 1) - 1)) << size;
  }
  EXPECT_NE(tier(), engine::Tier::streamed);
}

TEST_P(DeviceOps, NumbersOfKernelsArePatched) {
  const Kernel scale = scale_kernel();
  const Tensor x = counted(10).eval();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(scale(x, static_cast<double>(i)).item<float>({3}), static_cast<float>(3 * i));
  EXPECT_EQ(tier(), engine::Tier::hot);
  EXPECT_EQ(scale(x).item<float>({3}), 6.0F);  // what the parameter says
}

TEST_P(DeviceOps, InputsWithGapsAreCopiedFirst) {
  const Kernel scale = scale_kernel();
  const Tensor x = counted(20).eval();
  for (int i = 0; i < 4; ++i) {
    const Tensor y = scale(x.slice({{.start = 19, .stop = 9, .step = -3}}), 2.0);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{38, 32, 26, 20}));
    EXPECT_EQ(scale(x.slice({{.start = 4, .stop = 6}}), 2.0).to_vector<float>(), (std::vector<float>{8, 10}));
  }
}

TEST_P(DeviceOps, AnUpdateLeavesTheOldVersion) {
  const Kernel add({.name = fresh_name("add_into"),
                    .source = R"(extern "C" __global__ void add_into(float* state, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) state[i] += x[i];
})",
                    .entry = "add_into",
                    .parameters = {p::read_write("state"), p::read("x", {.shape = "same(0)"}),
                                   p::size("n", "dim(0, 0)", Dtype::i32)}});
  const Tensor state = counted(50).eval(), x = counted(50).eval();
  for (int i = 0; i < 4; ++i) {
    const Tensor next = add(state, x), twice = add(next, x);
    eval({next, twice});
    EXPECT_EQ(state.item<float>({7}), 7);
    EXPECT_EQ(next.item<float>({7}), 14);
    EXPECT_EQ(twice.item<float>({7}), 21);
  }
}

Kernel append_kernel() {
  return Kernel({.name = fresh_name("above"),
                 .source = R"(
extern "C" __global__ void above(const int* x, int* rows, unsigned long long* count,
                                 unsigned long long capacity, int least, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || x[i] <= least) return;
  const unsigned long long at = atomicAdd(count, 1ull);
  if (at < capacity) rows[at] = x[i];
})",
                 .entry = "above",
                 .parameters = {p::read("x", {.dtype = Dtype::i32, .shape = "[N]"}),
                                p::append("rows", {.shape = "[100]"}), p::integer("least", 0, Dtype::i32),
                                p::size("n", "N", Dtype::i32)},
                 .grid = "[(N + 63) / 64]",
                 .block = {64}});
}

TEST_P(DeviceOps, Trap_G11_CountersAreResetInEveryLaunch) {
  const Kernel above = append_kernel();
  std::vector<std::int32_t> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  const Tensor x = from_vector<std::int32_t>(values, {256}, {.engine = engine_});
  const std::pair<int, std::uint64_t> cases[] = {{200, 55}, {250, 5}, {999, 0}, {200, 55}, {200, 55}};
  for (const auto& [least, expected] : cases) {
    const Appended rows = above.appended({x, least});
    EXPECT_EQ(rows.count(), expected);
    EXPECT_FALSE(rows.has_overflowed());
    auto found = rows.rows().to_vector<std::int32_t>();
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found.size(), expected);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], least + 1 + static_cast<int>(i));
  }
}

TEST_P(DeviceOps, Trap_G10_OverflowIsReported) {
  const Kernel above = append_kernel();
  const Tensor x = from_vector<std::int32_t>(std::vector<std::int32_t>(150, 7), {150}, {.engine = engine_});
  const Appended rows = above.appended({x, 0});
  EXPECT_EQ(rows.count(), 100U);
  EXPECT_EQ(rows.asked(), 150U);
  EXPECT_EQ(rows.capacity(), 100U);
  EXPECT_TRUE(rows.has_overflowed());
  EXPECT_EQ(rows.rows().shape(), (Shape{100}));
  EXPECT_EQ(rows.rows().to_vector<std::int32_t>(), std::vector<std::int32_t>(100, 7));
}

TEST_P(DeviceOps, Trap_G15_CodeThatDoesNotCompileLeavesTheOldKernel) {
  const Kernel scale = scale_kernel();
  const Tensor x = counted(10).eval();
  const auto third = [&] { return scale(x, 2.0).item<float>({3}); };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(third(), 6);
  scale.set_source("\n\n#error broken\n");
  EXPECT_EQ(third(), 6);
  EXPECT_NE(scale.error().find("scale"), std::string::npos);
  EXPECT_NE(scale.error().find("(3)"), std::string::npos) << scale.error();
  EXPECT_EQ(third(), 6);
  std::string other = scale_text;
  other.replace(other.find("x[i] * by"), 9, "x[i] + by");
  scale.set_source(other);
  EXPECT_EQ(third(), 5);
  EXPECT_EQ(scale.error(), "");
  EXPECT_EQ(tier(), engine::Tier::code);
  EXPECT_EQ(third(), 5);
  EXPECT_EQ(tier(), engine::Tier::none);
}

TEST_P(DeviceOps, AFileThatChangesIsLoadedAgain) {
  const auto path = std::filesystem::temp_directory_path() / cat("tessera_", ::getpid(), "_scale.cu");
  const auto write = [&](std::string_view text) { std::ofstream(path) << text; };
  write(scale_text);
  const Kernel scale({.name = fresh_name("file"),
                      .file = path.string(),
                      .entry = "scale",
                      .parameters = scale_parameters()});
  const Tensor x = counted(10).eval();
  const auto third = [&] { return scale(x, 2.0).item<float>({3}); };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(third(), 6);
  std::string other = scale_text;
  other.replace(other.find("x[i] * by"), 9, "x[i] - by");
  write(other);
  EXPECT_EQ(third(), 1);
  write("#error broken");
  EXPECT_EQ(third(), 1);
  EXPECT_NE(scale.error().find("error"), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_EQ(third(), 1);
  write(scale_text);
  EXPECT_EQ(third(), 6);
  std::filesystem::remove(path);
}

TEST_P(DeviceOps, WhatIsWrongWithAKernelIsSaidAtTheCallersLine) {
  const Tensor x = counted(10).eval();
  const auto error_of = [&](const Kernel& kernel) { return message_of([&] { kernel(x, 2.0).eval(); }); };
  const auto made = [&](KernelOptions options) {
    options.name = fresh_name("wrong");
    if (options.parameters.empty()) options.parameters = scale_parameters();
    return Kernel(std::move(options));
  };
  const std::string broken = error_of(made({.source = "#error oh", .entry = "scale"}));
  EXPECT_NE(broken.find("kernel 'wrong_"), std::string::npos) << broken;
  EXPECT_NE(broken.find("kernel_test.cpp:"), std::string::npos) << broken;
  const std::string missing = error_of(made({.source = scale_text, .entry = "scala"}));
  EXPECT_NE(missing.find("'scala'"), std::string::npos) << missing;
  const std::string no_file = error_of(made({.file = "/nowhere/scale.ptx", .entry = "scale"}));
  EXPECT_NE(no_file.find("/nowhere/scale.ptx"), std::string::npos) << no_file;
  for (const std::string garbage : {"garbage", ".version 99.9 garbage", "",
                                    "\x7f"
                                    "ELF"})
    for (const CodeForm form : {CodeForm::ptx, CodeForm::cubin}) {
      if (garbage.empty()) continue;
      const std::string error = error_of(made({.source = garbage, .form = form, .entry = "scale"}));
      EXPECT_NE(error.find("kernel 'wrong_"), std::string::npos) << error;
    }
  DeviceParameters fewer = scale_parameters(), narrow = scale_parameters();
  fewer.pop_back();
  narrow[2] = p::scalar("by", 2.0, Dtype::f64);
  const std::string arity = error_of(made({.source = scale_text, .entry = "scale", .parameters = fewer}));
  EXPECT_NE(arity.find("'scale' takes 4 parameters, 3 are declared"), std::string::npos) << arity;
  const std::string wide = error_of(made({.source = scale_text, .entry = "scale", .parameters = narrow}));
  EXPECT_NE(wide.find("parameter 2 of 'scale' has 4 bytes, 8 are declared"), std::string::npos) << wide;
  EXPECT_EQ(scale_kernel()(x, 2.0).item<float>({3}), 6);  // the engine goes on
}

/// y = x, as a library would copy.
Captured copy_op(const runtime::cuda::Driver& driver, int* captures) {
  return captured({.name = fresh_name("copied"),
                   .parameters = {p::read("x"), p::write("y"), p::integer("times", 1)},
                   .capture = [&driver, captures](const StreamCall& call) {
                     ++*captures;
                     const auto from = reinterpret_cast<CUdeviceptr>(call.data<float>(0));
                     const auto to = reinterpret_cast<CUdeviceptr>(call.data<float>(1));
                     const auto bytes = static_cast<std::size_t>(call.shape(0)[0]) * sizeof(float);
                     for (std::int64_t i = 0; i < call.integer(2); ++i)
                       if (driver.cuMemcpyDtoDAsync(to, from, bytes, static_cast<CUstream>(call.stream())) !=
                           CUDA_SUCCESS)
                         throw std::runtime_error("the copy was refused");
                   }});
}

TEST_P(DeviceOps, ACapturedCallIsAPartOfThePlan) {
  int captures = 0;
  const Captured copied = copy_op(driver(), &captures);
  const Tensor x = counted(100).eval();
  for (int i = 0; i < 6; ++i) {
    const Tensor y = copied(x * 2.0) + static_cast<double>(i);
    EXPECT_EQ(y.item<float>({3}), static_cast<float>(6 + i));
  }
  EXPECT_EQ(tier(), engine::Tier::hot);
  const int before = captures;
  for (int i = 0; i < 3; ++i) {
    const Tensor y = copied(x * 2.0) + 1.0;
    y.eval();
  }
  EXPECT_EQ(captures, before);
  EXPECT_EQ((copied(counted(30) * 2.0) + 1.0).item<float>({29}), 59.0F);
}

TEST_P(DeviceOps, Trap_G7_OtherCallsAreACaptureOrANewGraph) {
  int captures = 0;
  const Captured copied = copy_op(driver(), &captures);
  const Tensor x = counted(100).eval();
  for (const int times : {1, 1, 1, 2, 3, 1}) {
    const Tensor y = copied(x * 2.0, times) + 1.0;
    EXPECT_EQ(y.item<float>({3}), 7.0F);
  }
}

TEST_P(DeviceOps, WhatACaptureThrowsNamesTheOpAndTheLine) {
  const Captured throws = captured({.name = fresh_name("throws"),
                                    .parameters = {p::read("x"), p::write("y")},
                                    .capture = [](const StreamCall& call) {
                                      if (call.shape(0)[0] == 3)
                                        throw std::runtime_error("the valve is stuck");
                                      if (call.shape(0)[0] == 4) (void)call.data<double>(0);
                                      if (call.shape(0)[0] == 5) (void)call.number(1);
                                      if (call.shape(0)[0] == 6) (void)call.argument(9);
                                    }});
  const std::pair<std::int64_t, std::string> cases[] = {{3, ": the valve is stuck"},
                                                        {4, "read as elements of 8 bytes"},
                                                        {5, "'y' is an array, not a number"},
                                                        {6, "there is no parameter 9, there are 2"}};
  for (const auto& [size, expected] : cases)
    for (int i = 0; i < 4; ++i) {  // as a plan, too
      const Tensor y = throws(counted(size) * 2.0);
      const std::string message = message_of([&] { y.eval(); });
      EXPECT_NE(message.find(expected), std::string::npos) << message;
      EXPECT_NE(message.find(throws.name()), std::string::npos) << message;
      EXPECT_NE(message.find("kernel_test.cpp:"), std::string::npos) << message;
    }
  EXPECT_EQ((counted(3) * 2.0).item<float>({2}), 4.0F);
}

TEST_P(DeviceOps, WaitingWhileCapturedIsAnError) {
  const Captured waits = captured({.name = fresh_name("waits"),
                                   .parameters = {p::read("x"), p::write("y")},
                                   .capture = [this](const StreamCall& call) {
                                     (void)driver().cuStreamSynchronize(static_cast<CUstream>(call.stream()));
                                   }});
  for (int i = 0; i < 4; ++i) {
    const std::string message = message_of([&] { waits(counted(8) * 2.0).eval(); });
    EXPECT_NE(message.find(cat("capturing '", waits.name(), "'")), std::string::npos) << message;
    EXPECT_NE(message.find("kernel_test.cpp:"), std::string::npos) << message;
  }
  EXPECT_EQ((counted(3) * 2.0).item<float>({2}), 4.0F);
}

TEST_P(DeviceOps, FunctionsOfTheHostSeeTheValues) {
  const Custom reversed = custom(
      {.name = fresh_name("reversed"), .run = [](std::span<const Elements> xs, std::span<const Elements> ys) {
         const auto from = xs[0].data<const float>();
         std::reverse_copy(from.begin(), from.end(), ys[0].data<float>().begin());
       }});
  const Tensor x = counted(9).eval();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ((reversed(x * 2.0) + 1.0).item<float>({0}), 17.0F);
    EXPECT_EQ(reversed(x.slice({{.step = 4}})).to_vector<float>(), (std::vector<float>{8, 4, 0}));
  }
  EXPECT_NE(tier(), engine::Tier::streamed);
}

/// This device has nothing that makes plans of bodies.
TEST_P(DeviceOps, RegionsThatTheHostDrivesAreSaidWithTheReason) {
  for (int i = 0; i < 4; ++i) {
    const Tensor x = counted(16).reshape({4, 4});
    const Tensor y = for_loop(
        3, [](const Tensor&, const Tensors& s) { return Tensors{matmul(s[0], s[0]) * 0.01}; }, {x})[0];
    y.eval();
    if (tier() == engine::Tier::streamed) continue;
    EXPECT_NE(engine_->explain().find("[the host drives '"), std::string::npos) << engine_->explain();
    EXPECT_NE(engine_->explain().find("no compiler for bodies of regions]"), std::string::npos);
  }
  EXPECT_NE(tier(), engine::Tier::streamed);
}

/// A wrong index is the program's: the plan that found it goes on with other ones.
TEST_P(DeviceOps, APlanGoesOnAfterAnIndexOutside) {
  const Tensor x = counted(8).eval();
  const auto pick = [&](std::int64_t index) {
    const Tensor at = full({1}, static_cast<double>(index), {.dtype = i64, .engine = engine_}).eval();
    return (gather(x, at, {.axis = 0}) + 1.0).item<float>({0});
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pick(i), static_cast<float>(i + 1));
  const auto instantiated = runtime::cuda::emulated_state().instantiated;
  EXPECT_NE(message_of([&] { pick(9); }).find("index 9 is outside"), std::string::npos);
  EXPECT_EQ(pick(5), 6.0F);
  EXPECT_LT(tier(), engine::Tier::cold) << engine_->explain();
  EXPECT_EQ(runtime::cuda::emulated_state().instantiated, instantiated);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceOps, runtime::cuda::all_test_devices(), runtime::cuda::test_device_name);

TEST(DeviceOpsOnTheHost, KernelsSayWhatTheyNeed) {
  const Kernel scale = scale_kernel();
  const auto engine = engine::Engine::create({.device = *engine::find_device("reference")});
  const Tensor y = scale(ones({4}, {.engine = engine}), 2.0);
  EXPECT_EQ(y.shape(), (Shape{4}));
  const std::string message = message_of([&] { y.eval(); });
  EXPECT_NE(message.find(cat("kernel '", scale.name(), "' is code for a GPU")), std::string::npos) << message;
  EXPECT_NE(message.find("kernel_test.cpp:"), std::string::npos) << message;
}

TEST(DeviceOpsOnTheHost, CapturedCallsRunWithoutAStream) {
  const Captured twice = captured({.name = fresh_name("twice"),
                                   .parameters = {p::read("x", {.shape = "[N]"}),
                                                  p::write("y", {.shape = "[2 * N]"}), p::scalar("by", 2.0)},
                                   .capture = [](const StreamCall& call) {
                                     EXPECT_EQ(call.stream(), nullptr);
                                     for (std::int64_t i = 0; i < call.shape(1)[0]; ++i)
                                       call.data<float>(1)[i] = call.data<const float>(0)[i / 2] *
                                                                static_cast<float>(call.number(2));
                                   }});
  const auto engine = engine::Engine::create(
      {.plans = {.threshold = 2, .wait = true}, .device = *engine::find_device("reference")});
  for (const std::int64_t size : {2, 2, 2, 5, 9}) {
    const Tensor y = twice(ones({size}, {.engine = engine}) * 3.0, 0.5);
    EXPECT_EQ(y.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(2 * size), 1.5F));
  }
}

TEST(DeviceOpsOnTheHost, HaveTheGradientTheyWereGiven) {
  const Captured square =
      captured({.name = fresh_name("square"),
                .parameters = {p::read("x"), p::write("y")},
                .capture =
                    [](const StreamCall& call) {
                      for (std::int64_t i = 0; i < call.shape(0)[0]; ++i)
                        call.data<float>(1)[i] = call.data<float>(0)[i] * call.data<float>(0)[i];
                    },
                .gradient = [](const std::vector<Tensor>& xs, const Tensor&,
                               const Tensor& g) { return std::vector<Tensor>{g * xs[0] * 2.0}; }});
  const auto loss = [&](const std::vector<Tensor>& xs) { return sum(square(xs[0]) * 3.0); };
  EXPECT_EQ(grad(loss)({tensor({1, 2})})[0].to_vector<float>(), (std::vector<float>{6, 12}));
}

TEST(DeviceOpsOnTheHost, WrongCallsAndOptionsAreSaidAtOnce) {
  const auto of = [](KernelOptions options) { return message_of([&] { (void)Kernel(options); }); };
  EXPECT_NE(of({.name = "two words", .source = "x"}).find("is no name"), std::string::npos);
  EXPECT_NE(of({.name = "test_kernel"}).find("a file or a source"), std::string::npos);
  EXPECT_NE(of({.name = "matmul", .source = "x", .parameters = scale_parameters()}).find("catalogue"),
            std::string::npos);
  EXPECT_NE(of({.name = "test_kernel", .source = "x", .parameters = {p::read("x")}}).find("is written"),
            std::string::npos);
  const std::string rule = of(
      {.name = "test_kernel", .source = "x", .parameters = {p::read("x", {.shape = "[N,"}), p::write("y")}});
  EXPECT_NE(rule.find("kernel 'test_kernel': the rule '[N,' of 'x': column"), std::string::npos) << rule;
  EXPECT_NE(of({.name = "test_kernel", .source = "x", .parameters = {p::write("y"), p::write("y")}})
                .find("no name of its own"),
            std::string::npos);
  EXPECT_NE(of({.name = "test_kernel",
                .source = "x",
                .parameters = {p::read("x"), p::write("y"), p::scalar("s", 1, Dtype::f16)}})
                .find("numbers are f32, f64 or integers"),
            std::string::npos);
  const auto of_block = [&](std::vector<std::int64_t> block, std::int64_t shared) {
    return of({.name = "test_kernel",
               .source = "x",
               .parameters = scale_parameters(),
               .block = std::move(block),
               .shared_bytes = shared});
  };
  EXPECT_NE(of_block({0}, 0).find("a block of size 0"), std::string::npos);
  EXPECT_NE(of_block({-1}, 0).find("a block of size -1"), std::string::npos);
  EXPECT_NE(of_block({32, 64}, 0).find("a block of 2048 threads"), std::string::npos);
  EXPECT_NE(of_block({std::int64_t{1} << 62, 4}, 0).find("sizes are 1 to 1024"), std::string::npos);
  EXPECT_NE(of_block({256}, -5).find("shared memory of -5 bytes"), std::string::npos);
  EXPECT_EQ(op::find_card("test_kernel"), nullptr);

  const Kernel scale = scale_kernel();
  EXPECT_NE(message_of([&] { (void)scale(ones({2}), ones({2})); }).find("'by' is a number, got a tensor"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)scale(2.0); }).find("'x' is a tensor, got a number"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)scale(); }).find("takes 2 arguments, got 0"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)scale(ones({2}), 1, 2); }).find("takes 2 arguments, got 3"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)scale(ones({2, 2}));
            }).find("'x' has shape [2, 2], rank 1 is expected"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)scale(ones({2}, {.dtype = Dtype::f64})); }).find("f64"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)scale(Tensor()); }).find("is empty"), std::string::npos);
}

}  // namespace

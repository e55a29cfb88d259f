// Every allocation that Tessera makes in a small run fails once, on whatever thread: the call that needed it
// says so, nothing crashes or stays half done, and the next run with the same engine gives the right answer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "tessera/compile/plan_function.h"
#include "tessera/compile/tiling.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/engine.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/tensor.h"
#include "tests/support/repeats.h"

namespace ts = tessera;
using tessera::fixture::is_sanitized;

// The bounds of the program's code. What shared libraries allocate for themselves is not Tessera's.
extern "C" const char __executable_start, etext;

namespace {

constexpr std::int64_t never = -1;
std::atomic<std::int64_t> until_failure = never;
std::atomic<bool> stays_refused = false;  ///< also those after it
std::atomic<std::int64_t> allocations = 0;

/// Which allocations count: all, those of blocks of memory (base/large_pages.h), or those of other threads
/// than the one that evaluates.
enum class Counted : std::uint8_t { all, blocks, beside };
std::atomic<Counted> counted = Counted::all;
thread_local bool evaluates = false;

/// Whether this is the allocation that fails.
bool is_refused(bool is_block = false) {
  if (counted == Counted::blocks && !is_block) return false;
  if (counted == Counted::beside && evaluates) return false;
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (until_failure.load(std::memory_order_relaxed) == never) return false;
  const std::int64_t left = until_failure.fetch_sub(1, std::memory_order_relaxed);
  if (left > 0) return false;
  until_failure = stays_refused ? 0 : never;
  return true;
}

bool is_own_code(const void* address) { return address >= &__executable_start && address < &etext; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// A sanitizer has an allocator of its own, which must stay whole: blocks are not counted.
void* unrefused(std::size_t alignment, std::size_t size) { return std::aligned_alloc(alignment, size); }
#else
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);
void* unrefused(std::size_t alignment, std::size_t size) { return __libc_memalign(alignment, size); }
#endif

void* aligned(std::size_t size, std::size_t alignment) {
  return unrefused(alignment, (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment);
}

void* allocate(std::size_t size, std::size_t alignment, const void* caller) {
  if (is_own_code(caller) && is_refused()) throw std::bad_alloc();
  if (void* memory = aligned(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// What blocks come from.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (is_own_code(__builtin_return_address(0)) && is_refused(true)) return nullptr;
  return unrefused(alignment, size);
}
#endif

void* operator new(std::size_t size) {
  return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (is_own_code(__builtin_return_address(0)) && is_refused()) return nullptr;
  return aligned(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

// ---- a small training step

/// Elements of tensors come from here and fail like everything else.
ts::runtime::AllocatorCallbacks failing_memory() {
  return {.allocate = [](std::size_t bytes) -> void* { return is_refused() ? nullptr : aligned(bytes, 64); },
          .free = [](void* memory, std::size_t) { std::free(memory); }};
}

std::shared_ptr<ts::engine::Engine> engine_on(std::string_view device) {
  ts::engine::EngineOptions options{.allocator = failing_memory(), .plans = {.threshold = 2}};
  options.device = ts::value_or_throw(ts::engine::find_device(device));
  return ts::engine::Engine::create(std::move(options));
}

/// Some steps of training, recorded anew each time: streamed first, then with a plan that is made beside it.
std::vector<float> train(const std::shared_ptr<ts::engine::Engine>& engine) {
  const ts::CreateOptions here{.engine = engine};
  const ts::Tensor x = ts::from_vector<float>({0.5F, -1, 2, 1, 0.25F, -0.5F}, {2, 3}, here);
  const ts::Tensor t = ts::from_vector<float>({1, -1}, {2, 1}, here);
  ts::Tensor w = ts::from_vector<float>({0.1F, 0.2F, -0.3F}, {3, 1}, here);
  const auto loss = ts::value_and_grad([&](const std::vector<ts::Tensor>& of) {
    const ts::Tensor error = ts::tanh(ts::matmul(x, of[0])) - t;
    return ts::mean(error * error);
  });
  for (int step = 0; step < 5; ++step) {
    w = w - 0.5 * loss({w}).gradients[0];
    w.eval();
    if (step == 2) engine->wait_for_plans();
  }
  return w.to_vector<float>();
}

/// Fused kernels round once where calls round twice, and whether there is a plan yet differs.
void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6);
}

/// What a run throws for want of memory, or nothing.
bool is_refused_run(const std::shared_ptr<ts::engine::Engine>& engine, std::vector<float>& result) {
  try {
    result = train(engine);
    return false;
  } catch (const std::bad_alloc&) {
  } catch (const ts::Exception& exception) {
    EXPECT_EQ(exception.error().code(), ts::ErrorCode::memory) << exception.error().to_text();
  }
  return true;
}

/// `stride`: every how many-th of the allocations is refused.
void refuse_each(std::string_view device, std::int64_t stride, bool and_all_after) {
  stays_refused = and_all_after;
  const std::vector<float> expected = train(engine_on(device));
  const std::int64_t before = allocations;
  expect_near(train(engine_on(device)), expected);
  const std::int64_t count = allocations - before;
  std::int64_t refused = 0;
  for (std::int64_t i = 0; i < count; i += stride) {
    SCOPED_TRACE(ts::cat("allocation ", i, " of ", count, " is refused"));
    std::vector<float> result;
    const auto engine = engine_on(device);
    until_failure = i;
    const bool is_refused = is_refused_run(engine, result);
    until_failure = never;
    refused += is_refused ? 1 : 0;
    if (!is_refused) expect_near(result, expected);  // it was refused where one can do without, or not at all
    engine->wait_for_plans();
    expect_near(train(engine), expected);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(refused, count / stride / 4);
}

}  // namespace

// Throwing takes long under sanitizers: fewer are tried there.
TEST(AllocationFailure, OfAnyAllocationLosesNothing) {
  refuse_each("reference", is_sanitized ? 5 : 1, false);
}
TEST(AllocationFailure, OfAllAllocationsLosesNothing) {
  refuse_each("reference", is_sanitized ? 13 : 3, true);
}
TEST(AllocationFailure, OnTheCpuLosesNothing) { refuse_each("cpu", is_sanitized ? 13 : 2, false); }
TEST(AllocationFailure, OfAllOnTheCpuLosesNothing) { refuse_each("cpu", is_sanitized ? 37 : 3, true); }

// ---- a plan whose arrays lie elsewhere

namespace {

/// Runs of one executable on arrays of the caller, with nobody behind who would make another.
class Moves {
 public:
  using Numbers = std::array<float, 6>;

  Moves() {
    using namespace ts::runtime::cpu;
    const auto function = ts::value_or_throw(ts::ir::parse_function(
        "func f(s: f32[6]) { e: f32[6] = exp(s) f: f32[6] = cumsum(e) {axis = 0} k: f32[6] = sqrt(f) "
        "return k }"));
    const auto device = std::make_shared<CpuDevice>(
        CpuOptions{.threads = 2, .target = {.name = "cpu", .sources = {ts::compiler::fused_regions()}}});
    const auto plan = ts::value_or_throw(ts::compiler::plan_function(function, device->target())).plan;
    executable_ = ts::value_or_throw(device->load(plan, ts::runtime::MemoryPool::create()));
    const std::array layouts{ts::op::contiguous({6})};
    ts::value_or_throw(executable_->prepare({}, layouts));
  }

  /// False if memory was refused.
  bool run(std::size_t place) {
    const std::array inputs{reinterpret_cast<std::byte*>(inputs_[place].data())};
    const std::array outputs{reinterpret_cast<std::byte*>(outputs_[place].data())};
    outputs_[place].fill(-1);
    try {
      ts::value_or_throw(executable_->run({.inputs = inputs, .parameters = {}, .outputs = outputs}));
    } catch (const std::bad_alloc&) {
      return false;
    } catch (const ts::Exception& exception) {
      EXPECT_EQ(exception.error().code(), ts::ErrorCode::memory) << exception.error().to_text();
      return false;
    }
    return true;
  }
  void expect_right(std::size_t place) {
    ASSERT_TRUE(run(place));
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      sum += std::exp(inputs_[place][i]);
      ASSERT_NEAR(outputs_[place][i], std::sqrt(sum), 1e-5) << "array " << place << ", element " << i;
    }
  }

 private:
  std::unique_ptr<ts::runtime::Executable> executable_;
  std::array<Numbers, 6> inputs_{Numbers{0, 1, 2, 3, 4, 5}, {1, 0, 1, 0, 1, 0}, {2, 2, 1, 1, 0, 0},
                                 {5, 4, 3, 2, 1, 0},        {0, 0, 0, 0, 0, 1}, {3, 1, 4, 1, 5, 0}};
  std::array<Numbers, 6> outputs_{};
};

}  // namespace

TEST(AllocationFailure, WhileAPlanFollowsItsArraysLosesNothing) {
  counted = Counted::all;
  stays_refused = false;
  std::int64_t refused = 0;
  // Of the second arrays, and of those for which older ones are forgotten.
  for (const std::size_t next : {1U, 4U, 5U})
    for (std::int64_t i = 0;; ++i) {
      SCOPED_TRACE(ts::cat("arrays ", next, ", allocation ", i, " is refused"));
      Moves moves;
      for (std::size_t place = 0; place < next; ++place) moves.expect_right(place);
      until_failure = i;
      const bool is_right = moves.run(next);
      const bool is_over = until_failure.exchange(never) != never;
      refused += is_right ? 0 : 1;
      for (const std::size_t place : {next - 1, next, std::size_t{0}, next}) moves.expect_right(place);
      if (HasFatalFailure() || is_over) break;
    }
  EXPECT_GE(refused, 6);
}

// ---- what threads share

namespace {

/// Code and threads of its own, so that everything is made again; nothing is kept in files.
std::shared_ptr<ts::engine::Engine> engine_on_a_new_cpu() {
  static const ts::runtime::CodeStore nowhere("/dev/null/kernels");
  ts::runtime::cpu::CpuOptions options{.threads = 3};
  options.kernels.store = &nowhere;
  options.target.sources = {ts::compiler::fused_regions()};
  options.plan_body = &ts::engine::plan_body;
  ts::engine::EngineOptions of_engine{.plans = {.threshold = 2, .wait = true}};
  of_engine.device = std::make_shared<ts::runtime::cpu::CpuDevice>(std::move(options));
  return ts::engine::Engine::create(std::move(of_engine));
}

/// Calls that are large enough for threads, streamed at first, then as plans: products with an epilogue,
/// rows, convolutions, pooling, attention.
class Shared {
 public:
  explicit Shared(const std::shared_ptr<ts::engine::Engine>& engine) {
    const ts::CreateOptions here{.engine = engine};
    std::vector<float> numbers(256 * 256);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(i * 7919 % 65536) / 65536;
    x_ = ts::from_vector<float>(numbers, {256, 256}, here);
    w_ = ts::transpose(x_) * 0.01F;
    filters_ = ts::ones({8, 16, 3, 3}, here) * 0.1F;
    ts::eval({x_, w_, filters_});
  }

  std::vector<float> operator()() const {
    std::vector<float> out;
    for (int round = 0; round < 4; ++round) {
      const ts::Tensor image = ts::reshape(x_, {.shape = {1, 16, 64, 64}});
      const ts::Tensor heads = ts::reshape(x_, {.shape = {4, 128, 128}});
      const std::vector<ts::Tensor> all = {
          ts::sum(ts::softmax(ts::gelu(ts::matmul(x_, w_)) + x_) * x_),
          ts::sum(ts::layer_norm(ts::tanh(x_)) * 0.5F * x_),
          ts::sum(ts::max_pool(ts::relu(ts::conv(image, filters_)), {.kernel = {2, 2}}).values),
          ts::sum(ts::matmul(ts::softmax(ts::matmul(heads, heads)), heads))};
      ts::eval(all);
      out.clear();
      for (const ts::Tensor& one : all) out.push_back(one.item<float>());
    }
    return out;
  }

 private:
  ts::Tensor x_, w_, filters_;
};

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3 * (1 + std::abs(b[i])));
}

/// At most `tries` of the allocations that count are refused, one in each run on a device of its own.
void refuse_shared(Counted which, std::int64_t tries) {
  evaluates = true;
  stays_refused = false;
  const std::vector<float> expected = Shared(engine_on_a_new_cpu())();
  const auto engine = engine_on_a_new_cpu();
  const Shared program(engine);
  counted = which;
  const std::int64_t before = allocations;
  expect_close(program(), expected);
  const std::int64_t count = allocations - before;
  counted = Counted::all;
  ASSERT_GT(count, 0);
  const std::int64_t stride = std::max<std::int64_t>(1, count / tries);
  for (std::int64_t i = 0; i < count; i += stride) {
    SCOPED_TRACE(ts::cat("allocation ", i, " of ", count, " is refused"));
    const auto fresh = engine_on_a_new_cpu();
    const Shared again(fresh);
    counted = which;
    until_failure = i;
    try {
      expect_close(again(), expected);
    } catch (const std::bad_alloc&) {
    } catch (const ts::Exception& exception) {
      EXPECT_EQ(exception.error().code(), ts::ErrorCode::memory) << exception.error().to_text();
    }
    until_failure = never;
    counted = Counted::all;
    expect_close(again(), expected);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace

TEST(AllocationFailure, OfBlocksInSharedWorkLosesNothing) {
  if (is_sanitized) GTEST_SKIP() << "blocks are the sanitizer's";
  refuse_shared(Counted::blocks, 25);
}
TEST(AllocationFailure, OnOtherThreadsLosesNothing) {
  if (is_sanitized) GTEST_SKIP() << "blocks are the sanitizer's";
  refuse_shared(Counted::beside, 25);
}
TEST(AllocationFailure, InSharedWorkLosesNothing) { refuse_shared(Counted::all, is_sanitized ? 5 : 25); }

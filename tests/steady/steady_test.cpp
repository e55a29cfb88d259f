// A loop that is recorded again and again settles: from its hundredth evaluation on nothing is allocated.
// malloc, mmap and operator new are replaced in this program by ones that count. What oneDNN allocates inside
// a call of a primitive (a table of the arguments) is counted apart: its interface has no way around that. So
// is what OpenMP and the loader make for a thread when it first has a part in such a call, which may be late.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <tuple>

#include "tessera/engine/devices.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

namespace {

std::atomic<long> allocations{0};
std::atomic<long> inside_onednn{0};

/// Where the code of oneDNN lies, and of what it stands on. Asked for each allocation, so it must cost
/// nothing: a plan that seemed slow would be given up.
struct CodeRange {
  std::uintptr_t begin = 0, end = 0;
};
constexpr const char* foreign_libraries[] = {"libdnnl", "libgomp", "ld-linux"};
CodeRange foreign_code[std::size(foreign_libraries)];

void find_onednn() {
  const auto look = [](dl_phdr_info* info, std::size_t, void*) {
    for (std::size_t library = 0; library < std::size(foreign_libraries); ++library) {
      if (std::strstr(info->dlpi_name, foreign_libraries[library]) == nullptr) continue;
      for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        foreign_code[library] = {info->dlpi_addr + part.p_vaddr,
                                 info->dlpi_addr + part.p_vaddr + part.p_memsz};
      }
    }
    return 0;
  };
  dl_iterate_phdr(look, nullptr);
}

void count_for(const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  bool is_foreign = false;
  for (const CodeRange& code : foreign_code) is_foreign = is_foreign || (at >= code.begin && at < code.end);
  (is_foreign ? inside_onednn : allocations).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count_for(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  using Function = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "mmap"));
  allocations.fetch_add(1, std::memory_order_relaxed);
  return real(at, bytes, protection, flags, file, offset);
}
}

void* operator new(std::size_t bytes) {
  count_for(__builtin_return_address(0));
  void* const memory = __libc_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, std::size_t) noexcept { free(memory); }

namespace tessera {
namespace {

std::shared_ptr<Engine> cpu_engine() {
  return Engine::create({.plans = {.wait = true}, .device = value_or_throw(engine::find_device("cpu"))});
}

/// Allocations of the evaluations 100 to 1,100.
template <class F>
long settled_allocations(F&& evaluate) {
  for (int i = 0; i < 100; ++i) evaluate(i);
  value_or_throw(engine::find_device("cpu"))->settle();  // makes better code beside the program
  find_onednn();
  const long before = allocations.load();
  for (int i = 100; i < 1100; ++i) evaluate(i);
  return allocations.load() - before;
}

TEST(SteadyState, the_counter_counts) {
  const long before = allocations.load();
  delete new int(allocations.load() > 0 ? 1 : 2);
  void* volatile memory = malloc(100);
  free(memory);
  EXPECT_GT(allocations.load(), before);
}

TEST(SteadyState, a_network_recorded_anew_allocates_nothing) {
  const auto engine = cpu_engine();
  const Tensor x = ones({64, 48}, {.engine = engine}), w = ones({48, 32}, {.engine = engine}),
               b = ones({32}, {.engine = engine}), v = ones({32, 10}, {.engine = engine});
  eval({x, w, b, v});
  const long count = settled_allocations([&](int i) {
    const Tensor h = relu(matmul(x * (1.0F / static_cast<float>(i + 1)), w) + b);
    const Tensor y = tanh(matmul(h, v)) * 0.5F;
    eval({y});
  });
  EXPECT_EQ(count, 0);
  EXPECT_EQ(engine->report().components.size(), 1U);
  EXPECT_NE(engine->report().components[0].tier, engine::Tier::streamed);
}

TEST(SteadyState, weights_that_change_allocate_nothing) {
  const auto engine = cpu_engine();
  const Tensor x = ones({16, 24}, {.engine = engine}), y = ones({24, 16}, {.engine = engine});
  Tensor w = ones({24, 24}, {.engine = engine});
  eval({x, y, w});
  const long count = settled_allocations([&](int i) {
    w = w - matmul(matmul(y, x), w) * (1e-6F * static_cast<float>(i));
    eval({w});
  });
  EXPECT_EQ(count, 0);
}

// Options are the program's own: those with lists are made before the loop.
TEST(SteadyState, calls_with_attributes_allocate_nothing) {
  const auto engine = cpu_engine();
  const Tensor x = ones({64, 48}, {.engine = engine}).eval();
  const SumOptions over_rows{.axes = {1}};
  const auto scaled = [&](int i) { return x * (1.0F / static_cast<float>(i + 1)); };
  EXPECT_EQ(settled_allocations([&](int i) { softmax(scaled(i), {.axis = -1}).eval(); }), 0) << "softmax";
  EXPECT_EQ(settled_allocations([&](int i) { sum(scaled(i), over_rows).eval(); }), 0) << "sum";
  EXPECT_EQ(settled_allocations([&](int i) { (transpose(x) * (1.0F / static_cast<float>(i + 1))).eval(); }),
            0)
      << "transpose";
  EXPECT_EQ(settled_allocations([&](int i) { layer_norm(scaled(i)).eval(); }), 0) << "layer_norm";
  EXPECT_EQ(settled_allocations([&](int i) { log_softmax(tanh(scaled(i))).eval(); }), 0) << "log_softmax";
}

// One step of a real-time network: a state goes in and comes out, the weights are captured.
TEST(SteadyState, Trap_U15_a_compiled_step_allocates_nothing) {
  const auto engine = cpu_engine();
  const CreateOptions here{.engine = engine};
  Tensor wx = full({16, 48}, 0.01, here), wh = full({16, 48}, 0.02, here), b = zeros({48}, here);
  eval({wx, wh, b});
  struct Gru {
    Tensor hidden;
    double gain = 1;
    static constexpr auto fields() {
      return std::tuple{field("hidden", &Gru::hidden), field("gain", &Gru::gain)};
    }
  };
  const SliceOptions parts[] = {{.starts = {0}, .stops = {16}, .axes = {1}},
                                {.starts = {16}, .stops = {32}, .axes = {1}},
                                {.starts = {32}, .stops = {48}, .axes = {1}}};
  const auto step = compile([&](const Gru& state, const Tensor& x, const Tensor& rate) {
    const Tensor a = matmul(x, wx) + b, c = matmul(state.hidden, wh);
    const Tensor z = sigmoid(slice(a, parts[0]) + slice(c, parts[0])),
                 r = sigmoid(slice(a, parts[1]) + slice(c, parts[1])),
                 n = tanh(slice(a, parts[2]) + r * slice(c, parts[2]));
    return Gru{(1 - z) * n * rate + z * state.hidden * state.gain, state.gain};
  });
  const Tensor x = ones({1, 16}, here).eval();
  Gru state{zeros({1, 16}, here).eval()};
  const long count = settled_allocations([&](int i) {
    state.gain = 1.0 - 1e-6 * i;
    state = step(state, x, 1.0 + 1e-6 * i);
    state.hidden.eval();
  });
  EXPECT_EQ(count, 0);
  EXPECT_NE(engine->report().components[0].tier, engine::Tier::streamed);
}

TEST(SteadyState, Trap_U8_numbers_allocate_nothing_however_they_are_written) {
  const auto engine = cpu_engine();
  const Tensor x = ones({64, 48}, {.engine = engine}).eval(),
               k = full({64, 48}, 7, {.dtype = i32, .engine = engine}).eval(), mask = (k > 3).eval();
  const auto expect_none = [](const char* what, auto&& call) {
    EXPECT_EQ(settled_allocations([&](int) { (void)call(); }), 0) << what;
  };
  expect_none("x + 1.0f", [&] { return x + 1.0F; });
  expect_none("x + 1", [&] { return x + 1; });
  expect_none("1 - x", [&] { return 1 - x; });
  expect_none("x * 2u", [&] { return x * 2U; });
  expect_none("x / 2l", [&] { return x / 2L; });
  expect_none("x + size", [&] { return x + std::size_t{3}; });
  expect_none("x * true", [&] { return x * true; });
  expect_none("x > 0", [&] { return x > 0; });
  expect_none("k % 10", [&] { return k % 10; });
  expect_none("k == 7", [&] { return k == 7; });
  expect_none("-1 * k", [&] { return -1 * k; });
  expect_none("k & 3", [&] { return k & 3; });
  expect_none("maximum(x, 0)", [&] { return maximum(x, 0); });
  expect_none("pow(x, 2)", [&] { return pow(x, 2); });
  expect_none("where(mask, x, 0)", [&] { return where(mask, x, 0); });
  expect_none("clip(x, 0, 6)", [&] { return clip(x, 0, 6); });
  expect_none("clip(k, 0, 6)", [&] { return clip(k, 0, 6); });
  expect_none("clip(k, 0)", [&] { return clip(k, 0); });
}

}  // namespace
}  // namespace tessera

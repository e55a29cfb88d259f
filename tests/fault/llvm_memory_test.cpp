// LLVM finds no memory, once: kernels are interpreted, or the call says so, and everything after it works.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tessera/compile/tiling.h"
#include "tessera/engine/engine.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/cpu/llvm.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/tensor.h"

namespace ts = tessera;

namespace {

constexpr long never = -1;
std::atomic<long> until_failure{never}, counted{0};
std::atomic<bool> counts{false};

/// Whether an address is in LLVM, once that is open.
bool is_in_llvm(const void* address) {
  static std::atomic<std::uintptr_t> begin{0}, end{0};
  if (end == 0)
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
          if (std::strstr(info->dlpi_name, "libLLVM") == nullptr) return 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& part = info->dlpi_phdr[i];
            if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
            begin = info->dlpi_addr + part.p_vaddr;
            end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
          }
          return 1;
        },
        nullptr);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= begin && at < end;
}

/// While the loader opens it nobody may throw.
thread_local bool is_loading = false;

void* allocate(std::size_t bytes, const void* caller) {
  if (counts && !is_loading && is_in_llvm(caller)) {
    ++counted;
    if (until_failure != never && until_failure.fetch_sub(1) == 0) {
      until_failure = never;
      throw std::bad_alloc();
    }
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, __builtin_return_address(0)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" void* dlopen(const char* file, int mode) noexcept {
  using Function = void* (*)(const char*, int);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "dlopen"));
  is_loading = true;
  void* const out = real(file, mode);
  is_loading = false;
  return out;
}

namespace {

std::shared_ptr<ts::engine::Engine> new_engine(int threads) {
  static const ts::runtime::CodeStore nowhere("");
  ts::runtime::cpu::CpuOptions options{.threads = static_cast<unsigned>(threads), .improves_code = false};
  options.kernels.store = &nowhere;
  options.target.sources = {ts::compiler::fused_regions()};
  return ts::engine::Engine::create(
      {.plans = {.threshold = 1, .wait = true},
       .device = std::make_shared<ts::runtime::cpu::CpuDevice>(std::move(options))});
}

bool is_right(const std::shared_ptr<ts::engine::Engine>& engine) {
  const ts::Tensor x = ts::full({20, 50}, 0.25, {.engine = engine});
  const std::vector<float> y = ts::sum(ts::tanh(x * 2.0F) + x, {.axes = {1}}).to_vector<float>();
  for (const float one : y)
    if (std::abs(one - 50 * (std::tanh(0.5F) + 0.25F)) > 1e-3F) return false;
  return y.size() == 20;
}

/// Right, or an error for want of memory.
bool is_right_or_refused(const std::shared_ptr<ts::engine::Engine>& engine) {
  try {
    return is_right(engine);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const ts::Exception& thrown) {
    return thrown.error().code() == ts::ErrorCode::memory;
  }
}

/// What `f` returns in a process of its own that never opened LLVM; -1 if it ended otherwise.
template <class F>
int in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);  // far away: what hangs is ended
    int out = 255;
    try {
      out = f();
    } catch (const std::exception& thrown) {
      std::fprintf(stderr, "%s\n", thrown.what());
    }
    _exit(out);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

rlim_t mapped_bytes() {
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST(LlvmMemory, Trap_U21_AnyAllocationOfItFailsOnce) {
  long steps = 0;
  int broken = 0;
  // The allocations of one evaluation, in steps that grow: its start has the first ones.
  for (long n = 0; n < 200'000; n += 1 + n / 6, ++steps) {
    const int how = in_child([&] {
      const auto engine = new_engine(1);
      until_failure = n;
      counts = true;
      const bool first = is_right_or_refused(engine);
      counts = false;
      const bool was_refused = until_failure == never;
      until_failure = never;
      if (!first || !is_right(engine) || !is_right(engine) || !is_right(new_engine(1))) return 1;
      return was_refused ? 2 : 3;
    });
    if (how == 3) break;  // there are no more
    EXPECT_EQ(how, 2) << "allocation " << n << " was refused";
    ++broken;
  }
  // Not here: the processes of other tests open it themselves.
  if (in_child([] { return ts::runtime::cpu::Llvm::open() ? 0 : 1; }) != 0) GTEST_SKIP() << "no LLVM";
  EXPECT_GT(broken, 10);
}

TEST(LlvmMemory, Trap_U21_AProcessWithTooLittleMemoryGoesOnWhenThereIsMore) {
  for (rlim_t margin = 8; margin <= 512; margin += margin / 4) {
    const int how = in_child([&] {
      const auto engine = new_engine(2);
      rlimit usual{};
      getrlimit(RLIMIT_AS, &usual);
      const rlimit little{mapped_bytes() + (margin << 20), usual.rlim_max};
      setrlimit(RLIMIT_AS, &little);
      const bool first = is_right_or_refused(engine) && is_right_or_refused(engine);
      setrlimit(RLIMIT_AS, &usual);
      return first && is_right(engine) && is_right(new_engine(2)) ? 0 : 1;
    });
    EXPECT_EQ(how, 0) << margin << " MiB were left";
  }
}

TEST(LlvmMemory, Trap_U21_AProcessWithoutThreadsGoesOnWhenItMayHaveSome) {
  const int how = in_child([&] {
    rlimit usual{};
    getrlimit(RLIMIT_NPROC, &usual);
    if (geteuid() == 0 && setuid(65534) != 0) return 1;  // the limit is not for root
    const rlimit none{1, usual.rlim_max};
    setrlimit(RLIMIT_NPROC, &none);
    if (!is_right_or_refused(new_engine(4))) return 2;
    setrlimit(RLIMIT_NPROC, &usual);
    return is_right(new_engine(4)) ? 0 : 3;
  });
  EXPECT_EQ(how, 0);
}

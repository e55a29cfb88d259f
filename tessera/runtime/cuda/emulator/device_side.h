// CUDA C++ for the system's compiler: the generated sources of one emulator are compiled behind this header,
// each in a namespace of its own. See emulator.cpp for how they are called.
//
// The threads of a block are coroutines. One runs until a barrier or a shuffle; when all that must arrive
// have, they go on. Threads that wait for each other in different places are reported.
#pragma once

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static
#define __constant__ static const
#define __align__(n) __attribute__((aligned(n)))

/// A handle is the address of what it sets.
extern "C" void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  *reinterpret_cast<unsigned*>(handle) = value;
}

// ---- vector types

#define TESSERA_VECTORS(type, name)                                           \
  struct name##1 {                                                            \
    type x;                                                                   \
  };                                                                          \
  struct alignas(2 * sizeof(type)) name##2 {                                  \
    type x, y;                                                                \
  };                                                                          \
  struct name##3 {                                                            \
    type x, y, z;                                                             \
  };                                                                          \
  struct alignas(sizeof(type) > 4 ? 16 : 4 * sizeof(type)) name##4 {          \
    type x, y, z, w;                                                          \
  };                                                                          \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TESSERA_VECTORS(signed char, char)
TESSERA_VECTORS(unsigned char, uchar)
TESSERA_VECTORS(short, short)
TESSERA_VECTORS(unsigned short, ushort)
TESSERA_VECTORS(int, int)
TESSERA_VECTORS(unsigned int, uint)
TESSERA_VECTORS(long long, longlong)
TESSERA_VECTORS(unsigned long long, ulonglong)
TESSERA_VECTORS(float, float)
TESSERA_VECTORS(double, double)
#undef TESSERA_VECTORS

// ---- threads

namespace emulated {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

enum class State : unsigned char { ready, at_warp_barrier, at_block_barrier, done };

struct Thread {
  Dim3 index;
  State state = State::ready;
  unsigned mask = 0;   // of the warp barrier it waits at
  unsigned phase = 0;  // of shuffles
  unsigned long long slot[2] = {};
  ucontext_t context;
};

constexpr unsigned most_threads = 1024, stack_bytes = 128 * 1024;

inline Thread threads[most_threads];
inline ucontext_t scheduler;
inline Dim3 grid, block, block_index;
inline unsigned thread_count = 0, current = 0;
inline bool has_coroutines = true, is_reversed = false;
inline const char* failure = nullptr;
inline void (*kernel)(void**) = nullptr;
inline void** arguments = nullptr;
inline unsigned char* shared = nullptr;  // dynamic memory of the block
inline size_t shared_bytes = 0;

inline void wait(State state, unsigned mask) {
  if (!has_coroutines) {
    failure = "a barrier in a source that has none in its text";
    return;
  }
  threads[current].state = state;
  threads[current].mask = mask;
  const unsigned self = current;
  swapcontext(&threads[self].context, &scheduler);
}

inline void thread_main() {
  kernel(arguments);
  threads[current].state = State::done;
  swapcontext(&threads[current].context, &scheduler);
}

inline bool is_live(unsigned i) { return i < thread_count && threads[i].state != State::done; }

/// Whether all lanes of its mask that still run wait with it.
inline bool warp_is_complete(unsigned i) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned other = i / 32 * 32 + lane;
    if ((threads[i].mask >> lane & 1) == 0 || !is_live(other)) continue;
    if (threads[other].state != State::at_warp_barrier || threads[other].mask != threads[i].mask)
      return false;
  }
  return true;
}

inline bool release_warps() {
  bool any = false;
  for (unsigned i = 0; i < thread_count; ++i)
    if (threads[i].state == State::at_warp_barrier && warp_is_complete(i)) {
      const unsigned mask = threads[i].mask;
      for (unsigned lane = 0; lane < 32; ++lane)
        if ((mask >> lane & 1) != 0 && is_live(i / 32 * 32 + lane))
          threads[i / 32 * 32 + lane].state = State::ready;
      any = true;
    }
  return any;
}

inline bool release_block() {
  bool any = false;
  for (unsigned i = 0; i < thread_count; ++i) {
    if (is_live(i) && threads[i].state != State::at_block_barrier) return false;
    any = any || is_live(i);
  }
  for (unsigned i = 0; i < thread_count; ++i)
    if (is_live(i)) threads[i].state = State::ready;
  return any;
}

inline void resume_ready_threads() {
  for (unsigned k = 0; k < thread_count; ++k) {
    const unsigned i = is_reversed ? thread_count - 1 - k : k;
    if (threads[i].state != State::ready) continue;
    current = i;
    swapcontext(&scheduler, &threads[i].context);
  }
}

inline unsigned char* stacks() {
  static unsigned char* const memory =
      static_cast<unsigned char*>(mmap(nullptr, size_t{most_threads} * stack_bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return memory;
}

/// So many bytes, behind which nothing can be touched; null if there are not so many.
inline unsigned char* dynamic_memory(size_t bytes) {
  constexpr size_t most = 256 * 1024, guard = 64 * 1024;  // of any size of pages
  static unsigned char* const memory = static_cast<unsigned char*>(
      mmap(nullptr, most + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  static const bool is_guarded = mprotect(memory + most, guard, PROT_NONE) == 0;
  return is_guarded && bytes <= most ? memory + most - (bytes + 15) / 16 * 16 : nullptr;
}

inline void start_threads() {
  for (unsigned i = 0; i < thread_count; ++i) {
    Thread& thread = threads[i];
    thread.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    thread.state = State::ready;
    thread.phase = 0;
    if (!has_coroutines) continue;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stacks() + size_t{i} * stack_bytes;
    thread.context.uc_stack.ss_size = stack_bytes;
    thread.context.uc_link = &scheduler;
    makecontext(&thread.context, thread_main, 0);
  }
}

inline void run_block() {
  start_threads();
  if (!has_coroutines) {
    for (unsigned k = 0; k < thread_count; ++k) {
      current = is_reversed ? thread_count - 1 - k : k;
      kernel(arguments);
    }
    return;
  }
  do resume_ready_threads();
  while (release_warps() || release_block());
  for (unsigned i = 0; i < thread_count; ++i)
    if (is_live(i)) failure = "threads wait for each other at different barriers";
}

/// All blocks of a launch, one after another. Returns what was wrong, or null.
inline const char* launch(void (*call)(void**), void** values, const unsigned* extents,
                          unsigned dynamic_bytes, bool uses_barriers, bool reversed) {
  kernel = call;
  arguments = values;
  grid = {extents[0], extents[1], extents[2]};
  block = {extents[3], extents[4], extents[5]};
  thread_count = block.x * block.y * block.z;
  if (thread_count > most_threads) return "more than 1024 threads in a block";
  shared_bytes = dynamic_bytes;
  shared = dynamic_memory(shared_bytes);
  if (shared == nullptr) return "more dynamic shared memory than there is";
  has_coroutines = uses_barriers;
  is_reversed = reversed;
  failure = nullptr;
  for (block_index.z = 0; block_index.z < grid.z; ++block_index.z)
    for (block_index.y = 0; block_index.y < grid.y; ++block_index.y)
      for (block_index.x = 0; block_index.x < grid.x; ++block_index.x) {
        memset(shared, 0xa5, shared_bytes);
        run_block();
        if (failure != nullptr) return failure;
      }
  return nullptr;
}

template <class... A, std::size_t... i>
void unpack(void (*entry)(A...), void** values, std::index_sequence<i...>) {
  entry(*static_cast<std::remove_const_t<A>*>(values[i])...);
}
/// Calls a kernel with the arguments that `values` point to.
template <class... A>
void call(void (*entry)(A...), void** values) {
  unpack(entry, values, std::index_sequence_for<A...>());
}

}  // namespace emulated

#define threadIdx (emulated::threads[emulated::current].index)
#define blockIdx (emulated::block_index)
#define blockDim (emulated::block)
#define gridDim (emulated::grid)
#define warpSize 32

inline void __syncthreads() { emulated::wait(emulated::State::at_block_barrier, 0); }
inline void __syncwarp(unsigned mask = 0xffffffffU) {
  emulated::wait(emulated::State::at_warp_barrier, mask);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace emulated {

/// The bits that lane `from(own lane)` of the warp gives. A lane that is not there gives nonsense.
template <class T, class From>
T exchange(unsigned mask, T value, From from) {
  static_assert(sizeof(T) <= 8, "shuffles are of 32 and 64 bits");
  Thread& self = threads[current];
  const unsigned phase = self.phase;
  self.phase = 1 - phase;
  memcpy(&self.slot[phase], &value, sizeof value);
  const unsigned own = current;
  wait(State::at_warp_barrier, mask);
  const unsigned source = own / 32 * 32 + from(own % 32);
  unsigned long long bits = 0x5a5a5a5a5a5a5a5aULL;
  if (source < thread_count && (mask >> source % 32 & 1) != 0) bits = threads[source].slot[phase];
  T out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

/// How many threads of the block have a true value.
inline int count_in_block(bool value) {
  static int count;
  count = 0;
  __syncthreads();
  count += value ? 1 : 0;
  __syncthreads();
  const int out = count;
  __syncthreads();
  return out;
}

inline unsigned ballot(unsigned mask, bool value) {
  unsigned out = 0;
  const unsigned own = current;
  Thread& self = threads[own];
  const unsigned phase = self.phase;
  self.phase = 1 - phase;
  self.slot[phase] = value ? 1 : 0;
  wait(State::at_warp_barrier, mask);
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && own / 32 * 32 + lane < thread_count &&
        threads[own / 32 * 32 + lane].slot[phase] != 0)
      out |= 1U << lane;
  return out;
}

}  // namespace emulated

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return emulated::exchange(mask, value,
                            [=](unsigned own) { return own / width * width + unsigned(lane) % width; });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
  return emulated::exchange(mask, value,
                            [=](unsigned own) { return (own ^ by) / width == own / width ? own ^ by : own; });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  return emulated::exchange(
      mask, value, [=](unsigned own) { return own % width + by < unsigned(width) ? own + by : own; });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  return emulated::exchange(mask, value, [=](unsigned own) { return own % width >= by ? own - by : own; });
}
inline unsigned __ballot_sync(unsigned mask, int value) { return emulated::ballot(mask, value != 0); }
inline int __any_sync(unsigned mask, int value) { return emulated::ballot(mask, value != 0) != 0; }
inline int __all_sync(unsigned mask, int value) { return emulated::ballot(mask, value == 0) == 0; }
inline int __syncthreads_count(int value) { return emulated::count_in_block(value != 0); }
inline int __syncthreads_or(int value) { return emulated::count_in_block(value != 0) != 0; }
inline int __syncthreads_and(int value) { return emulated::count_in_block(value == 0) == 0; }

// ---- atomics: threads run one at a time

#define TESSERA_ATOMIC(name, expression)         \
  template <class T>                             \
  T name(T* at, std::type_identity_t<T> value) { \
    const T old = *at;                           \
    *at = expression;                            \
    return old;                                  \
  }
TESSERA_ATOMIC(atomicAdd, old + value)
TESSERA_ATOMIC(atomicSub, old - value)
TESSERA_ATOMIC(atomicExch, value)
TESSERA_ATOMIC(atomicMax, old > value ? old : value)
TESSERA_ATOMIC(atomicMin, old < value ? old : value)
TESSERA_ATOMIC(atomicAnd, old& value)
TESSERA_ATOMIC(atomicOr, old | value)
TESSERA_ATOMIC(atomicXor, old ^ value)
TESSERA_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
#undef TESSERA_ATOMIC
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}

// ---- memory

#define TESSERA_LOAD(name) \
  template <class T>       \
  T name(const T* at) {    \
    return *at;            \
  }
TESSERA_LOAD(__ldg)
TESSERA_LOAD(__ldcs)
TESSERA_LOAD(__ldcg)
TESSERA_LOAD(__ldca)
TESSERA_LOAD(__ldcv)
#undef TESSERA_LOAD
template <class T>
void __stcs(T* at, std::type_identity_t<T> value) {
  *at = value;
}
template <class T>
void __stcg(T* at, std::type_identity_t<T> value) {
  *at = value;
}
template <class T>
void __stwt(T* at, std::type_identity_t<T> value) {
  *at = value;
}

// ---- numbers

namespace emulated {
template <class To, class From>
To bits(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
/// As the device converts: to the nearest number of the type, NaN to 0.
template <class To, class From>
To saturated(From x) {
  constexpr From low = std::is_signed_v<To> ? -From(2) * From(1ULL << (8 * sizeof(To) - 2)) : From(0);
  constexpr From high = From(2) * From(1ULL << (8 * sizeof(To) - (std::is_signed_v<To> ? 2 : 1)));
  if (x != x) return 0;
  if (x >= high) return static_cast<To>(std::is_signed_v<To> ? ~0ULL >> (65 - 8 * sizeof(To)) : ~0ULL);
  if (x <= low) return static_cast<To>(std::is_signed_v<To> ? 1ULL << (8 * sizeof(To) - 1) : 0);
  return static_cast<To>(x);
}
}  // namespace emulated

inline unsigned __float_as_uint(float x) { return emulated::bits<unsigned>(x); }
inline int __float_as_int(float x) { return emulated::bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulated::bits<float>(x); }
inline float __int_as_float(int x) { return emulated::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated::bits<double>(x); }
inline int __float2int_rz(float x) { return emulated::saturated<int>(x); }
inline unsigned __float2uint_rz(float x) { return emulated::saturated<unsigned>(x); }
inline long long __float2ll_rz(float x) { return emulated::saturated<long long>(x); }
inline unsigned long long __float2ull_rz(float x) { return emulated::saturated<unsigned long long>(x); }
inline int __double2int_rz(double x) { return emulated::saturated<int>(x); }
inline unsigned __double2uint_rz(double x) { return emulated::saturated<unsigned>(x); }
inline long long __double2ll_rz(double x) { return emulated::saturated<long long>(x); }
inline unsigned long long __double2ull_rz(double x) { return emulated::saturated<unsigned long long>(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float normcdff(float x) {
  return static_cast<float>(0.5 * erfc(-static_cast<double>(x) * 0.70710678118654752440));
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= (x >> i & 1) << (31 - i);
  return out;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }

#define TESSERA_MIN_MAX(type)                               \
  inline type min(type a, type b) { return a < b ? a : b; } \
  inline type max(type a, type b) { return a > b ? a : b; }
TESSERA_MIN_MAX(int)
TESSERA_MIN_MAX(unsigned)
TESSERA_MIN_MAX(long)
TESSERA_MIN_MAX(unsigned long)
TESSERA_MIN_MAX(long long)
TESSERA_MIN_MAX(unsigned long long)
#undef TESSERA_MIN_MAX

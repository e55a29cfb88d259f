#include "tessera/kernel/block_loops.h"

#include "tessera/kernel/slow_loops.h"

using namespace tessera::kernel;

namespace {

LoopTable best_loops() {
#ifdef TESSERA_X86_LOOPS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return x86_64_v4::loops();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return x86_64_v3::loops();
#endif
  return baseline::loops();
}

}  // namespace

const LoopTable& tessera::kernel::block_loops() {
  static const LoopTable table = [] {
    LoopTable out = best_loops();
    add_slow_loops(out);
    return out;
  }();
  return table;
}

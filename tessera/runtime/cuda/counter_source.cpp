#include "tessera/runtime/cuda/counter_source.h"

using namespace tessera::runtime::cuda;

SourceRef tessera::runtime::cuda::counter_reset_source() {
  Source out;
  out.text = R"(extern "C" __global__ void reset(unsigned long long* counter) {
  if (counter[0] > counter[1]) counter[1] = counter[0];
  counter[0] = 0;
}
)";
  out.entry = "reset";
  return std::make_shared<const Source>(std::move(out));
}

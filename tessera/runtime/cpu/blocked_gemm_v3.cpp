#define TESSERA_GEMM gemm_v3
#include "tessera/runtime/cpu/blocked_gemm_impl.h"

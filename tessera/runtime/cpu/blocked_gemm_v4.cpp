#define TESSERA_GEMM gemm_v4
#include "tessera/runtime/cpu/blocked_gemm_impl.h"
#include "tessera/runtime/cpu/row_softmax_impl.h"
#include "tessera/runtime/cpu/wide_gemm_impl.h"
#include "tessera/runtime/cpu/winograd_impl.h"

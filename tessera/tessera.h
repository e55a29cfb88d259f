// Tessera: lazy tensors. The header to include.
//
//   #include <tessera/tessera.h>
//   namespace ts = tessera;
#pragma once

#if __has_include("tessera/model/onnx_model.h")  // not installed by a build without ONNX
#include "tessera/model/onnx_model.h"
#endif
#include "tessera/nn/layers.h"
#include "tessera/nn/optimizer.h"
#include "tessera/nn/parameters.h"
#include "tessera/nn/schedule.h"
#include "tessera/nn/training_state.h"
#include "tessera/tensor/captured.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/custom.h"
#include "tessera/tensor/dlpack.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/io.h"
#include "tessera/tensor/kernel.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/saved_plan.h"
#include "tessera/tensor/scope.h"
#include "tessera/tensor/tensor.h"

// The CUDA driver, opened at run time: one table of functions. CUDA's headers name those that belong to the
// structures of this build; nothing is linked.
#pragma once

#include <cuda.h>

#include <string>

#include "tessera/base/result.h"

// The header's macros choose the versions: X(cuMemAlloc) is X(cuMemAlloc_v2), here and where it is called.
#define TESSERA_CUDA_FUNCTIONS(X)       \
  X(cuInit)                             \
  X(cuDriverGetVersion)                 \
  X(cuGetErrorName)                     \
  X(cuGetErrorString)                   \
  X(cuDeviceGetCount)                   \
  X(cuDeviceGet)                        \
  X(cuDeviceGetName)                    \
  X(cuDeviceGetAttribute)               \
  X(cuDeviceTotalMem)                   \
  X(cuDevicePrimaryCtxRetain)           \
  X(cuDevicePrimaryCtxRelease)          \
  X(cuCtxGetCurrent)                    \
  X(cuCtxSetCurrent)                    \
  X(cuCtxPushCurrent)                   \
  X(cuCtxPopCurrent)                    \
  X(cuCtxSynchronize)                   \
  X(cuMemGetInfo)                       \
  X(cuPointerGetAttribute)              \
  X(cuMemAlloc)                         \
  X(cuMemFree)                          \
  X(cuMemAllocHost)                     \
  X(cuMemFreeHost)                      \
  X(cuMemcpyHtoDAsync)                  \
  X(cuMemcpyDtoHAsync)                  \
  X(cuMemcpyDtoDAsync)                  \
  X(cuMemsetD8Async)                    \
  X(cuStreamCreate)                     \
  X(cuStreamDestroy)                    \
  X(cuStreamSynchronize)                \
  X(cuStreamQuery)                      \
  X(cuStreamWaitEvent)                  \
  X(cuStreamIsCapturing)                \
  X(cuStreamBeginCapture)               \
  X(cuStreamEndCapture)                 \
  X(cuEventCreate)                      \
  X(cuEventDestroy)                     \
  X(cuEventRecord)                      \
  X(cuEventSynchronize)                 \
  X(cuModuleLoadData)                   \
  X(cuModuleLoadDataEx)                 \
  X(cuModuleUnload)                     \
  X(cuModuleGetFunction)                \
  X(cuFuncGetAttribute)                 \
  X(cuFuncSetAttribute)                 \
  X(cuLaunchKernel)                     \
  X(cuGraphCreate)                      \
  X(cuGraphDestroy)                     \
  X(cuGraphAddKernelNode)               \
  X(cuGraphAddMemcpyNode)               \
  X(cuGraphAddMemsetNode)               \
  X(cuGraphAddChildGraphNode)           \
  X(cuGraphAddEmptyNode)                \
  X(cuGraphAddEventRecordNode)          \
  X(cuGraphAddDependencies)             \
  X(cuGraphInstantiate)                 \
  X(cuGraphExecDestroy)                 \
  X(cuGraphExecKernelNodeSetParams)     \
  X(cuGraphExecMemcpyNodeSetParams)     \
  X(cuGraphExecMemsetNodeSetParams)     \
  X(cuGraphExecChildGraphNodeSetParams) \
  X(cuGraphExecUpdate)                  \
  X(cuGraphLaunch)

namespace tessera::runtime::cuda {

/// The functions; those that a device uses are all there.
struct Driver {
#define TESSERA_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_MEMBER)
#undef TESSERA_CUDA_MEMBER
  /// By the name that every driver has: newer ones only mean the same.
  decltype(&::cuEventElapsedTime) event_elapsed_time = nullptr;
  /// Where a parameter of a function lies and how many bytes it has. Drivers before 12.4 have none: null.
  CUresult (*function_parameter)(CUfunction, std::size_t, std::size_t*, std::size_t*) = nullptr;

  /// For conditional nodes; null, or not for all kinds of them, before 12.8.
  decltype(&::cuGraphConditionalHandleCreate) conditional_handle_create = nullptr;
  decltype(&::cuGraphAddNode) add_any_node = nullptr;

  /// Whether graphs can have conditional nodes of all kinds.
  [[nodiscard]] bool has_conditionals() const;

  /// The system's driver, initialised. Tried once; the error says what was looked for and what is missing.
  [[nodiscard]] static Result<const Driver*> open();

  /// "13.0": what the driver supports.
  [[nodiscard]] std::string version() const;
};

}  // namespace tessera::runtime::cuda

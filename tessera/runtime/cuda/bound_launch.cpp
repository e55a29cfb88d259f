#include "tessera/runtime/cuda/bound_launch.h"

#include "tessera/base/small_vector.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

using Pointers = SmallVector<void*, 24>;

/// The driver reads as many bytes behind each pointer as the parameter has.
Pointers pointers_to(const BoundLaunch& launch) {
  Pointers out;
  for (const std::uint64_t& value : launch.values) out.push_back(const_cast<std::uint64_t*>(&value));
  return out;
}

CUDA_KERNEL_NODE_PARAMS kernel_node(const BoundLaunch& launch, Pointers& values) {
  CUDA_KERNEL_NODE_PARAMS out = {};
  out.func = launch.function->handle();
  out.gridDimX = launch.grid.x;
  out.gridDimY = launch.grid.y;
  out.gridDimZ = launch.grid.z;
  out.blockDimX = launch.block.x;
  out.blockDimY = launch.block.y;
  out.blockDimZ = launch.block.z;
  out.sharedMemBytes = launch.shared_bytes;
  out.kernelParams = values.data();
  return out;
}

/// Of so many elements: four bytes each where that is possible, which is faster.
CUDA_MEMSET_NODE_PARAMS clear_node(const BoundLaunch& launch) {
  const unsigned width = launch.values[0] % 4 == 0 && launch.bytes % 4 == 0 ? 4 : 1;
  CUDA_MEMSET_NODE_PARAMS out = {};
  out.dst = launch.values[0];
  out.elementSize = width;
  out.width = launch.bytes / width;
  out.height = 1;
  return out;
}

CUDA_MEMCPY3D copy_node(const BoundLaunch& launch) {
  CUDA_MEMCPY3D out = {};
  out.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  out.dstDevice = launch.values[0];
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = launch.values[1];
  out.WidthInBytes = launch.bytes;
  out.Height = 1;
  out.Depth = 1;
  return out;
}

Result<void> queue_product(const BoundLaunch& launch, const Stream& stream) {
  const auto value = [&](std::size_t i) { return i < launch.values.size() ? launch.values[i] : 0; };
  return launch.product->queue({value(0), value(1), value(2), value(3), value(4), value(5)}, stream);
}

CUevent event_of(const BoundLaunch& launch) {
  return reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(launch.values[0]));
}

Result<void> allow_shared(const BoundLaunch& launch) {
  return launch.function->allow_shared_bytes(launch.shared_bytes);
}

}  // namespace

BoundLaunch::Kind tessera::runtime::cuda::bound_kind(Launch::Kind kind) {
  switch (kind) {
    case Launch::Kind::kernel:
      return BoundLaunch::Kind::kernel;
    case Launch::Kind::clear:
      return BoundLaunch::Kind::clear;
    case Launch::Kind::copy:
      return BoundLaunch::Kind::copy;
    case Launch::Kind::product:
      return BoundLaunch::Kind::product;
    case Launch::Kind::captured:
      break;
  }
  return BoundLaunch::Kind::captured;
}

Result<void> tessera::runtime::cuda::queue(const Context& context, const BoundLaunch& launch,
                                           const Stream& stream) {
  const Driver& driver = context.driver();
  switch (launch.kind) {
    case BoundLaunch::Kind::kernel: {
      TESSERA_TRY(allow_shared(launch));
      Pointers values = pointers_to(launch);
      TESSERA_CUDA(driver, cuLaunchKernel, launch.function->handle(), launch.grid.x, launch.grid.y,
                   launch.grid.z, launch.block.x, launch.block.y, launch.block.z, launch.shared_bytes,
                   stream.handle(), values.data(), nullptr);
      break;
    }
    case BoundLaunch::Kind::clear:
      TESSERA_CUDA(driver, cuMemsetD8Async, launch.values[0], 0, launch.bytes, stream.handle());
      break;
    case BoundLaunch::Kind::copy:
      TESSERA_CUDA(driver, cuMemcpyDtoDAsync, launch.values[0], launch.values[1], launch.bytes,
                   stream.handle());
      break;
    case BoundLaunch::Kind::product:
      return queue_product(launch, stream);
    case BoundLaunch::Kind::captured:
      return queue_captured(context, *launch.captured, launch.values, stream);
    case BoundLaunch::Kind::event:
      TESSERA_CUDA(driver, cuEventRecord, event_of(launch), stream.handle());
      break;
    case BoundLaunch::Kind::conditional:
      return Error(ErrorCode::internal, "a conditional is a node of a graph alone");
    case BoundLaunch::Kind::join:
      break;
  }
  return {};
}

Result<std::optional<CapturedGraph>> tessera::runtime::cuda::captured_of(const Context& context,
                                                                         const Stream& capturing,
                                                                         const BoundLaunch& launch) {
  std::optional<CapturedGraph> out;
  if (launch.kind == BoundLaunch::Kind::captured)
    out.emplace(TESSERA_TRY(capture_call(context, capturing, *launch.captured, launch.values)));
  if (launch.kind == BoundLaunch::Kind::product)
    out.emplace(TESSERA_TRY(capture(context, capturing, [&] { return queue_product(launch, capturing); })));
  return out;
}

Result<CUgraphNode> tessera::runtime::cuda::add_node(const Context& context, CUgraph graph,
                                                     std::span<const CUgraphNode> after,
                                                     const BoundLaunch& launch,
                                                     const std::optional<CapturedGraph>& captured) {
  const Driver& driver = context.driver();
  CUgraphNode node = nullptr;
  // Drivers differ in what they take in the bodies of conditional nodes.
  const auto taken = [&](CUresult result, std::string_view what) -> Result<CUgraphNode> {
    const bool is_in_body = launch.graph != 0;
    TESSERA_TRY(is_in_body ? checked_support(driver, result, what) : checked(driver, result, what));
    return node;
  };
  switch (launch.kind) {
    case BoundLaunch::Kind::kernel: {
      TESSERA_TRY(allow_shared(launch));
      Pointers values = pointers_to(launch);
      const CUDA_KERNEL_NODE_PARAMS params = kernel_node(launch, values);
      return taken(driver.cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params),
                   "cuGraphAddKernelNode");
    }
    case BoundLaunch::Kind::clear: {
      const CUDA_MEMSET_NODE_PARAMS params = clear_node(launch);
      return taken(
          driver.cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &params, context.handle()),
          "cuGraphAddMemsetNode");
    }
    case BoundLaunch::Kind::copy: {
      const CUDA_MEMCPY3D params = copy_node(launch);
      return taken(
          driver.cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(), &params, context.handle()),
          "cuGraphAddMemcpyNode");
    }
    case BoundLaunch::Kind::product:
    case BoundLaunch::Kind::captured:
      return taken(
          driver.cuGraphAddChildGraphNode(&node, graph, after.data(), after.size(), captured->handle()),
          "cuGraphAddChildGraphNode");
    case BoundLaunch::Kind::conditional:
      return Error(ErrorCode::internal, "a conditional is added with its bodies");
    case BoundLaunch::Kind::event:
      return taken(
          driver.cuGraphAddEventRecordNode(&node, graph, after.data(), after.size(), event_of(launch)),
          "cuGraphAddEventRecordNode");
    case BoundLaunch::Kind::join:
      break;
  }
  return taken(driver.cuGraphAddEmptyNode(&node, graph, after.data(), after.size()), "cuGraphAddEmptyNode");
}

Result<AddedConditional> tessera::runtime::cuda::add_conditional(const Context& context, CUgraph graph,
                                                                 std::span<const CUgraphNode> after,
                                                                 const Conditional& conditional,
                                                                 CUgraphConditionalHandle condition) {
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = condition;
  params.conditional.type =
      conditional.kind == Conditional::Kind::loop ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_SWITCH;
  params.conditional.size = conditional.body_count;
  params.conditional.ctx = context.handle();
  AddedConditional out;
  const CUresult added =
      context.driver().add_any_node(&out.node, graph, after.data(), nullptr, after.size(), &params);
  TESSERA_TRY(checked_support(context.driver(), added, "cuGraphAddNode"));
  const CUgraph* bodies = params.conditional.phGraph_out;
  out.bodies.assign(bodies, bodies + conditional.body_count);
  return out;
}

Result<void> tessera::runtime::cuda::set_node(const Context& context, CUgraphExec executable,
                                              CUgraphNode node, const BoundLaunch& launch,
                                              const std::optional<CapturedGraph>& captured) {
  const Driver& driver = context.driver();
  switch (launch.kind) {
    case BoundLaunch::Kind::kernel: {
      TESSERA_TRY(allow_shared(launch));
      Pointers values = pointers_to(launch);
      const CUDA_KERNEL_NODE_PARAMS params = kernel_node(launch, values);
      TESSERA_CUDA(driver, cuGraphExecKernelNodeSetParams, executable, node, &params);
      break;
    }
    case BoundLaunch::Kind::clear: {
      const CUDA_MEMSET_NODE_PARAMS params = clear_node(launch);
      TESSERA_CUDA(driver, cuGraphExecMemsetNodeSetParams, executable, node, &params, context.handle());
      break;
    }
    case BoundLaunch::Kind::copy: {
      const CUDA_MEMCPY3D params = copy_node(launch);
      TESSERA_CUDA(driver, cuGraphExecMemcpyNodeSetParams, executable, node, &params, context.handle());
      break;
    }
    case BoundLaunch::Kind::product:
    case BoundLaunch::Kind::captured:
      TESSERA_CUDA(driver, cuGraphExecChildGraphNodeSetParams, executable, node, captured->handle());
      break;
    case BoundLaunch::Kind::conditional:  // its bodies have nodes of their own
    case BoundLaunch::Kind::join:
    case BoundLaunch::Kind::event:
      break;
  }
  return {};
}

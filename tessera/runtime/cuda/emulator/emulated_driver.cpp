#include "tessera/runtime/cuda/emulator/emulated_driver.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/emulator/emulator.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

struct EmulatedFunction {
  SourceRef source;
  std::vector<std::size_t> parameters;            ///< their bytes
  std::size_t shared_bytes = usual_shared_bytes;  ///< that a launch may have
};

struct EmulatedGraph;

struct EmulatedNode {
  enum class Kind : std::uint8_t { kernel, clear, copy, join, work, child, conditional, event };
  Kind kind = Kind::join;
  const EmulatedFunction* function = nullptr;
  Emulator::Shape shape = {};
  std::vector<std::uint64_t> values = {};
  std::size_t bytes = 0;
  std::function<std::string()> work = {};  ///< of a library
  std::vector<EmulatedNode> child = {};
  const unsigned* condition = nullptr;  ///< of a conditional
  bool is_loop = false;
  std::vector<const EmulatedGraph*> bodies = {};
  std::vector<std::size_t> after = {};
};

struct EmulatedEvent {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> at;  ///< nothing: not recorded
};

/// What a node's handle points to.
struct EmulatedHandle {
  EmulatedGraph* graph = nullptr;
  std::size_t number = 0;
};

struct EmulatedGraph {
  std::vector<EmulatedNode> nodes;
  std::vector<std::unique_ptr<EmulatedHandle>> handles;  ///< by node
  std::vector<std::unique_ptr<EmulatedGraph>> bodies;    ///< of conditional nodes
  std::vector<std::unique_ptr<unsigned>> conditions;
  std::vector<CUgraph> given_bodies;  ///< the driver owns the array that it hands out
};

/// The nodes of a graph and of the bodies in it.
struct EmulatedExecutable {
  std::map<const EmulatedGraph*, std::vector<EmulatedNode>> nodes;
  const EmulatedGraph* from = nullptr;
};

struct EmulatedStream {
  EmulatedGraph* captured = nullptr;  ///< what is queued goes there
  bool is_invalid = false;            ///< something was done that must not be while it is captured
};

struct Everything {
  EmulatedState state;
  Emulator emulator;
  std::map<CUdeviceptr, std::size_t> memory;
  std::set<EmulatedStream*> capturing;
  std::mt19937 random{1};
};

Everything& all() {
  static auto& only = *new Everything;
  return only;
}

template <class T, class Handle>
T* as(Handle handle) {
  return reinterpret_cast<T*>(handle);
}

CUresult fail(std::string why) {
  if (all().state.failure.empty()) all().state.failure = std::move(why);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/// Whether all of it lies in one block that is in use.
bool is_memory(CUdeviceptr at, std::size_t bytes) {
  const auto above = all().memory.upper_bound(at);
  if (above == all().memory.begin()) return false;
  const auto& [begin, size] = *std::prev(above);
  return at + bytes <= begin + size;
}

void* host(CUdeviceptr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

// ---- modules

/// The bytes of a parameter that is declared so.
std::size_t bytes_of(const std::string& declared) {
  const auto has = [&](std::string_view word) { return declared.find(word) != std::string::npos; };
  if (has("*") || has("long") || has("double") || has("64")) return 8;
  if (has("char") || has("bool") || has("int8")) return 1;
  return has("short") || has("16") ? 2 : 4;
}

std::vector<std::size_t> parameters_of(const Source& source) {
  std::vector<std::size_t> out;
  const std::size_t name = source.text.find(source.entry + "(");
  if (name == std::string::npos) return out;
  const std::size_t begin = name + source.entry.size() + 1, end = source.text.find(')', begin);
  const std::string list = source.text.substr(begin, end - begin);
  if (list.find_first_not_of(" \n") == std::string::npos) return out;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t comma = list.find(',', at);
    out.push_back(bytes_of(list.substr(at, comma == std::string::npos ? comma : comma - at)));
    at = comma == std::string::npos ? comma : comma + 1;
  }
  return out;
}

constexpr std::string_view module_begin = "emulated module";

class EmulatedCompiler final : public SourceCompiler {
 public:
  /// What has an #error does not compile.
  Result<std::vector<std::byte>> compile(const Source& source, int) const override {
    std::vector<std::byte> out;
    if (const std::size_t at = source.text.find("#error"); at != std::string::npos) {
      const std::string before = source.text.substr(0, at);
      return Error(ErrorCode::device,
                   cat(source.file, "(", 1 + std::count(before.begin(), before.end(), '\n'),
                       "): error: ", source.text.substr(at, 60)));
    }
    const auto append = [&](const std::string& text) {
      const auto bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
      out.insert(out.end(), bytes.begin(), bytes.end());
    };
    append(std::string(module_begin));
    append(source.entry);
    append(source.text);
    return out;
  }
  const std::string& identity() const override { return identity_; }

 private:
  std::string identity_ = "emulator";
};

// ---- running

CUresult run_all(const std::vector<EmulatedNode>& nodes, const EmulatedExecutable* of);

CUresult record(CUevent event) {
  return as<EmulatedEvent>(event)->at = EmulatedEvent::Clock::now(), CUDA_SUCCESS;
}

CUresult elapsed(float* milliseconds, CUevent from, CUevent to) {
  const auto &begin = as<EmulatedEvent>(from)->at, &end = as<EmulatedEvent>(to)->at;
  if (!begin || !end) return CUDA_ERROR_INVALID_HANDLE;
  return *milliseconds = std::chrono::duration<float, std::milli>(*end - *begin).count(), CUDA_SUCCESS;
}

/// A loop runs as long as its condition holds; a choice runs one body, or none if the number is too large.
CUresult run_bodies(const EmulatedNode& node, const EmulatedExecutable& of) {
  if (!node.is_loop)
    return *node.condition >= node.bodies.size() ? CUDA_SUCCESS
                                                 : run_all(of.nodes.at(node.bodies[*node.condition]), &of);
  while (*node.condition != 0)
    if (const CUresult result = run_all(of.nodes.at(node.bodies[0]), &of); result != CUDA_SUCCESS)
      return result;
  return CUDA_SUCCESS;
}

CUresult run(const EmulatedNode& node, const EmulatedExecutable* of) {
  std::vector<std::uint64_t> values = node.values;
  std::vector<void*> pointers;
  switch (node.kind) {
    case EmulatedNode::Kind::kernel: {
      for (std::uint64_t& value : values) pointers.push_back(&value);
      const auto order = all().random() % 2 == 0 ? ThreadOrder::forward : ThreadOrder::backward;
      const auto done = all().emulator.run_kernel(*node.function->source, node.shape, pointers.data(), order);
      if (!done) return fail(done.error().message());
      break;
    }
    case EmulatedNode::Kind::clear:
      if (!is_memory(values[0], node.bytes)) return fail("a clear outside memory");
      std::memset(host(values[0]), 0, node.bytes);
      break;
    case EmulatedNode::Kind::copy:
      if (!is_memory(values[0], node.bytes) || !is_memory(values[1], node.bytes))
        return fail("a copy outside memory");
      std::memcpy(host(values[0]), host(values[1]), node.bytes);
      break;
    case EmulatedNode::Kind::work:
      if (std::string why = node.work(); !why.empty()) return fail(std::move(why));
      break;
    case EmulatedNode::Kind::child:
      return run_all(node.child, of);
    case EmulatedNode::Kind::event:
      return record(reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(values[0])));
    case EmulatedNode::Kind::conditional:
      return run_bodies(node, *of);
    case EmulatedNode::Kind::join:
      break;
  }
  return CUDA_SUCCESS;
}

void list_sources(const std::vector<EmulatedNode>& nodes, StepProgram& to) {
  for (const EmulatedNode& node : nodes) {
    if (node.kind == EmulatedNode::Kind::kernel) to.launches.push_back({.source = node.function->source});
    list_sources(node.child, to);
  }
}

CUresult compile(const std::vector<EmulatedNode>& nodes) {
  StepProgram program;
  list_sources(nodes, program);
  const auto done = all().emulator.compile({&program, 1});
  return done ? CUDA_SUCCESS : fail(done.error().message());
}

/// Any node whose predecessors are done may be next.
CUresult run_all(const std::vector<EmulatedNode>& nodes, const EmulatedExecutable* of) {
  if (!all().state.failure.empty()) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (const CUresult result = compile(nodes); result != CUDA_SUCCESS) return result;
  std::vector<std::size_t> waits(nodes.size());
  std::vector<std::vector<std::size_t>> users(nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = nodes[i].after.size();
    for (const std::size_t before : nodes[i].after) users[before].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[all().random() % ready.size()], ready.back());
    const std::size_t next = ready.back();
    ready.pop_back();
    if (const CUresult result = run(nodes[next], of); result != CUDA_SUCCESS) return result;
    for (const std::size_t user : users[next])
      if (--waits[user] == 0) ready.push_back(user);
  }
  return CUDA_SUCCESS;
}

/// Runs it now, or notes it behind what the stream has captured.
CUresult queue(CUstream stream, EmulatedNode node) {
  EmulatedGraph* captured = as<EmulatedStream>(stream)->captured;
  if (captured == nullptr) return run_all({std::move(node)}, nullptr);
  if (!captured->nodes.empty()) node.after = {captured->nodes.size() - 1};
  captured->handles.push_back(
      std::make_unique<EmulatedHandle>(EmulatedHandle{captured, captured->nodes.size()}));
  captured->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

// ---- nodes

EmulatedNode kernel_node(const CUDA_KERNEL_NODE_PARAMS& params) {
  EmulatedNode out{.kind = EmulatedNode::Kind::kernel, .function = as<EmulatedFunction>(params.func)};
  out.shape.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  out.shape.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  out.shape.shared_bytes = params.sharedMemBytes;
  for (std::size_t i = 0; i < out.function->parameters.size(); ++i) {
    out.values.push_back(0);
    std::memcpy(&out.values.back(), params.kernelParams[i], out.function->parameters[i]);
  }
  return out;
}

EmulatedNode clear_node(const CUDA_MEMSET_NODE_PARAMS& params) {
  return {.kind = EmulatedNode::Kind::clear,
          .values = {params.dst},
          .bytes = params.width * params.elementSize * params.height};
}

EmulatedNode copy_node(const CUDA_MEMCPY3D& params) {
  return {.kind = EmulatedNode::Kind::copy,
          .values = {params.dstDevice, params.srcDevice},
          .bytes = params.WidthInBytes * params.Height * params.Depth};
}

/// As the driver: a copy of it.
EmulatedNode child_node(CUgraph child) {
  return {.kind = EmulatedNode::Kind::child, .child = as<EmulatedGraph>(child)->nodes};
}

/// As the driver: nothing is empty, and no kernel has more shared memory than its function asked for.
bool can_run(const EmulatedNode& node) {
  const auto& [grid, block, shared_bytes] = node.shape;
  if (node.kind == EmulatedNode::Kind::kernel)
    return grid.x != 0 && grid.y != 0 && grid.z != 0 && block.x != 0 &&
           shared_bytes <= node.function->shared_bytes;
  return (node.kind != EmulatedNode::Kind::clear && node.kind != EmulatedNode::Kind::copy) || node.bytes != 0;
}

/// As the driver: predecessors are of the same graph and named once.
CUresult add(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count,
             EmulatedNode node) {
  auto& to = *as<EmulatedGraph>(graph);
  for (std::size_t i = 0; i < count; ++i) {
    if (as<EmulatedHandle>(after[i])->graph != &to) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t before = as<EmulatedHandle>(after[i])->number;
    if (std::find(node.after.begin(), node.after.end(), before) != node.after.end())
      return CUDA_ERROR_INVALID_VALUE;
    node.after.push_back(before);
  }
  if (!can_run(node)) return CUDA_ERROR_INVALID_VALUE;
  to.handles.push_back(std::make_unique<EmulatedHandle>(EmulatedHandle{&to, to.nodes.size()}));
  to.nodes.push_back(std::move(node));
  *out = reinterpret_cast<CUgraphNode>(to.handles.back().get());
  return CUDA_SUCCESS;
}

CUresult set(CUgraphExec executable, CUgraphNode node, EmulatedNode by) {
  auto& of = *as<EmulatedExecutable>(executable);
  const auto found = of.nodes.find(as<EmulatedHandle>(node)->graph);
  if (found == of.nodes.end() || !can_run(by)) return CUDA_ERROR_INVALID_VALUE;
  EmulatedNode& held = found->second[as<EmulatedHandle>(node)->number];
  const bool is_other = held.kind != by.kind || held.child.size() != by.child.size();
  if (all().state.refuses_updates || is_other) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  by.after = held.after;
  held = std::move(by);
  ++all().state.patched;
  return CUDA_SUCCESS;
}

// ---- the table

/// As the driver: it would wait for streams that are captured, too, which ends their capture.
CUresult wait_for_all() {
  for (EmulatedStream* stream : all().capturing) stream->is_invalid = true;
  return all().capturing.empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

thread_local CUcontext current_context = nullptr;

void add_device_functions(Driver& d) {
  d.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  d.cuDriverGetVersion = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
  d.cuGetErrorName = [](CUresult, const char** out) { return *out = "EMULATED_ERROR", CUDA_SUCCESS; };
  d.cuGetErrorString = [](CUresult, const char** out) {
    return *out = all().state.failure.c_str(), CUDA_SUCCESS;
  };
  d.cuDeviceGetCount = [](int* count) { return *count = 1, CUDA_SUCCESS; };
  d.cuDeviceGet = [](CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; };
  d.cuDeviceGetName = [](char* name, int length, CUdevice) {
    return std::strncpy(name, "emulated device", static_cast<std::size_t>(length)), CUDA_SUCCESS;
  };
  d.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return *value = 9, CUDA_SUCCESS;
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) return *value = 0, CUDA_SUCCESS;
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
      return *value = all().state.multiprocessors, CUDA_SUCCESS;
    return *value = all().state.shared_bytes, CUDA_SUCCESS;
  };
  d.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) {
    return *bytes = all().state.memory_bytes, CUDA_SUCCESS;
  };
  d.cuDevicePrimaryCtxRetain = [](CUcontext* out, CUdevice) {
    return *out = reinterpret_cast<CUcontext>(&all()), CUDA_SUCCESS;
  };
  d.cuDevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  d.cuCtxGetCurrent = [](CUcontext* out) { return *out = current_context, CUDA_SUCCESS; };
  d.cuCtxSetCurrent = [](CUcontext context) { return current_context = context, CUDA_SUCCESS; };
  d.cuCtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  d.cuCtxPopCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
  d.cuCtxSynchronize = &wait_for_all;
}

CUresult allocate(CUdeviceptr* out, std::size_t bytes) {
  if (all().state.used_bytes + bytes > all().state.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xa5, bytes);
  *out = reinterpret_cast<std::uintptr_t>(memory);
  all().memory[*out] = bytes;
  all().state.used_bytes += bytes;
  ++all().state.allocations;
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr memory) {
  const auto found = all().memory.find(memory);
  if (found == all().memory.end()) return CUDA_ERROR_INVALID_VALUE;
  all().state.used_bytes -= found->second;
  all().memory.erase(found);
  std::free(host(memory));
  return CUDA_SUCCESS;
}

void add_memory_functions(Driver& d) {
  d.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
    *free = all().state.memory_bytes - all().state.used_bytes;
    return *total = all().state.memory_bytes, CUDA_SUCCESS;
  };
  d.cuPointerGetAttribute = [](void* out, CUpointer_attribute attribute, CUdeviceptr at) {
    if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || !is_memory(at, 1))
      return CUDA_ERROR_INVALID_VALUE;
    return *static_cast<int*>(out) = 0, CUDA_SUCCESS;
  };
  d.cuMemAlloc = &allocate;
  d.cuMemFree = &release;
  d.cuMemAllocHost = [](void** out, std::size_t bytes) {
    return *out = std::malloc(bytes), *out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  d.cuMemFreeHost = [](void* memory) { return std::free(memory), CUDA_SUCCESS; };
  d.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    if (!is_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
    return std::memcpy(host(to), from, bytes), CUDA_SUCCESS;
  };
  d.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    if (!is_memory(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
    ++emulated_state().copied_out;
    return std::memcpy(to, host(from), bytes), CUDA_SUCCESS;
  };
  d.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return queue(stream, {.kind = EmulatedNode::Kind::copy, .values = {to, from}, .bytes = bytes});
  };
  d.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
    if (!is_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (value == 0) return queue(stream, {.kind = EmulatedNode::Kind::clear, .values = {to}, .bytes = bytes});
    return std::memset(host(to), value, bytes), CUDA_SUCCESS;
  };
}

void add_stream_functions(Driver& d) {
  d.cuStreamCreate = [](CUstream* out, unsigned) {
    return *out = reinterpret_cast<CUstream>(new EmulatedStream), CUDA_SUCCESS;
  };
  d.cuStreamDestroy = [](CUstream stream) { return delete as<EmulatedStream>(stream), CUDA_SUCCESS; };
  d.cuStreamBeginCapture = [](CUstream stream, CUstreamCaptureMode) {
    if (as<EmulatedStream>(stream)->captured != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    ++all().state.live_graphs;
    ++all().state.captured;
    all().capturing.insert(as<EmulatedStream>(stream));
    return as<EmulatedStream>(stream)->captured = new EmulatedGraph, CUDA_SUCCESS;
  };
  d.cuStreamEndCapture = [](CUstream stream, CUgraph* out) {
    const EmulatedStream ended = std::exchange(*as<EmulatedStream>(stream), {});
    all().capturing.erase(as<EmulatedStream>(stream));
    *out = reinterpret_cast<CUgraph>(ended.captured);
    if (ended.captured == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (!ended.is_invalid) return CUDA_SUCCESS;
    delete ended.captured;
    --all().state.live_graphs;
    return *out = nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  };
  d.cuStreamQuery = [](CUstream) {
    return all().state.failure.empty() ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
  };
  d.cuStreamIsCapturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    const bool is_own = stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
    const bool is_captured = is_own && as<EmulatedStream>(stream)->captured != nullptr;
    *status = is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  d.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    if (!as<EmulatedEvent>(event)->at) return CUDA_ERROR_INVALID_HANDLE;
    return all().state.waiting_streams.push_back(reinterpret_cast<std::intptr_t>(stream)), CUDA_SUCCESS;
  };
  d.cuStreamSynchronize = [](CUstream stream) {
    auto& of = *as<EmulatedStream>(stream);
    if (of.captured != nullptr) return of.is_invalid = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return all().state.failure.empty() ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
  };
  d.cuEventCreate = [](CUevent* out, unsigned) {
    return *out = reinterpret_cast<CUevent>(new EmulatedEvent), CUDA_SUCCESS;
  };
  d.cuEventDestroy = [](CUevent event) { return delete as<EmulatedEvent>(event), CUDA_SUCCESS; };
  d.cuEventRecord = [](CUevent event, CUstream) { return record(event); };
  d.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  d.event_elapsed_time = &elapsed;
}

/// PTX and cubins are for real devices.
CUresult load_module(CUmodule* out, const void* image) {
  if (all().state.loading != CUDA_SUCCESS) return all().state.loading;
  if (module_begin != static_cast<const char*>(image)) return CUDA_ERROR_INVALID_PTX;
  const auto* entry = static_cast<const char*>(image) + module_begin.size() + 1;
  auto source = std::make_shared<Source>();
  source->entry = entry;
  source->text = entry + source->entry.size() + 1;
  *out = reinterpret_cast<CUmodule>(new EmulatedFunction{source, parameters_of(*source)});
  return CUDA_SUCCESS;
}

void add_module_functions(Driver& d) {
  d.cuModuleLoadData = &load_module;
  d.cuModuleLoadDataEx = [](CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
    return load_module(out, image);
  };
  d.function_parameter = [](CUfunction f, std::size_t i, std::size_t*, std::size_t* bytes) {
    const auto& parameters = as<EmulatedFunction>(f)->parameters;
    if (i >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    return *bytes = parameters[i], CUDA_SUCCESS;
  };
  d.cuModuleUnload = [](CUmodule module) { return delete as<EmulatedFunction>(module), CUDA_SUCCESS; };
  d.cuModuleGetFunction = [](CUfunction* out, CUmodule module, const char* entry) {
    const Source& source = *as<EmulatedFunction>(module)->source;
    if (source.entry != entry || source.text.find(source.entry + "(") == std::string::npos)
      return CUDA_ERROR_NOT_FOUND;
    return *out = reinterpret_cast<CUfunction>(module), CUDA_SUCCESS;
  };
  // What sources declare is not counted.
  d.cuFuncGetAttribute = [](int* out, CUfunction_attribute, CUfunction) { return *out = 0, CUDA_SUCCESS; };
  d.cuFuncSetAttribute = [](CUfunction f, CUfunction_attribute attribute, int value) {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > all().state.shared_bytes)
      return CUDA_ERROR_INVALID_VALUE;
    ++all().state.asked_shared;
    return as<EmulatedFunction>(f)->shared_bytes = static_cast<std::size_t>(value), CUDA_SUCCESS;
  };
  d.cuLaunchKernel = [](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** values, void**) {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = f;
    params.gridDimX = gx, params.gridDimY = gy, params.gridDimZ = gz;
    params.blockDimX = bx, params.blockDimY = by, params.blockDimZ = bz;
    params.sharedMemBytes = shared;
    params.kernelParams = values;
    EmulatedNode node = kernel_node(params);
    return can_run(node) ? queue(stream, std::move(node)) : CUDA_ERROR_INVALID_VALUE;
  };
}

void add_graph_functions(Driver& d) {
  d.cuGraphCreate = [](CUgraph* out, unsigned) {
    ++all().state.live_graphs;
    return *out = reinterpret_cast<CUgraph>(new EmulatedGraph), CUDA_SUCCESS;
  };
  d.cuGraphDestroy = [](CUgraph graph) {
    --all().state.live_graphs;
    return delete as<EmulatedGraph>(graph), CUDA_SUCCESS;
  };
  d.cuGraphAddKernelNode = [](CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* params) {
    return add(out, graph, after, count, kernel_node(*params));
  };
  d.cuGraphAddMemcpyNode = [](CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count,
                              const CUDA_MEMCPY3D* params,
                              CUcontext) { return add(out, graph, after, count, copy_node(*params)); };
  d.cuGraphAddMemsetNode = [](CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params,
                              CUcontext) { return add(out, graph, after, count, clear_node(*params)); };
  d.cuGraphAddDependencies = [](CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* edges, std::size_t count) {
    auto& of = *as<EmulatedGraph>(graph);
    for (std::size_t i = 0; i < count; ++i) {
      if (as<EmulatedHandle>(from[i])->graph != &of || as<EmulatedHandle>(to[i])->graph != &of)
        return CUDA_ERROR_INVALID_VALUE;
      const std::size_t first = as<EmulatedHandle>(from[i])->number,
                        second = as<EmulatedHandle>(to[i])->number;
      const bool are_kernels = of.nodes[first].kind == EmulatedNode::Kind::kernel &&
                               of.nodes[second].kind == EmulatedNode::Kind::kernel;
      if (edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && !are_kernels)
        return CUDA_ERROR_INVALID_VALUE;
      of.nodes[second].after.push_back(first);
    }
    return CUDA_SUCCESS;
  };
  d.cuGraphAddChildGraphNode = [](CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                  std::size_t count,
                                  CUgraph child) { return add(out, graph, after, count, child_node(child)); };
  d.cuGraphAddEventRecordNode = [](CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, CUevent event) {
    return add(out, graph, after, count,
               {.kind = EmulatedNode::Kind::event, .values = {reinterpret_cast<std::uintptr_t>(event)}});
  };
  d.cuGraphAddEmptyNode = [](CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count) {
    return add(out, graph, after, count, {});
  };
}

/// A handle is the address of the condition, which kernels set.
CUresult create_condition(CUgraphConditionalHandle* out, CUgraph graph, CUcontext, unsigned value, unsigned) {
  auto& conditions = as<EmulatedGraph>(graph)->conditions;
  conditions.push_back(std::make_unique<unsigned>(value));
  return *out = reinterpret_cast<std::uintptr_t>(conditions.back().get()), CUDA_SUCCESS;
}

/// As the driver: a condition is of the graph that its node is in.
CUresult add_conditional(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData*,
                         std::size_t count, CUgraphNodeParams* params) {
  auto& of = *as<EmulatedGraph>(graph);
  const CUDA_CONDITIONAL_NODE_PARAMS& asked = params->conditional;
  const auto is_condition = [&](const auto& own) {
    return reinterpret_cast<std::uintptr_t>(own.get()) == asked.handle;
  };
  const bool is_own = std::any_of(of.conditions.begin(), of.conditions.end(), is_condition);
  if (all().state.refuses_conditionals || params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || !is_own ||
      asked.size == 0 || (asked.type == CU_GRAPH_COND_TYPE_WHILE && asked.size != 1))
    return CUDA_ERROR_INVALID_VALUE;
  EmulatedNode node{.kind = EmulatedNode::Kind::conditional};
  node.condition = reinterpret_cast<const unsigned*>(static_cast<std::uintptr_t>(asked.handle));
  node.is_loop = asked.type == CU_GRAPH_COND_TYPE_WHILE;
  of.given_bodies.clear();
  for (unsigned i = 0; i < asked.size; ++i) {
    of.bodies.push_back(std::make_unique<EmulatedGraph>());
    node.bodies.push_back(of.bodies.back().get());
    of.given_bodies.push_back(reinterpret_cast<CUgraph>(of.bodies.back().get()));
  }
  params->conditional.phGraph_out = of.given_bodies.data();
  return add(out, graph, after, count, std::move(node));
}

void add_nodes(EmulatedExecutable& to, const EmulatedGraph& of) {
  to.nodes[&of] = of.nodes;
  for (const auto& body : of.bodies) add_nodes(to, *body);
}

void add_executable_functions(Driver& d) {
  d.conditional_handle_create = &create_condition;
  d.add_any_node = &add_conditional;
  d.cuGraphInstantiate = [](CUgraphExec* out, CUgraph graph, unsigned long long) {
    if (all().state.instantiation != CUDA_SUCCESS) return all().state.instantiation;
    auto* made = new EmulatedExecutable{.from = as<EmulatedGraph>(graph)};
    add_nodes(*made, *made->from);
    ++all().state.instantiated;
    ++all().state.live_graphs;
    return *out = reinterpret_cast<CUgraphExec>(made), CUDA_SUCCESS;
  };
  d.cuGraphExecDestroy = [](CUgraphExec executable) {
    --all().state.live_graphs;
    return delete as<EmulatedExecutable>(executable), CUDA_SUCCESS;
  };
  d.cuGraphExecKernelNodeSetParams = [](CUgraphExec executable, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* params) {
    return set(executable, node, kernel_node(*params));
  };
  d.cuGraphExecMemcpyNodeSetParams = [](CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext) { return set(executable, node, copy_node(*params)); };
  d.cuGraphExecMemsetNodeSetParams = [](CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext) { return set(executable, node, clear_node(*params)); };
  d.cuGraphExecChildGraphNodeSetParams = [](CUgraphExec executable, CUgraphNode node, CUgraph child) {
    return set(executable, node, child_node(child));
  };
  d.cuGraphLaunch = [](CUgraphExec executable, CUstream) {
    ++all().state.launched;
    const auto& of = *as<EmulatedExecutable>(executable);
    return run_all(of.nodes.at(of.from), &of);
  };
}

}  // namespace

const Driver& tessera::runtime::cuda::emulated_driver() {
  static const Driver& only = *[] {
    auto* out = new Driver;
    add_device_functions(*out);
    add_memory_functions(*out);
    add_stream_functions(*out);
    add_module_functions(*out);
    add_graph_functions(*out);
    add_executable_functions(*out);
    return out;
  }();
  return only;
}

std::shared_ptr<const SourceCompiler> tessera::runtime::cuda::emulated_compiler() {
  return std::make_shared<EmulatedCompiler>();
}

CUresult tessera::runtime::cuda::emulated_queue(CUstream stream, std::function<std::string()> work) {
  return queue(stream, {.kind = EmulatedNode::Kind::work, .work = std::move(work)});
}

EmulatedState& tessera::runtime::cuda::emulated_state() { return all().state; }

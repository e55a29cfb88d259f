#include "tessera/runtime/cuda/device_function.h"

#include <gtest/gtest.h>

#include "tessera/runtime/cuda/bound_launch.h"
#include "tessera/runtime/cuda/emulator/test_devices.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;

namespace {

/// y is the sum of what the threads of a block left at both ends of its dynamic memory.
SourceRef ends_of_memory(std::string entry) {
  const std::string text = cat("extern \"C\" __global__ void ", entry, R"((float* y, long long count) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  float* const held = (float*)shared_memory;
  if (threadIdx.x == 0) held[0] = 1.0f;
  if (threadIdx.x == 1) held[count - 1] = 2.0f;
  __syncthreads();
  if (threadIdx.x == 0) y[0] = held[0] + held[count - 1];
}
)");
  return std::make_shared<const Source>(Source{.text = text, .entry = std::move(entry)});
}

constexpr std::uint32_t more_than_usual = 64 * 1024;

class SharedMemoryOfBlocks : public OnTestDevice {
 protected:
  void SetUp() override {
    OnTestDevice::SetUp();
    if (device_ == nullptr) return;
    if (most() < more_than_usual) GTEST_SKIP() << "the device has " << most() << " bytes for a block";
    y_ = value_or_throw(device_->memory().allocate(sizeof(float)));
  }
  void TearDown() override {
    if (y_ != nullptr) device_->memory().free(y_, sizeof(float));
  }

  [[nodiscard]] std::uint32_t most() const { return device_->context()->limits().shared_bytes; }
  [[nodiscard]] FunctionRef function(std::string entry) {
    const SourceRef source = ends_of_memory(std::move(entry));
    return value_or_throw(device_->modules().get({&source, 1}))[0];
  }
  [[nodiscard]] BoundLaunch launch(FunctionRef function, std::uint32_t bytes) const {
    BoundLaunch out{.kind = BoundLaunch::Kind::kernel, .function = std::move(function), .block = {32, 1, 1}};
    out.shared_bytes = bytes;
    out.values = {reinterpret_cast<std::uintptr_t>(y_), bytes / sizeof(float)};
    return out;
  }
  [[nodiscard]] float result() {
    float out = 0;
    value_or_throw(device_->memory().copy_out(y_, std::as_writable_bytes(std::span(&out, 1))));
    value_or_throw(device_->memory().clear(y_, sizeof(float)));
    return out;
  }

  std::byte* y_ = nullptr;
};

/// A graph of one kernel.
class OneNode {
 public:
  OneNode(const Context& context, const BoundLaunch& launch) : context_(context) {
    const Driver& driver = context.driver();
    value_or_throw(checked(driver, driver.cuGraphCreate(&graph_, 0), "cuGraphCreate"));
    node_ = value_or_throw(add_node(context, graph_, {}, launch, std::nullopt));
    value_or_throw(checked(driver, driver.cuGraphInstantiate(&executable_, graph_, 0), "cuGraphInstantiate"));
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;
  ~OneNode() {
    context_.driver().cuGraphExecDestroy(executable_);
    context_.driver().cuGraphDestroy(graph_);
  }

  Result<void> set(const BoundLaunch& launch) {
    return set_node(context_, executable_, node_, launch, std::nullopt);
  }
  Result<void> run(const Stream& stream) {
    TESSERA_CUDA(context_.driver(), cuGraphLaunch, executable_, stream.handle());
    return stream.wait();
  }

 private:
  const Context& context_;
  CUgraph graph_ = nullptr;
  CUgraphNode node_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

}  // namespace

TEST_P(SharedMemoryOfBlocks, IsAllowedToLaunchesOnAStream) {
  const Current current = value_or_throw(device_->context()->enter());
  const FunctionRef ends = function("ends");
  const std::uint64_t before = emulated_state().asked_shared;
  for (const std::uint32_t bytes : {16u * 1024, usual_shared_bytes, more_than_usual, most(), 4096u}) {
    const auto done = queue(*device_->context(), launch(ends, bytes), device_->stream());
    ASSERT_TRUE(done) << done.error().to_text();
    EXPECT_EQ(result(), 3.0f) << bytes;
  }
  if (is_emulated()) {
    EXPECT_EQ(emulated_state().asked_shared, before + 1) << "once for a function";
  }
}

TEST_P(SharedMemoryOfBlocks, IsAllowedToNodesAndToFunctionsThatAreSetLater) {
  const Current current = value_or_throw(device_->context()->enter());
  const Context& context = *device_->context();
  OneNode node(context, launch(function("first"), most()));
  ASSERT_TRUE(node.run(device_->stream()));
  EXPECT_EQ(result(), 3.0f);
  OneNode patched(context, launch(function("small"), 1024));
  ASSERT_TRUE(patched.run(device_->stream()));
  EXPECT_EQ(result(), 3.0f);
  const auto set = patched.set(launch(function("second"), more_than_usual));
  ASSERT_TRUE(set) << set.error().to_text();
  ASSERT_TRUE(patched.run(device_->stream()));
  EXPECT_EQ(result(), 3.0f);
}

TEST_P(SharedMemoryOfBlocks, ThatTheDeviceHasNotIsAnErrorWithBothFigures) {
  const Current current = value_or_throw(device_->context()->enter());
  const auto done = queue(*device_->context(), launch(function("large"), most() + 4), device_->stream());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(),
            cat("a block with ", most() + 4, " bytes of shared memory; the device has ", most()));
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedMemoryOfBlocks, all_test_devices(), test_device_name);

/// What the tests above rely on: as a driver does it.
TEST(EmulatedSharedMemory, IsRefusedToFunctionsThatDidNotAsk) {
  const auto device = open_test_device(TestDevice::emulated);
  if (!device) GTEST_SKIP() << device.error().to_text();
  const SourceRef source = ends_of_memory("unasked");
  const FunctionRef function = value_or_throw((*device)->modules().get({&source, 1}))[0];
  const Driver& driver = (*device)->context()->driver();
  std::byte* const y = value_or_throw((*device)->memory().allocate(sizeof(float)));
  std::uint64_t values[] = {reinterpret_cast<std::uintptr_t>(y), more_than_usual / sizeof(float)};
  void* pointers[] = {&values[0], &values[1]};
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = function->handle();
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.blockDimX = 32;
  params.kernelParams = pointers;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, refused = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(driver.cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  params.sharedMemBytes = usual_shared_bytes;
  ASSERT_EQ(driver.cuGraphAddKernelNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
  ASSERT_EQ(driver.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  params.sharedMemBytes = more_than_usual;
  EXPECT_EQ(driver.cuGraphAddKernelNode(&refused, graph, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuGraphExecKernelNodeSetParams(executable, node, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuLaunchKernel(function->handle(), 1, 1, 1, 32, 1, 1, more_than_usual,
                                  (*device)->stream().handle(), pointers, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.cuFuncSetAttribute(function->handle(), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      emulated_state().shared_bytes + 1),
            CUDA_ERROR_INVALID_VALUE);
  driver.cuGraphExecDestroy(executable);
  driver.cuGraphDestroy(graph);
  (*device)->memory().free(y, sizeof(float));
}

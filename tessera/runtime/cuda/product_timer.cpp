#include "tessera/runtime/cuda/product_timer.h"

#include <algorithm>

#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr int runs_in_graph = 16;
constexpr std::size_t most_numbers = std::size_t{1} << 20;  ///< bytes of them; then they come again
/// From here on what the host does for a call does not count.
constexpr double long_microseconds = 60;
/// The part of the device's memory that measuring may use.
constexpr std::uint64_t measured_part = 8;

std::size_t bytes_of(const Product& product, const Product::Operand& operand, std::int64_t rows,
                     std::int64_t columns) {
  const std::int64_t lines = operand.is_transposed ? columns : rows;
  const std::int64_t elements = lines * operand.leading + (product.batch - 1) * operand.batch;
  return static_cast<std::size_t>(elements) * ir::size_of(product.dtype);
}

/// What was captured, until it has been timed.
struct TimedGraph {
  explicit TimedGraph(const Driver& with) : driver(with) {}
  TimedGraph(const TimedGraph&) = delete;
  TimedGraph& operator=(const TimedGraph&) = delete;
  ~TimedGraph() {
    if (executable != nullptr) driver.cuGraphExecDestroy(executable);
    if (graph != nullptr) driver.cuGraphDestroy(graph);
  }

  const Driver& driver;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
};

}  // namespace

ProductTimer::ProductTimer(ProductTimer&& other) noexcept
    : device_(std::move(other.device_)),
      capturing_(std::move(other.capturing_)),
      taken_(std::exchange(other.taken_, {})),
      memory_(other.memory_) {}

ProductTimer::~ProductTimer() {
  for (const auto& [at, bytes] : taken_) device_.memory->free(at, bytes);
}

Result<CUdeviceptr> ProductTimer::take(std::size_t bytes) {
  std::byte* at = TESSERA_TRY(device_.memory->allocate(bytes));
  taken_.emplace_back(at, bytes);
  TESSERA_TRY(device_.memory->clear(at, bytes));
  return device_address(at);
}

/// Numbers as they come: how much power zeros take, and so how fast the clock is, says nothing.
Result<CUdeviceptr> ProductTimer::take_numbers(std::size_t bytes, ir::Dtype dtype) {
  const CUdeviceptr at = TESSERA_TRY(take(bytes));
  const std::size_t width = ir::size_of(dtype);
  std::vector<std::byte> numbers(std::min(bytes / width * width, most_numbers));
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < numbers.size() / width; ++i) {
    state = state * 1664525u + 1013904223u;
    const double value = static_cast<double>(state) * 0x1p-31 - 1;
    op::storer<double>(dtype)(numbers.data(), static_cast<std::int64_t>(i), 1, 1, &value);
  }
  TESSERA_TRY(device_.memory->copy_in(taken_.back().first, numbers));
  for (std::size_t done = numbers.size(); done > 0 && done < bytes; done *= 2)
    TESSERA_CUDA(device_.context->driver(), cuMemcpyDtoDAsync, at + done, at, std::min(done, bytes - done),
                 device_.stream->handle());
  return at;
}

Result<ProductTimer> ProductTimer::create(const BlasDevice& device, const Product& product) {
  const std::size_t a = bytes_of(product, product.a, product.rows, product.depth);
  const std::size_t b = bytes_of(product, product.b, product.depth, product.columns);
  const std::size_t c = bytes_of(product, product.c, product.rows, product.columns);
  if (a + b + 2 * c > device.context->memory_bytes() / measured_part)
    return Error(ErrorCode::memory, "the product is too large to be measured");
  ProductTimer out(device);
  out.capturing_ = TESSERA_TRY(Stream::create(device.context));
  out.memory_.a = TESSERA_TRY(out.take_numbers(a, product.dtype));
  out.memory_.b = TESSERA_TRY(out.take_numbers(b, product.dtype));
  out.memory_.c = TESSERA_TRY(out.take(c));
  out.memory_.workspace = TESSERA_TRY(out.take(static_cast<std::size_t>(product_workspace)));
  const auto columns = static_cast<std::size_t>(product.columns);
  if (product.finish.adds_bias)
    out.memory_.bias = TESSERA_TRY(out.take(columns * ir::size_of(product.dtype)));
  if (product.finish.adds_array) out.memory_.added = TESSERA_TRY(out.take(c));
  return out;
}

Result<double> ProductTimer::microseconds(const BlasProduct& product, int runs) const {
  TESSERA_TRY(product.queue(memory_, *device_.stream));  // loads its code
  const double first = TESSERA_TRY(on_stream(product, runs));
  return first > long_microseconds ? first : in_graph(product);
}

Result<double> ProductTimer::on_stream(const BlasProduct& product, int runs) const {
  const Event begin = TESSERA_TRY(Event::create(device_.context));
  const Event end = TESSERA_TRY(Event::create(device_.context));
  TESSERA_TRY(begin.record(*device_.stream));
  for (int i = 0; i < runs; ++i) TESSERA_TRY(product.queue(memory_, *device_.stream));
  TESSERA_TRY(end.record(*device_.stream));
  TESSERA_TRY(device_.stream->wait());
  return TESSERA_TRY(end.microseconds_since(begin)) / runs;
}

Result<double> ProductTimer::in_graph(const BlasProduct& product) const {
  const Driver& driver = device_.context->driver();
  TimedGraph timed(driver);
  TESSERA_CUDA(driver, cuStreamBeginCapture, capturing_->handle(), CU_STREAM_CAPTURE_MODE_RELAXED);
  Result<void> queued;
  for (int i = 0; i < runs_in_graph && queued; ++i) queued = product.queue(memory_, *capturing_);
  const CUresult ended = driver.cuStreamEndCapture(capturing_->handle(), &timed.graph);
  TESSERA_TRY(std::move(queued));
  TESSERA_TRY(checked(driver, ended, "cuStreamEndCapture"));
  TESSERA_CUDA(driver, cuGraphInstantiate, &timed.executable, timed.graph, 0);
  const Event begin = TESSERA_TRY(Event::create(device_.context));
  const Event end = TESSERA_TRY(Event::create(device_.context));
  TESSERA_CUDA(driver, cuGraphLaunch, timed.executable, device_.stream->handle());  // uploads it
  TESSERA_TRY(begin.record(*device_.stream));
  TESSERA_CUDA(driver, cuGraphLaunch, timed.executable, device_.stream->handle());
  TESSERA_TRY(end.record(*device_.stream));
  TESSERA_TRY(device_.stream->wait());
  return TESSERA_TRY(end.microseconds_since(begin)) / runs_in_graph;
}

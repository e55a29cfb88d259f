#include "benchmarks/gpu/soak.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>

#include "benchmarks/compare/worker.h"
#include "tessera/base/text.h"
#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_device.h"
#include "tessera/runtime/cuda/library.h"
#include "tessera/tessera.h"

using namespace tessera;
using namespace tessera::benchmarks;
namespace p = tessera::parameter;

namespace {

constexpr std::int64_t width = 8;  ///< of matrices
constexpr std::int64_t sizes[] = {64, 256, 1024};
/// So many that all of them are there long before half of the updates: memory is flat from then on.
constexpr std::size_t most_plans = 48;
/// Making code takes longer than thousands of launches.
constexpr int code_changes = 20;

class Dice {
 public:
  std::uint32_t below(std::uint32_t n) { return random_() % n; }
  double part() { return below(1000) / 1000.0; }

 private:
  std::mt19937 random_{1};
};

void expect_near(std::string_view what, double got, double wanted) {
  if (std::abs(got - wanted) <= 1e-4 * (1 + std::abs(wanted))) return;
  throw std::runtime_error(cat(what, ": ", got, " instead of ", wanted));
}

/// y = x * by + `more`: other code for each number.
std::string scale_text(int more) {
  return cat(R"(extern "C" __global__ void scale(const float* x, float* y, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * by + )",
             more, ".0f;\n}");
}

void copy_call(const CopyOnStream& copy, const StreamCall& call, std::size_t bytes) {
  copy(call.data<float>(1), call.data<const float>(0), bytes, call.stream());
}

// ---- tensors

class TensorSoak {
 public:
  TensorSoak(std::shared_ptr<runtime::Device> device, const CopyOnStream& copy, Dice& dice)
      : is_gpu_(engine::is_gpu_name(device->name())),
        engine_(Engine::create(
            {.plans = {.max_entries = most_plans, .wait = true}, .device = std::move(device)})),
        dice_(dice) {
    for (const std::int64_t size : sizes)
      for (int i = 0; i < 6; ++i) inputs_.push_back(input(size, 7 + i));
    weights_ = input(width * width, 3);
    if (copy)
      copied_.emplace(captured({.name = "soak_copied",
                                .parameters = {p::read("x"), p::write("y"), p::integer("times", 1)},
                                .capture = [copy](const StreamCall& call) {
                                  for (std::int64_t i = 0; i < call.integer(2); ++i)
                                    copy_call(copy, call,
                                              static_cast<std::size_t>(call.shape(0)[0]) * sizeof(float));
                                }}));
    if (is_gpu_)
      kernel_.emplace(
          KernelOptions{.name = "soak_scale",
                        .source = scale_text(0),
                        .entry = "scale",
                        .parameters = {p::read("x", {.dtype = f32, .shape = "[N]"}), p::write("y"),
                                       p::scalar("by", 2.0), p::size("n", "N", Dtype::i32)}});
  }

  [[nodiscard]] const Engine& engine() const { return *engine_; }

  void change_code() {
    if (kernel_) kernel_->set_source(scale_text(++more_));
  }

  void turn() {
    change();
    const std::uint32_t which = dice_.below(100);
    if (which < 45) return chain();
    if (which < 60) return product();
    if (which < 70) return copied_ ? call() : chain();
    if (which < 80) return region();
    if (which < 90) return kernel();
    return rows();
  }

 private:
  struct Input {
    Tensor tensor;
    std::vector<float> values;
  };

  [[nodiscard]] Input input(std::int64_t size, int seed) const {
    Tensor out = from_vector(compare::numbers(size, seed), {size}, {.engine = engine_});
    return {out, out.to_vector<float>()};
  }
  [[nodiscard]] const Input& now() const { return inputs_[input_]; }
  std::int64_t place() { return dice_.below(static_cast<std::uint32_t>(now().values.size())); }
  [[nodiscard]] double value(std::int64_t at) const { return now().values[static_cast<std::size_t>(at)]; }

  void change() {
    const std::uint32_t change = dice_.below(100);
    if (change < 50) (change % 2 == 0 ? a_ : b_) = dice_.part();
    if (change >= 50 && change < 90) input_ = dice_.below(static_cast<std::uint32_t>(inputs_.size()));
    if (change >= 98) length_ = 1 + dice_.below(6);
  }

  void chain() {
    Tensor y = now().tensor;
    const std::int64_t at = place();
    double wanted = value(at);
    for (std::uint32_t i = 0; i < length_; ++i) {
      y = y * a_ + b_;
      wanted = wanted * a_ + b_;
    }
    expect_near("a chain", y.item<double>({at}), wanted);
  }

  void product() {
    const std::int64_t rows = static_cast<std::int64_t>(now().values.size()) / width;
    const Tensor y =
        matmul(now().tensor.reshape({rows, width}), weights_.tensor.reshape({width, width})) * a_;
    const std::int64_t row = dice_.below(static_cast<std::uint32_t>(rows)), column = dice_.below(width);
    double wanted = 0;
    for (std::int64_t k = 0; k < width; ++k)
      wanted += value(row * width + k) * weights_.values[static_cast<std::size_t>(k * width + column)];
    expect_near("a product", y.item<double>({row, column}), wanted * a_);
  }

  void call() {
    const std::int64_t at = place(), times = 1 + dice_.below(8) / 7;
    expect_near("a captured call", ((*copied_)(now().tensor * a_, times) + b_).item<double>({at}),
                value(at) * a_ + b_);
  }

  /// Products keep the bodies from being parts of a kernel.
  void region() {
    const Tensor x = now().tensor, w = weights_.tensor.reshape({width, width});
    const std::int64_t rows = static_cast<std::int64_t>(now().values.size()) / width, at = place();
    const double limit = dice_.part() * 2 - 1;
    const Tensor y = cond(
        x.slice({{.start = 0, .stop = 1}}).reshape({}) > limit,
        [&] {
          return matmul(x.reshape({rows, width}), w - w).reshape({rows * width}) + x;
        },
        [&] { return x * a_; });
    expect_near("a region", y.item<double>({at}), value(0) > limit ? value(at) : value(at) * a_);
  }

  void kernel() {
    if (!kernel_) return chain();
    const std::int64_t at = place();
    expect_near("a kernel", (*kernel_)(now().tensor, a_).item<double>({at}), value(at) * a_ + more_);
  }

  /// Kernels of rows and tiles, sorts, scans and scatters.
  void rows() {
    const std::vector<float>& x = now().values;
    const auto rows = static_cast<std::int64_t>(x.size()) / width;
    const Tensor matrix = now().tensor.reshape({rows, width});
    const std::int64_t at = place();
    switch (dice_.below(5)) {
      case 0: {
        double sum = 0;
        for (const float one : x) sum += std::exp(static_cast<double>(one));
        expect_near("a softmax", softmax(now().tensor, {.axis = 0}).item<double>({at}),
                    std::exp(value(at)) / sum);
        return;
      }
      case 1: {
        std::vector<float> sorted = x;
        std::sort(sorted.begin(), sorted.end());
        expect_near("a sort", sort(now().tensor, {.axis = 0}).values.item<double>({at}),
                    sorted[static_cast<std::size_t>(at)]);
        return;
      }
      case 2: {
        double sum = 0;
        for (std::int64_t i = 0; i <= at; ++i) sum += value(i);
        expect_near("a sum so far", cumsum(now().tensor, {.axis = 0}).item<double>({at}), sum);
        return;
      }
      case 3: {
        const std::int64_t row = at / width, column = at % width;
        const Tensor turned =
            transpose(matrix, {.permutation = {1, 0}}) + now().tensor.reshape({width, rows}) * a_;
        expect_near("a transpose", turned.item<double>({column, row}),
                    value(at) + value(column * rows + row) * a_);
        return;
      }
      default: {
        const Tensor last =
            gather(matrix, from_vector(std::vector<std::int64_t>{rows - 1}, {1}, {.engine = engine_}));
        expect_near("a gather", (last * a_).item<double>({0, at % width}),
                    value((rows - 1) * width + at % width) * a_);
      }
    }
  }

  bool is_gpu_;
  std::shared_ptr<Engine> engine_;
  Dice& dice_;
  std::vector<Input> inputs_;
  Input weights_;
  std::optional<Captured> copied_;
  std::optional<Kernel> kernel_;
  int more_ = 0;  ///< what the code of the kernel adds
  std::size_t input_ = 0;
  double a_ = 0.5, b_ = 0.25;
  std::uint32_t length_ = 3;
};

// ---- a description

constexpr const char* add_text = R"(extern "C" __global__ void add(const float* x, float* y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x] + 1;
})";

/// y = x * by + more, copied by a captured call, and 1 more where a flag is set; else 0.
class DescriptionSoak {
 public:
  DescriptionSoak(const std::shared_ptr<runtime::Device>& device, const CopyOnStream& copy, Dice& dice)
      : device_(value_or_throw(engine::make_graph_device(device))), dice_(dice) {
    using namespace description;
    Builder b;
    b.external("x", Dtype::f32, {count}).external("flag", Dtype::i32, {1});
    for (const char* name : {"a", "b", "y"}) b.graph(name, Dtype::f32, {count});
    b.kernels().add_device_kernel("scale", code("scale", scale_text(0)));
    b.kernels().add_device_kernel("add", code("add", add_text));
    engine::add_stream_capture(b.kernels(), "copied", [copy](const op::StreamCall& call) {
      copy_call(copy, call, static_cast<std::size_t>(call.integer(2)));
    });
    b.kernel("scale", "scale",
             {read("x", {.buffer = "x"}), write("y", {.buffer = "a"}), scalar("by", 1, Dtype::f32),
              scalar("n", count, Dtype::i32)});
    b.description().nodes.back().grid = {2, 1, 1};
    b.captured("copy", "copied",
               {read("from", {.buffer = "a"}), write("to", {.buffer = "b"}), integer("bytes", all_bytes)});
    b.if_("maybe", "flag").within("maybe");
    b.kernel("more", "add", {read("x", {.buffer = "b"}), write("y", {.buffer = "y"})});
    b.description().nodes.back().grid = {2, 1, 1};
    for (float value = 1; value <= 4; ++value) {
      memories_.push_back(value_or_throw(device_->allocate(all_bytes)));
      const std::vector<float> values(count, value);
      value_or_throw(device_->copy_in(memories_.back().get(), std::as_bytes(std::span(values))));
    }
    flag_memory_ = value_or_throw(device_->allocate(sizeof(std::int32_t)));
    HostOptions options{.device = device_};
    options.bindings.emplace("x", std::span(memories_[0].get(), all_bytes));
    options.bindings.emplace("flag", std::span(flag_memory_.get(), sizeof(std::int32_t)));
    graph_ = value_or_throw(HostGraph::create(*b.finish(), b.kernels(), std::move(options)));
  }

  [[nodiscard]] const std::map<description::Tier, std::uint64_t>& tiers() const { return tiers_; }

  void change_code() { value_or_throw(graph_->replace_kernel("scale", code("scale", scale_text(++more_)))); }

  void turn() {
    change();
    const description::UpdateReport report = graph_->update();
    if (report.error) throw std::runtime_error(report.error->to_text());
    ++tiers_[report.tier];
    const std::int32_t flag = dice_.below(4) != 0;
    value_or_throw(device_->copy_in(flag_memory_.get(), std::as_bytes(std::span(&flag, 1))));
    static_cast<void>(value_or_throw(graph_->launch()));
    float got = 0;
    std::memcpy(&got, value_or_throw(graph_->content("y")).data(), sizeof got);
    expect_near("a description", got, flag != 0 ? (x_ + 1) * by_ + more_ + 1 : 0);
  }

 private:
  static constexpr std::int64_t count = 64;
  static constexpr std::size_t all_bytes = count * sizeof(float);

  static description::DeviceCode code(const std::string& entry, const std::string& text) {
    description::DeviceCode out{.threads = {32, 1, 1}};
    out.call.name = out.call.entry = entry;
    out.call.code = op::KernelSource::from_text(text, op::CodeForm::cuda, entry + ".cu");
    return out;
  }

  void change() {
    const std::uint32_t change = dice_.below(100);
    if (change < 40) value_or_throw(graph_->set_number("scale", "by", by_ = dice_.part()));
    if (change >= 40 && change < 70) {
      x_ = static_cast<int>(dice_.below(static_cast<std::uint32_t>(memories_.size())));
      value_or_throw(graph_->bind("x", std::span(memories_[static_cast<std::size_t>(x_)].get(), all_bytes)));
    }
    if (change >= 70 && change < 85)
      value_or_throw(
          graph_->set_number("copy", "bytes", static_cast<std::int64_t>(all_bytes / (1 + dice_.below(2)))));
    if (change >= 98) value_or_throw(graph_->resize("a", {count * (1 + dice_.below(2))}));
  }

  description::GraphDeviceRef device_;
  Dice& dice_;
  std::unique_ptr<description::HostGraph> graph_;
  std::map<description::Tier, std::uint64_t> tiers_;
  std::vector<std::shared_ptr<std::byte>> memories_;
  std::shared_ptr<std::byte> flag_memory_;
  int x_ = 0, more_ = 0;
  double by_ = 1;
};

// ---- what they say

/// Some hundred updates have all tiers but those that few of them have.
void expect_tiers(const EngineStatistics& tensors, int count, bool is_gpu) {
  using engine::Tier;
  if (count < 500 || !is_gpu) return;
  for (const Tier tier : {Tier::none, Tier::hot, Tier::warm, Tier::recapture, Tier::code, Tier::cold})
    if (tensors.tiers[static_cast<std::size_t>(tier)] == 0)
      throw std::runtime_error(cat("no update of the tier ", to_string(tier)));
}

}  // namespace

CopyOnStream tessera::benchmarks::copy_of_driver() {
  const auto library = runtime::cuda::open_library("the CUDA driver", {"libcuda.so.1"});
  void* found = library ? library->symbol("cuMemcpyDtoDAsync_v2") : nullptr;
  if (found == nullptr) throw std::runtime_error("there is no driver with cuMemcpyDtoDAsync");
  auto* const function =
      reinterpret_cast<int (*)(unsigned long long, unsigned long long, std::size_t, void*)>(found);
  return [function](void* to, const void* from, std::size_t bytes, void* stream) {
    const int result =
        function(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from), bytes, stream);
    if (result != 0) throw std::runtime_error(cat("a copy was refused: ", result));
  };
}

std::string tessera::benchmarks::soak(const std::shared_ptr<runtime::Device>& device,
                                      const CopyOnStream& copy, int count) {
  const bool is_gpu = engine::is_gpu_name(device->name());
  Dice dice;
  TensorSoak tensors(device, copy, dice);
  std::optional<DescriptionSoak> described;
  if (is_gpu && copy) described.emplace(device, copy, dice);
  std::uint64_t half = 0;
  for (int turn = 0; turn < count; ++turn) {
    if (turn == count / 2) half = tensors.engine().memory().used;
    if (turn % std::max(1, count / code_changes) == count / code_changes / 2) {
      tensors.change_code();
      if (described) described->change_code();
    }
    try {
      described&& dice.below(10) == 0 ? described->turn() : tensors.turn();
    } catch (const std::exception& error) {
      throw std::runtime_error(cat("turn ", turn, ": ", error.what()));
    }
  }
  const std::uint64_t end = tensors.engine().memory().used;
  const EngineStatistics figures = tensors.engine().statistics();
  std::string out = cat(count, " updates, all right; memory in use ", half, " bytes after half of them, ",
                        end, " at the end; tiers:");
  for (std::size_t tier = 0; tier < engine::tier_count; ++tier)
    out += cat(" ", to_string(static_cast<engine::Tier>(tier)), " ", figures.tiers[tier]);
  if (described) out += "; of the description:";
  if (described)
    for (const auto& [tier, times] : described->tiers()) out += cat(" ", to_string(tier), " ", times);
  // Which plans are kept, and how large they are, is as the dice fell.
  if (end > half + (half >> 2) + (most_plans << 12))
    throw std::runtime_error(cat("the memory in use grew: ", out));
  expect_tiers(figures, count, is_gpu);
  return out;
}

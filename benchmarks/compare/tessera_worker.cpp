// Tessera's side of the comparison: the graph is recorded anew in every run, as users do, on the cpu device.
//
//   tessera_compare_worker                    takes commands (worker.h)
//   tessera_compare_worker first KIND SIZE…   prints the milliseconds to the first result of a fresh process:
//                                             as it comes, and by a plan that is waited for
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "benchmarks/compare/worker.h"
#include "benchmarks/models.h"
#include "tessera/compile/tiling.h"
#include "tessera/engine/devices.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/tessera.h"

using namespace tessera;
using namespace tessera::benchmarks;
using compare::Workload;

namespace {

using Sizes = std::span<const std::int64_t>;
using EngineRef = std::shared_ptr<Engine>;

/// Variants of the device that some rows ask for.
struct Setting {
  bool is_precise = false;
  bool fuses = true;
};

EngineRef make_engine(Setting setting) {
  runtime::cpu::CpuOptions options{.kernels = {.is_precise = setting.is_precise}};
  options.target.sources = {setting.fuses ? compiler::fused_regions() : no_tiles()};
  const bool is_plain = setting.fuses && !setting.is_precise;
  std::shared_ptr<runtime::Device> device =
      is_plain ? value_or_throw(engine::find_device("cpu"))
               : std::make_shared<runtime::cpu::CpuDevice>(std::move(options));
  return Engine::create({.plans = {.wait = true}, .device = std::move(device)});
}

/// Runs until a plan is there, so that what is measured is the steady state.
Workload steady(std::function<Tensor()> record) {
  Workload out{.run = [record] { record().eval(); }, .first = record().to_vector<float>()};
  for (int i = 0; i < 10; ++i) out.run();
  return out;
}

/// Steps of plain gradient descent.
Workload training(nn::Parameters parameters, nn::Loss loss) {
  auto p = std::make_shared<nn::Parameters>(std::move(parameters));
  const auto step = [p, loss = std::move(loss)] { return training_step(*p, loss); };
  Workload out{.run = step, .first = step().to_vector<float>()};
  for (int i = 0; i < 10; ++i) out.run();
  return out;
}

Workload mlp_training(Inputs& in, Sizes sizes) {
  nn::Loss loss = mlp_loss(in, sizes[0]);
  return training(mlp_parameters(in), std::move(loss));
}

Workload block_training(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[2], sizes[1], sizes[0]}), wanted = in({sizes[2], sizes[1], sizes[0]});
  const std::int64_t heads = sizes[3];
  return training(block_parameters(in, sizes[0]), [=](const nn::Parameters& p) {
    const Tensor off = block(p, x, heads) - wanted;
    return mean(off * off);
  });
}

Workload block_forward(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[2], sizes[1], sizes[0]});
  const auto p = block_parameters(in, sizes[0]);
  return steady([=, heads = sizes[3]] { return block(p, x, heads); });
}

Workload convolutions(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[0], 64, 56, 56}), a = in({64, 64, 3, 3}, {.scale = 1.0 / 24}),
               b = in({64, 64, 3, 3}, {.scale = 1.0 / 24});
  return steady([=] {
    const Tensor y = relu(conv(x, a, {}, {.pads = {1, 1, 1, 1}}));
    return relu(conv(y, b, {}, {.pads = {1, 1, 1, 1}}));
  });
}

Workload adds(Inputs& in, Sizes sizes) {
  const Tensor x = in({16}), y = in({16}, {.scale = 1e-3});
  return steady([=, count = sizes[0]] { return chain_of_adds(x, y, count); });
}

/// Recorded once: what is left of an op is its share of the plan.
Workload compiled_adds(Inputs& in, Sizes sizes) {
  const Tensor x = in({16}), y = in({16}, {.scale = 1e-3});
  const auto chain =
      compile([count = sizes[0]](const Tensor& a, const Tensor& b) { return chain_of_adds(a, b, count); },
              {.is_pure = true});
  return steady([=] { return chain(x, y); });
}

Workload affine_tanh(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[0]}, {.scale = 4.0});
  return steady([=] { return tanh(x * 0.7 + 0.1) * 1.3 + x; });
}

Workload rows_of(Inputs& in, Sizes sizes, const std::function<Tensor(const Tensor&)>& f) {
  const Tensor x = in({sizes[0], sizes[1]}, {.scale = 4.0});
  return steady([=] { return f(x); });
}

Workload norm_rows(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[0], sizes[1]}, {.scale = 4.0}),
               weight = in({sizes[1]}, {.scale = 0.1, .offset = 1.0}), bias = in.bias(sizes[1]);
  return steady([=] { return layer_norm(x, weight, bias); });
}

Workload product(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[0], sizes[2]}), w = in.weight(sizes[2], sizes[1]);
  return steady([=] { return matmul(x, w); });
}

Workload mlp_forward(Inputs& in, Sizes sizes) {
  const Tensor x = in({sizes[0], 784});
  const auto p = mlp_parameters(in);
  return steady([=] { return mlp(p, x); });
}

struct Kind {
  std::function<Workload(Inputs&, Sizes)> make;
  std::size_t sizes = 1;
  Setting setting = {};
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> out{
      {"matmul", {product, 3}},
      {"affine_tanh", {affine_tanh}},
      {"affine_tanh_precise", {affine_tanh, 1, {.is_precise = true}}},
      {"softmax",
       {[](Inputs& in, Sizes s) { return rows_of(in, s, [](const Tensor& x) { return softmax(x); }); }, 2}},
      {"gelu",
       {[](Inputs& in, Sizes s) { return rows_of(in, s, [](const Tensor& x) { return gelu(x); }); }, 2}},
      {"layer_norm", {norm_rows, 2}},
      {"mlp", {mlp_forward}},
      {"mlp_train", {mlp_training}},
      {"block", {block_forward, 4}},
      {"block_train", {block_training, 4}},
      {"conv", {convolutions}},
      {"adds", {adds}},
      {"adds_compiled", {compiled_adds}},
      {"adds_unfused", {compiled_adds, 1, {.fuses = false}}},
  };
  return out;
}

Workload prepare(const std::string& kind, std::span<const std::string> words) {
  const auto at = kinds().find(kind);
  if (at == kinds().end()) throw std::runtime_error("Tessera has no such workload");
  const auto sizes = compare::sizes_of(words);
  if (sizes.size() != at->second.sizes) throw std::runtime_error("a wrong number of sizes");
  Inputs inputs(make_engine(at->second.setting));
  return at->second.make(inputs, sizes);
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// The first evaluation op by op and the first by a plan, of a block whose weights are there.
int time_first(Sizes sizes) {
  Inputs inputs(Engine::create({.device = value_or_throw(engine::find_device("cpu"))}));
  const Tensor x = inputs({sizes[2], sizes[1], sizes[0]});
  const auto p = block_parameters(inputs, sizes[0]);
  auto begin = std::chrono::steady_clock::now();
  block(p, x, sizes[3]).eval();
  const double streamed = milliseconds_since(begin);
  begin = std::chrono::steady_clock::now();
  warm_up([&](std::int64_t) { return block(p, x, sizes[3]); }, {0});
  std::printf("%.3f %.3f\n", streamed, milliseconds_since(begin));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return compare::serve(prepare);
  std::vector<std::int64_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  if (std::string(argv[1]) == "first" && sizes.size() == 4) return time_first(sizes);
  std::fprintf(stderr, "usage: %s [first block WIDTH LENGTH BATCH HEADS]\n", argv[0]);
  return 2;
}

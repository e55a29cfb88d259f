// Tessera on a GPU, row by row, each checked against the reference before it is timed.
//
//   tessera_bench_gpu [--device NAME] [--filter TEXT] [--small] [--json FILE]
//   tessera_bench_gpu --soak COUNT [--device NAME] [--no-copies]
//       updates of mixed tiers, each result checked; without captured copies, on which initcheck is mistaken
//   tessera_bench_gpu --serve [--device NAME]
//       products for a peer that takes turns with it, by the commands of compare/worker.h
//   tessera_bench_gpu --quiet-core
//       the number of the core that nobody else uses, for peers
//
// Host times are taken on the core that is fastest for a row when it begins (quiet_core.h).
// --small takes sizes that any device computes in no time: the program itself can be tried without a GPU.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gpu/quiet_core.h"
#include "benchmarks/gpu/soak.h"
#include "benchmarks/models.h"
#include "tessera/base/text.h"
#include "tessera/describe/builder.h"
#include "tessera/describe/host_graph.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/graph_device.h"
#include "tessera/runtime/cuda/cuda_devices.h"
#include "tessera/tessera.h"

using namespace tessera;
using namespace tessera::benchmarks;
using Clock = std::chrono::steady_clock;

namespace {

struct Options {
  std::string device = "cuda:0";
  std::string filter = {};
  std::string json = {};
  bool small = false;
  bool serves = false;
  bool copies = true;
  int soak = 0;
};

/// Of a row whose time does not matter.
constexpr int few_runs = 3;

/// What one row says.
struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::string target;
  std::string note;
};

/// Whole or not at all.
void write_json(const std::string& path, const std::vector<Row>& rows) {
  const std::string part = path + ".part";
  std::FILE* file = std::fopen(part.c_str(), "w");
  if (file == nullptr) throw std::runtime_error("cannot write " + part);
  std::fprintf(file, "{\"rows\":[");
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::fprintf(file, "%s\n{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"target\":\"%s\"}",
                 i == 0 ? "" : ",", rows[i].name.c_str(), std::isnan(rows[i].value) ? -1 : rows[i].value,
                 rows[i].unit.c_str(), rows[i].target.c_str());
  std::fprintf(file, "]}\n");
  std::fclose(file);
  if (std::rename(part.c_str(), path.c_str()) != 0) throw std::runtime_error("cannot write " + path);
}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// Between which most of them are.
std::string tenths(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return cat("eight tenths are ", times[times.size() / 10], " to ", times[times.size() * 9 / 10]);
}

class Suite {
 public:
  explicit Suite(Options options) : options_(std::move(options)) {}

  void run();
  void soak();
  [[nodiscard]] int failures() const { return failures_; }

 private:
  using Engines = std::shared_ptr<Engine>;

  [[nodiscard]] Engines engine() const {
    return engine_on(value_or_throw(engine::find_device(options_.device)));
  }
  /// On a device whose libraries are open: opening one takes the driver's lock now and then.
  [[nodiscard]] static Engines engine_on(std::shared_ptr<runtime::Device> device) {
    device->settle();
    return Engine::create({.plans = {.wait = true}, .device = std::move(device)});
  }
  [[nodiscard]] static Engines reference() {
    return engine_on(value_or_throw(engine::find_device("reference")));
  }
  /// Always the same: one that goes takes the driver's lock for each of its thousand kernels.
  [[nodiscard]] Engines engine_without_fusion();

  /// Runs a row if its name is asked for; what it throws is its note.
  void row(const std::string& name, const std::function<void(const std::string&)>& measure);
  void say(const std::string& name, double value, std::string unit, std::string target,
           std::string note = "");

  /// What the engine did the last time.
  static std::string how(const Engines& engine) { return engine::to_line(engine->report()); }
  /// Launch to done, seen by the host.
  [[nodiscard]] double latency(const Engines& engine, const std::function<void()>& work,
                               int count = 200) const;
  /// What turns add to a list, some hundreds of them in rounds, each on a core that is looked for again: one
  /// that is disturbed does not make the median.
  [[nodiscard]] std::vector<double> in_rounds(const TimedWork& work,
                                              const std::function<void(std::vector<double>&)>& turn) const;
  /// Of one of many launches that follow each other.
  [[nodiscard]] double throughput(const Engines& engine, const std::function<void()>& work,
                                  int count = 30) const;

  void chains();
  void unfused();
  void models();
  void large();
  void products();
  /// Makes the inputs of a loop, and what runs it once.
  using LoopOf = std::function<std::function<Tensor()>(Inputs&)>;
  void loop_row(const std::string& name, const LoopOf& loop, std::int64_t count, const std::string& target,
                double bound, const std::string& remark = "");
  void loops();
  void scalars();
  void descriptions();
  void first_result();
  /// The largest difference to the reference, of the size of its numbers.
  double difference(const std::function<Tensor(Inputs&)>& compute) const;
  void check(const std::string& name, double off, double bound);

  Options options_;
  Engines without_fusion_;
  std::vector<Row> rows_;
  int failures_ = 0;
};

Suite::Engines Suite::engine_without_fusion() {
  if (options_.device.rfind("cuda", 0) != 0) return engine();
  if (without_fusion_ != nullptr) return without_fusion_;
  runtime::cuda::CudaOptions options;
  options.target.sources = {no_tiles()};
  without_fusion_ = engine_on(value_or_throw(runtime::cuda::open_device(0, std::move(options))));
  return without_fusion_;
}

void Suite::row(const std::string& name, const std::function<void(const std::string&)>& measure) {
  if (name.find(options_.filter) == std::string::npos) return;
  try {
    measure(name);
  } catch (const std::exception& error) {
    ++failures_;
    say(name, std::nan(""), "", "", error.what());
  }
}

void Suite::say(const std::string& name, double value, std::string unit, std::string target,
                std::string note) {
  std::printf("| %s | %.2f %s | %s | %s |\n", name.c_str(), value, unit.c_str(), target.c_str(),
              note.c_str());
  std::fflush(stdout);
  rows_.push_back({name, value, std::move(unit), std::move(target), std::move(note)});
  // All that there are: a run that is ended leaves them.
  if (!options_.json.empty()) write_json(options_.json, rows_);
}

double Suite::latency(const Engines& engine, const std::function<void()>& work, int count) const {
  if (options_.small) count = few_runs;
  work();  // the engine's threads are made: they stay where they like
  const auto time = [&] {
    const auto begin = Clock::now();
    work();
    value_or_throw(engine->synchronize());
    return microseconds_since(begin);
  };
  const OnQuietCore here(time);
  for (int i = 0; i < std::min(count, 20); ++i) work();
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(time());
  return median(std::move(times));
}

std::vector<double> Suite::in_rounds(const TimedWork& work,
                                     const std::function<void(std::vector<double>&)>& turn) const {
  constexpr int rounds = 5, turns = 100;
  std::vector<double> out;
  for (int round = 0; round < rounds; ++round) {
    const OnQuietCore here(work);
    for (int i = 0; i < (options_.small ? few_runs : turns); ++i) turn(out);
  }
  return out;
}

double Suite::throughput(const Engines& engine, const std::function<void()>& work, int count) const {
  if (options_.small) count = few_runs;
  work();
  const OnQuietCore here;
  for (int i = 0; i < std::min(count, 10); ++i) work();
  std::vector<double> times;
  for (int turn = 0; turn < 7; ++turn) {
    value_or_throw(engine->synchronize());
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) work();
    value_or_throw(engine->synchronize());
    times.push_back(microseconds_since(begin) / count);
  }
  return median(std::move(times));
}

double Suite::difference(const std::function<Tensor(Inputs&)>& compute) const {
  Inputs here(engine()), there(reference());
  const auto got = compute(here).to_vector<double>(), wanted = compute(there).to_vector<double>();
  double off = 0, size = 1e-30;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    off = std::max(off, std::isfinite(got[i]) ? std::abs(got[i] - wanted[i]) : 1e30);
    size = std::max(size, std::abs(wanted[i]));
  }
  return off / size;
}

void Suite::check(const std::string& name, double off, double bound) {
  if (off <= bound) return;
  ++failures_;
  say(name, off, "relative difference to the reference", cat("<= ", bound), "WRONG RESULT");
}

// ---- rows

void Suite::chains() {
  const std::int64_t count = options_.small ? 20 : 1000;
  row("1,000 adds of 1,024 f32, replay", [&](const std::string& name) {
    check(name, difference([&](Inputs& in) { return chain_of_adds(in({1024}), in({1024}), count); }), 1e-5);
    Inputs in(engine());
    const Tensor x = in({1024}), y = in({1024}, {.scale = 1e-3});
    const auto chain = compile([=](const Tensor& a, const Tensor& b) { return chain_of_adds(a, b, count); },
                               {.is_pure = true});
    say(name, latency(in.engine(), [&] { chain(x, y).eval(); }), "us", "<= 10");
  });
  row("1,000 adds of 1,024 f32, recorded anew", [&](const std::string& name) {
    Inputs in(engine());
    const Tensor x = in({1024}), y = in({1024}, {.scale = 1e-3});
    say(name, latency(in.engine(), [&] { chain_of_adds(x, y, count).eval(); }), "us", "<= 100");
  });
}

/// Every op a node of the graph: a graph of as many nodes as ops.
void Suite::unfused() {
  const std::int64_t count = options_.small ? 20 : 1000;
  row("chain of 1,000 kernels, a node", [&](const std::string& name) {
    Inputs in(engine_without_fusion());
    const Tensor x = in({1024}), y = in({1024}, {.scale = 1e-3});
    const auto chain = compile([=](const Tensor& a, const Tensor& b) { return chain_of_adds(a, b, count); },
                               {.is_pure = true});
    const double all = throughput(
        in.engine(), [&] { chain(x, y).eval(); }, 20);
    say(name, all / static_cast<double>(count), "us", "<= 0.72");
  });
  row("unchanged launch of 1,000 nodes, host time", [&](const std::string& name) {
    Inputs in(engine_without_fusion());
    const Tensor x = in({1024}), y = in({1024}, {.scale = 1e-3});
    const auto chain = compile([=](const Tensor& a, const Tensor& b) { return chain_of_adds(a, b, count); },
                               {.is_pure = true});
    chain(x, y).eval();
    const auto time = [&] {
      value_or_throw(in.engine()->synchronize());
      const auto begin = Clock::now();
      chain(x, y).eval();
      return microseconds_since(begin);
    };
    const std::vector<double> times = in_rounds(time, [&](std::vector<double>& to) { to.push_back(time()); });
    say(name, median(times), "us", "<= 6", tenths(times));
  });
}

using TrainingStep = std::function<Tensors(const Tensors&)>;

Tensors list_of(const nn::Parameters& p) {
  Tensors out;
  for (const auto& [name, parameter] : p) out.push_back(parameter);
  return out;
}

/// From parameters, in the order of their names, to those after a step: traced once.
TrainingStep compiled_training_step(const nn::Loss& loss) {
  const auto step = compile(
      [loss](const Tensor& b0, const Tensor& b1, const Tensor& b2, const Tensor& w0, const Tensor& w1,
             const Tensor& w2) {
        nn::Parameters p{{"b0", b0}, {"b1", b1}, {"b2", b2}, {"w0", w0}, {"w1", w1}, {"w2", w2}};
        const nn::Parameters gradients = nn::loss_and_gradients(loss, p).gradients;
        Tensors out;
        for (const auto& [name, parameter] : p) out.push_back(parameter - gradients.at(name) * 1e-3);
        return out;
      },
      {.is_pure = true});
  return [step](const Tensors& p) { return step(p[0], p[1], p[2], p[3], p[4], p[5]); };
}

void Suite::models() {
  // Small enough for tools that watch every access.
  const MlpWidths widths = options_.small ? MlpWidths{.in = 40, .hidden = 24} : MlpWidths{};
  const std::int64_t batch = options_.small ? 16 : 64;
  row("mlp 784-512-512-10 b64, forward", [&](const std::string& name) {
    const auto compute = [=](Inputs& in) {
      const auto p = mlp_parameters(in, widths);
      return mlp(p, in({batch, widths.in}));
    };
    check(name, difference(compute), 1e-4);
    Inputs in(engine());
    const auto p = mlp_parameters(in, widths);
    const Tensor x = in({batch, widths.in});
    const auto forward = compile([=](const Tensor& a) { return mlp(p, a); }, {.is_pure = true});
    say(name, latency(in.engine(), [&] { forward(x).eval(); }), "us", "<= 28");
  });
  row("mlp 784-512-512-10 b64, training step recorded anew", [&](const std::string& name) {
    const auto compute = [=](Inputs& in) {
      const nn::Loss loss = mlp_loss(in, batch, widths);
      auto p = mlp_parameters(in, widths);
      for (int i = 0; i < 3; ++i) training_step(p, loss);
      return p.at("w1");
    };
    check(name, difference(compute), 1e-4);
    Inputs in(engine());
    const nn::Loss loss = mlp_loss(in, batch, widths);
    auto p = mlp_parameters(in, widths);
    const double time = latency(in.engine(), [&] { training_step(p, loss); });
    say(name, time, "us", "", how(in.engine()));
  });
  row("mlp 784-512-512-10 b64, training step", [&](const std::string& name) {
    const auto compute = [=](Inputs& in) {
      const nn::Loss loss = mlp_loss(in, batch, widths);
      const auto step = compiled_training_step(loss);
      Tensors p = list_of(mlp_parameters(in, widths));
      for (int i = 0; i < 3; ++i) p = step(p);
      return p.back();
    };
    check(name, difference(compute), 1e-4);
    Inputs in(engine());
    const auto step = compiled_training_step(mlp_loss(in, batch, widths));
    Tensors p = list_of(mlp_parameters(in, widths));
    const auto train = [&] {
      p = step(p);
      eval(p);
    };
    const double time = latency(in.engine(), train);
    say(name, time, "us", "<= 60", how(in.engine()));
  });
}

void Suite::large() {
  const std::int64_t many = options_.small ? 1 << 12 : 64 << 20, rows = options_.small ? 16 : 16384;
  const std::int64_t columns = 4096;
  row("tanh(a x + b) c + x, 64 Mi f32", [&](const std::string& name) {
    const auto f = [](const Tensor& x) { return tanh(x * 1.1 + 0.3) * 0.7 + x; };
    check(name, difference([&](Inputs& in) { return f(in({100'003}, {.scale = 4})); }), 1e-6);
    Inputs in(engine());
    const Tensor x = in({many}, {.scale = 4.0});
    say(name, throughput(in.engine(), [&] { f(x).eval(); }), "us", "<= 136");
  });
  row("softmax 16384 x 4096", [&](const std::string& name) {
    check(name, difference([&](Inputs& in) { return softmax(in({37, columns}, {.scale = 4})); }), 1e-5);
    Inputs in(engine());
    const Tensor x = in({rows, columns}, {.scale = 4.0});
    say(name, throughput(in.engine(), [&] { softmax(x).eval(); }), "us", "<= 141");
  });
  row("softmax 1024 x 96,000", [&](const std::string& name) {
    const std::int64_t few = 64, length = 96'000;  // as many as are read once
    check(name, difference([&](Inputs& in) { return softmax(in({few, length}, {.scale = 4})); }), 1e-5);
    Inputs in(engine());
    const Tensor x = in({options_.small ? few : 1024, length}, {.scale = 4.0});
    say(name, throughput(in.engine(), [&] { softmax(x).eval(); }), "us", "");
  });
  row("gather_elements along rows, 16384 x 4096", [&](const std::string& name) {
    const auto f = [columns](Inputs& in, std::int64_t n) {
      const Tensor x = in({n, columns});
      // Of both signs, in any order.
      const Tensor order = cast(in({n, columns}, {.scale = columns - 1.0}), {.dtype = Dtype::i64});
      order.eval();
      return std::function<Tensor()>([=] { return gather_elements(x, order, {.axis = 1}); });
    };
    check(name, difference([&](Inputs& in) { return f(in, 70)(); }), 0);
    Inputs in(engine());
    const auto gathered = f(in, rows);
    say(name, throughput(in.engine(), [&] { gathered().eval(); }), "us", "");
  });
  row("layer norm 16384 x 4096", [&](const std::string& name) {
    const auto f = [](Inputs& in, std::int64_t n) {
      const Tensor x = in({n, 4096}, {.scale = 4.0}), w = in({4096}), b = in.bias(4096);
      return std::function<Tensor()>([=] { return layer_norm(x, w, b); });
    };
    check(name, difference([&](Inputs& in) { return f(in, 37)(); }), 1e-5);
    Inputs in(engine());
    const auto norm = f(in, rows);
    say(name, throughput(in.engine(), [&] { norm().eval(); }), "us", "<= 141");
  });
}

void Suite::products() {
  const auto measure = [&](const std::string& name, std::int64_t n, Dtype dtype, const char* suffix = "") {
    Inputs in(engine_on(value_or_throw(engine::find_device(options_.device + suffix))));
    const Tensor a = cast(in({n, n}), {.dtype = dtype}), b = cast(in({n, n}), {.dtype = dtype});
    a.eval();
    b.eval();
    const double us = throughput(
        in.engine(), [&] { matmul(a, b).eval(); }, 10);
    say(name, 2e-6 * std::pow(static_cast<double>(n), 3) / us, "TFLOP/s", ">= 0.985 of torch",
        cat(us, " us"));
  };
  const std::int64_t half = options_.small ? 64 : 8192, full = options_.small ? 64 : 4096;
  row("matmul 8192 bf16", [&](const std::string& name) { measure(name, half, bf16); });
  row("matmul 4096 f32", [&](const std::string& name) {
    check(name, difference([&](Inputs& in) { return matmul(in({129, 257}), in({257, 65})); }), 1e-5);
    measure(name, full, f32);
  });
  const bool is_gpu = options_.device.rfind("cuda", 0) == 0;
  row("matmul 4096 tf32", [&](const std::string& name) { measure(name, full, f32, is_gpu ? ":tf32" : ""); });
}

/// `prepare product DTYPE SIZE COUNT`: COUNT products of matrices, queued one behind another and waited for.
/// tf32 is the device that rounds to it.
compare::Workload prepared_product(const Options& options, const std::string& kind,
                                   std::span<const std::string> words) {
  if (kind != "product" || words.size() != 3) throw std::runtime_error("usage: product DTYPE SIZE COUNT");
  const bool is_rounded = words[0] == "tf32";
  const auto numbers = compare::sizes_of(words.subspan(1));
  const auto device = value_or_throw(engine::find_device(options.device + (is_rounded ? ":tf32" : "")));
  Inputs in(Engine::create({.plans = {.wait = true}, .device = device}));
  const auto dtype = is_rounded ? std::optional(f32) : ir::parse_dtype(words[0]);
  if (!dtype) throw std::runtime_error("no dtype: " + words[0]);
  const auto operand = [&] {
    Tensor out = cast(in({numbers[0], numbers[0]}), {.dtype = *dtype});
    out.eval();
    return out;
  };
  const Tensor a = operand(), b = operand();
  compare::Workload out;
  out.run = [a, b, engine = in.engine(), count = numbers[1]] {
    for (std::int64_t i = 0; i < count; ++i) matmul(a, b).eval();
    value_or_throw(engine->synchronize());
  };
  out.run();
  return out;
}

/// Whole loops of `count` turns, a turn in microseconds.
void Suite::loop_row(const std::string& name, const LoopOf& loop, std::int64_t count,
                     const std::string& target, double bound, const std::string& remark) {
  row(name, [&](const std::string& named) {
    check(named, difference([&](Inputs& in) { return loop(in)(); }), bound);
    Inputs in(engine());
    const auto work = loop(in);
    const double all = latency(
        in.engine(), [&] { work().eval(); }, 20);
    say(named, all / static_cast<double>(count), "us", target, remark + how(in.engine()));
  });
}

void Suite::loops() {
  const std::int64_t count = options_.small ? 20 : 1000;
  loop_row(
      "for of 1,000 iterations, an iteration",
      [=](Inputs& in) -> std::function<Tensor()> {
        return [=, x = in({1024})] {
          return for_loop(count, [](const Tensor&, const Tensors& s) { return Tensors{s[0] * 1.0001 + 0.5}; },
                          {x})[0];
        };
      },
      count, "<= 0.2 in a kernel", 1e-5);
  // It goes on as long as its first element is below a number: after so many turns it is not.
  loop_row(
      "while of 1,000 iterations, an iteration",
      [=](Inputs& in) -> std::function<Tensor()> {
        return [=, x = in({1024}) * 0.0] {
          const auto first = [](const Tensor& s) { return s.slice({{.start = 0, .stop = 1}}).reshape({}); };
          return while_loop([=](const Tensors& s) { return first(s[0]) < static_cast<double>(count) - 0.5; },
                            [](const Tensors& s) { return Tensors{s[0] + 1.0}; }, {x})[0];
        };
      },
      count, "<= 0.2 in a kernel", 0);
  loop_row(
      "while of 1,000 iterations on a sum of its data, an iteration",
      [=](Inputs& in) -> std::function<Tensor()> {
        return [=, x = in({1024}) * 0.0] {
          const double end = 1024 * (static_cast<double>(count) - 0.5);
          return while_loop([=](const Tensors& s) { return sum(s[0]) < end; },
                            [](const Tensors& s) { return Tensors{s[0] + 1.0}; }, {x})[0];
        };
      },
      count, "<= 0.2 in a kernel", 0);
  // A gather keeps it from being a loop in a kernel of fused ops; its block goes on by itself all the same.
  loop_row(
      "for of 1,000 iterations of a gather, an iteration",
      [=](Inputs& in) -> std::function<Tensor()> {
        std::vector<std::int64_t> places;
        for (std::int64_t i = 0; i < 1024; ++i) places.push_back(i * 7 % 1024);
        return [=, x = in({1024}), order = from_vector(places, {1024}, {.engine = in.engine()})] {
          return for_loop(
              count, [=](const Tensor&, const Tensors& s) { return Tensors{gather(s[0], order)}; }, {x})[0];
        };
      },
      count, "<= 5", 0);
  // A turn is the product, what follows it, and the kernel that decides.
  const std::int64_t n = options_.small ? 32 : 256;
  loop_row(
      "for of 1,000 iterations of a product and more, an iteration",
      [=](Inputs& in) -> std::function<Tensor()> {
        return [=, x = in({n, n}), w = in({n, n}, {.scale = 1.0 / static_cast<double>(n)})] {
          return for_loop(count,
                          [=](const Tensor&, const Tensors& s) { return Tensors{tanh(matmul(s[0], w) + x)}; },
                          {x})[0];
        };
      },
      count, "", 1e-4,
      "the driver alone takes 3.9 us for a turn of one kernel, 4.6 us for one of two (H200); ");
}

/// What changed numbers cost above an unchanged launch of the same plan. The three are taken in turns, and
/// each is compared with the unchanged one beside it: recording takes far longer than what is looked for.
void Suite::scalars() {
  const std::int64_t count = options_.small ? 20 : 1000;
  const auto chain = [count](Tensor x, double first, double others) {
    for (std::int64_t i = 0; i < count; ++i) x = x + (i == 0 ? first : others);
    return x;
  };
  row("one scalar of 1,000 nodes changed, above unchanged", [&](const std::string& name) {
    Inputs in(engine_without_fusion());
    const Tensor x = in({1024});
    double first = 1, others = 2;
    const auto time = [&] {
      const auto begin = Clock::now();
      chain(x, first, others).eval();
      value_or_throw(in.engine()->synchronize());
      return microseconds_since(begin);
    };
    std::vector<double> unchanged, all;
    for (int i = 0; i < few_runs; ++i) time();
    const std::vector<double> one = in_rounds(time, [&](std::vector<double>& to) {
      const double same = time();
      ++first;
      const double with_one = time();
      first = ++others;
      const double with_all = time();
      unchanged.push_back(same);
      to.push_back(with_one - same);
      all.push_back(with_all - same);
    });
    say(name, median(one), "us", "<= 3.5",
        cat("unchanged ", median(unchanged), " us with recording; ", tenths(one)));
    say("all 1,000 scalars changed, above unchanged", median(all), "us", "<= 8", tenths(all));
  });
}

/// Kernels one behind another, each of which adds its number to 32 floats.
description::Builder chain_of_kernels(int count) {
  description::Builder b;
  op::DeviceCall add;
  add.name = add.entry = "add";
  add.code =
      op::KernelSource::from_text(R"(extern "C" __global__ void add(const float* x, float* y, float by) {
  y[threadIdx.x] = x[threadIdx.x] + by;
})",
                                  op::CodeForm::cuda, "add.cu");
  b.kernels().add_device_kernel("add", {add, {32, 1, 1}});
  b.graph("x", Dtype::f32, {32}).graph("y", Dtype::f32, {32});
  for (int i = 0; i < count; ++i) {
    const std::string from = i == 0 ? "x" : cat("t", i - 1), to = i + 1 == count ? "y" : cat("t", i);
    if (i + 1 != count) b.temporary(to, Dtype::f32, {32});
    b.kernel(cat("n", i), "add",
             {description::read("x", {.buffer = from}), description::write("y", {.buffer = to}),
              description::scalar("by", 1, Dtype::f32)});
  }
  return b;
}

void Suite::descriptions() {
  if (!engine::is_gpu_name(options_.device)) return;
  const int count = options_.small ? 20 : 1000;
  row("unchanged launch of a description of 1,000 kernels, host time", [&](const std::string& name) {
    const auto device = value_or_throw(engine::find_device(options_.device));
    device->settle();
    description::Builder b = chain_of_kernels(count);
    const auto graph = value_or_throw(description::HostGraph::create(
        *b.finish(), b.kernels(), {.device = value_or_throw(engine::make_graph_device(device))}));
    double number = 1;
    const auto time = [&](const std::function<void()>& change) {
      value_or_throw(device->synchronize());
      const auto begin = Clock::now();
      change();
      static_cast<void>(value_or_throw(graph->launch()));
      return microseconds_since(begin);
    };
    const auto nothing = [] {};
    const auto change = [&] {
      value_or_throw(graph->set_number("n0", "by", number += 1));
      if (graph->update().tier != description::Tier::hot) throw std::runtime_error("the number is not hot");
    };
    std::vector<double> unchanged;
    const std::vector<double> above = in_rounds([&] { return time(nothing); },
                                                [&](std::vector<double>& to) {
                                                  unchanged.push_back(time(nothing));
                                                  to.push_back(time(change) - unchanged.back());
                                                });
    float result = 0;
    std::memcpy(&result, value_or_throw(graph->content("y")).data(), sizeof result);
    say(name, median(unchanged), "us", "<= 6", tenths(unchanged));
    say("one number of a description of 1,000 kernels changed, above unchanged, host time", median(above),
        "us", "<= 3.5", tenths(above));
    check(name, std::abs(result - (number + count - 1)), 0);
  });
}

/// From a live context, with the cache of code as it is: cold when it is empty.
void Suite::first_result() {
  row("first result of a transformer block", [&](const std::string& name) {
    Inputs in(Engine::create(
        {.plans = {.wait = true}, .device = value_or_throw(engine::find_device(options_.device))}));
    const Tensor x = in({1, 64, 256});
    const auto p = block_parameters(in, 256);
    (x + 1.0).eval();
    value_or_throw(in.engine()->synchronize());
    const auto begin = Clock::now();
    const Tensor y = compile([&](const Tensor& a) { return block(p, a, 4); })(x);
    y.eval();
    value_or_throw(in.engine()->synchronize());
    const double seconds = microseconds_since(begin) * 1e-6;
    say(name, seconds, "s", "<= 0.8 cold, <= 0.1 warm");
    check(name, difference([&](Inputs& i) {
            const Tensor z = i({1, 64, 256});
            return block(block_parameters(i, 256), z, 4);
          }),
          1e-4);
  });
}

void Suite::soak() {
  const auto device = value_or_throw(engine::find_device(options_.device));
  CopyOnStream copy;
  if (options_.copies && engine::is_gpu_name(options_.device))
    copy = copy_of_driver();
  else if (options_.copies)
    copy = [](void* to, const void* from, std::size_t bytes, void*) { std::memcpy(to, from, bytes); };
  std::printf("%s\n", benchmarks::soak(device, copy, options_.soak).c_str());
}

void Suite::run() {
  if (options_.soak > 0) return soak();
  std::printf("| work | Tessera | target | note |\n| --- | --- | --- | --- |\n");
  first_result();
  chains();
  unfused();
  models();
  large();
  products();
  loops();
  scalars();
  descriptions();
}

Options parse(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::string* value = word == "--device"   ? &out.device
                         : word == "--filter" ? &out.filter
                         : word == "--json"   ? &out.json
                                              : nullptr;
    if (word == "--small")
      out.small = true;
    else if (word == "--serve")
      out.serves = true;
    else if (word == "--no-copies")
      out.copies = false;
    else if (word == "--soak" && i + 1 < argc)
      out.soak = std::atoi(argv[++i]);
    else if (value != nullptr && i + 1 < argc)
      *value = argv[++i];
    else
      throw std::runtime_error(
          "usage: tessera_bench_gpu [--device NAME] [--filter TEXT] [--small] [--json FILE] [--soak COUNT] "
          "[--no-copies] [--serve] [--quiet-core]");
  }
  return out;
}

int say_quiet_core() {
  const auto core = quiet_core();
  if (core) std::printf("%d\n", *core);
  return core ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::strcmp(argv[1], "--quiet-core") == 0) return say_quiet_core();
    const Options options = parse(argc, argv);
    if (options.serves)
      return compare::serve([&](const std::string& kind, std::span<const std::string> words) {
        return prepared_product(options, kind, words);
      });
    Suite suite(options);
    suite.run();
    return suite.failures() == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

// Matrix products and a convolution with constant weights: packed by Tessera against the plain call of
// oneDNN, and our own product against both. Rows of one table are measured in turns, so that their ratio
// holds on a busy machine.
//
//   tessera bench gemm [ROUNDS]
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "tessera/runtime/cpu/convolution.h"
#include "tessera/runtime/cpu/matmul.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

/// Runs the items of a job on two threads. The second spins for a while before it sleeps, as that of a pool
/// does.
class TwoThreads {
 public:
  TwoThreads() : second_([this] { serve(); }) {}
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;
  ~TwoThreads() {
    stops_ = true;
    begin_round();
    second_.join();
  }

  void run(std::int64_t items, const std::function<void(std::int64_t, kernel::Scratch&)>& item) {
    item_ = &item;
    items_ = items;
    next_ = 0;
    is_done_ = false;
    begin_round();
    work(first_scratch_);
    while (!is_done_) std::this_thread::yield();
  }

 private:
  void begin_round() {
    ++round_;
    round_.notify_one();
  }
  void work(kernel::Scratch& scratch) {
    for (std::int64_t i; (i = next_++) < items_;) (*item_)(i, scratch);
  }
  void serve() {
    kernel::Scratch scratch;
    for (std::int64_t seen = 0;;) {
      for (int spin = 0; spin < 20000 && round_ == seen; ++spin) {
      }
      round_.wait(seen);
      seen = round_;
      if (stops_) return;
      work(scratch);
      is_done_ = true;
    }
  }

  const std::function<void(std::int64_t, kernel::Scratch&)>* item_ = nullptr;
  std::int64_t items_ = 0;
  std::atomic<std::int64_t> next_ = 0, round_ = 0;
  std::atomic<bool> is_done_ = false, stops_ = false;
  kernel::Scratch first_scratch_;
  std::thread second_;
};

/// What a row's time is. The processor time of one thread does not count what other programs take.
enum class Clock : std::uint8_t { processor, wall };

double now(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// One way to compute, and the shortest time it took.
struct Row {
  const char* name;
  Clock clock;
  std::function<void()> run;
  double seconds = HUGE_VAL;
};

/// In turns; each turn runs every row for about a millisecond. Not longer than some seconds in all.
void measure(std::vector<Row>& rows, int rounds) {
  const double end = now(Clock::wall) + 5.0;
  for (int round = 0; round < rounds && (round < 2 || now(Clock::wall) < end); ++round)
    for (Row& row : rows) {
      row.run();
      const double begin = now(row.clock);
      int count = 0;
      double passed = 0;
      do {
        row.run();
        ++count;
        passed = now(row.clock) - begin;
      } while (passed < 1e-3);
      row.seconds = std::min(row.seconds, passed / count);
    }
}

void print(const char* title, double flops, std::vector<Row>& rows, int rounds) {
  measure(rows, rounds);
  for (const Row& row : rows)
    std::printf("%-18s %-20s %9.1f us %7.1f GFLOP/s %6.2f of the first row's time%s\n", title, row.name,
                row.seconds * 1e6, flops / row.seconds * 1e-9, row.seconds / rows[0].seconds,
                row.clock == Clock::wall ? " (wall)" : "");
  std::fflush(stdout);
}

std::vector<float> numbers(std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i * 7919 % 2000) * 1e-3f - 1.0f;
  return out;
}

void run_or_stop(const Result<void>& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().to_text().c_str());
  std::exit(1);
}

MatmulSpec dense(std::int64_t rows, std::int64_t columns, std::int64_t depth, WeightForm weights) {
  MatmulSpec out{.rows = rows, .columns = columns, .depth = depth};
  out.a = {0, depth, 1};
  out.b = {0, columns, 1};
  out.c = out.residual = {0, columns, 1};
  out.weights = weights;
  return out;
}

/// The plain call: one primitive for the whole product, weights as they are.
std::function<void()> plain_call(const MatmulSpec& spec, const float* a, const float* b, float* c) {
  const auto onednn = OneDnn::open();
  if (!onednn) return nullptr;
  const std::shared_ptr<const Primitive> primitive =
      value_or_throw((*onednn)->matmul({.a = {{spec.rows, spec.depth}, {spec.depth, 1}},
                                        .b = {{spec.depth, spec.columns}, {spec.columns, 1}},
                                        .c = {{spec.rows, spec.columns}, {spec.columns, 1}}}));
  const auto scratch = std::make_shared<kernel::Scratch>();
  return [=] {
    run_or_stop(primitive->run({.source = a, .weights = b, .destination = c},
                               scratch->reserve(primitive->scratch_bytes())));
  };
}

void matmul_table(std::int64_t rows, std::int64_t columns, std::int64_t depth, TwoThreads& two, int rounds) {
  const auto a = numbers(rows * depth), b = numbers(depth * columns);
  std::vector<float> c(static_cast<std::size_t>(rows * columns));
  const MatmulSpec spec = dense(rows, columns, depth, WeightForm::packed);
  const auto best = value_or_throw(Matmul::create(spec)),
             own = value_or_throw(Matmul::create(spec, ProductLibrary::blocked)),
             plain = value_or_throw(Matmul::create(dense(rows, columns, depth, WeightForm::plain)));
  const PackedMatrix packed = value_or_throw(best->pack(b.data())),
                     panels = value_or_throw(own->pack(b.data()));
  kernel::Scratch scratch;
  const auto job = [&](const Matmul& matmul, const PackedMatrix& weights) {
    return MatmulOperands{.a = a.data(),
                          .b = b.data(),
                          .packed = matmul.spec().weights == WeightForm::packed ? &weights : nullptr,
                          .c = c.data()};
  };
  const auto alone = [&](const Matmul& matmul, const PackedMatrix& weights) {
    return [&] { run_or_stop(matmul.run(job(matmul, weights), {0, matmul.items()}, scratch)); };
  };
  const auto shared = [&](const Matmul& matmul, const PackedMatrix& weights) {
    return [&] {
      two.run(matmul.items(), [&](std::int64_t i, kernel::Scratch& mine) {
        run_or_stop(matmul.run(job(matmul, weights), {i, i + 1}, mine));
      });
    };
  };
  std::vector<Row> table;
  if (auto call = plain_call(spec, a.data(), b.data(), c.data()))
    table.push_back({"oneDNN, plain call", Clock::processor, call});
  table.push_back({"packed", Clock::processor, alone(*best, packed)});
  table.push_back({"plain weights", Clock::processor, alone(*plain, packed)});
  table.push_back({"our own, packed", Clock::processor, alone(*own, panels)});
  table.push_back({"packed, 2 threads", Clock::wall, shared(*best, packed)});
  table.push_back({"our own, 2 threads", Clock::wall, shared(*own, panels)});
  char title[64];
  std::snprintf(title, sizeof title, "%dx%dx%d", static_cast<int>(rows), static_cast<int>(columns),
                static_cast<int>(depth));
  print(title, 2.0 * static_cast<double>(rows * columns) * static_cast<double>(depth), table, rounds);
}

void convolution_table(TwoThreads& two, int rounds) {
  ConvolutionSpec spec{.channels = 64, .filters = 64};
  spec.size = {56, 56};
  spec.window = {3, 3};
  spec.padding_low = spec.padding_high = {1, 1};
  spec.epilogue.activation = Activation::relu;
  const auto source = numbers(64 * 56 * 56), weights = numbers(64 * 64 * 9);
  std::vector<float> result(source.size());
  ConvolutionSpec fast = spec;
  fast.method = ConvolutionMethod::winograd;
  struct Way {
    const char *name, *shared_name;
    std::shared_ptr<const Convolution> convolution;
    PackedFilters filters = {};
  };
  Way ways[] = {
      {"oneDNN", "oneDNN, 2 threads", value_or_throw(Convolution::create(spec))},
      {"Winograd", "Winograd, 2 threads", value_or_throw(Convolution::create(fast))},
      {"our own", "our own, 2 threads", value_or_throw(Convolution::create(spec, ProductLibrary::blocked))}};
  kernel::Scratch scratch;
  std::vector<Row> table;
  for (Way& way : ways) {
    way.filters = value_or_throw(way.convolution->pack(weights.data()));
    const ConvolutionOperands operands{source.data(), &way.filters, result.data(), nullptr, nullptr};
    table.push_back({way.name, Clock::processor, [&way, &scratch, operands] {
                       run_or_stop(way.convolution->run(operands, {0, way.convolution->items()}, scratch));
                     }});
    table.push_back({way.shared_name, Clock::wall, [&way, &two, operands] {
                       two.run(way.convolution->items(), [&](std::int64_t i, kernel::Scratch& mine) {
                         run_or_stop(way.convolution->run(operands, {i, i + 1}, mine));
                       });
                     }});
  }
  print("conv 3x3 64x56x56", 2.0 * 64 * 64 * 9 * 56 * 56, table, rounds);
  for (const Way& way : ways)
    std::printf("%s: %s, %d items\n", way.name, way.convolution->implementation().c_str(),
                static_cast<int>(way.convolution->items()));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 100;
  TwoThreads two;
  for (const auto& s : {std::array<std::int64_t, 3>{64, 64, 64},
                        {256, 256, 256},
                        {1024, 1024, 1024},
                        {1, 768, 256},
                        {1, 3072, 768},
                        {8, 768, 768},
                        {128, 3072, 768}})
    matmul_table(s[0], s[1], s[2], two, rounds);
  convolution_table(two, rounds);
  return 0;
}

#include "tessera/engine/autotune.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "tessera/base/text.h"
#include "tessera/compile/pipeline.h"
#include "tessera/compile/tiling.h"
#include "tessera/compile/whole_calls.h"
#include "tessera/engine/tuning_cover.h"
#include "tessera/ir/structural_hash.h"
#include "tessera/op/catalogue.h"
#include "tessera/plan/known_sizes.h"
#include "tessera/runtime/cpu/machine_name.h"
#include "tessera/runtime/cpu/thread_pool.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

using Clock = std::chrono::steady_clock;

/// Predicted times that are this much above the best are close.
constexpr double close = 1.2;
/// A cover that is not clearly faster is not worth leaving what is predicted.
constexpr double clearly_faster = 0.97;
/// The same time, as far as can be measured.
constexpr double not_slower = 1.01;
constexpr std::size_t most_trials = 16, most_statements = 2000;
/// Places in one tile, and tilings that are looked at.
constexpr std::size_t most_cuts_of_tile = 12, most_tilings = 64;
constexpr std::int64_t open_size = 64, most_bytes = std::int64_t{1} << 28;
/// Enough launches for better code to be asked for, too.
constexpr int warm_launches = 10, most_rounds = 200, fewest_rounds = 8;
constexpr auto time_for_pair = std::chrono::milliseconds(40);

/// Where tiles of a cover could end earlier: chains of a library anywhere, and so kernels; of long ones some
/// places.
std::vector<TileCut> cuts_of(const compiler::TiledFunction& tiled) {
  std::vector<TileCut> out;
  for (const compiler::TiledPart& part : tiled.parts) {
    const auto& statements = part.statements;
    const std::size_t step = statements.size() / (most_cuts_of_tile + 1) + 1;
    for (std::size_t k = step; k < statements.size(); k += step) {
      const auto at = statements.begin() + static_cast<std::ptrdiff_t>(k);
      out.push_back({{statements.begin(), at}, {at, statements.end()}});
    }
  }
  return out;
}

/// A plan with memory for a launch.
class Runner {
 public:
  static Result<Runner> create(const plan::PlanRef& plan, runtime::Device& device) {
    Runner out;
    out.executable_ = TESSERA_TRY(device.load(plan, runtime::MemoryPool::create()));
    const std::vector<std::int64_t> sizes(plan->dims.size(), open_size);
    const plan::KnownSizes known{plan->dims, sizes};
    std::vector<op::Layout> layouts;
    for (const plan::ValueId input : plan->inputs) {
      const op::ValueType& type = plan->values[input].type;
      op::Extents shape;
      for (const op::Dim& dim : type.shape) shape.push_back(TESSERA_TRY(known.of(dim)));
      out.inputs_.push_back(TESSERA_TRY(out.add(type.dtype, std::move(shape))));
      layouts.push_back(out.memory_.back().array().layout);
    }
    TESSERA_TRY(out.executable_->prepare(sizes, layouts));
    for (const plan::OutputBuffer& buffer : out.executable_->binding().buffers)
      out.outputs_.push_back(TESSERA_TRY(out.add(op::Dtype::u8, {buffer.bytes})));
    out.parameters_.assign(plan->parameters.size(), 0);
    for (int i = 0; i < warm_launches; ++i) TESSERA_TRY(out.nanoseconds());
    return out;
  }

  /// Of one launch.
  Result<double> nanoseconds() {
    const Clock::time_point begin = Clock::now();
    TESSERA_TRY(executable_->run({.inputs = inputs_, .parameters = parameters_, .outputs = outputs_}));
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }

 private:
  Result<std::byte*> add(op::Dtype dtype, op::Extents shape) {
    memory_.push_back(TESSERA_TRY(op::HostTensor::allocate(dtype, std::move(shape))));
    bytes_ += static_cast<std::int64_t>(memory_.back().byte_size());
    if (bytes_ > most_bytes)
      return Error(ErrorCode::limit, cat("a launch takes more than ", most_bytes, " bytes"));
    if (dtype == op::Dtype::f32)
      for (float& value : memory_.back().values<float>()) value = 0.5f;
    return memory_.back().array().data;
  }

  std::unique_ptr<runtime::Executable> executable_;
  std::vector<op::HostTensor> memory_;
  std::vector<std::byte*> inputs_, outputs_;
  std::vector<std::uint64_t> parameters_;
  std::int64_t bytes_ = 0;
};

/// The least times of two, in turn: what else the machine does strikes both.
Result<std::pair<double, double>> least_times(Runner& a, Runner& b) {
  std::pair<double, double> out{1e18, 1e18};
  const Clock::time_point end = Clock::now() + time_for_pair;
  for (int round = 0; round < most_rounds && (round < fewest_rounds || Clock::now() < end); ++round) {
    out.first = std::min(out.first, TESSERA_TRY(a.nanoseconds()));
    out.second = std::min(out.second, TESSERA_TRY(b.nanoseconds()));
  }
  return out;
}

/// Why a function cannot be run to measure it; empty if it can.
std::string why_not(const ir::Function& function, const plan::Plan& plan, runtime::Device& device) {
  if (device.memory_space() != nullptr || device.target().sources.empty())
    return cat("nothing is measured on ", device.name());
  if (function.body.size() > most_statements)
    return cat("there are ", function.body.size(), " statements, more than ", most_statements);
  for (const plan::Step& step : plan.steps) {
    if (step.kind == plan::StepKind::function) return cat("there is a region ('", step.name(), "')");
    if (step.card != nullptr && !op::is_in_catalogue(*step.card))
      return cat("'", printable(step.name()), "' is an op of the caller's own");
  }
  return {};
}

class Tuner {
 public:
  Tuner(const ir::Function& function, runtime::Device& device) : function_(function), device_(device) {}

  /// What was measured before an error is forgotten.
  Tuning run() {
    if (const auto done = try_all(); !done) out_ = {.why_not = done.error().message()};
    return std::move(out_);
  }

 private:
  /// A cut, and what the tiler makes of it.
  struct Alternative {
    TileCut cut;
    double cost = 0;
  };

  Result<void> try_all() {
    best_ = TESSERA_TRY(compiler::tile(function_, device_.target()));
    out_.predicted_ns = best_.tiling.cost;
    const plan::PlanRef plan = TESSERA_TRY(plan_of(function_, best_));
    out_.why_not = why_not(function_, *plan, device_);
    if (!out_.why_not.empty()) return {};
    for (const Alternative& alternative : TESSERA_TRY(what_is_close())) {
      if (out_.trials.size() == most_trials) break;
      TESSERA_TRY(try_cut(alternative.cut));
    }
    return kept_.empty() ? Result<void>() : keep_if_all_is_faster(plan);
  }

  /// The closest first.
  Result<std::vector<Alternative>> what_is_close() {
    std::vector<Alternative> out;
    std::size_t tilings = 0;
    for (const TileCut& cut : cuts_of(best_)) {
      if (++tilings > most_tilings) break;
      const auto tiled = TESSERA_TRY(compiler::tile(function_, with_cuts(device_.target(), {cut})));
      if (is_close(tiled)) out.push_back({cut, tiled.tiling.cost});
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Alternative& a, const Alternative& b) { return a.cost < b.cost; });
    return out;
  }

  [[nodiscard]] bool is_close(const compiler::TiledFunction& tiled) const {
    return tiled.tiling.cost <= close * out_.predicted_ns && !where_they_differ(best_, tiled).empty();
  }

  Result<void> try_cut(const TileCut& cut) {
    std::vector<TileCut> cuts = kept_;
    cuts.push_back(cut);
    compiler::TiledFunction tiled = TESSERA_TRY(compiler::tile(function_, with_cuts(device_.target(), cuts)));
    // What was kept before may have made this one dearer, or another that was tried.
    if (!is_close(tiled) || !tried_.insert(steps_of(tiled)).second) return {};
    const auto statements = where_they_differ(best_, tiled);
    const auto [time, best_time] =
        TESSERA_TRY(least_times_of(TESSERA_TRY(plan_of_part(function_, tiled, statements)),
                                   TESSERA_TRY(plan_of_part(function_, best_, statements))));
    const bool is_kept = time < clearly_faster * best_time;
    out_.trials.push_back({cut, tiled.tiling.cost, time, best_time, is_kept});
    if (!is_kept) return {};
    kept_ = std::move(cuts);
    best_ = std::move(tiled);
    return {};
  }

  /// What is faster alone may stand in the way of others: of chains over rows, of steps side by side.
  Result<void> keep_if_all_is_faster(const plan::PlanRef& predicted) {
    const auto [time, predicted_time] =
        TESSERA_TRY(least_times_of(TESSERA_TRY(plan_of(function_, best_)), predicted));
    if (time <= not_slower * predicted_time) return {};
    for (TuningTrial& trial : out_.trials) trial.is_kept = false;
    return {};
  }

  Result<std::pair<double, double>> least_times_of(const plan::PlanRef& a, const plan::PlanRef& b) {
    Runner first = TESSERA_TRY(Runner::create(a, device_)), second = TESSERA_TRY(Runner::create(b, device_));
    device_.settle();
    return least_times(first, second);
  }

  static std::vector<std::vector<std::uint32_t>> steps_of(const compiler::TiledFunction& tiled) {
    std::vector<std::vector<std::uint32_t>> out;
    for (const compiler::TiledPart& part : tiled.parts) out.push_back(part.statements);
    std::sort(out.begin(), out.end());
    return out;
  }

  const ir::Function& function_;
  runtime::Device& device_;
  Tuning out_;
  compiler::TiledFunction best_;
  std::vector<TileCut> kept_;
  std::set<std::vector<std::vector<std::uint32_t>>> tried_;
};

/// A hash is enough: a cut that was meant for another function costs time, never a result.
std::string key_of(const ir::Function& function, const runtime::Device& device) {
  return cat("tuning for ", device.name(), " of ", runtime::cpu::machine_key(runtime::cpu::thread_count()),
             ": ", ir::structural_hash(function, ir::CompareMode::strict).to_hex());
}

Tuning remembered_or_new(const ir::Function& function, runtime::Device& device,
                         const runtime::CodeStore& store) {
  const std::string key = key_of(function, device);
  if (const auto bytes = store.load(key)) {
    auto known =
        parse_tuning({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, function.body.size());
    if (known) {
      known->is_remembered = true;
      return *std::move(known);
    }
  }
  Tuning made = Tuner(function, device).run();
  const std::string text = to_text(made);
  // What cannot be kept is measured again the next time.
  if (made.why_not.empty()) (void)store.save(key, std::as_bytes(std::span(text.data(), text.size())));
  return made;
}

}  // namespace

Tuned tessera::engine::untuned(ir::FunctionRef function, const runtime::Device& device) {
  return {.function = std::move(function), .target = device.target(), .tuning = {}};
}

Result<Tuned> tessera::engine::autotune(const ir::FunctionRef& function, runtime::Device& device,
                                        const compiler::PipelineOptions& pipeline,
                                        const runtime::CodeStore& store) {
  compiler::PipelineOptions passes = pipeline;
  const bool may_round = passes.passes.floats != compiler::FloatRules::exact;
  if (!passes.passes.takes && !device.target().sources.empty() && may_round)
    passes.passes.takes = compiler::stays_whole;
  Tuned out;
  out.function = TESSERA_TRY(compiler::run_passes(function, passes)).function;
  out.tuning = remembered_or_new(*out.function, device, store);
  std::vector<TileCut> cuts;
  for (const TuningTrial& trial : out.tuning.trials)
    if (trial.is_kept) cuts.push_back(trial.cut);
  out.target = with_cuts(device.target(), cuts);
  return out;
}

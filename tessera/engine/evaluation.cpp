#include "tessera/engine/evaluation.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "tessera/base/text.h"
#include "tessera/engine/record.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

using Clock = std::chrono::steady_clock;

/// Siblings from which on a plan for one more set of sizes has to be earned.
constexpr std::size_t max_free_siblings = 4;
/// Instances a set of size rules is learned from.
constexpr std::size_t max_instances = 4;
/// Plans that may wait to be made beside the program. What is hot while there are so many asks again.
constexpr std::size_t max_waiting_plans = 64;
/// A plan is judged after this many runs, and dropped if op by op was faster than it by a quarter.
constexpr std::uint32_t runs_to_judge = 16;

std::uint64_t nanoseconds_since(Clock::time_point began) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began).count());
}

/// Of words and sizes together.
std::uint64_t exact_hash(const PlanKey& key) {
  std::uint64_t out = key.hash;
  for (const std::int64_t size : std::span<const std::int64_t>(key.sizes))
    out = (out ^ static_cast<std::uint64_t>(size)) * 0x9fb21c651e98df25ULL;
  return out ^ out >> 31;
}

/// Whether an instance, with its positions behind, has the sizes of a key.
bool has_extents(const std::vector<std::int64_t>& instance, const PlanKey& key) {
  const auto extents = key.extents();
  return instance.size() == key.sizes.size() && std::equal(extents.begin(), extents.end(), instance.begin());
}

}  // namespace

/// REQUIRES the lock.
void Evaluation::take_memory() {
  if (engine_.idle_memory_.empty()) {
    memory_ = std::make_unique<EvaluationMemory>();
  } else {
    memory_ = std::move(engine_.idle_memory_.back());
    engine_.idle_memory_.pop_back();
  }
}

Evaluation::~Evaluation() {
  if (memory_ == nullptr) return;
  for (Node* node : memory_->given_up) release(node);
  memory_->given_up.clear();
  memory_->dropped.clear();
  memory_->needed.others.clear();
  const std::lock_guard lock(engine_.mutex_);
  if (engine_.idle_memory_.size() < Engine::max_idle_memory)
    engine_.idle_memory_.push_back(std::move(memory_));
}

Result<void> Evaluation::run(std::span<Node* const> asked) {
  ClaimGuard guard(*this);
  {
    std::unique_lock lock(engine_.mutex_);
    take_memory();
    do claim(asked);
    while (wait_for_others(lock));
    divide();
    if (memory_->needed.size() == 0) return {};
  }
  TESSERA_TRY(compute());
  reserve_for_publishing();
  const std::lock_guard lock(engine_.mutex_);
  publish();
  guard.settle();
  return {};
}

// ---- what is needed

Evaluation::ClaimGuard::~ClaimGuard() {
  if (is_settled_) return;
  const std::lock_guard lock(evaluation_.engine_.mutex_);
  settle();
}

void Evaluation::ClaimGuard::settle() noexcept {
  is_settled_ = true;
  if (evaluation_.memory_ == nullptr) return;
  evaluation_.unclaim();
  for (Part* part : evaluation_.parts()) {
    if (part->way == Part::Way::compiled) evaluation_.engine_.drop_plan(part->entry);
    if (part->instance != nullptr) evaluation_.give_back(*part);
  }
  evaluation_.engine_.evaluated_.notify_all();
}

void Evaluation::claim(std::span<Node* const> asked) {
  Needed& needed = memory_->needed;
  try {
    needed.collect(asked, engine_.next_epoch());
  } catch (...) {
    needed.clear();  // nothing is claimed
    throw;
  }
}

/// REQUIRES the lock. Others may claim the nodes from now on, so they are forgotten here.
void Evaluation::unclaim() {
  memory_->needed.unclaim();
  memory_->needed.clear();
}

/// True if something was waited for: what is needed may be different now.
bool Evaluation::wait_for_others(std::unique_lock<std::mutex>& lock) {
  if (memory_->needed.others.empty()) return false;
  memory_->given_up.reserve(memory_->given_up.size() + memory_->needed.others.size());
  std::vector<NodeRef> others = std::move(memory_->needed.others);
  // Our own claims are given back first: the others may fail, and then somebody must be free to take over.
  unclaim();
  engine_.evaluated_.notify_all();
  engine_.evaluated_.wait(lock, [&] {
    return std::none_of(others.begin(), others.end(),
                        [](const NodeRef& node) { return node->claimed && !node->is_stored(); });
  });
  for (NodeRef& other : others) memory_->given_up.push_back(other.detach());
  return true;
}

// ---- how it is run

Evaluation::Part& Evaluation::add_part() {
  if (memory_->part_count == memory_->parts.size()) memory_->parts.push_back(std::make_unique<Part>());
  Part& part = *memory_->parts[memory_->part_count++];
  part.steps.clear();
  part.has_key = false;
  part.way = Part::Way::streamed;
  part.entry = nullptr;
  part.instance = nullptr;
  part.replaced.clear();
  part.report.clear();
  return part;
}

void Evaluation::divide() {
  memory_->part_count = 0;
  memory_->computed.clear();
  Needed& needed = memory_->needed;
  if (needed.size() == 0) return;
  engine_.plans_.tick();
  const auto& components = needed.components();
  memory_->local.clear();
  if (components.empty()) {
    choose(add_part());
    return;
  }
  memory_->local.resize(needed.size());
  for (const auto& steps : components) {
    for (std::uint32_t i = 0; i < steps.size(); ++i) memory_->local[steps[i]] = i;
    Part& part = add_part();
    part.steps = steps;
    choose(part);
  }
}

void Evaluation::choose(Part& part) {
  part.report.ops = part.steps.empty() ? memory_->needed.size() : part.steps.size();
  const PlanOptions& options = engine_.plans_.options();
  if (!options.enabled || options.max_entries == 0) {
    part.report.cause = "plans are off";
    return;
  }
  if (part.report.ops > options.max_ops) {
    part.report.cause = cat("more than ", options.max_ops, " ops");
    return;
  }
  part.has_key = part.key.write(memory_->needed, part.steps, memory_->local, engine_.functions_);
  if (!part.has_key) return;
  part.key.hash &= options.hash_mask;
  part.entry = engine_.plans_.find(part.key, part.symbols);
  if (part.entry == nullptr) return choose_without_plan(part);
  switch (part.entry->state) {
    case PlanEntry::State::ready:
      return take_plan(part);
    case PlanEntry::State::compiling:
      part.report.cause = "its plan is being made";
      if (options.wait) part.way = Part::Way::awaited;
      return;
    case PlanEntry::State::failed:
      part.report.cause = cat("it has no plan: ", part.entry->error);
      return;
    case PlanEntry::State::demoted:
      part.report.cause = "its plan was slower than op by op";
      if (++part.entry->streamed_since < PlanEntry::retry_after) return;
      part.entry->state = PlanEntry::State::ready;  // times change; it gets another chance
      part.entry->planned_ns = part.entry->timed_runs = 0;
      return;
  }
}

/// REQUIRES that it is ready.
void Evaluation::take_plan(Part& part) {
  part.way = Part::Way::planned;
  if (part.entry->idle.empty()) {
    part.report.tier = Tier::cold;
    part.report.cause = part.entry->runs == 0 ? "first launch of its plan" : "another instance of its plan";
    return;
  }
  part.instance = std::move(part.entry->idle.back());
  part.entry->idle.pop_back();
}

/// REQUIRES the lock. An instance goes back to its plan, if that is still good for others.
void Evaluation::give_back(Part& part) noexcept {
  try {
    if (part.entry->state == PlanEntry::State::ready) part.entry->idle.push_back(std::move(part.instance));
  } catch (const std::bad_alloc&) {  // the next evaluation makes another
  }
  part.instance = nullptr;
}

void Evaluation::choose_without_plan(Part& part) {
  const PlanOptions& options = engine_.plans_.options();
  const auto siblings = engine_.plans_.with_words(part.key);
  const bool can_join = options.joins_sizes && !siblings.empty() && siblings.size() < max_free_siblings &&
                        std::none_of(siblings.begin(), siblings.end(),
                                     [](const PlanEntryRef& sibling) { return sibling->stands_alone; });
  Heat& heat = engine_.plans_.heat(siblings.empty() ? part.key.hash : exact_hash(part.key));
  part.report.missed = Outline::of(memory_->needed, part.steps, memory_->local, part.key);
  const bool few_siblings = siblings.size() < max_free_siblings;
  part.earned = heat.count >= options.threshold || thread_state.plan_at_once > 0 ||
                (part.key.plan_at_once && few_siblings);
  part.has_just_become_hot = siblings.empty() && heat.count == options.threshold;
  if ((part.earned || can_join) && !waits_for_plan(part) && engine_.queue_.waiting() >= max_waiting_plans) {
    part.report.cause = cat("it is hot, but ", max_waiting_plans, " plans are waiting to be made");
    return;
  }
  if ((part.earned || can_join) &&
      begin_plan(part, options.joins_sizes ? siblings : std::vector<PlanEntryRef>())) {
    part.entry->streamed_ns = heat.streamed_ns;
    if (!siblings.empty())
      part.report.cause =
          first_difference(siblings.back()->outline, siblings.back()->rules, part.report.missed);
    return;
  }
  part.report.cause = cat("seen ", heat.count, " of ", options.threshold, " times",
                          siblings.empty() ? "" : " with these sizes");
  if (siblings.empty() && heat.count + 1 == options.threshold) engine_.plans_.remember(part.key);
}

/// A new entry, which is known from now on, so that nobody makes the same plan again. Its sizes and positions
/// may change as those of the evaluation before did, and of all its siblings, if rules can be found for them.
/// False, and there is none, if another evaluation may tell more.
bool Evaluation::begin_plan(Part& part, const std::vector<PlanEntryRef>& siblings) {
  auto entry = std::make_shared<PlanEntry>();
  entry->words.assign(part.key.words.begin(), part.key.words.end());
  const std::size_t positions = part.key.position_count;
  const std::vector<std::int64_t> sizes(part.key.sizes.begin(), part.key.sizes.end());
  entry->instances = {sizes};
  auto rules = SizeRules::learn(entry->instances, positions);
  const auto join = [&](std::span<const std::vector<std::int64_t>> instances) {
    auto together = entry->instances;
    for (const auto& instance : instances)
      if (together.size() < max_instances) together.push_back(instance);
    auto common = SizeRules::learn(together, positions);
    if (!common) return false;
    rules = std::move(common);
    entry->instances = std::move(together);
    return true;
  };
  const PlanOptions& options = engine_.plans_.options();
  if (options.joins_sizes)
    if (const auto before = engine_.plans_.take_remembered(part.key); before && *before != sizes)
      if (!join({&*before, 1}) && part.has_just_become_hot) {
        // A size was 0 or 1, which is no symbol: the next evaluation may tell more.
        engine_.plans_.remember(part.key);
        return false;
      }
  for (auto sibling = siblings.rbegin(); sibling != siblings.rend(); ++sibling)
    if (join((*sibling)->instances)) part.replaced.push_back(*sibling);
  entry->rules = std::move(*rules);
  entry->outline = part.report.missed;
  engine_.plans_.add(part.key.hash, entry);
  engine_.make_room_for_plans(memory_->dropped);
  part.entry = std::move(entry);
  part.way = Part::Way::compiled;
  return true;
}

// ---- computing

std::span<Evaluation::Part* const> Evaluation::parts() const {
  static_assert(sizeof(std::unique_ptr<Part>) == sizeof(Part*));
  return {reinterpret_cast<Part* const*>(memory_->parts.data()), memory_->part_count};
}

Result<void> Evaluation::compute() {
  if (const ProfilingLevel level = engine_.profiler_.level(); level != ProfilingLevel::none)
    times_ = std::make_unique<EvaluationTimes>(EvaluationTimes{.level = level, .begin = Clock::now()});
  make_plans();
  for (Part* part : parts()) {
    const auto began = Clock::now();
    TESSERA_TRY(compute(*part));
    part->report.nanoseconds += nanoseconds_since(began);
  }
  if (times_ == nullptr) return {};
  TESSERA_TRY(engine_.device_->synchronize());  // what was launched is part of it
  times_->end = Clock::now();
  engine_.profiler_.add(*times_);
  return {};
}

std::vector<runtime::TimedStep>* Evaluation::step_times() {
  step_times_.clear();
  return times_ != nullptr && times_->wants_kernels() ? &step_times_ : nullptr;
}

/// Without a plan the steps are those that are needed.
void Evaluation::keep_times(const Part& part, const plan::Plan* plan) {
  if (step_times_.empty()) return;
  const std::vector<std::string> blocks = engine_.block_names();
  const SourceLookup sources(memory_->needed, part.steps, blocks);
  for (const runtime::TimedStep& time : step_times_)
    times_->kernels.push_back({plan != nullptr ? sources.of_step(plan->steps[time.step])
                                               : sources.of_node(memory_->needed.node(time.step)),
                               time});
}

Result<void> Evaluation::compute(Part& part) {
  if (part.way != Part::Way::planned) return stream(part);
  const std::size_t before = memory_->computed.size();
  auto done = run_plan(part);
  if (done) return {};
  // Op by op gives the same error if the program is wrong, and a result if only the plan is.
  memory_->computed.resize(before);
  TESSERA_TRY(stream(part));
  part.report.tier = Tier::streamed;
  part.report.cause = cat("its plan failed: ", done.error().message());
  if (done.error().code() == ErrorCode::memory) return {};  // there may be more the next time
  const std::lock_guard lock(engine_.mutex_);
  part.entry->state = PlanEntry::State::failed;
  part.entry->error = done.error().message();
  return {};
}

Result<void> Evaluation::stream(Part& part) {
  StreamedRun run(*engine_.device_, *engine_.pool_, memory_->needed);
  const RunFigures figures = TESSERA_TRY(run.run(part.steps, memory_->computed, step_times()));
  keep_times(part, nullptr);
  part.report.kernels = figures.kernels;
  part.report.views = figures.views;
  return {};
}

Result<void> Evaluation::run_plan(Part& part) {
  auto instance = std::move(part.instance);
  if (instance == nullptr)
    instance = TESSERA_TRY(PlanInstance::load(part.entry->plan, *engine_.device_, engine_.pool_));
  LaunchOutcome outcome;
  const bool says_cause = part.report.tier != Tier::cold;
  if (says_cause) outcome.cause.swap(part.report.cause);  // its memory is used again
  outcome.cause.clear();
  auto done = run_planned(*part.entry, *instance, memory_->needed, part.steps, part.key, part.symbols,
                          *engine_.pool_, memory_->computed, outcome,
                          {.times = step_times(), .keeps_copies = !engine_.options_.deterministic});
  if (done || (is_of_data(done.error()) && instance->is_prepared_for(part.key.extents())))
    part.instance = std::move(instance);
  TESSERA_TRY(std::move(done));
  keep_times(part, part.entry->plan.get());
  if (says_cause) {
    part.report.tier = outcome.tier;
    part.report.cause.swap(outcome.cause);
  }
  if (!outcome.driven.empty()) part.report.driven.assign(outcome.driven);
  part.report.kernels = outcome.kernels;
  part.report.views = outcome.views;
  return {};
}

/// All of ours before any of others is waited for: two evaluations cannot wait for each other.
void Evaluation::make_plans() {
  for (Part* part : parts()) {
    if (part->way != Part::Way::compiled) continue;
    const auto began = Clock::now();
    try_to_make_plan(*part);
    part->report.nanoseconds = nanoseconds_since(began);
  }
  for (Part* part : parts())
    if (part->way == Part::Way::awaited) await_plan(*part);
}

/// Another evaluation makes it.
void Evaluation::await_plan(Part& part) {
  std::unique_lock lock(engine_.mutex_);
  engine_.evaluated_.wait(lock, [&] { return part.entry->state != PlanEntry::State::compiling; });
  part.way = Part::Way::streamed;
  if (part.entry->state == PlanEntry::State::ready) take_plan(part);
}

/// Without memory for it there is no plan this time.
void Evaluation::try_to_make_plan(Part& part) {
  try {
    make_plan(part);
  } catch (const std::bad_alloc&) {
    engine_.forget_plan(part.entry);
    part.way = Part::Way::streamed;
  }
}

/// The ops do not allow the sizes to change together: the plan is for these alone, if that is earned.
/// Positions may still move.
void Evaluation::leave_alone(Part& part) {
  const std::lock_guard lock(engine_.mutex_);
  for (const PlanEntryRef& sibling : part.replaced) sibling->stands_alone = true;
  part.replaced.clear();
  if (!part.earned) {
    engine_.drop_plan(part.entry);
    part.entry = nullptr;
    return;
  }
  part.entry->stands_alone = true;
  std::erase_if(part.entry->instances,
                [&](const auto& instance) { return !has_extents(instance, part.key); });
  part.entry->rules = *SizeRules::learn(part.entry->instances, part.key.position_count);
}

/// Else it is made beside the program.
bool Evaluation::waits_for_plan(const Part& part) const {
  return engine_.plans_.options().wait || thread_state.plan_at_once > 0 || part.key.plan_at_once;
}

/// Makes the plan now, or lets it be made beside the program and streams meanwhile.
void Evaluation::make_plan(Part& part) {
  part.way = Part::Way::streamed;
  // Without joined sizes, what is computed must not depend on what was evaluated before.
  const StoredSlices inputs =
      engine_.plans_.options().joins_sizes ? StoredSlices::by_rules : StoredSlices::all;
  auto lifted = lift(memory_->needed, part.steps, part.key, part.entry->rules, inputs);
  if (!lifted && part.entry->rules.symbol_count() > 0) leave_alone(part);
  if (part.entry == nullptr) return;
  if (!lifted) lifted = lift(memory_->needed, part.steps, part.key, part.entry->rules, inputs);
  if (!lifted) {
    const std::lock_guard lock(engine_.mutex_);
    part.entry->state = PlanEntry::State::failed;
    part.entry->error = lifted.error().message();
    engine_.evaluated_.notify_all();
    return;
  }
  if (!lifted->moved.empty()) {
    const std::lock_guard lock(engine_.mutex_);
    for (const std::uint32_t position : lifted->moved)
      part.entry->rules.let_move(part.key.extents().size() + position);
  }
  Engine::PlanJob job{part.entry, *std::move(lifted), std::move(part.replaced)};
  if (!waits_for_plan(part)) {
    auto shared = std::make_shared<Engine::PlanJob>(std::move(job));
    if (engine_.queue_.push([&engine = engine_, shared] { engine.make_plan(*shared); })) {
      part.report.cause = "its plan is being made";
      return;
    }
    job = std::move(*shared);
  }
  engine_.make_plan(job);
  const std::lock_guard lock(engine_.mutex_);
  if (part.entry->state != PlanEntry::State::ready || !part.entry->rules.match(part.key.sizes, part.symbols))
    return;
  part.way = Part::Way::planned;
  part.report.tier = Tier::cold;
  if (part.report.cause.empty()) part.report.cause = "first plan of this structure";
}

// ---- storing

/// What publishing needs is allocated before anything is stored: it must not fail halfway.
void Evaluation::reserve_for_publishing() {
  std::size_t inputs = memory_->given_up.size();
  for (const Computed& computed : memory_->computed) inputs += computed.node->input_count;
  memory_->given_up.reserve(inputs);
}

void Evaluation::publish() {
  for (Computed& computed : memory_->computed) store(computed);
  // Inputs are dropped after everything is stored.
  for (const Computed& computed : memory_->computed) {
    Node& node = *computed.node;
    const bool watched = std::any_of(engine_.watched_.begin(), engine_.watched_.end(),
                                     [&](Component* c) { return c->root() == node.component->root(); });
    // A leaf of gradients ends the way back; what it was made from is not needed.
    const bool way_back = node.is(Node::tracks_gradient) && !node.is(Node::needs_gradient);
    if (!way_back && !watched) take_inputs(node, memory_->given_up);
  }
  try {
    report();
  } catch (const std::exception&) {
    // Values count, the report on them may be lost.
  }
}

void Evaluation::report() {
  for (Part* part : parts()) learn_from(*part);
  ++engine_.statistics_.evaluations;
  engine_.report_.number = engine_.statistics_.evaluations;
  engine_.report_.components.resize(parts().size());
  for (std::size_t i = 0; i < parts().size(); ++i) engine_.report_.components[i].swap(parts()[i]->report);
  engine_.log_report();
}

void Evaluation::store(Computed& computed) {
  Node& node = *computed.node;
  if (!computed.results.empty()) node.more().stored_results = std::move(computed.results);
  node.storage.store(computed.value.release(), std::memory_order_release);
}

/// Figures, times, and the instance goes back to its plan.
void Evaluation::learn_from(Part& part) {
  ComponentReport& report = part.report;
  EngineStatistics& statistics = engine_.statistics_;
  statistics.kernels += report.kernels;
  statistics.views += report.views;
  ++statistics.tiers[static_cast<std::size_t>(report.tier)];
  if (part.instance == nullptr) {
    if (part.has_key) engine_.plans_.streamed(part.key.hash, report.nanoseconds);
    return;
  }
  PlanEntry& entry = *part.entry;
  if (entry.state != PlanEntry::State::ready) return;
  ++entry.runs;
  const bool comparable = report.tier < Tier::cold && has_extents(entry.instances[0], part.key);
  if (comparable && entry.timed_runs < runs_to_judge) {
    entry.planned_ns =
        entry.timed_runs == 0 ? report.nanoseconds : std::min(entry.planned_ns, report.nanoseconds);
    if (++entry.timed_runs == runs_to_judge && entry.streamed_ns > 0 &&
        entry.planned_ns > entry.streamed_ns + entry.streamed_ns / 4) {
      entry.state = PlanEntry::State::demoted;
      entry.streamed_since = 0;
      ++statistics.demotions;
      report.cause +=
          cat(report.cause.empty() ? "" : "; ", "the plan is slower than op by op and is demoted");
    }
  }
  entry.idle.push_back(std::move(part.instance));
}

#include "tessera/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

#include "tessera/base/environment.h"
#include "tessera/base/forked_child.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"
#include "tessera/compile/whole_calls.h"
#include "tessera/engine/autotune.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/evaluation.h"
#include "tessera/engine/record.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

PlanOptions plan_options(const EngineOptions& options) {
  PlanOptions out = options.plans;
  if (!options.deterministic) return out;
  out.threshold = 1;
  out.wait = true;
  out.joins_sizes = false;
  return out;
}

/// Once: engines come and go.
void complain_of_log(std::string_view log) {
  static std::atomic<bool> is_said{false};
  if (is_said.exchange(true)) return;
  std::fprintf(stderr, "tessera: TESSERA_LOG: '%s' is nothing to log, expected 'plan'\n",
               printable(shortened(log, 40)).c_str());
}

/// How the default engine is made.
struct Default {
  std::mutex mutex;
  EngineOptions options;
  bool is_made = false;
};

Default& the_default() {
  static auto* only = new Default;  // never destroyed, as the engine
  return *only;
}

}  // namespace

Engine::Engine(EngineOptions options)
    : options_(std::move(options)),
      device_(options_.device != nullptr ? options_.device : default_device()),
      pool_(runtime::MemoryPool::create(options_.allocator, device_->memory_space())),
      random_{options_.seed, 0},
      plans_(plan_options(options_)) {
  pool_->set_limit(options_.memory_limit);
  compiler::PassOptions& passes = options_.compile.pipeline.passes;
  const bool is_exact = passes.floats == compiler::FloatRules::exact;
  if (is_exact && !passes.takes && !device_->target().sources.empty())
    passes.takes = compiler::stays_whole_unless_costly;
  end_behind_openings();
  if (options_.deterministic) device_->settle();  // what computes must not depend on when it is there
  idle_memory_.reserve(max_idle_memory);          // destructors give memory back here and must not fail
  const char* log = environment("TESSERA_LOG");
  log_plans_ = log != nullptr && std::string_view(log) == "plan";
  if (log != nullptr && *log != '\0' && !log_plans_) complain_of_log(log);
}

Engine::~Engine() { queue_.stop(); }

std::shared_ptr<Engine> Engine::create(EngineOptions options) {
  check_no_forked_child();
  note_forks();
  return std::shared_ptr<Engine>(new Engine(std::move(options)), [](Engine* engine) {
    if (!is_forked_child()) delete engine;
  });
}

const std::shared_ptr<Engine>& Engine::default_engine() {
  constinit static std::atomic<const std::shared_ptr<Engine>*> known{nullptr};
  if (const auto* engine = known.load(std::memory_order_acquire)) return *engine;
  check_no_forked_child();  // a thread of the parent may have been making it
  static const auto* engine = [] {
    const std::lock_guard lock(the_default().mutex);
    the_default().is_made = true;
    // Never destroyed, nor stopped: static tensors may outlive it, and its threads go on until the process
    // is gone.
    return new std::shared_ptr<Engine>(create(std::move(the_default().options)));
  }();
  known.store(engine, std::memory_order_release);
  return *engine;
}

bool Engine::configure_default(EngineOptions options) {
  if (is_forked_child()) return false;
  const std::lock_guard lock(the_default().mutex);
  if (the_default().is_made) return false;
  the_default().options = std::move(options);
  return true;
}

std::unique_lock<std::mutex> Engine::locked() const {
  check_no_forked_child();
  return std::unique_lock(mutex_);
}

EngineStatistics Engine::statistics() const {
  const auto lock = locked();
  EngineStatistics out = statistics_;
  out.plans = plans_.ready_count();
  return out;
}

Result<compiler::Planned> Engine::planned_for(const ir::FunctionRef& function) {
  const bool measures = options_.autotune && !options_.deterministic;
  const Tuned tuned = measures ? TESSERA_TRY(autotune(function, *device_, options_.compile.pipeline))
                               : untuned(function, *device_);
  return compiler::plan_function(tuned.function, tuned.target, options_.compile);
}

/// Runs beside the program or in the evaluation that waits for it.
void Engine::make_plan(PlanJob& job) noexcept {
  try {
    auto planned = planned_for(job.lifted.function);
    planned ? publish_plan(job, std::move(planned->plan)) : refuse_plan(job, planned.error());
  } catch (const std::bad_alloc&) {
    forget_plan(job.entry);
  } catch (const std::exception&) {
    refuse_plan(job, Error(ErrorCode::internal, "an exception while the plan was made"));
  }
}

void Engine::publish_plan(PlanJob& job, plan::PlanRef plan) {
  std::vector<PlanEntryRef> dropped;
  const std::lock_guard lock(mutex_);
  job.entry->plan = std::move(plan);
  job.entry->inputs = std::move(job.lifted.inputs);
  job.entry->parameters = std::move(job.lifted.parameters);
  job.entry->results = std::move(job.lifted.results);
  job.entry->state = PlanEntry::State::ready;
  ++statistics_.plans_made;
  for (const PlanEntryRef& replaced : job.replaced) plans_.remove(replaced);
  make_room_for_plans(dropped);
  evaluated_.notify_all();
}

void Engine::make_room_for_plans(std::vector<PlanEntryRef>& dropped) {
  const std::size_t before = dropped.size();
  plans_.shrink(dropped);
  statistics_.evictions += dropped.size() - before;
}

void Engine::refuse_plan(PlanJob& job, const Error& error) {
  if (error.code() == ErrorCode::memory) return forget_plan(job.entry);
  const std::lock_guard lock(mutex_);
  job.entry->error = error.message();
  job.entry->state = PlanEntry::State::failed;
  evaluated_.notify_all();
}

/// For want of memory: the structure may have a plan when there is more.
void Engine::forget_plan(const PlanEntryRef& entry) noexcept {
  const std::lock_guard lock(mutex_);
  drop_plan(entry);
}

void Engine::drop_plan(const PlanEntryRef& entry) noexcept {
  entry->state = PlanEntry::State::failed;  // for those who wait for it
  plans_.remove(entry);
  evaluated_.notify_all();
}

void Engine::count_plans_made(std::size_t count) {
  const auto lock = locked();
  statistics_.plans_made += count;
}

void Engine::publish(std::vector<ComponentReport>& components) {
  const std::lock_guard lock(mutex_);
  for (const ComponentReport& component : components) {
    statistics_.kernels += component.kernels;
    statistics_.views += component.views;
    ++statistics_.tiers[static_cast<std::size_t>(component.tier)];
  }
  report_.number = ++statistics_.evaluations;
  report_.components.resize(components.size());
  for (std::size_t i = 0; i < components.size(); ++i) report_.components[i].swap(components[i]);
  log_report();
}

EvaluationReport Engine::report() const {
  const auto lock = locked();
  return report_;
}

std::string Engine::difference_to_nearest(const ComponentReport& component) const {
  if (component.missed.ops.empty()) return "";
  const PlanEntryRef nearest = plans_.nearest(component.missed);
  return nearest == nullptr ? "" : first_difference(nearest->outline, nearest->rules, component.missed);
}

std::string Engine::explain() const {
  const auto lock = locked();
  if (report_.number == 0) return "nothing was evaluated yet\n";
  std::string out = to_line(report_) + "\n";
  for (const ComponentReport& component : report_.components) {
    if (component.tier != Tier::streamed) continue;
    if (const std::string difference = difference_to_nearest(component); !difference.empty())
      out += cat("  nearest plan: ", difference, "\n");
  }
  if (const std::string_view remark = device_->remark(); !remark.empty())
    out += cat("  ", device_->name(), ": ", remark, "\n");
  for (const std::string& lack : device_->lacks()) out += cat("  ", device_->name(), ": ", lack, "\n");
  return out;
}

/// REQUIRES the lock.
void Engine::log_report() {
  if (!log_plans_) return;
  std::string line = to_line(report_);
  for (const ComponentReport& component : report_.components)
    if (component.tier == Tier::streamed)
      if (const std::string difference = difference_to_nearest(component); !difference.empty())
        line += cat("; ", difference);
  log_line(line);
  auto lacks = device_->lacks();
  for (const std::string& lack : lacks)
    if (std::find(logged_lacks_.begin(), logged_lacks_.end(), lack) == logged_lacks_.end())
      log_line(cat(device_->name(), ": ", lack));
  logged_lacks_ = std::move(lacks);
}

void Engine::log_line(const std::string& line) const {
  if (options_.log)
    log(LogLevel::info, line);
  else
    std::fprintf(stderr, "tessera: %s\n", line.c_str());
}

void Engine::log(LogLevel level, std::string_view message) const {
  if (!options_.log) return;
  const std::lock_guard lock(log_mutex_);
  options_.log(level, message);
}

Engine::RandomState Engine::take_random(std::uint64_t count) {
  const auto lock = locked();
  RandomState& state = thread_state.replay != nullptr ? *thread_state.replay : random_;
  const RandomState out = state;
  state.offset += count;
  return out;
}

void Engine::set_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

Engine::RandomState Engine::random_state() const {
  const auto lock = locked();
  return random_;
}

void Engine::set_random_state(RandomState state) {
  const auto lock = locked();
  random_ = state;
}

std::uint16_t Engine::block(std::uint16_t outer, std::string_view name) {
  const auto lock = locked();
  const std::string path = outer == 0 ? std::string(name) : cat(blocks_[outer], "/", name);
  if (const auto known = block_numbers_.find(path); known != block_numbers_.end()) return known->second;
  constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
  if (block_numbers_.size() == most)
    throw Exception(
        Error(ErrorCode::limit, cat("block '", printable(shortened(path, 60)), "' is one more than the ",
                                    most, " different blocks of an engine: use names again")));
  blocks_.push_back(path);
  return block_numbers_[path] = static_cast<std::uint16_t>(blocks_.size() - 1);
}

std::string Engine::block_name(std::uint16_t block) const {
  const auto lock = locked();
  return block < blocks_.size() ? blocks_[block] : "";
}

std::vector<std::string> Engine::block_names() const {
  const auto lock = locked();
  return blocks_;
}

namespace {

/// For a message: the first of them that has to be computed.
std::string first_without_value(std::span<Node* const> nodes) {
  const auto first =
      std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return !node->is_stored(); });
  const op::Card* card = (*first)->card;
  return card == nullptr ? "a parameter" : cat("'", card->name, "'");
}

}  // namespace

Result<void> Engine::evaluate(std::span<Node* const> nodes) {
  const bool all_stored =
      std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->is_stored(); });
  if (is_forked_child()) return all_stored ? Result<void>() : forked_child_error();
  if (thread_state.trace_depth > 0 && !all_stored)
    return Error(ErrorCode::invalid_argument,
                 cat("the value of ", first_without_value(nodes),
                     " was asked for while a region or a compiled function is traced: it has none yet"));
  // It may be the one that is being computed, or need the threads that are busy with it.
  if (thread_state.custom_depth > 0 && !all_stored)
    return Error(ErrorCode::invalid_argument, "a value was asked for by the function of a custom op");
  auto done = evaluate_once(nodes);
  if (done || done.error().code() != ErrorCode::memory || !drop_idle_instances()) return done;
  return evaluate_once(nodes);
}

/// What an evaluation returns, or what it throws as an error.
Result<void> Engine::evaluate_once(std::span<Node* const> nodes) {
  end_behind_openings();
  try {
    return Evaluation(*this).run(nodes);
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "no memory for an evaluation");
  } catch (const std::exception& exception) {
    return Error(ErrorCode::internal, exception.what());
  }
}

/// What plans keep for their next launch; false if there is nothing.
bool Engine::drop_idle_instances() {
  std::vector<std::unique_ptr<PlanInstance>> dropped;
  const std::lock_guard lock(mutex_);
  plans_.take_idle(dropped);
  return !dropped.empty();
}

GraphHandle::GraphHandle(NodeRef root) : root_(std::move(root)) {
  Engine& engine = *root_->component->engine();
  const auto lock = engine.locked();
  root_->component->retain();
  engine.watched_.push_back(root_->component);
}

GraphHandle::~GraphHandle() {
  if (is_forked_child()) return;
  const std::shared_ptr<Engine> engine = root_->component->engine();
  {
    const std::lock_guard lock(engine->mutex_);
    auto& watched = engine->watched_;
    watched.erase(std::find(watched.begin(), watched.end(), root_->component));
  }
  root_->component->release();
}

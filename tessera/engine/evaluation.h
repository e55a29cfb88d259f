// One evaluation: which nodes are needed, how each component of them is run, storing what is kept.
//
// Nodes are claimed in one short section and computed outside it. An evaluation that needs a node another one
// has claimed waits for it. It never waits for a later one, since it claims all it needs at once: two
// evaluations cannot wait for each other.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/engine/engine.h"
#include "tessera/engine/planned_run.h"

namespace tessera::engine {

/// One component of an evaluation, and what was decided about it.
struct EvaluationPart {
  enum class Way : std::uint8_t { streamed, planned, compiled, awaited };

  std::vector<std::uint32_t> steps;  ///< empty: all
  PlanKey key;
  bool has_key = false;
  bool earned = false;  ///< a plan for these sizes alone; else for them and others, or none
  bool has_just_become_hot = false;
  Way way = Way::streamed;
  PlanEntryRef entry;
  std::unique_ptr<PlanInstance> instance;
  std::vector<std::int64_t> symbols;
  std::vector<PlanEntryRef> replaced;  ///< plans that a new one makes superfluous
  ComponentReport report;
};

/// The memory of an evaluation, used again by the next one.
struct EvaluationMemory {
  Needed needed;
  std::vector<std::unique_ptr<EvaluationPart>> parts;
  std::size_t part_count = 0;
  std::vector<std::uint32_t> local;  ///< by step: its place in its component; empty if there is only one
  std::vector<Computed> computed;
  std::vector<Node*> given_up;        ///< references to release outside the lock
  std::vector<PlanEntryRef> dropped;  ///< plans that gave way, to free outside the lock
};

class Evaluation {
 public:
  explicit Evaluation(Engine& engine) : engine_(engine) {}
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  Result<void> run(std::span<Node* const> asked);

 private:
  using Part = EvaluationPart;

  /// Whatever happens, what was claimed and begun is given back, and who waits for it looks again.
  class ClaimGuard {
   public:
    explicit ClaimGuard(Evaluation& evaluation) : evaluation_(evaluation) {}
    ~ClaimGuard();
    ClaimGuard(const ClaimGuard&) = delete;
    ClaimGuard& operator=(const ClaimGuard&) = delete;

    /// Does it now. REQUIRES the lock.
    void settle() noexcept;

   private:
    Evaluation& evaluation_;
    bool is_settled_ = false;
  };

  // Under the lock.
  void take_memory();
  void claim(std::span<Node* const> asked);
  void unclaim();
  bool wait_for_others(std::unique_lock<std::mutex>& lock);
  void divide();
  Part& add_part();
  void choose(Part& part);
  void choose_without_plan(Part& part);
  void take_plan(Part& part);
  void give_back(Part& part) noexcept;
  [[nodiscard]] bool begin_plan(Part& part, const std::vector<PlanEntryRef>& siblings);
  [[nodiscard]] bool waits_for_plan(const Part& part) const;
  void leave_alone(Part& part);
  void publish();
  void report();
  void store(Computed& computed);
  void learn_from(Part& part);

  // Outside it.
  Result<void> compute();
  void reserve_for_publishing();
  Result<void> compute(Part& part);
  Result<void> stream(Part& part);
  Result<void> run_plan(Part& part);
  void make_plans();
  void await_plan(Part& part);
  void try_to_make_plan(Part& part);
  void make_plan(Part& part);

  [[nodiscard]] std::span<Part* const> parts() const;

  /// Where the times of a part go while it runs; null: nobody asks.
  [[nodiscard]] std::vector<runtime::TimedStep>* step_times();
  void keep_times(const Part& part, const plan::Plan* plan);

  Engine& engine_;
  std::unique_ptr<EvaluationMemory> memory_;
  std::unique_ptr<EvaluationTimes> times_;  ///< while profiling is on
  std::vector<runtime::TimedStep> step_times_;
};

}  // namespace tessera::engine

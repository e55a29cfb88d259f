#include "tessera/cover/cover.h"

#include <algorithm>

#include "tessera/base/check.h"
#include "tessera/cover/copies.h"
#include "tessera/cover/frontier.h"
#include "tessera/cover/greedy.h"
#include "tessera/cover/hinge.h"
#include "tessera/cover/model.h"
#include "tessera/cover/pieces.h"
#include "tessera/cover/schedule.h"
#include "tessera/cover/search.h"
#include "tessera/cover/steps.h"
#include "tessera/cover/validate.h"

using namespace tessera;
using namespace tessera::cover;

namespace {

/// Finds an answer for every piece, one for all pieces that are alike.
class PieceSolver {
 public:
  PieceSolver(const Model& model, const Pieces& pieces, const Options& options, Effort& effort)
      : model_(model),
        pieces_(pieces),
        options_(options),
        effort_(effort),
        steps_(model, pieces),
        frontier_(steps_, options.frontier_limit) {}

  void run() {
    for (std::uint32_t piece = 0; piece < pieces_.pieces.size(); ++piece) walk(piece);
    search();
  }
  /// The piece that was solved in the place of `piece`: itself or one like it.
  [[nodiscard]] std::uint32_t representative(std::uint32_t piece) const { return solved_[shape_of_[piece]]; }
  [[nodiscard]] const Answer& answer(std::uint32_t piece) const { return answers_[shape_of_[piece]]; }

 private:
  void walk(std::uint32_t piece) {
    const StepList& steps = steps_.steps_of(piece);
    const std::uint32_t shape = shapes_.intern(steps.kinds);
    shape_of_.push_back(shape);
    if (shape < answers_.size()) return;
    solved_.push_back(piece);
    std::optional<Answer> answer = frontier_.solve(steps, effort_);
    if (!answer) wide_.push_back(shape);
    answers_.push_back(answer ? *std::move(answer) : solve_greedily(model_, pieces_, pieces_.pieces[piece]));
  }

  /// Improves the answers that are greedy so far, all a little before one more, so that a limit is shared.
  void search() {
    std::vector<std::pair<std::uint32_t, Search>> searches;
    for (std::uint32_t shape : wide_) {
      if (effort_.is_over()) break;
      if (answers_[shape].is_optimal()) continue;
      const Piece& piece = pieces_.pieces[solved_[shape]];
      searches.emplace_back(shape, Search(model_, pieces_, piece, answers_[shape], effort_));
    }
    while (!searches.empty())
      std::erase_if(searches, [&](auto& item) {
        const bool goes_on = item.second.widen(options_.state_limit, effort_);
        answers_[item.first] = item.second.answer();
        return !goes_on;
      });
  }

  const Model& model_;
  const Pieces& pieces_;
  const Options& options_;
  Effort& effort_;
  StepTable steps_;
  Frontier frontier_;
  SequenceTable shapes_;
  std::vector<std::uint32_t> shape_of_;  ///< by piece
  std::vector<std::uint32_t> solved_;    ///< by shape: the piece that was solved
  std::vector<Answer> answers_;          ///< by shape
  std::vector<std::uint32_t> wide_;      ///< shapes that the frontier gave up on
};

/// Puts the answers for the pieces together.
class Assembly {
 public:
  Assembly(const Problem& problem, const Model& model, const Pieces& pieces, const PieceSolver& solver)
      : problem_(problem), model_(model), pieces_(pieces), solver_(solver), step_of_(model.size(), no_step) {}

  Solution run() {
    steps_.reserve(model_.size());
    out_.subproblems.reserve(pieces_.pieces.size());
    for (std::uint32_t i = 0; i < pieces_.pieces.size(); ++i) take_piece(i);
    for (std::uint32_t p = 0; p < model_.size(); ++p)
      if (pieces_.piece_of[p] == Pieces::alone) bound_.add(take_single(p));
    list_tiles();
    set_order();
    return std::move(out_);
  }

 private:
  static constexpr std::uint32_t no_step = 0xffffffff;

  void take_piece(std::uint32_t index);
  [[nodiscard]] double bound_of(std::span<const std::uint32_t> positions, const Answer& answer) const;
  double take_choice(std::uint32_t position, Choice choice);
  double take_single(std::uint32_t position);
  [[nodiscard]] double single_cost(std::uint32_t position) const;
  void list_tiles();
  void set_order();

  const Problem& problem_;
  const Model& model_;
  const Pieces& pieces_;
  const PieceSolver& solver_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> step_of_;  ///< by position
  RealSum cost_;
  RealSum bound_;
  Solution out_;
};

void Assembly::take_piece(std::uint32_t index) {
  const auto positions = pieces_.positions_of(pieces_.pieces[index]);
  const Answer& answer = solver_.answer(index);
  Subproblem part;
  part.candidates = pieces_.pieces[index].tiles;
  part.same_as = solver_.representative(index);
  part.method = answer.method;
  part.optimal = answer.is_optimal();
  if (part.same_as == index) part.states = answer.states;
  RealSum cost;
  part.nodes.reserve(positions.size());
  for (std::uint32_t i = 0; i < positions.size(); ++i) {
    cost.add(take_choice(positions[i], answer.choices[i]));
    part.nodes.push_back(model_.order[positions[i]]);
  }
  part.cost = cost.value();
  part.bound = part.optimal ? part.cost : std::min(part.cost, bound_of(positions, answer));
  bound_.add(part.bound);
  out_.subproblems.push_back(std::move(part));
}

/// The bound of an answer that is not proven best, in the caller's numbers and safe against rounding.
double Assembly::bound_of(std::span<const std::uint32_t> positions, const Answer& answer) const {
  RealSum bound;
  bound.add(model_.scale.real(answer.bound));
  if (!model_.costs_are_exact) bound.add(-model_.scale.quantum() * static_cast<double>(positions.size()));
  for (std::uint32_t p : positions)
    if (!model_.is_tiled[p]) bound.add(single_cost(p));
  return std::max(0.0, bound.value());
}

/// Takes what an answer chose for a position; returns what that costs.
double Assembly::take_choice(std::uint32_t position, Choice choice) {
  if (choice == covered_before) return 0;
  if (choice == 0) return take_single(position);
  const Tile& tile = model_.tiles_at(position)[choice - 1];
  for (std::uint32_t p : model_.positions_of(tile)) step_of_[p] = static_cast<std::uint32_t>(steps_.size());
  steps_.push_back({Step::Kind::tile, tile.candidate});
  cost_.add(problem_.candidates[tile.candidate].cost);
  return problem_.candidates[tile.candidate].cost;
}

double Assembly::take_single(std::uint32_t position) {
  step_of_[position] = static_cast<std::uint32_t>(steps_.size());
  const std::uint32_t candidate = model_.singles[position].candidate;
  if (candidate == no_candidate)
    steps_.push_back({Step::Kind::node, model_.order[position]});
  else
    steps_.push_back({Step::Kind::tile, candidate});
  cost_.add(single_cost(position));
  return single_cost(position);
}

double Assembly::single_cost(std::uint32_t position) const {
  const std::uint32_t candidate = model_.singles[position].candidate;
  return candidate == no_candidate ? problem_.uncovered_cost[model_.order[position]]
                                   : problem_.candidates[candidate].cost;
}

void Assembly::list_tiles() {
  std::vector<bool> is_chosen(problem_.candidates.size(), false);
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::tile)
      is_chosen[step.index] = true;
    else
      out_.uncovered.push_back(step.index);
  }
  for (std::uint32_t i = 0; i < is_chosen.size(); ++i)
    if (is_chosen[i]) out_.chosen.push_back(i);
  std::ranges::sort(out_.uncovered);
  out_.cost = cost_.value();
  out_.optimal = std::ranges::all_of(out_.subproblems, &Subproblem::optimal);
  out_.bound = out_.optimal ? out_.cost : std::min(out_.cost, bound_.value());
}

void Assembly::set_order() {
  // Steps are numbered by their first position, so that the schedule follows the topological order.
  std::vector<std::uint32_t> number(steps_.size(), no_step);
  std::vector<std::uint32_t> group_of(model_.size());
  std::vector<Step> by_position;
  for (std::uint32_t p = 0; p < model_.size(); ++p) {
    TESSERA_CHECK(step_of_[p] != no_step, "a position without a step");
    std::uint32_t& group = number[step_of_[p]];
    if (group == no_step) {
      group = static_cast<std::uint32_t>(by_position.size());
      by_position.push_back(steps_[step_of_[p]]);
    }
    group_of[p] = group;
  }
  const auto order = schedule(model_.graph, group_of, static_cast<std::uint32_t>(by_position.size()));
  TESSERA_CHECK(order.has_value(), "the tiling has a cycle");
  out_.order.reserve(order->size());
  for (std::uint32_t group : *order) out_.order.push_back(by_position[group]);
}

Result<Solution> solve_whole(const Problem& problem, const Options& options, Effort& effort) {
  Model model = TESSERA_TRY(make_model(problem, effort));
  const std::vector<std::uint32_t> labels = mark_hinges(model);
  const Pieces pieces = split(model, labels);
  PieceSolver solver(model, pieces, options, effort);
  solver.run();
  return Assembly(problem, model, pieces, solver).run();
}

}  // namespace

std::string_view tessera::cover::to_string(Method method) {
  switch (method) {
    case Method::frontier:
      return "frontier";
    case Method::search:
      return "search";
    case Method::greedy:
      return "greedy";
  }
  return "unknown";
}

std::size_t Solution::distinct_subproblems() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < subproblems.size(); ++i)
    if (subproblems[i].same_as == i) ++count;
  return count;
}

std::uint64_t Solution::states() const {
  std::uint64_t count = 0;
  for (const Subproblem& part : subproblems) count += part.states;
  return count;
}

Result<Solution> tessera::cover::solve(const Problem& problem, const Options& options) {
  Effort effort(options.work, options.budget);
  TESSERA_TRY(validate(problem));
  if (const auto copies = Copies::find(problem)) {
    const Result<Solution> each = solve_whole(copies->one_of_each(), options, effort);
    if (each.ok()) return copies->for_all(*each);  // else the error must name the nodes of the whole problem
  }
  return solve_whole(problem, options, effort);
}

#include "cli/plan_report.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/compile/tiling.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr std::size_t most_losers = 3;
constexpr std::size_t most_lines = 200;  ///< of one part of the text

std::string op_text(const pattern::Graph& graph, pattern::NodeId node) {
  return printable(shortened(cat(graph.op_name(graph.op(node)), " ", graph.id(node)), 80));
}

std::vector<std::string> op_texts(const pattern::Graph& graph, std::span<const pattern::NodeId> nodes) {
  std::vector<std::string> out;
  for (const pattern::NodeId node : nodes) out.push_back(op_text(graph, node));
  return out;
}

/// Finds the candidates that lost against the tiles that were taken.
class TileExplainer {
 public:
  TileExplainer(const pattern::Graph& graph, const pattern::Tiling& tiling, const pattern::StepCosts& costs)
      : graph_(graph), tiling_(tiling), prices_(costs, graph), tile_of_(graph.node_count(), pattern::none) {
    for (std::uint32_t t = 0; t < tiling.tiles.size(); ++t)
      for (const pattern::NodeId node : tiling.tiles[t].nodes) tile_of_[node] = t;
    losers_.resize(tiling.tiles.size());
    for (std::size_t c = 0; c < tiling.list->size(); ++c) add_loser(c);
  }

  [[nodiscard]] ExplainedTile explain(std::uint32_t t) {
    const pattern::Tile& tile = tiling_.tiles[t];
    const pattern::StepPrice price = prices_.parts_of(tile.nodes);
    ExplainedTile out{.kind = tile.kernel(),
                      .ops = op_texts(graph_, tile.nodes),
                      .cost = tile.cost,
                      .moving = price.moving,
                      .computing = price.computing,
                      .one_by_one = one_by_one(tile.nodes)};
    auto& lost = losers_[t];
    std::stable_sort(lost.begin(), lost.end(), [&](std::size_t a, std::size_t b) {
      return tiling_.list->nodes(a).size() > tiling_.list->nodes(b).size();
    });
    for (std::size_t i = 0; i < lost.size() && i < most_losers; ++i) {
      const auto nodes = tiling_.list->nodes(lost[i]);
      out.losers.push_back({.ops = op_texts(graph_, nodes),
                            .cost = tiling_.list->cost(lost[i]),
                            .one_by_one = one_by_one(nodes)});
    }
    return out;
  }

 private:
  /// Only candidates of several nodes are worth a word.
  void add_loser(std::size_t candidate) {
    const auto nodes = tiling_.list->nodes(candidate);
    if (nodes.size() < 2) return;
    std::uint32_t last = pattern::none;
    for (const pattern::NodeId node : nodes) {
      const std::uint32_t tile = tile_of_[node];
      if (tile == pattern::none || tile == last) continue;
      last = tile;
      const auto& taken = tiling_.tiles[tile].nodes;
      if (!std::equal(nodes.begin(), nodes.end(), taken.begin(), taken.end()) && losers_[tile].size() < 1000)
        losers_[tile].push_back(candidate);
    }
  }

  [[nodiscard]] double one_by_one(std::span<const pattern::NodeId> nodes) {
    double out = 0;
    for (const pattern::NodeId node : nodes) out += prices_.of(std::span(&node, 1));
    return out;
  }

  const pattern::Graph& graph_;
  const pattern::Tiling& tiling_;
  pattern::StepPrices prices_;
  std::vector<std::uint32_t> tile_of_;
  std::vector<std::vector<std::size_t>> losers_;  ///< by tile: candidates
};

std::string ns_text(double ns) { return cat(std::llround(ns), " ns"); }

std::string proof_text(const pattern::Tiling& tiling) {
  if (!tiling.list && tiling.uncovered.empty()) return {};  // of a plan from a file
  if (!tiling.list) return cat("tiling: none, ", tiling.uncovered.size(), " single ops\n");
  std::string out = cat("tiling: ", tiling.tiles.size(), " tiles, ", tiling.uncovered.size(),
                        " single ops, predicted ", ns_text(tiling.cost), ", ");
  out += tiling.optimal
             ? "optimal"
             : cat("at least ", ns_text(tiling.bound), ", gap ", std::lround(100 * tiling.gap), "%");
  out += cat(", of ", tiling.candidates, " candidates\n");
  for (const std::string& gap : tiling.gaps) out += cat("  not looked at: ", printable(gap), "\n");
  return out;
}

std::string tiles_text(const PlanReport& report) {
  std::string out = proof_text(report.tiling);
  std::size_t lines = 0;
  for (const ExplainedTile& tile : report.tiles) {
    if (tile.ops.size() < 2 && tile.losers.empty()) continue;
    if (++lines > most_lines) return out + "  … (--json has all of them)\n";
    out += cat("  ", printable(tile.kind), " of ", tile.ops.size(), ", ", ns_text(tile.cost), " (moving ",
               ns_text(tile.moving), ", computing ", ns_text(tile.computing), "; one by one ",
               ns_text(tile.one_by_one), "): ", join(tile.ops, ", "), "\n");
    for (const ExplainedTile::Loser& loser : tile.losers)
      out += cat("    lost: ", loser.ops.size(), " ops, ", ns_text(loser.cost), " (one by one ",
                 ns_text(loser.one_by_one), "): ", shortened(join(loser.ops, ", "), 160), "\n");
  }
  return out;
}

std::string name_of(const plan::Plan& plan, plan::ValueId value) {
  return cat("%", value, " ", plan.steps[plan.values[value].index].name());
}

std::string memory_text(const PlanReport& report) {
  const plan::Binding& binding = report.binding;
  const MemoryLayout& memory = binding.memory;
  std::string sizes;
  for (std::size_t d = 0; d < binding.sizes.size(); ++d)
    sizes += cat(d == 0 ? " for " : ", ", printable(report.plan->dims[d]->name), " = ", binding.sizes[d]);
  std::string out =
      cat("memory", sizes, ": peak ", memory.bytes, " bytes, bound ", memory.lower_bound, ", without reuse ",
          memory.without_reuse,
          "\n  taken beside inputs, outputs and constants; a launch that would pass the limit of its "
          "engine (memory_limit) is refused before it runs\n");
  for (std::size_t i = 0; i < binding.temporaries.size(); ++i) {
    if (i == most_lines) return out + "  … (--json has all of them)\n";
    out += cat("  at ", memory.offsets[i], ", ", binding.ranges[i].bytes, " bytes, steps ",
               binding.ranges[i].first, " to ", binding.ranges[i].last(), ": ",
               name_of(*report.plan, binding.temporaries[i]), "\n");
  }
  for (std::size_t s = 0; s < report.plan->steps.size(); ++s)
    for (const plan::InPlace& pair : report.plan->steps[s].in_place)
      out += cat("  step ", s, " (", report.plan->steps[s].name(), ") writes result ", pair.result,
                 " over input ", pair.input, "\n");
  return out;
}

/// What a change between two launches would take. Follows from what a plan is made of.
struct TierRow {
  std::string_view change, tier;
  std::string why;
};

std::vector<TierRow> tiers_of(const plan::Plan& plan) {
  std::vector<TierRow> out;
  out.push_back({"contents of an input", "none", "the plan reads what is there"});
  out.push_back({"a scalar parameter", plan.parameters.empty() ? "cold" : "hot",
                 plan.parameters.empty() ? "the plan has no parameters: every number in it is a constant"
                                         : cat(plan.parameters.size(), " slots are given with each launch")});
  out.push_back({"address of an input", "warm", "addresses are set before the launch; no code has one"});
  std::string dims;
  for (const auto& dim : plan.dims) dims += cat(dims.empty() ? "" : ", ", printable(dim->name));
  out.push_back({"a size", plan.dims.empty() ? "cold" : "warm",
                 plan.dims.empty() ? "all sizes are numbers: other ones are another program"
                                   : cat("sizes ", dims, " are symbols: the plan is bound anew")});
  for (const auto& [a, b] : plan.equal_sizes)
    out.push_back({"a size", "cold", cat("where ", a, " = ", b, " no longer holds")});
  out.push_back({"ops, attributes, dtypes or wiring", "cold", "they are the plan"});
  return out;
}

std::string tiers_text(const plan::Plan& plan) {
  std::string out = "tiers: what a change between two launches takes\n";
  for (const TierRow& row : tiers_of(plan)) out += cat("  ", row.change, ": ", row.tier, ", ", row.why, "\n");
  return out;
}

void write_names(JsonWriter& json, std::string_view key, const std::vector<std::string>& names) {
  json.key(key).begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

void write_tiles(JsonWriter& json, const PlanReport& report) {
  json.key("tiles").begin_array();
  for (const ExplainedTile& tile : report.tiles) {
    json.begin_object().member("kind", tile.kind);
    write_names(json, "ops", tile.ops);
    json.member("cost_ns", tile.cost).member("moving_ns", tile.moving).member("computing_ns", tile.computing);
    json.member("one_by_one_ns", tile.one_by_one).key("lost").begin_array();
    for (const ExplainedTile::Loser& loser : tile.losers) {
      json.begin_object();
      write_names(json, "ops", loser.ops);
      json.member("cost_ns", loser.cost).member("one_by_one_ns", loser.one_by_one).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  const pattern::Tiling& tiling = report.tiling;
  json.key("certificate").begin_object().member("optimal", tiling.optimal).member("cost_ns", tiling.cost);
  json.member("bound_ns", tiling.bound).member("gap", tiling.gap).member("candidates", tiling.candidates);
  write_names(json, "not_looked_at", tiling.gaps);
  json.end_object();
}

void write_steps(JsonWriter& json, const PlanReport& report) {
  json.key("steps").begin_array();
  for (std::size_t s = 0; s < report.plan->steps.size(); ++s) {
    const plan::Step& step = report.plan->steps[s];
    json.begin_object().member("name", step.name()).member("level", report.levels[s]);
    json.member("is_view", static_cast<bool>(report.binding.is_view[s]));
    json.member("at", step.span.resolve().to_text()).key("in_place").begin_array();
    for (const plan::InPlace& pair : step.in_place)
      json.begin_object().member("result", pair.result).member("input", pair.input).end_object();
    json.end_array().end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const PlanReport& report) {
  const plan::Binding& binding = report.binding;
  json.key("memory").begin_object().key("sizes").begin_object();
  for (std::size_t d = 0; d < binding.sizes.size(); ++d)
    json.member(report.plan->dims[d]->name, binding.sizes[d]);
  json.end_object().member("peak", binding.memory.bytes).member("bound", binding.memory.lower_bound);
  json.member("without_reuse", binding.memory.without_reuse).key("buffers").begin_array();
  for (std::size_t i = 0; i < binding.temporaries.size(); ++i) {
    json.begin_object().member("value", binding.temporaries[i]).member("offset", binding.memory.offsets[i]);
    json.member("bytes", binding.ranges[i].bytes).member("first_step", binding.ranges[i].first);
    json.member("last_step", binding.ranges[i].last()).end_object();
  }
  json.end_array().end_object();
}

}  // namespace

Result<PlanReport> tessera::cli::report_on(compiler::Planned& planned, runtime::Device& device,
                                           std::span<const std::int64_t> sizes) {
  PlanReport out;
  out.plan = planned.plan;
  out.levels = plan::levels(*out.plan);
  const auto layouts = TESSERA_TRY(plan::contiguous_inputs(*out.plan, sizes));
  out.binding = TESSERA_TRY(device.plan_memory(out.plan, sizes, layouts));
  out.tiling = std::move(planned.tiling);
  if (!out.tiling.list) return out;
  const pattern::Graph graph = TESSERA_TRY(compiler::graph_to_tile(*planned.function));
  TileExplainer explainer(graph, out.tiling, device.target().costs);
  for (std::uint32_t t = 0; t < out.tiling.tiles.size(); ++t) out.tiles.push_back(explainer.explain(t));
  return out;
}

std::string tessera::cli::plan_text(const PlanReport& report) {
  const std::uint32_t levels =
      report.levels.empty() ? 0 : 1 + *std::max_element(report.levels.begin(), report.levels.end());
  return cat(tiles_text(report), "plan: ", report.plan->steps.size(), " steps in ", levels, " levels\n",
             memory_text(report), tiers_text(*report.plan));
}

void tessera::cli::write_plan_report(JsonWriter& json, const PlanReport& report) {
  write_tiles(json, report);
  write_steps(json, report);
  write_memory(json, report);
  json.key("tiers").begin_array();
  for (const TierRow& row : tiers_of(*report.plan))
    json.begin_object()
        .member("change", row.change)
        .member("tier", row.tier)
        .member("why", row.why)
        .end_object();
  json.end_array();
}

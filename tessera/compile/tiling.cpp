#include "tessera/compile/tiling.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "tessera/kernel/build.h"
#include "tessera/op/catalogue.h"
#include "tessera/pattern/graph_function.h"
#include "tessera/pattern/region_grower.h"
#include "tessera/pattern/tiler.h"

using namespace tessera;
using namespace tessera::compile;
using pattern::Graph;
using pattern::NodeId;

namespace {

/// What one step costs besides its memory traffic, and a byte of it, in nanoseconds.
constexpr double step_cost = 200;
constexpr double byte_cost = 0.05;

double bytes_of(const Graph& graph, pattern::ValueId value, std::int64_t usual_size) {
  const pattern::ValueType& type = graph.type(value);
  if (type.shape == pattern::none) return 0;
  double bytes = type.dtype ? static_cast<double>(ir::size_of(*type.dtype)) : 4;
  for (const ir::Dim& dim : graph.shape(type.shape)) {
    const auto size = ir::evaluate(dim, [&](const ir::Var&) { return std::optional(usual_size); });
    bytes *= static_cast<double>(std::max<std::int64_t>(size.value_or(usual_size), 0));
  }
  return bytes;
}

/// Of some nodes as one step: what comes in and what goes out.
double cost_of(const Graph& graph, std::span<const NodeId> nodes, std::int64_t usual_size) {
  pattern::Tile tile;
  tile.nodes = pattern::Tile().nodes;
  for (const NodeId node : nodes) tile.nodes.push_back(node);
  pattern::find_boundary(graph, tile);
  double bytes = 0;
  for (const pattern::ValueId value : tile.inputs) bytes += bytes_of(graph, value, usual_size);
  for (const pattern::ValueId value : tile.outputs) bytes += bytes_of(graph, value, usual_size);
  return step_cost + byte_cost * bytes;
}

/// Makes parts out of statements of a function.
class PartBuilder {
 public:
  explicit PartBuilder(const ir::Function& function) : function_(function) {
    for (std::uint32_t i = 0; i < function.body.size(); ++i)
      for (const ir::ExprRef& argument : arguments(i))
        if (const auto* var = ir::as<ir::Var>(*argument)) readers_[var].push_back(i);
    for (const ir::ExprRef& result : function.results)
      if (const auto* var = ir::as<ir::Var>(*result)) is_result_.insert(var);
  }

  /// The statements as one kernel, or as few as can be.
  void add(std::vector<std::uint32_t> statements, std::vector<TiledPart>& out) const {
    while (!statements.empty()) {
      std::size_t count = statements.size();
      TiledPart part = kernel_of({statements.begin(), statements.end()});
      // A beginning of the region can go first: nothing in it waits for the rest.
      while (part.kernel == nullptr && count > 1) {
        count = (count + 1) / 2;
        part = kernel_of({statements.begin(), statements.begin() + static_cast<std::ptrdiff_t>(count)});
        if (count == 1) break;
      }
      out.push_back(std::move(part));
      statements.erase(statements.begin(), statements.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }

  /// Whether a statement may be part of a kernel at all.
  [[nodiscard]] bool can_fuse(std::uint32_t statement) const {
    const auto* call = ir::as<ir::Call>(*function_.body[statement]->value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    return card != nullptr && card->view == nullptr;
  }

 private:
  [[nodiscard]] std::span<const ir::ExprRef> arguments(std::uint32_t statement) const {
    const auto* call = ir::as<ir::Call>(*function_.body[statement]->value);
    return call == nullptr ? std::span<const ir::ExprRef>() : std::span<const ir::ExprRef>(call->args);
  }

  [[nodiscard]] TiledPart kernel_of(std::vector<std::uint32_t> statements) const {
    TiledPart part{.statements = std::move(statements)};
    if (part.statements.size() == 1 && !can_fuse(part.statements[0])) return part;
    ir::FunctionRef ops = region(part.statements);
    auto built = kernel::build(*ops);
    if (!built) return part;
    part.kernel = std::make_shared<const kernel::Kernel>(*std::move(built));
    part.ops = std::move(ops);
    return part;
  }

  /// The statements as a function of what they read from outside, giving what others read.
  [[nodiscard]] ir::FunctionRef region(const std::vector<std::uint32_t>& statements) const {
    const std::unordered_set<std::uint32_t> inside(statements.begin(), statements.end());
    ir::FunctionParts parts{.name = "kernel", .dims = function_.dims};
    std::unordered_set<const ir::Var*> known;
    for (const auto& dim : function_.dims) known.insert(dim.get());
    for (const std::uint32_t s : statements)
      for (const auto& target : function_.body[s]->targets) known.insert(target.get());
    for (const std::uint32_t s : statements) {
      for (const ir::ExprRef& argument : arguments(s)) {
        const auto* var = ir::as<ir::Var>(*argument);
        if (var != nullptr && known.insert(var).second)
          parts.params.push_back(Ref<ir::Var>(const_cast<ir::Var*>(var)));
      }
      parts.body.push_back(function_.body[s]);
      for (const auto& target : function_.body[s]->targets)
        if (escapes(*target, inside)) parts.results.push_back(target);
    }
    return ir::function(std::move(parts));
  }

  [[nodiscard]] bool escapes(const ir::Var& var, const std::unordered_set<std::uint32_t>& inside) const {
    if (is_result_.count(&var) != 0) return true;
    const auto found = readers_.find(&var);
    return found != readers_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](std::uint32_t reader) { return inside.count(reader) == 0; });
  }

  const ir::Function& function_;
  std::unordered_map<const ir::Var*, std::vector<std::uint32_t>> readers_;  ///< calls alone
  std::unordered_set<const ir::Var*> is_result_;
};

TiledFunction one_by_one(const ir::Function& function) {
  TiledFunction out;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) out.parts.push_back({.statements = {i}});
  return out;
}

}  // namespace

std::shared_ptr<const pattern::TileSource> compile::fused_regions(std::int64_t usual_size) {
  return std::make_shared<pattern::RegionGrower>(
      pattern::RegionOptions{.cost = [usual_size](const Graph& graph, std::span<const NodeId> nodes) {
        return cost_of(graph, nodes, usual_size);
      }});
}

Result<TiledFunction> compile::tile(const ir::Function& function, const pattern::Target& target,
                                    const TilingOptions& options) {
  if (target.sources.empty()) return one_by_one(function);
  const Graph graph = TESSERA_TRY(pattern::graph_of(function));
  pattern::Target priced = target;
  priced.uncovered_cost = [&](const Graph& of, NodeId node) {
    return cost_of(of, std::span(&node, 1), options.usual_size);
  };
  const pattern::Tiling tiling = TESSERA_TRY(pattern::tile(graph, priced, {.budget = options.budget}));
  TiledFunction out{
      .cost = tiling.cost, .bound = tiling.bound, .is_optimal = tiling.optimal, .gaps = tiling.gaps};
  const PartBuilder builder(function);
  for (const pattern::TilingStep& step : tiling.order) {
    if (step.kind == pattern::TilingStep::Kind::node) {
      builder.add({step.index}, out.parts);
      continue;
    }
    const pattern::Tile& tile = tiling.tiles[step.index];
    builder.add({tile.nodes.begin(), tile.nodes.end()}, out.parts);
  }
  return out;
}

#include "tessera/compile/tiling.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/compile/region_kernels.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/walk.h"
#include "tessera/op/arithmetic.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/op_facts.h"
#include "tessera/pattern/graph_function.h"
#include "tessera/pattern/region_grower.h"
#include "tessera/pattern/tiler.h"

using namespace tessera;
using namespace tessera::compiler;
using pattern::Graph;
using pattern::NodeId;

namespace {

/// The kernel of a tile that is a region: code is generated for it. Any other names what the device has.
constexpr std::string_view generated = "region";

/// Some statements as a function of their own. Constants become parameters: they belong to the plan.
class RegionWriter {
 public:
  RegionWriter(const ir::Function& function, std::string name) {
    parts_.name = std::move(name);
    parts_.dims = function.dims;
    for (const auto& dim : function.dims) known_.insert(dim.get());
  }

  void add(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(*statement.value);
    std::vector<ir::ExprRef> args;
    for (const ir::ExprRef& arg : call->args) args.push_back(operand(arg));
    for (const auto& target : statement.targets) known_.insert(target.get());
    parts_.body.push_back(args == call->args ? Ref<ir::Assign>(const_cast<ir::Assign*>(&statement))
                                             : ir::assign(statement.targets,
                                                          ir::call(call->op, std::move(args), call->attrs),
                                                          statement.span()));
  }
  void add_result(const Ref<ir::Var>& var) { parts_.results.push_back(var); }

  void finish(TiledPart& out) && {
    out.ops = ir::function(std::move(parts_));
    out.inputs = std::move(inputs_);
  }

 private:
  ir::ExprRef operand(const ir::ExprRef& arg) {
    if (const auto* dense = ir::as<ir::Dense>(*arg)) {
      auto& var = constants_[dense];
      if (var == nullptr) add_parameter(var = ir::variable("c", dense->type), arg);
      return var;
    }
    const auto* var = ir::as<ir::Var>(*arg);
    if (var != nullptr && known_.insert(var).second)
      add_parameter(Ref<ir::Var>(const_cast<ir::Var*>(var)), arg);
    return arg;
  }
  void add_parameter(Ref<ir::Var> var, const ir::ExprRef& value) {
    parts_.params.push_back(std::move(var));
    inputs_.push_back(value);
  }

  ir::FunctionParts parts_;
  std::vector<ir::ExprRef> inputs_;
  std::unordered_set<const ir::Var*> known_;
  std::unordered_map<const ir::Dense*, Ref<ir::Var>> constants_;
};

/// Makes parts out of statements of a function.
class PartBuilder {
 public:
  /// REQUIRES the graph is that of the function.
  PartBuilder(const ir::Function& function, const Graph& graph, std::size_t most_in_kernel)
      : function_(function), most_in_kernel_(static_cast<std::ptrdiff_t>(most_in_kernel)), kernels_(graph) {
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      if (!ir::is<ir::Call>(*function.body[i]->value)) add_needed(*function.body[i]->value);
      for (const ir::ExprRef& argument : arguments(i))
        if (const auto* var = ir::as<ir::Var>(*argument)) readers_[var].push_back(i);
    }
    for (const ir::ExprRef& result : function.results)
      if (const auto* var = ir::as<ir::Var>(*result)) is_needed_.insert(var);
  }

  /// The statements as one kernel, or as few as are found.
  void add(const std::vector<std::uint32_t>& statements, std::vector<TiledPart>& out) const {
    std::vector<TiledPart> parts;
    for (auto begin = statements.begin(); begin != statements.end();) {
      auto end = begin + std::min(statements.end() - begin, most_in_kernel_);
      TiledPart part = kernel_of({begin, end});
      // A beginning of the region can go first: nothing in it waits for the rest.
      while (part.kernel == nullptr && end - begin > 1) {
        end = begin + (end - begin + 1) / 2;
        part = kernel_of({begin, end});
      }
      parts.push_back(std::move(part));
      begin = end;
    }
    if (parts.size() <= most_joined) join(parts);  // each attempt builds a kernel
    std::move(parts.begin(), parts.end(), std::back_inserter(out));
  }

  /// The statements as one step that the device has a library for.
  void add_library(std::vector<std::uint32_t> statements, const std::string& name,
                   std::vector<TiledPart>& out) const {
    TiledPart part{.statements = std::move(statements)};
    write_region(part, name);
    out.push_back(std::move(part));
  }

 private:
  static constexpr std::size_t most_joined = 3;

  /// A beginning that was cut off may fit with a later part that reads it: of an exponential, a sum over
  /// rows, and their product that is summed over columns, only the sum over rows stands in the way.
  void join(std::vector<TiledPart>& parts) const {
    for (std::size_t later = 1; later < parts.size(); ++later)
      for (std::size_t earlier = later; earlier-- > 0;) {
        if (parts[earlier].kernel == nullptr || !is_read_first_by(parts, earlier, later)) continue;
        std::vector<std::uint32_t> both = parts[earlier].statements;
        both.insert(both.end(), parts[later].statements.begin(), parts[later].statements.end());
        std::sort(both.begin(), both.end());
        if (static_cast<std::ptrdiff_t>(both.size()) > most_in_kernel_) continue;
        TiledPart joined = kernel_of(std::move(both));
        if (joined.kernel == nullptr) continue;
        parts[later] = std::move(joined);
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(earlier));
        --later;
      }
  }

  /// Whether `later` reads something of `earlier` and no part between them does.
  [[nodiscard]] bool is_read_first_by(const std::vector<TiledPart>& parts, std::size_t earlier,
                                      std::size_t later) const {
    for (std::size_t i = earlier + 1; i < later; ++i)
      if (reads(parts[i], parts[earlier])) return false;
    return reads(parts[later], parts[earlier]);
  }

  [[nodiscard]] bool reads(const TiledPart& part, const TiledPart& from) const {
    const auto has = [&part](std::uint32_t statement) {
      return std::find(part.statements.begin(), part.statements.end(), statement) != part.statements.end();
    };
    for (const std::uint32_t statement : from.statements)
      for (const auto& target : function_.body[statement]->targets)
        if (const auto found = readers_.find(target.get()); found != readers_.end())
          if (std::any_of(found->second.begin(), found->second.end(), has)) return true;
    return false;
  }

  /// Whether a statement may be part of a kernel at all.
  [[nodiscard]] bool can_fuse(std::uint32_t statement) const {
    const auto* call = ir::as<ir::Call>(*function_.body[statement]->value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    return card != nullptr && card->view == nullptr;
  }

  void add_needed(const ir::Expr& value) {
    for (const ir::Node* node : ir::post_order(value))
      if (const auto* var = ir::as<ir::Var>(*node)) is_needed_.insert(var);
  }

  [[nodiscard]] std::span<const ir::ExprRef> arguments(std::uint32_t statement) const {
    const auto* call = ir::as<ir::Call>(*function_.body[statement]->value);
    return call == nullptr ? std::span<const ir::ExprRef>() : std::span<const ir::ExprRef>(call->args);
  }

  [[nodiscard]] TiledPart kernel_of(std::vector<std::uint32_t> statements) const {
    TiledPart part{.statements = std::move(statements)};
    if (part.statements.size() == 1 && !can_fuse(part.statements[0])) return part;
    TiledPart fused = part;
    write_region(fused, "kernel");
    fused.kernel = kernels_.of(fused.statements, *fused.ops);
    return fused.kernel == nullptr ? part : fused;
  }

  /// The statements as a function of what they read from outside, giving what others read.
  void write_region(TiledPart& part, std::string name) const {
    const std::unordered_set<std::uint32_t> inside(part.statements.begin(), part.statements.end());
    RegionWriter writer(function_, std::move(name));
    for (const std::uint32_t s : part.statements) {
      writer.add(*function_.body[s]);
      for (const auto& target : function_.body[s]->targets)
        if (escapes(*target, inside)) writer.add_result(target);
    }
    std::move(writer).finish(part);
  }

  [[nodiscard]] bool escapes(const ir::Var& var, const std::unordered_set<std::uint32_t>& inside) const {
    if (is_needed_.count(&var) != 0) return true;
    const auto found = readers_.find(&var);
    return found != readers_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](std::uint32_t reader) { return inside.count(reader) == 0; });
  }

  const ir::Function& function_;
  const std::ptrdiff_t most_in_kernel_;
  mutable RegionKernels kernels_;
  std::unordered_map<const ir::Var*, std::vector<std::uint32_t>> readers_;  ///< calls alone
  std::unordered_set<const ir::Var*> is_needed_;  ///< as results, or by regions, which are in no tile
};

/// Regions at the price of what they move and compute.
class FusedRegions final : public pattern::TileSource {
 public:
  explicit FusedRegions(pattern::StepCosts costs) : costs_(costs) {}

  [[nodiscard]] std::string name() const override { return grower_.name(); }
  [[nodiscard]] Result<void> list(const Graph& graph, pattern::CandidateList& out) const override {
    pattern::StepPrices prices(costs_, graph);
    const auto cost = [&](const Graph&, std::span<const NodeId> nodes) { return prices.of(nodes); };
    return pattern::RegionGrower({.cost = cost}).list(graph, out);
  }
  void describe(const Graph& graph, const pattern::CandidateList& list, std::size_t i,
                pattern::Tile& out) const override {
    grower_.describe(graph, list, i, out);
  }
  [[nodiscard]] std::string name_of(const pattern::CandidateList& list, std::size_t i) const override {
    return grower_.name_of(list, i);
  }

 private:
  pattern::StepCosts costs_;
  pattern::RegionGrower grower_;  ///< describes what it is handed, whoever priced it
};

/// How much the calls of a function compute.
class CallOperations {
 public:
  double operator()(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(*statement.value);
    const op::Card* card = op::find_card(call->op);
    if (card == nullptr || card->view != nullptr) return 0;
    op::ValueTypes inputs, results;
    for (const ir::ExprRef& arg : call->args) {
      const auto type = op::operand_type(*arg);
      if (!type) return 0;
      inputs.push_back(in_numbers(*type));
    }
    for (const auto& target : statement.targets) {
      const auto type = op::value_type(*target->type);
      if (!type) return 0;
      results.push_back(in_numbers(*type));
    }
    if (card->attributes.empty()) return counter_.operations({*card, inputs, call->attrs}, results);
    const auto attributes = op::complete_attributes(*card, call->attrs);
    return attributes ? counter_.operations({*card, inputs, *attributes}, results) : 0;
  }

 private:
  static op::ValueType in_numbers(op::ValueType type) {
    for (ir::Dim& dim : type.shape)
      if (!dim.is_constant()) dim = ir::Dim(pattern::usual_size_of(dim));
    return type;
  }

  op::ArithmeticCounter counter_;
};

TiledFunction one_by_one(const ir::Function& function) {
  TiledFunction out;
  out.tiling.optimal = true;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    out.parts.push_back({.statements = {i}});
    out.tiling.uncovered.push_back(i);
  }
  return out;
}

}  // namespace

std::shared_ptr<const pattern::TileSource> compiler::fused_regions(pattern::StepCosts costs) {
  return std::make_shared<FusedRegions>(costs);
}

Result<Graph> compiler::graph_to_tile(const ir::Function& function) {
  return pattern::graph_of(function, op::op_facts(), CallOperations());
}

std::uint64_t compiler::usual_work(std::size_t statements) {
  constexpr std::uint64_t at_least = 300'000'000, for_each = 30'000;
  return std::max<std::uint64_t>(at_least, for_each * statements);
}

Result<TiledFunction> compiler::tile(const ir::Function& function, const pattern::Target& target,
                                     const TilingOptions& options) {
  if (target.sources.empty()) return one_by_one(function);
  const Graph graph = TESSERA_TRY(graph_to_tile(function));
  pattern::Target priced = target;
  pattern::StepPrices prices(target.costs, graph);
  priced.uncovered_cost = [&](const Graph&, NodeId node) { return prices.of(std::span(&node, 1)); };
  TiledFunction out;
  out.tiling = TESSERA_TRY(pattern::tile(graph, priced,
                                         {.work = options.work.value_or(usual_work(function.body.size())),
                                          .keep_candidates = options.keep_candidates}));
  const pattern::Tiling& tiling = out.tiling;
  const PartBuilder builder(function, graph, target.most_ops_in_kernel);
  for (const pattern::TilingStep& step : tiling.order) {
    if (step.kind == pattern::TilingStep::Kind::node) {
      builder.add({step.index}, out.parts);
      continue;
    }
    const pattern::Tile& tile = tiling.tiles[step.index];
    std::vector<std::uint32_t> statements(tile.nodes.begin(), tile.nodes.end());
    if (tile.kernel() == generated)
      builder.add(statements, out.parts);
    else
      builder.add_library(std::move(statements), tile.kernel(), out.parts);
  }
  return out;
}

std::string compiler::to_text(const ir::Function& function, const TiledFunction& tiled) {
  std::string out;
  for (const TiledPart& part : tiled.parts) {
    out += part.kernel != nullptr ? "kernel" : part.ops != nullptr ? printable(part.ops->name) : "step";
    for (std::size_t i = 0; i < part.statements.size(); ++i) {
      const ir::Assign& statement = *function.body[part.statements[i]];
      out +=
          cat(i == 0 ? ": " : ", ", ir::describe(*statement.value), " ", ir::describe(*statement.targets[0]));
    }
    out += "\n";
  }
  return out;
}

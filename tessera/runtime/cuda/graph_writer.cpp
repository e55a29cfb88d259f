#include "tessera/runtime/cuda/graph_writer.h"

#include "tessera/runtime/cuda/gate.h"
#include "tessera/runtime/cuda/launch_order.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// The compute capability from which on kernels can wait for others themselves.
constexpr int first_with_early_starts = 90;

class GraphWriter {
 public:
  GraphWriter(const Context& context, const Stream& capturing, CUgraph graph,
              std::span<const BoundLaunch> launches, std::span<const std::vector<std::uint32_t>> after,
              const LaunchBlame& blame)
      : context_(context),
        capturing_(capturing),
        launches_(launches),
        after_(after),
        blame_(blame),
        graphs_{{0, graph}} {}

  Result<WrittenGraph> run() {
    out_.nodes.resize(launches_.size());
    for (const std::uint32_t i : launch_order(launches_, after_)) {
      auto node = add(i);
      if (!node) return blame_(i, std::move(node).error());
      out_.nodes[i] = *node;
    }
    return std::move(out_);
  }

 private:
  Result<CUgraphNode> add(std::size_t i) {
    const BoundLaunch& launch = launches_[i];
    const CUgraph graph = graphs_.at(launch.graph);
    if (launch.condition != 0) TESSERA_TRY(make_condition(launch.condition, graph));
    const bool is_early = starts_early(i);
    std::vector<CUgraphNode> before;
    if (!is_early)
      for (const std::uint32_t node : after_[i]) before.push_back(out_.nodes[node]);
    if (launch.kind == BoundLaunch::Kind::conditional) return add_bodies(launch, graph, before);
    const auto captured = TESSERA_TRY(captured_of(context_, capturing_, launch));
    const CUgraphNode node =
        TESSERA_TRY(add_node(context_, graph, before, with_handle(launch, out_.conditions), captured));
    if (is_early) TESSERA_TRY(add_early_edge(graph, out_.nodes[after_[i][0]], node));
    return node;
  }

  Result<CUgraphNode> add_bodies(const BoundLaunch& launch, CUgraph graph,
                                 std::span<const CUgraphNode> before) {
    const AddedConditional added = TESSERA_TRY(
        add_conditional(context_, graph, before, launch.conditional, out_.conditions.at(launch.condition)));
    for (std::uint32_t body = 0; body < added.bodies.size(); ++body)
      graphs_[launch.conditional.first_body + body] = added.bodies[body];
    return added.node;
  }

  /// A condition is of the graph that its node is in, where the first launch that knows it is too.
  Result<void> make_condition(std::uint32_t number, CUgraph graph) {
    if (out_.conditions.count(number) != 0) return {};
    CUgraphConditionalHandle handle = 0;
    const Driver& driver = context_.driver();
    TESSERA_TRY(checked_support(driver,
                                driver.conditional_handle_create(&handle, graph, context_.handle(), 0, 0),
                                "cuGraphConditionalHandleCreate"));
    out_.conditions.emplace(number, handle);
    return {};
  }

  /// Between two kernels of which the second waits itself: it is started as soon as all of the first says so
  /// (early_start.h).
  [[nodiscard]] bool starts_early(std::size_t i) const {
    return context_.sm() >= first_with_early_starts && launches_[i].waits_itself && after_[i].size() == 1 &&
           launches_[after_[i][0]].kind == BoundLaunch::Kind::kernel;
  }

  Result<void> add_early_edge(CUgraph graph, CUgraphNode from, CUgraphNode to) const {
    CUgraphEdgeData edge = {};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    TESSERA_CUDA(context_.driver(), cuGraphAddDependencies, graph, &from, &to, &edge, 1);
    return {};
  }

  const Context& context_;
  const Stream& capturing_;
  std::span<const BoundLaunch> launches_;
  std::span<const std::vector<std::uint32_t>> after_;
  const LaunchBlame& blame_;
  std::map<std::uint32_t, CUgraph> graphs_;  ///< by number
  WrittenGraph out_;
};

}  // namespace

BoundLaunch tessera::runtime::cuda::with_handle(BoundLaunch launch, const Conditions& conditions) {
  if (launch.kind == BoundLaunch::Kind::kernel && launch.condition != 0)
    launch.values[0] = conditions.at(launch.condition);
  return launch;
}

Result<WrittenGraph> tessera::runtime::cuda::write_graph(const Context& context, const Stream& capturing,
                                                         CUgraph graph, std::span<const BoundLaunch> launches,
                                                         std::span<const std::vector<std::uint32_t>> after,
                                                         const LaunchBlame& blame) {
  return GraphWriter(context, capturing, graph, launches, after, blame).run();
}

#include "benchmarks/tile/instances.h"

#include <algorithm>
#include <memory>

#include "tessera/base/text.h"
#include "tessera/cover/instances.h"
#include "tessera/op/op_facts.h"
#include "tessera/pattern/graph_builder.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/pattern_text.h"
#include "tessera/pattern/region_grower.h"

using namespace tessera;
using namespace tessera::bench;
using namespace tessera::pattern;

namespace {

std::shared_ptr<const TileSource> library_of(std::initializer_list<const char*> texts) {
  std::vector<Pattern> patterns;
  for (const char* text : texts)
    patterns.push_back(value_or_throw(parse_pattern_text(SourceText("pattern", text), text, op::op_facts())));
  return std::make_shared<PatternLibrary>(std::move(patterns));
}

std::shared_ptr<const TileSource> library_of(const cover::Problem& problem, const Graph& graph) {
  std::vector<Pattern> patterns;
  for (const cover::Candidate& candidate : problem.candidates) {
    PatternParts parts{.name = cat("p", patterns.size()), .cost = {.base = candidate.cost}};
    const auto number_of = [&](NodeId node) {
      return static_cast<std::uint32_t>(std::ranges::find(candidate.nodes, node) - candidate.nodes.begin());
    };
    for (NodeId node : candidate.nodes) {
      PatternNode one{
          .id = graph.id(node), .op = {.names = {graph.op_name(graph.op(node))}}, .lists_inputs = true};
      for (ValueId value : graph.inputs(node)) {
        const std::uint32_t from = number_of(graph.producer(value));
        const bool is_inside = from < candidate.nodes.size();
        one.inputs.push_back(is_inside ? PatternInput{PatternInput::Kind::node, from, 0} : PatternInput{});
      }
      parts.outputs.push_back({.node = static_cast<std::uint32_t>(parts.nodes.size())});
      parts.nodes.push_back(std::move(one));
    }
    auto pattern = Pattern::create(std::move(parts));
    if (pattern) patterns.push_back(*std::move(pattern));  // one that does not hang together is none
  }
  return std::make_shared<PatternLibrary>(std::move(patterns));
}

}  // namespace

TileInstance tessera::bench::chain(std::uint32_t nodes) {
  GraphBuilder builder(op::op_facts());
  static constexpr const char* ops[] = {"a", "b", "c", "d", "e"};
  ValueId value = builder.input("x");
  for (std::uint32_t i = 0; i < nodes; ++i) value = builder.add(ops[i % 5], {value});
  builder.set_output(value);
  return {value_or_throw(std::move(builder).build()),
          {.sources = {library_of({"1:a @cost=2", "1:b @cost=2", "1:c @cost=2", "1:d @cost=2", "1:e @cost=2",
                                   "1:a->2:b @cost=3", "1:b->2:c @cost=3", "1:c->2:d->3:e @cost=4",
                                   "1:e->2:a->3:b @cost=4", "1:d->2:e->3:a->4:b @cost=4.5",
                                   "1:b->2:c->3:d->4:e->5:a @cost=6"})}}};
}

TileInstance tessera::bench::copies(std::uint32_t count) {
  GraphBuilder builder(op::op_facts());
  for (std::uint32_t i = 0; i < count; ++i) {
    ValueId value = builder.add("a", {builder.input("x")});
    for (const char* op : {"b", "c"}) value = builder.add(op, {value});
    builder.set_output(value);
  }
  return {value_or_throw(std::move(builder).build()),
          {.sources = {library_of({"1:a->2:b", "1:b->2:c", "1:a"})}}};
}

TileInstance tessera::bench::woven(std::uint32_t nodes, std::uint32_t product_every) {
  GraphBuilder builder(op::op_facts());
  cover::Random random(1);
  const ValueType type{ir::Dtype::f32, builder.shape({ir::Dim(64), ir::Dim(64)})};
  const ValueId weight = builder.input("weight");
  std::vector<ValueId> values{builder.input("x"), builder.input("y")};
  for (const ValueId value : {weight, values[0], values[1]}) builder.set_type(value, type);
  static constexpr const char* ops[] = {"add", "mul", "sub", "maximum"};
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const auto recent = [&] {
      const auto reach = std::min<std::uint32_t>(16, static_cast<std::uint32_t>(values.size()));
      return values[values.size() - 1 - random.below(reach)];
    };
    const ValueId a = recent();
    const bool is_product = product_every != 0 && i % product_every == product_every - 1;
    const char* op = is_product ? "matmul" : ops[random.below(4)];
    values.push_back(builder.add(op, {a, is_product ? weight : recent()}, {}, type));
  }
  builder.set_sinks_as_outputs();
  return {value_or_throw(std::move(builder).build()),
          {.sources = {library_of({"1:matmul"}), std::make_shared<RegionGrower>()}}};
}

TileInstance tessera::bench::from_problem(const cover::Problem& problem) {
  GraphBuilder builder(op::op_facts());
  std::vector<std::vector<ValueId>> inputs(problem.node_count);
  for (std::uint32_t node = 0; node < problem.node_count; ++node)
    builder.add_node({.id = cat(node), .op = cat("op", node)});
  for (const cover::Edge& edge : problem.edges)
    inputs[edge.consumer].push_back(builder.result(edge.producer));
  for (std::uint32_t node = 0; node < problem.node_count; ++node) builder.set_inputs(node, inputs[node]);
  builder.set_sinks_as_outputs();
  Graph graph = value_or_throw(std::move(builder).build());
  Target target{.sources = {library_of(problem, graph)}};
  target.uncovered_cost = [prices = problem.uncovered_cost](const Graph&, NodeId node) {
    return prices[node];
  };
  return {std::move(graph), std::move(target)};
}

#include "tessera/pattern/step_cost.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/ir/dim.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// The part of the shorter of moving and computing that does not happen beside the longer.
constexpr double not_hidden = 0.25;

double usual_elements(const ir::Shape& shape) {
  double out = 1;
  for (const ir::Dim& dim : shape) out *= static_cast<double>(usual_size_of(dim));
  return out;
}

}  // namespace

std::int64_t tessera::pattern::usual_size_of(const ir::Dim& size) {
  constexpr std::int64_t usual = 64;
  const auto number = ir::evaluate(size, [&](const ir::Var&) { return std::optional(usual); });
  return std::max<std::int64_t>(number.value_or(usual), 0);
}

double StepPrice::total() const {
  return begin + std::max(moving, computing) + not_hidden * std::min(moving, computing);
}

StepPrices::StepPrices(const StepCosts& costs, const Graph& graph)
    : costs_(costs),
      graph_(graph),
      bytes_(graph.value_count(), 0),
      inside_(graph.node_count(), 0),
      read_(graph.value_count(), 0) {
  std::unordered_map<ShapeId, double> elements;
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    const ValueType& type = graph.type(value);
    if (type.shape == none) continue;
    const auto [known, is_new] = elements.try_emplace(type.shape, 0);
    if (is_new) known->second = usual_elements(graph.shape(type.shape));
    bytes_[value] = known->second * (type.dtype ? static_cast<double>(ir::size_of(*type.dtype)) : 4);
  }
}

double StepPrices::bytes_read(std::span<const ValueId> values) {
  double bytes = 0;
  for (ValueId value : values) {
    const NodeId producer = graph_.producer(value);
    if ((producer != none && is_inside(producer)) || read_[value] == call_) continue;
    read_[value] = call_;
    bytes += bytes_[value];
  }
  return bytes;
}

StepPrice StepPrices::parts_of(std::span<const NodeId> nodes) {
  ++call_;
  for (NodeId node : nodes) inside_[node] = call_;
  double bytes = 0, operations = 0;
  for (NodeId node : nodes) {
    operations += graph_.operations(node);
    bytes += bytes_read(graph_.inputs(node)) + bytes_read(graph_.reads(node));
    for (std::uint32_t k = 0; k < graph_.result_count(node); ++k) {
      const ValueId value = graph_.result(node, k);
      const auto consumers = graph_.consumers(value);
      const bool stays = std::ranges::all_of(consumers, [&](NodeId consumer) { return is_inside(consumer); });
      if (graph_.is_output(value) || !stays) bytes += bytes_[value];
    }
  }
  return {.begin = costs_.step_ns,
          .moving = costs_.byte_ns * bytes,
          .computing = costs_.operation_ns * operations};
}

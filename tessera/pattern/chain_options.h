// The chains of ops that a repeated pattern node can stand for.
//
// In a chain each op takes the result of the one before, and nobody else does. Seen from its last op the
// chains form a tree, seen from its first a single line; each is listed once for every place where it can
// end.
#pragma once

#include <vector>

#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// A chain: this node and those of `parent`, its parent and so on.
struct ChainOption {
  NodeId node = none;
  std::uint32_t parent = none;  ///< index in the list
  std::uint32_t length = 1;
  bool is_ahead = false;  ///< the parent stands before this node, not after it
  bool goes_on = false;   ///< a longer chain of the list contains this one
};

/// Whether nobody but `taker` gets anything from `node`, and that its first result.
[[nodiscard]] inline bool is_only_for(const Graph& graph, NodeId node, NodeId taker) {
  if (graph.result_count(node) == 0) return false;
  for (std::uint32_t k = 0; k < graph.result_count(node); ++k) {
    const ValueId value = graph.result(node, k);
    const auto consumers = graph.consumers(value);
    if (graph.is_output(value) || consumers.size() != (k == 0 ? 1U : 0U)) return false;
    if (k == 0 && consumers[0] != taker) return false;
  }
  return true;
}

/// Chains of at most `most` ops that end at `last`. `may_be_in(node)` says which nodes may take part.
template <class MayBeIn>
void list_chains_back(const Graph& graph, NodeId last, std::uint32_t most, MayBeIn may_be_in,
                      std::vector<ChainOption>& out) {
  if (!may_be_in(last)) return;
  out.push_back({.node = last});
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    const ChainOption option = out[i];
    if (option.length == most) continue;
    const auto inputs = graph.inputs(option.node);
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
      const NodeId before = graph.producer(inputs[slot]);
      const auto earlier = inputs.first(slot);
      if (before == none || std::ranges::find(earlier, inputs[slot]) != earlier.end()) continue;
      if (is_only_for(graph, before, option.node) && may_be_in(before))
        out.push_back({.node = before, .parent = i, .length = option.length + 1});
      else
        continue;
      out[i].goes_on = true;
    }
  }
}

/// Chains of at most `most` ops that begin at `first`.
template <class MayBeIn>
void list_chains_ahead(const Graph& graph, NodeId first, std::uint32_t most, MayBeIn may_be_in,
                       std::vector<ChainOption>& out) {
  if (!may_be_in(first)) return;
  out.push_back({.node = first, .is_ahead = true});
  while (out.back().length < most) {
    const ChainOption option = out.back();
    if (graph.result_count(option.node) == 0) return;
    const auto consumers = graph.consumers(graph.result(option.node));
    if (consumers.size() != 1 || !is_only_for(graph, option.node, consumers[0]) || !may_be_in(consumers[0]))
      return;
    const auto inputs = graph.inputs(consumers[0]);
    if (std::ranges::find(inputs, graph.result(option.node)) == inputs.end())
      return;  // taken, but not as an input
    out.back().goes_on = true;
    out.push_back({.node = consumers[0],
                   .parent = static_cast<std::uint32_t>(out.size() - 1),
                   .length = option.length + 1,
                   .is_ahead = true});
  }
}

}  // namespace tessera::pattern

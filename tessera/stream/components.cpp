#include "tessera/stream/components.h"

#include <algorithm>
#include <numeric>

using namespace tessera;
using namespace tessera::stream;

std::uint32_t Components::find(std::uint32_t op) {
  while (parent_[op] != op) {
    parent_[op] = parent_[parent_[op]];
    op = parent_[op];
  }
  return op;
}

void Components::partition(const Trace& trace) {
  const std::uint32_t count = trace.op_count();
  parent_.resize(count);
  std::iota(parent_.begin(), parent_.end(), 0U);
  for (OpIndex op = 0; op < count; ++op) {
    std::uint32_t root = op;
    // The smaller root wins: it is the first op, which gives components their order.
    const auto join = [&](OpIndex other) {
      const std::uint32_t found = find(other);
      const std::uint32_t low = std::min(root, found);
      parent_[std::max(root, found)] = low;
      root = low;
    };
    for (const Operand operand : trace.operands(op))
      if (operand.is_result()) join(trace.producer(operand.index()));
    if (const OpIndex before = trace.previous_effect(op); before != no_op) join(before);
  }
  component_of_.resize(count);
  first_.assign(1, 0);
  for (OpIndex op = 0; op < count; ++op) {
    const std::uint32_t root = find(op);
    if (root == op) {
      component_of_[op] = static_cast<std::uint32_t>(first_.size() - 1);
      first_.push_back(0);
    } else {
      component_of_[op] = component_of_[root];
    }
    ++first_[component_of_[op] + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  ops_.resize(count);
  for (OpIndex op = 0; op < count; ++op) ops_[first_[component_of_[op]]++] = op;
  std::rotate(first_.begin(), first_.end() - 1, first_.end());  // each is now the end of its component
  first_[0] = 0;
}

std::vector<OpIndex> Components::grouped_order(const Trace& trace) const {
  std::vector<OpIndex> out;
  std::size_t last = size();
  for (std::size_t i = 0; i < size(); ++i) {
    const auto members = ops(i);
    if (std::any_of(members.begin(), members.end(), [&](OpIndex op) { return trace.has_effect(op); }))
      last = i;
    else
      out.insert(out.end(), members.begin(), members.end());
  }
  if (last < size()) out.insert(out.end(), ops(last).begin(), ops(last).end());
  return out;
}

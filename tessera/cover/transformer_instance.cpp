// A decoder-only transformer, op by op, with the candidates a fusing compiler would list for it.
#include <algorithm>
#include <set>

#include "tessera/cover/instances.h"

using namespace tessera::cover;

namespace {

using Nodes = std::vector<std::uint32_t>;

class TransformerBuilder {
 public:
  explicit TransformerBuilder(const TransformerShape& shape) : shape_(shape) {}

  Problem build() {
    std::uint32_t x = light({});
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) x = add_layer(x);
    problem_.node_count = static_cast<std::uint32_t>(inputs_.size());
    for (std::uint32_t node = 0; node < problem_.node_count; ++node)
      for (std::uint32_t input : inputs_[node]) outputs_[input].push_back(node);
    for (std::uint32_t node = 0; node < problem_.node_count; ++node) add_candidate({node});
    for (std::uint32_t node = 0; node < problem_.node_count; ++node) add_regions(node);
    problem_.uncovered_cost.assign(problem_.node_count, 1e6);
    return std::move(problem_);
  }

 private:
  std::uint32_t add(const Nodes& inputs, bool is_light) {
    const auto node = static_cast<std::uint32_t>(inputs_.size());
    inputs_.push_back(inputs);
    outputs_.emplace_back();
    is_light_.push_back(is_light);
    for (std::uint32_t input : inputs) problem_.edges.push_back({input, node});
    return node;
  }
  /// An element-wise op, a reduction or a broadcast.
  std::uint32_t light(const Nodes& inputs) { return add(inputs, true); }
  /// A matrix product: at most one in a generated region.
  std::uint32_t heavy(const Nodes& inputs) { return add(inputs, false); }
  std::uint32_t chain(std::uint32_t from, std::uint32_t length) {
    for (std::uint32_t i = 0; i < length; ++i) from = light({from});
    return from;
  }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(inputs_.size()); }
  /// A library pattern over the nodes added since `first`.
  void pattern_since(std::uint32_t first) {
    Nodes nodes;
    for (std::uint32_t node = first; node < count(); ++node) nodes.push_back(node);
    patterns_.push_back(nodes);
  }

  std::uint32_t add_norm(std::uint32_t x) {
    const std::uint32_t first = count();
    const std::uint32_t centred = light({x, light({x})});
    const std::uint32_t deviation = chain(light({centred}), 3);
    const std::uint32_t scaled = chain(light({centred, deviation}), 3);
    pattern_since(first);
    return scaled;
  }
  std::uint32_t add_projection(std::uint32_t x, std::uint32_t tail) {
    const std::uint32_t first = count();
    std::uint32_t y = heavy({x});
    for (std::uint32_t i = 0; i < tail; ++i) {
      y = light({y});
      pattern_since(first);
    }
    return y;
  }
  std::uint32_t add_rotation(std::uint32_t x) {
    const std::uint32_t first = count();
    const std::uint32_t straight = chain(x, 2);
    const std::uint32_t turned = chain(x, 4);
    const std::uint32_t out = light({straight, turned});
    pattern_since(first);
    return out;
  }
  std::uint32_t add_attention(std::uint32_t x) {
    const std::uint32_t q = add_rotation(add_projection(x, 4));
    const std::uint32_t k = add_rotation(add_projection(x, 4));
    const std::uint32_t v = add_projection(x, 4);
    const std::uint32_t first = count();
    const std::uint32_t scores = chain(heavy({q, k}), 3);
    const std::uint32_t shifted = light({scores, light({scores})});
    const std::uint32_t powers = light({shifted});
    const std::uint32_t weights = light({powers, light({powers})});
    const std::uint32_t mixed = heavy({weights, v});
    pattern_since(first);
    return add_projection(chain(mixed, 2), 2);
  }
  std::uint32_t add_feed_forward(std::uint32_t x) {
    const std::uint32_t gate = add_projection(x, 1);
    const std::uint32_t first = count();
    const std::uint32_t cube = light({light({gate, gate}), gate});
    const std::uint32_t inner = chain(light({chain(cube, 1), gate}), 4);
    const std::uint32_t active = light({light({inner}), gate});
    pattern_since(first);
    return add_projection(light({active, add_projection(x, 2)}), 2);
  }
  std::uint32_t add_layer(std::uint32_t x) {
    x = light({x, chain(add_attention(add_norm(x)), 1)});
    return light({x, chain(add_feed_forward(add_norm(x)), 1)});
  }

  /// Connected convex sets with at most one heavy node whose lowest node is `first`, small ones and large
  /// ones, and the patterns that start there.
  void add_regions(std::uint32_t first) {
    while (next_pattern_ < patterns_.size() && patterns_[next_pattern_][0] == first)
      add_candidate(patterns_[next_pattern_++]);
    std::vector<Nodes> found{{first}};
    std::set<Nodes> seen{{first}};
    for (std::size_t i = 0; i < found.size() && found.size() < 8 * shape_.regions_per_node; ++i)
      extend(found[i], seen, found);
    const std::size_t stride = std::max<std::size_t>(1, found.size() / shape_.regions_per_node);
    for (std::size_t i = 1; i < found.size(); i += stride)
      if (is_convex(found[i])) add_candidate(found[i]);
  }
  void extend(const Nodes region, std::set<Nodes>& seen, std::vector<Nodes>& found) {
    if (region.size() == shape_.largest_region) return;
    for (std::uint32_t node : region)
      for (const Nodes* list : {&inputs_[node], &outputs_[node]})
        for (std::uint32_t other : *list) {
          if (other <= region[0] || std::binary_search(region.begin(), region.end(), other)) continue;
          if (!is_light_[other] && !is_all_light(region)) continue;
          Nodes larger = region;
          larger.insert(std::upper_bound(larger.begin(), larger.end(), other), other);
          if (seen.insert(larger).second) found.push_back(std::move(larger));
        }
  }
  [[nodiscard]] bool is_all_light(const Nodes& region) const {
    return std::all_of(region.begin(), region.end(), [&](std::uint32_t node) { return is_light_[node]; });
  }
  /// No path leaves the region and comes back. Numbers are topological, so such a path stays between its
  /// ends.
  [[nodiscard]] bool is_convex(const Nodes& region) const {
    Nodes left;
    for (std::uint32_t node = region.front(); node <= region.back(); ++node) {
      const bool is_inside = std::binary_search(region.begin(), region.end(), node);
      for (std::uint32_t input : inputs_[node]) {
        const bool was_left = std::binary_search(left.begin(), left.end(), input);
        if (is_inside && was_left) return false;
        const bool from_inside = std::binary_search(region.begin(), region.end(), input);
        if (!is_inside && (was_left || from_inside) && (left.empty() || left.back() != node))
          left.push_back(node);
      }
    }
    return true;
  }

  void add_candidate(const Nodes& nodes) {
    Candidate candidate;
    double cost = 4;  // a launch
    for (std::uint32_t node : nodes) {
      candidate.nodes.push_back(node);
      const auto is_outside = [&](std::uint32_t other) {
        return !std::binary_search(nodes.begin(), nodes.end(), other);
      };
      cost += is_light_[node] ? 0.1 : 9.7;
      cost +=
          0.7 * static_cast<double>(std::count_if(inputs_[node].begin(), inputs_[node].end(), is_outside));
      if (std::any_of(outputs_[node].begin(), outputs_[node].end(), is_outside)) cost += 0.9;
    }
    candidate.cost = cost;
    problem_.candidates.push_back(std::move(candidate));
  }

  const TransformerShape& shape_;
  std::vector<Nodes> inputs_;
  std::vector<Nodes> outputs_;
  std::vector<bool> is_light_;
  std::vector<Nodes> patterns_;  ///< ascending by first node
  std::size_t next_pattern_ = 0;
  Problem problem_;
};

}  // namespace

Problem tessera::cover::transformer_problem(const TransformerShape& shape) {
  return TransformerBuilder(shape).build();
}

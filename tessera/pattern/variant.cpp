#include "tessera/pattern/variant.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

using Kind = PatternInput::Kind;

/// Leaves the optional nodes in `absent` out.
class VariantMaker {
 public:
  VariantMaker(const PatternParts& parts, std::vector<bool> absent)
      : parts_(parts), absent_(std::move(absent)) {}

  Variant make() {
    number_.assign(parts_.nodes.size(), none);
    for (std::uint32_t i = 0; i < parts_.nodes.size(); ++i)
      if (!absent_[i]) {
        number_[i] = static_cast<std::uint32_t>(out_.nodes.size());
        out_.nodes.push_back(parts_.nodes[i]);
        out_.original.push_back(i);
      }
    for (PatternNode& node : out_.nodes)
      for (PatternInput& input : node.inputs) input = renumbered(input);
    for (const PatternOutput& output : parts_.outputs) add_output(output);
    return std::move(out_);
  }

 private:
  /// What stands in a slot once the absent nodes hand on what they pass. REQUIRES no cycle.
  [[nodiscard]] PatternInput resolved(PatternInput input) const {
    while (input.kind == Kind::node && absent_[input.index]) {
      const PatternNode& node = parts_.nodes[input.index];
      input = node.inputs.empty() ? PatternInput{} : node.inputs[node.passes];
    }
    return input;
  }
  [[nodiscard]] PatternInput renumbered(const PatternInput& input) const {
    PatternInput out = resolved(input);
    if (out.kind == Kind::node) out.index = number_[out.index];
    return out;
  }
  void add_output(const PatternOutput& output) {
    const PatternInput from = renumbered({Kind::node, output.node, output.result});
    if (from.kind != Kind::node) return;
    const bool is_same_node = !absent_[output.node];
    const PatternOutput out{from.index, from.result, is_same_node && output.is_whole_node};
    if (std::ranges::find(out_.outputs, out) == out_.outputs.end()) out_.outputs.push_back(out);
  }

  const PatternParts& parts_;
  std::vector<bool> absent_;
  std::vector<std::uint32_t> number_;  ///< by node of the pattern
  Variant out_;
};

Result<void> check_acyclic(const PatternParts& parts) {
  std::vector<std::uint32_t> waits_for(parts.nodes.size(), 0);
  std::vector<std::vector<std::uint32_t>> users(parts.nodes.size());
  for (std::uint32_t i = 0; i < parts.nodes.size(); ++i)
    for (const PatternInput& input : parts.nodes[i].inputs)
      if (input.kind == Kind::node) {
        ++waits_for[i];
        users[input.index].push_back(i);
      }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < parts.nodes.size(); ++i)
    if (waits_for[i] == 0) ready.push_back(i);
  for (std::size_t done = 0; done < ready.size(); ++done)
    for (std::uint32_t user : users[ready[done]])
      if (--waits_for[user] == 0) ready.push_back(user);
  if (ready.size() == parts.nodes.size()) return {};
  const auto stuck = std::ranges::find_if(waits_for, [](std::uint32_t count) { return count > 0; });
  return Error(
      ErrorCode::cycle,
      cat("the nodes form a cycle through ",
          quote(shortened(parts.nodes[static_cast<std::size_t>(stuck - waits_for.begin())].id, 60))));
}

/// The first node that no path joins to node 0, or none.
std::uint32_t find_loose_node(const std::vector<PatternNode>& nodes) {
  std::vector<std::uint32_t> group(nodes.size());
  std::iota(group.begin(), group.end(), 0U);
  const auto find = [&](std::uint32_t i) {
    while (group[i] != i) i = group[i] = group[group[i]];
    return i;
  };
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    for (const PatternInput& input : nodes[i].inputs)
      if (input.kind == Kind::node) group[find(i)] = find(input.index);
  for (std::uint32_t i = 1; i < nodes.size(); ++i)
    if (find(i) != find(0)) return i;
  return none;
}

bool is_same(const Variant& a, const Variant& b) {
  const auto same_node = [](const PatternNode& x, const PatternNode& y) {
    return x.inputs == y.inputs && is_same_kind(x, y);
  };
  return a.outputs == b.outputs && std::ranges::equal(a.nodes, b.nodes, same_node);
}

}  // namespace

bool tessera::pattern::is_same_kind(const PatternNode& a, const PatternNode& b) {
  return a.op == b.op && a.lists_inputs == b.lists_inputs && a.lists_attributes == b.lists_attributes &&
         a.attributes == b.attributes && a.dtypes == b.dtypes && a.repeat == b.repeat;
}

Result<std::vector<Variant>> tessera::pattern::expand_variants(const PatternParts& parts) {
  TESSERA_TRY(check_acyclic(parts));
  std::vector<std::uint32_t> optional;
  for (std::uint32_t i = 0; i < parts.nodes.size(); ++i)
    if (parts.nodes[i].is_optional) optional.push_back(i);
  if (optional.size() > optional_node_limit)
    return Error(ErrorCode::limit, cat("the pattern has ", optional.size(),
                                       " optional nodes, expected at most ", optional_node_limit));
  std::vector<Variant> out;
  for (std::uint32_t choice = 0; choice < 1U << optional.size(); ++choice) {
    std::vector<bool> absent(parts.nodes.size(), false);
    for (std::size_t i = 0; i < optional.size(); ++i) absent[optional[i]] = (choice >> i & 1) != 0;
    Variant variant = VariantMaker(parts, std::move(absent)).make();
    if (variant.nodes.empty()) continue;
    if (const std::uint32_t loose = find_loose_node(variant.nodes); loose != none)
      return Error(ErrorCode::invalid_argument, cat(choice == 0 ? "" : "without its optional nodes ",
                                                    "the pattern is not connected: no path joins ",
                                                    quote(shortened(variant.nodes[0].id, 60)), " and ",
                                                    quote(shortened(variant.nodes[loose].id, 60))));
    const auto is_known = [&](const Variant& other) { return is_same(variant, other); };
    if (std::ranges::none_of(out, is_known)) out.push_back(std::move(variant));
  }
  return out;
}

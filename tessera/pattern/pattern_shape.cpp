#include "tessera/pattern/pattern_shape.h"

#include <algorithm>
#include <array>

#include "tessera/pattern/variant.h"

using namespace tessera::pattern;

namespace {

using Kind = PatternInput::Kind;

class ShapeMaker {
 public:
  ShapeMaker(const Variant& variant, const std::vector<PatternExternal>& externals)
      : variant_(variant), externals_(externals), nodes_(static_cast<std::uint32_t>(variant.nodes.size())) {}

  PatternShape make(const std::vector<bool>& is_commutative) {
    out_.nodes = nodes_;
    out_.is_commutative = is_commutative;
    out_.slots.resize(nodes_);
    out_.uses.assign(nodes_ + externals_.size(), 0);
    for (std::uint32_t i = 0; i < nodes_; ++i)
      for (const PatternInput& input : variant_.nodes[i].inputs) {
        out_.slots[i].push_back({vertex_of(input), input.result});
        if (input.kind != Kind::any) ++out_.uses[vertex_of(input)];
      }
    find_private();
    find_kinds();
    sort_nodes();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t vertex_of(const PatternInput& input) const {
    if (input.kind == Kind::any) return none;
    return input.kind == Kind::node ? input.index : nodes_ + input.index;
  }

  void find_private() {
    const auto is_shared = [&](const PatternShape::Slot& slot) {
      return slot.vertex != none && slot.vertex >= nodes_ && out_.uses[slot.vertex] > 1;
    };
    for (std::uint32_t i = 0; i < out_.uses.size(); ++i)
      out_.is_private.push_back(out_.uses[i] == 1 &&
                                (i >= nodes_ || std::ranges::none_of(out_.slots[i], is_shared)));
  }

  /// A kind is the number of the first vertex that is alike.
  void find_kinds() {
    outputs_.resize(nodes_);
    for (const PatternOutput& output : variant_.outputs)
      outputs_[output.node].push_back({output.result, output.is_whole_node ? 1U : 0U});
    for (auto& row : outputs_) std::ranges::sort(row);
    std::vector<std::uint32_t> firsts;
    for (std::uint32_t i = 0; i < out_.uses.size(); ++i) {
      const auto first =
          std::ranges::find_if(firsts, [&](std::uint32_t other) { return is_alike(other, i); });
      out_.kinds.push_back(first == firsts.end() ? i : *first);
      if (first == firsts.end()) firsts.push_back(i);
    }
  }
  [[nodiscard]] bool is_alike(std::uint32_t a, std::uint32_t b) const {
    if ((a < nodes_) != (b < nodes_)) return false;
    if (a >= nodes_) {
      const PatternExternal& x = externals_[a - nodes_];
      const PatternExternal& y = externals_[b - nodes_];
      return x.is_constant == y.is_constant && x.value == y.value && x.dtypes == y.dtypes;
    }
    const PatternNode& x = variant_.nodes[a];
    const PatternNode& y = variant_.nodes[b];
    return x.inputs.size() == y.inputs.size() && is_same_kind(x, y) && outputs_[a] == outputs_[b];
  }

  void sort_nodes() {
    std::vector<std::uint32_t> waits_for(nodes_, 0);
    std::vector<std::vector<std::uint32_t>> users(nodes_);
    for (std::uint32_t i = 0; i < nodes_; ++i)
      for (const PatternShape::Slot& slot : out_.slots[i])
        if (slot.vertex < nodes_) {
          ++waits_for[i];
          users[slot.vertex].push_back(i);
        }
    for (std::uint32_t i = 0; i < nodes_; ++i)
      if (waits_for[i] == 0) out_.from_below.push_back(i);
    for (std::size_t done = 0; done < out_.from_below.size(); ++done)
      for (std::uint32_t user : users[out_.from_below[done]])
        if (--waits_for[user] == 0) out_.from_below.push_back(user);
  }

  const Variant& variant_;
  const std::vector<PatternExternal>& externals_;
  std::uint32_t nodes_;
  std::vector<std::vector<std::array<std::uint32_t, 2>>> outputs_;  ///< by node: those it declares
  PatternShape out_;
};

}  // namespace

PatternShape tessera::pattern::shape_of(const Variant& variant, const std::vector<PatternExternal>& externals,
                                        const std::vector<bool>& is_commutative) {
  return ShapeMaker(variant, externals).make(is_commutative);
}

std::vector<std::uint32_t> TreeClasses::number(std::span<const std::uint32_t> labels) {
  std::vector<std::uint32_t> out(shape_.size(), none);
  const auto intern = [&](std::vector<std::uint64_t> key) {
    return known_.try_emplace(std::move(key), static_cast<std::uint32_t>(known_.size())).first->second;
  };
  for (std::uint32_t i = shape_.nodes; i < shape_.size(); ++i) out[i] = intern({shape_.kinds[i]});
  for (std::uint32_t i : shape_.from_below) {
    // Each slot in one word: the result, whether a core vertex stands there, and which one or whose tree.
    std::vector<std::uint64_t> key{shape_.kinds[i]};
    for (const PatternShape::Slot& slot : shape_.slots[i]) {
      if (slot.vertex == none) {
        key.push_back(~std::uint64_t{0});
        continue;
      }
      const bool is_private = shape_.is_private[slot.vertex];
      const std::uint64_t what = is_private ? out[slot.vertex] : labels[slot.vertex];
      key.push_back(std::uint64_t{slot.result} << 33 | std::uint64_t{is_private ? 1U : 0U} << 32 | what);
    }
    if (shape_.is_commutative[i]) std::sort(key.begin() + 1, key.end());
    out[i] = intern(std::move(key));
  }
  return out;
}

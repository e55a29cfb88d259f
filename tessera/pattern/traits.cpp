#include "tessera/pattern/traits.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

void ListedTraits::add(std::string_view trait, std::string_view op) {
  entries_[std::string(trait)].ops.emplace(op);
}

void ListedTraits::hide_base(std::string_view trait) { entries_[std::string(trait)].hides_base = true; }

bool ListedTraits::has(std::string_view op, std::string_view trait) const {
  const auto entry = entries_.find(trait);
  if (entry != entries_.end()) {
    if (entry->second.ops.contains(op)) return true;
    if (entry->second.hides_base) return false;
  }
  return base_ != nullptr && base_->has(op, trait);
}

std::vector<std::string> ListedTraits::names() const {
  std::vector<std::string> out = base_ != nullptr ? base_->names() : std::vector<std::string>();
  for (const auto& [trait, entry] : entries_) out.push_back(trait);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<std::string> tessera::pattern::find_unknown_trait(const Traits& traits,
                                                                std::string_view trait) {
  const std::vector<std::string> names = traits.names();
  if (std::ranges::find(names, trait) != names.end()) return std::nullopt;
  return cat("unknown trait ", quote(shortened(trait, 60)), ", expected one of ", join(names, ", "));
}

namespace {

/// The ops with a trait, in one text. Canonical names (ir/canonical_name.h).
struct TraitRow {
  std::string_view trait;
  std::string_view ops;
};
constexpr TraitRow rows[] = {
    {trait::commutative,
     "add bit_and bit_or bit_xor eq logical_and logical_or logical_xor maximum minimum mul ne"},
    {trait::elementwise,
     "abs acos acosh add asin asinh atan atan2 atanh bit_and bit_not bit_or bit_xor cast ceil clip cos cosh "
     "div elu eq erf erfc exp exp2 expm1 floor floor_div fmod ge gelu gelu_tanh gt hard_sigmoid hard_swish "
     "identity isfinite isinf isnan le leaky_relu log log10 log1p log2 logical_and logical_not logical_or "
     "logical_xor lt maximum minimum mish mod mul ne neg pow prelu reciprocal relu round rsqrt selu "
     "shift_left shift_right sigmoid sign silu sin sinh softplus softsign sqrt square stop_gradient sub tan "
     "tanh trunc "
     "where"},
    {trait::reduction, "all any l1_norm l2_norm logsumexp max mean min prod sum"},
    {trait::broadcast, "broadcast_to"},
    // An overwriting op behind one of these overwrites what stands before it; see in_place.h.
    {trait::view,
     "broadcast_to chunk flatten flip getitem identity reshape select slice split squeeze stop_gradient "
     "transpose unbind unsqueeze"},
};

}  // namespace

TraitsRef tessera::pattern::default_traits() {
  // Never destroyed: a plan may be in the making beside the program when the process ends.
  static const auto& traits = *[] {
    auto listed = std::make_shared<ListedTraits>();
    for (const auto& [trait, ops] : rows)
      for (std::size_t begin = 0; begin < ops.size();) {
        const std::size_t end = std::min(ops.find(' ', begin), ops.size());
        listed->add(trait, ops.substr(begin, end - begin));
        begin = end + 1;
      }
    return new TraitsRef(listed);
  }();
  return traits;
}

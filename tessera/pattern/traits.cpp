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
  return base_->has(op, trait);
}

std::vector<std::string> ListedTraits::traits() const {
  std::vector<std::string> out = base_->traits();
  for (const auto& [trait, entry] : entries_) out.push_back(trait);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<std::string> tessera::pattern::find_unknown_trait(const ir::OpFacts& facts,
                                                                std::string_view trait) {
  const std::vector<std::string> traits = facts.traits();
  if (std::ranges::find(traits, trait) != traits.end()) return std::nullopt;
  return cat("unknown trait ", quote(shortened(trait, 60)), ", expected one of ", join(traits, ", "));
}

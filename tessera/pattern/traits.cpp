#include "tessera/pattern/traits.h"

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

TraitsRef tessera::pattern::default_traits() {
  static const TraitsRef traits = [] {
    auto listed = std::make_shared<ListedTraits>();
    for (const char* op : {"add", "mul"}) listed->add(trait::commutative, op);
    // An overwriting op behind one of these overwrites what stands before it; see in_place.h.
    for (const char* op : {"broadcast_to", "flatten", "getitem", "identity", "reshape", "select", "slice",
                           "split", "squeeze", "stop_gradient", "transpose", "unbind", "chunk", "unsqueeze"})
      listed->add(trait::view, op);
    return listed;
  }();
  return traits;
}

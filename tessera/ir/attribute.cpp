#include "tessera/ir/attribute.h"

#include <algorithm>
#include <array>

using namespace tessera::ir;

std::string_view tessera::ir::describe_kind(const AttributeValue& value) {
  static constexpr std::array<std::string_view, 9> names{
      "a boolean",          "an integer",       "a float",           "a string", "a dtype",
      "a list of integers", "a list of floats", "a list of strings", "a shape"};
  return names.at(value.index());
}

namespace {

auto position_of(auto& entries, std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
}

}  // namespace

Attributes::Attributes(std::initializer_list<Entry> entries) {
  entries_.reserve(entries.size());
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attributes::set(std::string name, AttributeValue value) {
  const auto at = position_of(entries_, name);
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.emplace(at, std::move(name), std::move(value));
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto at = position_of(entries_, name);
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

#include "tessera/pattern/condition.h"

#include <algorithm>

using namespace tessera::pattern;

namespace {

bool is_equal(const AttributeValue& a, const AttributeValue& b) {
  const auto is_number = [](const AttributeValue& value) {
    return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
  };
  if (a.index() != b.index() && is_number(a) && is_number(b)) return as_number(a) == as_number(b);
  return same_value(a, b);
}

}  // namespace

bool ValueCondition::admits(const AttributeValue& value) const {
  const auto equals_value = [&](const AttributeValue& other) { return is_equal(value, other); };
  if (!one_of.empty() && std::ranges::none_of(one_of, equals_value)) return false;
  if (std::ranges::any_of(none_of, equals_value)) return false;
  if (!at_least && !at_most) return true;
  const auto number = as_number(value);
  if (!number) return false;
  return (!at_least || *number >= *at_least) && (!at_most || *number <= *at_most);
}

bool ValueCondition::operator==(const ValueCondition& other) const {
  return std::ranges::equal(one_of, other.one_of, same_value) &&
         std::ranges::equal(none_of, other.none_of, same_value) && at_least == other.at_least &&
         at_most == other.at_most && capture == other.capture;
}

bool AttributeCondition::holds(const Attributes& attributes) const {
  const AttributeValue* found = attributes.find(name);
  if (found == nullptr) return presence != Presence::required;
  return presence != Presence::absent && value.admits(*found);
}

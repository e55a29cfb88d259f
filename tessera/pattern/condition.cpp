#include "tessera/pattern/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tessera::pattern;

namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "holds every i64 and every double exactly");

/// Exactly; a boolean is no number.
std::optional<long double> number_of(const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<long double>(*integer);
  if (const auto* number = std::get_if<double>(&value)) return static_cast<long double>(*number);
  return std::nullopt;
}

/// 1 and 1.0 are equal; 0 and -0.0 are not, since ops tell them apart.
bool is_equal(const AttributeValue& a, const AttributeValue& b) {
  const auto x = number_of(a), y = number_of(b);
  if (a.index() != b.index() && x && y) return *x == *y && std::signbit(*x) == std::signbit(*y);
  return same_value(a, b);
}

}  // namespace

bool ValueCondition::admits(const AttributeValue& value) const {
  const auto equals_value = [&](const AttributeValue& other) { return is_equal(value, other); };
  if (!one_of.empty() && std::ranges::none_of(one_of, equals_value)) return false;
  if (std::ranges::any_of(none_of, equals_value)) return false;
  if (!at_least && !at_most) return true;
  const auto number = number_of(value);
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

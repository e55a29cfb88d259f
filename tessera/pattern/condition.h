// Conditions on attributes and constants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/pattern/attributes.h"

namespace tessera::pattern {

/// What a value must be. All parts that are given must hold; an empty condition admits everything. An integer
/// and a float are equal if they are the same number; otherwise types count, and floats count by their bits.
struct ValueCondition {
  std::vector<AttributeValue> one_of = {};  ///< empty: any
  std::vector<AttributeValue> none_of = {};
  std::optional<double> at_least = {};  ///< the value is a number and not below
  std::optional<double> at_most = {};
  /// The name under which a match reports the value; empty if it does not. Equal names must get equal values.
  std::string capture = {};

  [[nodiscard]] bool admits(const AttributeValue& value) const;
  /// The same condition, not only one that admits the same.
  bool operator==(const ValueCondition& other) const;
  /// Only this value.
  static ValueCondition equal_to(AttributeValue value) { return {.one_of = {std::move(value)}}; }
  /// Any value, reported as `name`.
  static ValueCondition captured(std::string name) { return {.capture = std::move(name)}; }
};

/// What an attribute of a node must be.
struct AttributeCondition {
  enum class Presence : std::uint8_t {
    required,  ///< it is there and the condition holds
    optional,  ///< if it is there, the condition holds
    absent,    ///< it is not there
  };
  std::string name;
  ValueCondition value = {};
  Presence presence = Presence::required;

  [[nodiscard]] bool holds(const Attributes& attributes) const;
  bool operator==(const AttributeCondition&) const = default;
};

}  // namespace tessera::pattern

// Typed attributes of an op, kept sorted by name: the order they were given in is not part of a node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/ir/type.h"

namespace tessera::ir {

/// Floats are compared by bits; an empty list and an absent attribute are different.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string, Dtype, std::vector<std::int64_t>,
                                    std::vector<double>, std::vector<std::string>, Shape>;

/// "a boolean", "an integer", …: the kind of the value, for messages.
[[nodiscard]] std::string_view describe_kind(const AttributeValue& value);

class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  /// Sets or replaces.
  void set(std::string name, AttributeValue value);
  /// The value, or null.
  [[nodiscard]] const AttributeValue* find(std::string_view name) const;
  /// The value as a T, or null if it is absent or of another type.
  template <class T>
  [[nodiscard]] const T* get(std::string_view name) const {
    const AttributeValue* value = find(name);
    return value == nullptr ? nullptr : std::get_if<T>(value);
  }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Sorted by name.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// For rewriting the values in place.
  [[nodiscard]] std::vector<Entry>& mutable_entries() { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tessera::ir

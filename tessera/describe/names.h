// The names of a description. Nodes and regions share one set of names, since dependencies may name either.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>

#include "tessera/describe/graph.h"

namespace tessera::description {

class Names {
 public:
  /// Collects the names, reporting those that are empty or used twice.
  Names(const Description& description, Report& report);

  [[nodiscard]] std::optional<Item> item(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint32_t> node(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint32_t> region(std::string_view id) const;
  [[nodiscard]] std::optional<std::uint32_t> buffer(std::string_view id) const;
  [[nodiscard]] bool has_block(std::string_view id) const { return blocks_.contains(id); }
  [[nodiscard]] std::optional<std::uint32_t> block(std::string_view id) const;

 private:
  std::unordered_map<std::string_view, Item> items_;
  std::unordered_map<std::string_view, std::uint32_t> buffers_;
  std::unordered_map<std::string_view, std::uint32_t> blocks_;
};

}  // namespace tessera::description

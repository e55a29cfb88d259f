#include "tessera/describe/names.h"

using namespace tessera;
using namespace tessera::description;

namespace {

template <class Map>
std::optional<std::uint32_t> find_in(const Map& map, std::string_view id) {
  const auto found = map.find(id);
  return found == map.end() ? std::nullopt : std::optional<std::uint32_t>(found->second);
}

/// Adds every thing of a list to a map, reporting names that are empty or taken.
template <class List, class Map, class Value>
void collect(const Description& d, const List& list, std::string_view what, Map& map, Value&& value,
             Report& report) {
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    const std::string& id = list[i].id;
    const bool is_new = map.emplace(id, value(i)).second;
    if (id.empty() || !is_new)
      report.add({.message = id.empty() ? cat("a ", what, " has no id")
                                        : cat("id ", shown(id), " of a ", what, " is used twice"),
                  .at = d.span_of(list[i].at)});
  }
}

}  // namespace

Names::Names(const Description& d, Report& report) {
  const auto position = [](std::uint32_t i) { return i; };
  collect(d, d.blocks, "block", blocks_, position, report);
  collect(d, d.buffers, "buffer", buffers_, position, report);
  collect(
      d, d.nodes, "node", items_,
      [](std::uint32_t i) {
        return Item{false, i};
      },
      report);
  collect(
      d, d.regions, "region", items_,
      [](std::uint32_t i) {
        return Item{true, i};
      },
      report);
}

std::optional<Item> Names::item(std::string_view id) const {
  const auto found = items_.find(id);
  return found == items_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Names::node(std::string_view id) const {
  const auto found = item(id);
  return found && !found->is_region ? std::optional(found->index) : std::nullopt;
}

std::optional<std::uint32_t> Names::region(std::string_view id) const {
  const auto found = item(id);
  return found && found->is_region ? std::optional(found->index) : std::nullopt;
}

std::optional<std::uint32_t> Names::buffer(std::string_view id) const { return find_in(buffers_, id); }
std::optional<std::uint32_t> Names::block(std::string_view id) const { return find_in(blocks_, id); }

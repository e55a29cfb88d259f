// A description with its names resolved to positions: what the passes of validation work on.
//
// Positions are indices into the lists of the description, and into the lists here that go beyond it: buffers
// also has those that writing pins without a named buffer got, scopes has the launch itself and every branch
// of every region.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tessera/describe/description.h"
#include "tessera/describe/diagnostic.h"
#include "tessera/op/card.h"

namespace tessera::description {

inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

/// A parameter of a resolved node. The parameters of an op are those of its card.
struct Pin {
  Parameter declared;
  std::uint32_t buffer = no_index;     ///< none: a scalar, or a pin that is not required
  std::uint32_t edge = no_index;       ///< the edge that leads here
  std::uint32_t from_node = no_index;  ///< where that edge begins
  std::uint32_t from_pin = no_index;
  bool is_source = false;    ///< an edge begins here
  bool is_left_out = false;  ///< a number of an op that the description does not give

  [[nodiscard]] bool is_scalar() const { return declared.scalar.has_value(); }
};

struct GraphNode {
  std::vector<Pin> pins;
  std::uint32_t scope = 0;
  const op::Card* card = nullptr;  ///< of an op that exists
  ir::Attributes attributes;       ///< of an op, complete
  bool is_broken = false;          ///< has errors that make what follows from it uncertain
};

struct GraphBuffer {
  std::string name;
  Lifetime lifetime = Lifetime::region;
  bool has_type = false;  ///< dtype and shape are known: of a named buffer always
  Dtype dtype = Dtype::f32;
  Extents shape;
  std::uint64_t bytes = 0;
  std::uint32_t region = no_index;  ///< where a region buffer lives
  std::uint32_t producer =
      no_index;  ///< the node whose pin this is, for a buffer without a name in the description
  bool is_appended = false;
  bool is_used = false;
};

/// The launch (scope 0), or a branch of a region.
struct Scope {
  std::uint32_t region = no_index;
  std::uint32_t branch = 0;
  std::uint32_t parent = no_index;  ///< the scope the region stands in
  std::uint32_t depth = 0;
};

/// A node, or a region seen from the scope it stands in.
struct Item {
  bool is_region = false;
  std::uint32_t index = 0;

  auto operator<=>(const Item&) const = default;
};

/// Something that must come first, as it was said.
struct Order {
  Item before;
  Item after;
  std::uint32_t edge = no_index;        ///< by this edge
  std::uint32_t dependency = no_index;  ///< by this dependency
};

struct Graph {
  const Description* description = nullptr;
  std::vector<GraphNode> nodes;
  std::vector<GraphBuffer> buffers;
  std::vector<Scope> scopes;
  std::vector<std::uint32_t> region_scope;  ///< the scope a region stands in
  std::vector<std::uint32_t> first_branch;  ///< the scope of a region's branch 0; the others follow
  std::vector<std::uint32_t> condition;     ///< the buffer of a region's condition or count, or no_index
  std::vector<std::uint32_t> index_buffer;  ///< the buffer for the number of the iteration, or no_index
  std::vector<Order> orders;

  [[nodiscard]] std::uint32_t scope_of(const Item& item) const {
    return item.is_region ? region_scope[item.index] : nodes[item.index].scope;
  }
  [[nodiscard]] const std::string& id_of(const Item& item) const {
    return item.is_region ? description->regions[item.index].id : description->nodes[item.index].id;
  }
  /// The item of scope `scope` that `item` is or stands in. REQUIRES that it stands below `scope`.
  [[nodiscard]] Item lifted(Item item, std::uint32_t scope) const;
  /// The innermost scope that contains both.
  [[nodiscard]] std::uint32_t common_scope(std::uint32_t a, std::uint32_t b) const;

  [[nodiscard]] Diagnostic about(const Item& item, std::string message) const;
  [[nodiscard]] Diagnostic about(std::uint32_t node, const Pin& pin, std::string message) const;
};

/// Scopes, those inside regions before what the regions stand in.
[[nodiscard]] std::vector<std::uint32_t> deepest_first(const Graph& graph);

}  // namespace tessera::description

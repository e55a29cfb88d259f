// A tile of an answer: what one kernel computes, in terms of the graph.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/small_vector.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// What a pattern calls a node, and whether it stands for a chain of ops.
struct PatternNodeName {
  std::string id;
  bool is_chain = false;
};

/// What the tiles of one pattern share.
struct TileKind {
  std::string name;  ///< of the pattern, or "region"
  std::string kernel;
  std::vector<PatternNodeName> nodes = {};  ///< none: the nodes of a tile go by their own ids
};

/// The nodes of the graph that a node of a pattern stands for: one, or the ops of a chain in their order.
struct NodeImage {
  std::string_view id;
  std::span<const NodeId> nodes;
  bool is_chain = false;
};

/// The value that a named external input of a pattern stands for.
struct ExternalImage {
  std::string name;
  ValueId value = none;
};

/// An attribute or a constant that a pattern captured.
struct Capture {
  std::string name;
  AttributeValue value;
};

struct Tile {
  std::uint32_t source = 0;  ///< which tile source of the target it is from
  double cost = 0;
  std::shared_ptr<const TileKind> kind = {};
  SmallVector<NodeId, 8> nodes = {};  ///< covered, ascending; in a function the statements
  /// For each node of the kind where it lies, or for a chain the number of its ops and those: for images_of.
  SmallVector<NodeId, 4> node_images = {};
  std::vector<ExternalImage> externals = {};
  std::vector<Capture> captures = {};
  SmallVector<ValueId, 4> inputs =
      {};  ///< values from outside that it takes, each once, in the order of first use
  SmallVector<ValueId, 2> outputs = {};  ///< values that escape from it, ascending

  /// REQUIRES kind is set, as it is once the tile is described.
  [[nodiscard]] const std::string& name() const { return kind->name; }
  [[nodiscard]] const std::string& kernel() const { return kind->kernel; }
};

/// Where the pattern's nodes lie, in their order. Views into `graph` and `tile`.
[[nodiscard]] std::vector<NodeImage> images_of(const Graph& graph, const Tile& tile);

/// Sets `inputs` and `outputs` from `nodes`.
void find_boundary(const Graph& graph, Tile& tile);

}  // namespace tessera::pattern

// A tile of an answer: what one kernel computes, in terms of the graph.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/small_vector.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// The nodes of the graph that a node of a pattern stands for: one, or the ops of a chain in their order.
struct NodeImage {
  std::string id;
  SmallVector<NodeId, 2> nodes;
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
  std::string name = {};     ///< of the pattern, or "region"
  std::string kernel = {};
  double cost = 0;
  SmallVector<NodeId, 8> nodes = {};  ///< covered, ascending; in a function the statements
  std::vector<NodeImage> images =
      {};  ///< in the order of the pattern; a region lists its nodes under their own ids
  std::vector<ExternalImage> externals = {};
  std::vector<Capture> captures = {};
  SmallVector<ValueId, 4> inputs =
      {};  ///< values from outside that it takes, each once, in the order of first use
  SmallVector<ValueId, 2> outputs = {};  ///< values that escape from it, ascending
};

/// Sets `inputs` and `outputs` from `nodes`.
void find_boundary(const Graph& graph, Tile& tile);

}  // namespace tessera::pattern

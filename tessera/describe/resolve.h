// Turns the names of a description into positions and finds every name that is wrong: the first pass of
// validation.
#pragma once

#include "tessera/describe/graph.h"
#include "tessera/describe/names.h"

namespace tessera::description {

/// The description by positions. Errors go to `report`; what they are about is left out, or marked as broken,
/// so that the passes after it can go on. The description must outlive the graph.
[[nodiscard]] Graph resolve(const Description& description, Report& report);

// Its parts, in the order they run.

/// The scopes of all regions, and where nodes and regions stand.
void resolve_regions(Graph& graph, const Names& names, Report& report);
/// The parameters of all nodes; those of ops from their cards.
void resolve_parameters(Graph& graph, const Names& names, Report& report);
/// Those of one; without names, buffers are left to the caller.
void resolve_parameters(Graph& graph, std::uint32_t node, const Names* names, Report& report);
/// Edges and dependencies, and with them the buffers of all pins.
void resolve_wiring(Graph& graph, const Names& names, Report& report);

}  // namespace tessera::description

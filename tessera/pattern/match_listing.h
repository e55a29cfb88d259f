// For tests: graphs and patterns from short texts, and what the matcher finds, as texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/pattern/graph.h"
#include "tessera/pattern/pattern.h"
#include "tessera/pattern/tiler.h"

namespace tessera::pattern {

/// A graph from JSON if the text begins with '{', else from the short text form. Throws what is wrong.
[[nodiscard]] Graph graph_from(std::string_view text);
/// A pattern likewise; as JSON it is one entry of a library. Its name is "p" unless the JSON begins with one.
[[nodiscard]] Pattern pattern_from(std::string_view text);
/// A pattern from the short text form, with a name.
[[nodiscard]] Pattern named(std::string name, std::string_view text);
/// The message for a graph or a pattern that must be wrong, with its place; "" if it is not.
[[nodiscard]] std::string graph_error(std::string_view text);
[[nodiscard]] std::string pattern_error(std::string_view text);

/// One line for each match, sorted: "a=1 b=2 x=p". Chains are "c=[3 4]".
[[nodiscard]] std::vector<std::string> matches(const Graph& graph, const Pattern& pattern);
[[nodiscard]] std::vector<std::string> matches(std::string_view graph, std::string_view pattern);

inline constexpr TileOptions by_coverage{.objective = Objective::coverage};

/// A target with these patterns as its only source.
[[nodiscard]] Target target_of(std::vector<Pattern> patterns);
/// The tiling, one line for each tile in the order in which they run: "p: 1 2". Throws what is wrong.
[[nodiscard]] Tiling tiling_of(const Graph& graph, std::vector<Pattern> patterns,
                               const TileOptions& options = {});
[[nodiscard]] std::vector<std::string> tiles_of(const Graph& graph, const Tiling& tiling);

}  // namespace tessera::pattern

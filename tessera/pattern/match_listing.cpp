#include "tessera/pattern/match_listing.h"

#include <algorithm>
#include <memory>

#include "tessera/base/text.h"
#include "tessera/pattern/graph_json.h"
#include "tessera/pattern/graph_text.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/pattern_json.h"
#include "tessera/pattern/pattern_text.h"
#include "tests/support/op_facts.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

Result<Graph> try_graph(std::string_view text) {
  if (!text.starts_with("{")) return parse_graph_text(SourceText("graph", std::string(text)), op::op_facts());
  const JsonDocument document = TESSERA_TRY(JsonDocument::parse("graph", std::string(text)));
  return read_graph(document, op::op_facts());
}

Result<Pattern> try_pattern(std::string_view text) {
  if (!text.starts_with("{"))
    return parse_pattern_text(SourceText("pattern", std::string(text)), "p", op::op_facts());
  const bool has_name = text.starts_with("{\"name\"");
  const std::string library =
      cat("{\"patterns\":[{", has_name ? "" : "\"name\":\"p\",", text.substr(1), "]}");
  const JsonDocument document = TESSERA_TRY(JsonDocument::parse("pattern", library));
  std::vector<Pattern> patterns = TESSERA_TRY(read_patterns(document, op::op_facts()));
  return std::move(patterns.front());
}

std::string message_of(const Error& error) {
  const std::string at = error.span().to_text();
  return at.empty() ? error.message() : cat(at, ": ", error.message());
}

std::string line_of(const Graph& graph, const Tile& tile) {
  std::vector<std::string> words;
  for (const NodeImage& image : images_of(graph, tile)) {
    std::vector<std::string> ids;
    for (NodeId node : image.nodes) ids.push_back(graph.id(node));
    words.push_back(image.is_chain ? cat(image.id, "=[", join(ids, " "), "]") : cat(image.id, "=", ids[0]));
  }
  for (const ExternalImage& external : tile.externals)
    words.push_back(cat(external.name, "=", graph.value_name(external.value)));
  return join(words, " ");
}

}  // namespace

Graph tessera::pattern::graph_from(std::string_view text) { return value_or_throw(try_graph(text)); }
Pattern tessera::pattern::pattern_from(std::string_view text) { return value_or_throw(try_pattern(text)); }

Pattern tessera::pattern::named(std::string name, std::string_view text) {
  return value_or_throw(
      parse_pattern_text(SourceText("pattern", std::string(text)), std::move(name), op::op_facts()));
}

std::string tessera::pattern::graph_error(std::string_view text) {
  const auto graph = try_graph(text);
  return graph ? "" : message_of(graph.error());
}

std::string tessera::pattern::pattern_error(std::string_view text) {
  const auto pattern = try_pattern(text);
  return pattern ? "" : message_of(pattern.error());
}

std::vector<std::string> tessera::pattern::matches(const Graph& graph, const Pattern& pattern) {
  const PatternLibrary library({pattern});
  CandidateList list;
  value_or_throw(library.list(graph, list));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Tile tile;
    library.describe(graph, list, i, tile);
    out.push_back(line_of(graph, tile));
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> tessera::pattern::matches(std::string_view graph, std::string_view pattern) {
  return matches(graph_from(graph), pattern_from(pattern));
}

Target tessera::pattern::target_of(std::vector<Pattern> patterns) {
  return {.name = "test", .sources = {std::make_shared<PatternLibrary>(std::move(patterns))}};
}

Tiling tessera::pattern::tiling_of(const Graph& graph, std::vector<Pattern> patterns,
                                   const TileOptions& options) {
  return value_or_throw(tile(graph, target_of(std::move(patterns)), options));
}

std::vector<std::string> tessera::pattern::tiles_of(const Graph& graph, const Tiling& tiling) {
  std::vector<std::string> out;
  for (const Tile& tile : tiling.tiles) {
    std::vector<std::string> ids;
    for (NodeId node : tile.nodes) ids.push_back(graph.id(node));
    out.push_back(cat(tile.name(), ": ", join(ids, " ")));
  }
  return out;
}

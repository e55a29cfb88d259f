#include "cli/tile_report.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "cli/files.h"
#include "tessera/base/json.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// How many uncovered nodes the text names.
constexpr std::size_t shown_uncovered = 20;

double rounded_ms(double ms) { return std::round(ms * 1000) / 1000; }

void write_map(JsonWriter& json, const Graph& graph, const Tile& tile) {
  json.key("map").begin_object();
  for (const NodeImage& image : images_of(graph, tile)) {
    json.key(image.id);
    if (image.nodes.size() == 1 && !image.is_chain) {
      json.value(graph.id(image.nodes[0]));
      continue;
    }
    json.begin_array();
    for (NodeId node : image.nodes) json.value(graph.id(node));
    json.end_array();
  }
  json.end_object();
}

std::string names_of(const Graph& graph, std::span<const NodeId> nodes, std::size_t limit = none) {
  std::string out;
  for (std::size_t i = 0; i < nodes.size() && i < limit; ++i)
    out += cat(i == 0 ? "" : " ", printable(shortened(graph.id(nodes[i]), 60)));
  if (nodes.size() > limit) out += cat(" … and ", nodes.size() - limit, " more");
  return out;
}

/// Only a complete list of candidates makes the best of them the best there is.
bool is_best_of_all(const Tiling& tiling) { return tiling.optimal && tiling.gaps.empty(); }

std::string proof_of(const Tiling& tiling) {
  if (is_best_of_all(tiling)) return "optimal";
  if (tiling.optimal) return "best of the listed candidates, which are not all";
  return cat("at least ", tiling.bound, ", gap ", tiling.gap,
             tiling.gaps.empty() ? "" : ", over the listed candidates, which are not all");
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// A colour of the wheel for tile i; neighbours in the order differ well.
std::string colour(std::size_t i) {
  const double hue = std::fmod(static_cast<double>(i) * 0.618033988749895, 1.0);
  return cat("\"", std::round(hue * 1000) / 1000, " 0.25 1.0\"");
}

std::string dot_node(const Graph& graph, NodeId node, std::string_view style) {
  return cat("n", node, " [label=\"", escaped(shortened(graph.id(node), 60)), "\\n",
             escaped(shortened(graph.op_name(graph.op(node)), 60)), "\"", style, "];\n");
}

std::string list_candidates(const Graph& graph, const Target& target, const Tiling& tiling) {
  std::string out = cat(tiling.candidates, " candidates\n");
  const CandidateList& list = *tiling.list;
  for (std::size_t i = 0; i < list.size(); ++i)
    out += cat(i, " ", target.sources[list.source(i)]->name(), " ",
               printable(target.sources[list.source(i)]->name_of(list, i)), " cost ", list.cost(i), ": ",
               names_of(graph, list.nodes(i)), "\n");
  for (const std::string& gap : list.gaps()) out += cat("not complete: ", gap, "\n");
  return out;
}

std::string list_subproblems(const Graph& graph, const Tiling& tiling) {
  std::string out = cat(tiling.subproblems.size(), " subproblems\n");
  for (std::size_t i = 0; i < tiling.subproblems.size(); ++i) {
    const cover::Subproblem& part = tiling.subproblems[i];
    out += cat(i, " ");
    if (part.same_as != i)
      out += cat("as ", part.same_as, ", not solved again");
    else
      out += cat("by ", cover::to_string(part.method), ", ", part.states, " states");
    out +=
        cat("; ", part.nodes.size(), " nodes, ", part.candidates, " candidates, cost ", part.cost, ", ",
            part.optimal ? "optimal" : cat("at least ", part.bound), ": ", names_of(graph, part.nodes), "\n");
  }
  return out;
}

}  // namespace

std::string tessera::cli::to_json(const Graph& graph, const Tiling& tiling) {
  JsonWriter json;
  json.begin_object().member("nodes", graph.node_count()).member("coverage", tiling.covered_nodes(graph));
  json.member("cost", tiling.cost);
  json.key("tiles").begin_array();
  for (const Tile& tile : tiling.tiles) {
    json.begin_object().member("pattern", tile.name());
    write_map(json, graph, tile);
    json.end_object();
  }
  json.end_array();
  json.key("order").begin_array();
  for (std::size_t i = 0; i < tiling.tiles.size(); ++i) json.value(i);
  json.end_array();
  json.key("uncovered").begin_array();
  for (NodeId node : tiling.uncovered) json.value(graph.id(node));
  json.end_array();
  json.member("optimal", is_best_of_all(tiling)).member("bound", tiling.bound).member("gap", tiling.gap);
  json.member("candidates", tiling.candidates).member("complete", tiling.gaps.empty());
  if (!tiling.gaps.empty()) json.member("incomplete", tiling.gaps);
  return json.member("ms", rounded_ms(tiling.list_ms + tiling.solve_ms)).end_object().text();
}

std::string tessera::cli::to_text(const Graph& graph, const Tiling& tiling) {
  std::string out =
      cat(tiling.covered_nodes(graph), " of ", graph.node_count(), " nodes covered by ", tiling.tiles.size(),
          " tiles, cost ", tiling.cost, " (", proof_of(tiling), "; ", tiling.candidates, " candidates, ",
          rounded_ms(tiling.list_ms + tiling.solve_ms), " ms)\n");
  for (const Tile& tile : tiling.tiles) {
    out += cat("  ", printable(tile.name()), ":");
    for (const NodeImage& image : images_of(graph, tile))
      out += cat(" ", printable(image.id), "=", names_of(graph, image.nodes));
    out += "\n";
  }
  if (!tiling.uncovered.empty())
    out += cat("  uncovered: ", names_of(graph, tiling.uncovered, shown_uncovered), "\n");
  for (const std::string& gap : tiling.gaps) out += cat("  not all candidates were listed: ", gap, "\n");
  return out;
}

std::string tessera::cli::to_dot(const Graph& graph, const Tiling& tiling) {
  std::string out = "digraph tiling {\n  node [shape=box, style=filled, fillcolor=white];\n";
  for (std::size_t i = 0; i < tiling.tiles.size(); ++i) {
    const Tile& tile = tiling.tiles[i];
    out += cat("  subgraph cluster_", i, " {\n    label=\"", i, ": ", escaped(tile.name()),
               "\"; style=filled; color=", colour(i), ";\n");
    for (NodeId node : tile.nodes) out += cat("    ", dot_node(graph, node, ""));
    out += "  }\n";
  }
  for (NodeId node : tiling.uncovered) out += cat("  ", dot_node(graph, node, ", style=dashed"));
  std::vector<bool> is_drawn(graph.value_count(), false);
  for (NodeId node = 0; node < graph.node_count(); ++node)
    for (ValueId value : graph.inputs(node)) {
      if (graph.producer(value) != none) {
        out += cat("  n", graph.producer(value), " -> n", node, ";\n");
        continue;
      }
      if (!is_drawn[value])
        out += cat("  v", value, " [label=\"", escaped(shortened(graph.external(value).name, 60)),
                   "\", shape=plaintext, style=solid];\n");
      is_drawn[value] = true;
      out += cat("  v", value, " -> n", node, ";\n");
    }
  return out + "}\n";
}

Result<void> tessera::cli::write_trace(const std::string& folder, const Graph& graph, const Target& target,
                                       const Tiling& tiling) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return Error(ErrorCode::io, cat("cannot make folder ", shown(folder), ": ", std::strerror(errno)));
  TESSERA_TRY(write_text(cat(folder, "/candidates.txt"), list_candidates(graph, target, tiling)));
  TESSERA_TRY(write_text(cat(folder, "/subproblems.txt"), list_subproblems(graph, tiling)));
  return write_text(cat(folder, "/result.txt"), to_text(graph, tiling));
}

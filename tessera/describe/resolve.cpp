#include "tessera/describe/resolve.h"

#include "tessera/base/checked.h"
#include "tessera/op/value_type.h"

using namespace tessera;
using namespace tessera::description;

namespace {

Diagnostic about_buffer(const Description& d, const Buffer& buffer, std::string message) {
  return {.message = cat("buffer ", shown(buffer.id), ": ", message), .at = d.span_of(buffer.at)};
}

std::optional<std::string> shape_problem(const Buffer& buffer) {
  if (buffer.shape.size() > op::max_rank)
    return cat("rank ", buffer.shape.size(), " is more than ", op::max_rank);
  for (std::int64_t size : buffer.shape)
    if (size < 0) return cat("size ", size, " is negative");
  const auto count = checked_product(buffer.shape);
  if (!count || !checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(buffer.dtype))))
    return std::string("its bytes do not fit 64 bits");
  return std::nullopt;
}

void resolve_buffers(Graph& graph, const Names& names, Report& report) {
  const Description& d = *graph.description;
  for (const Buffer& buffer : d.buffers) {
    GraphBuffer out{
        .name = buffer.id, .lifetime = buffer.lifetime, .dtype = buffer.dtype, .shape = buffer.shape};
    if (const auto problem = shape_problem(buffer)) {
      report.add(about_buffer(d, buffer, *problem));
    } else if (!buffer.incomplete) {
      out.has_type = true;
      out.bytes = static_cast<std::uint64_t>(op::element_count(out.shape)) * ir::size_of(out.dtype);
    }
    if (!buffer.region.empty()) {
      const auto region = names.region(buffer.region);
      if (buffer.lifetime != Lifetime::region && !buffer.incomplete)
        report.add(about_buffer(d, buffer, "only a region buffer names a region"));
      else if (!region)
        report.add(about_buffer(d, buffer, cat("there is no region ", shown(buffer.region))));
      else
        out.region = *region;
    }
    graph.buffers.push_back(std::move(out));
  }
}

/// Blocks may nest in any order; a chain of parents that comes around is reported once for each ring.
void check_blocks(const Description& d, const Names& names, Report& report) {
  std::vector<std::uint32_t> seen(d.blocks.size(), no_index);
  for (std::uint32_t first = 0; first < d.blocks.size(); ++first) {
    std::uint32_t at = first;
    while (at != no_index && seen[at] == no_index) {
      seen[at] = first;
      const Block& block = d.blocks[at];
      const auto parent = block.parent.empty() ? std::nullopt : names.block(block.parent);
      if (!block.parent.empty() && !parent)
        report.add({.block = block.id,
                    .message = cat("there is no block ", shown(block.parent)),
                    .at = d.span_of(block.at)});
      at = parent.value_or(no_index);
    }
    if (at != no_index && seen[at] == first)
      report.add({.code = ErrorCode::cycle,
                  .block = d.blocks[at].id,
                  .message = "the block stands in itself",
                  .at = d.span_of(d.blocks[at].at)});
  }
}

template <class Thing>
void check_block_name(const Graph& graph, const Names& names, const std::vector<Thing>& things,
                      bool are_regions, Report& report) {
  for (std::uint32_t i = 0; i < things.size(); ++i)
    if (!things[i].block.empty() && !names.has_block(things[i].block))
      report.add(graph.about(Item{are_regions, i}, cat("there is no block ", shown(things[i].block))));
}

}  // namespace

Graph tessera::description::resolve(const Description& description, Report& report) {
  Graph graph{.description = &description};
  graph.nodes.resize(description.nodes.size());
  const Names names(description, report);
  resolve_buffers(graph, names, report);
  check_blocks(description, names, report);
  check_block_name(graph, names, description.nodes, false, report);
  check_block_name(graph, names, description.regions, true, report);
  resolve_regions(graph, names, report);
  resolve_parameters(graph, names, report);
  resolve_wiring(graph, names, report);
  return graph;
}

#include "tessera/describe/description.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::description;

std::string_view tessera::description::to_string(Access access) {
  static constexpr std::string_view names[] = {"read", "write", "read_write", "append"};
  return names[static_cast<std::size_t>(access)];
}

std::string_view tessera::description::to_string(Lifetime lifetime) {
  static constexpr std::string_view names[] = {"external", "graph", "region"};
  return names[static_cast<std::size_t>(lifetime)];
}

std::string_view tessera::description::to_string(NodeKind kind) {
  static constexpr std::string_view names[] = {"op", "kernel", "captured"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view tessera::description::to_string(RegionKind kind) {
  static constexpr std::string_view names[] = {"if", "switch", "while", "for"};
  return names[static_cast<std::size_t>(kind)];
}

SourceSpan Description::span_of(const Place& place) const {
  if (place.line == 0) return {};
  return {place.file < files.size() ? files[place.file] : std::string(), place.line, place.column};
}

std::string tessera::description::block_path(const Description& d, std::string_view block) {
  std::string out(block);
  // A ring of parents, which validation refuses, ends too.
  for (std::size_t depth = 0; depth < d.blocks.size(); ++depth) {
    const auto found =
        std::find_if(d.blocks.begin(), d.blocks.end(), [&](const Block& b) { return b.id == block; });
    if (found == d.blocks.end() || found->parent.empty()) break;
    block = found->parent;
    out = cat(block, "/", out);
  }
  return out;
}

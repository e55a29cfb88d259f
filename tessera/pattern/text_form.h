// The short text form of graphs and patterns: 1:mm->2:relu; 1->3:add @out=2,3 @cost=1.5
//
// `id:op` defines a node, a bare id refers to one, `id:k` with a number k to its result k. `->` is an edge,
// `;` separates chains; an op's slots are filled in the order its edges are written. Options stand at the
// end. What an op or an option means is the business of graph_text.h and pattern_text.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/source_text.h"

namespace tessera::pattern {

struct TextNode {
  std::string id;
  std::string op;
  std::size_t offset = 0;     ///< of the id in the text
  std::size_t op_offset = 0;  ///< of the op
};

/// Result `result` of node `from` fills the next slot of node `to`.
struct TextEdge {
  std::uint32_t from = 0;
  std::uint32_t result = 0;
  std::uint32_t to = 0;
};

/// `@key=value`
struct TextOption {
  std::string key = {};
  std::string value = {};
  std::size_t offset = 0;        ///< of the @
  std::size_t value_offset = 0;  ///< of the value
};

/// A result that an option names, and whether it was written as `id:k` or as `id`.
struct TextResult {
  std::uint32_t node = 0;
  std::uint32_t result = 0;
  bool is_whole_node = false;
};

struct TextForm {
  std::vector<TextNode> nodes;  ///< in the order in which they are defined
  std::vector<TextEdge> edges;  ///< in the order in which they are written
  std::vector<TextOption> options;

  /// The comma-separated results that the value of an option names.
  [[nodiscard]] Result<std::vector<TextResult>> results(const SourceText& source,
                                                        const TextOption& option) const;
};

/// Errors give line and column: an id that is defined twice or nowhere, an edge to nothing, an unknown sign.
[[nodiscard]] Result<TextForm> parse_text_form(const SourceText& source);

/// A result index of at most four digits; nothing if the text is none. Beyond that a number is a typing
/// error.
[[nodiscard]] std::optional<std::uint32_t> parse_result_index(std::string_view text);

}  // namespace tessera::pattern

#include "tessera/pattern/graph_text.h"

#include "tessera/base/text.h"
#include "tessera/pattern/graph_draft.h"
#include "tessera/pattern/text_form.h"

using namespace tessera;
using namespace tessera::pattern;

Result<Graph> tessera::pattern::parse_graph_text(const SourceText& source, ir::OpFactsRef facts) {
  const TextForm form = TESSERA_TRY(parse_text_form(source));
  GraphDraft draft;
  for (const TextNode& node : form.nodes) {
    if (const std::size_t bad = node.op.find_first_of("|<>?*+"); bad != std::string::npos)
      return source.error_at(node.op_offset + bad,
                             cat("'", node.op[bad], "' is for patterns, not for graphs"));
    draft.nodes.push_back({.id = node.id, .spelling = node.op, .offset = node.offset});
  }
  for (const TextEdge& edge : form.edges)
    draft.nodes[edge.to].inputs.push_back(
        {.kind = DraftValue::Kind::result, .node = edge.from, .result = edge.result});
  for (const TextOption& option : form.options) {
    if (option.key != "out")
      return source.error_at(option.offset,
                             cat("unknown option @", option.key, " of a graph, expected @out"));
    draft.outputs.emplace();
    for (const TextResult& result : TESSERA_TRY(form.results(source, option)))
      draft.outputs->push_back(
          {.kind = DraftValue::Kind::result, .node = result.node, .result = result.result});
  }
  return build_graph(std::move(draft), std::move(facts), source);
}

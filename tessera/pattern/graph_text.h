// A graph in the short text form (text_form.h): "1:mm->2:relu @out=2".
#pragma once

#include "tessera/base/result.h"
#include "tessera/base/source_text.h"
#include "tessera/pattern/graph.h"

namespace tessera::pattern {

/// A node has the inputs that are drawn. The option is @out; without it the sinks are the outputs.
[[nodiscard]] Result<Graph> parse_graph_text(const SourceText& source, ir::OpFactsRef facts);

}  // namespace tessera::pattern

#include "tessera/ir/span.h"

tessera::SourceSpan tessera::ir::Span::resolve() const {
  if (file == nullptr) return {"", line, column};
  if (line > 0 && line <= file->labels().size())
    return {file->name() + ": " + file->labels()[line - 1], 0, 0};
  return {file->name(), line, column};
}

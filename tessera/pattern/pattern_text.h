// A pattern in the short text form (text_form.h): "1:mm->2:relu; 1->3:add @out=2,3 @cost=1.5".
//
// An op is a name, `a|b` for one of several, or `<trait>` for any op with the trait. After it, `?` makes the
// node optional, `+` lets it stand for a chain of one or more ops, `*` for a chain of any number. Inputs that
// are not drawn are open: any number, any values. Outputs default to the sinks, the cost to 1.
#pragma once

#include "tessera/base/source_text.h"
#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

/// Options: @out, @cost, @kernel. Errors give the column; a trait that is not known is one.
[[nodiscard]] Result<Pattern> parse_pattern_text(const SourceText& source, std::string name,
                                                 const ir::OpFactsRef& facts);

}  // namespace tessera::pattern

// What the passes did, as text and as JSON.
#pragma once

#include <string>

#include "tessera/base/json.h"
#include "tessera/compile/pipeline.h"

namespace tessera::cli {

/// A line per pass, and below each what it rewrote, equal rewrites together, with the first place of each.
[[nodiscard]] std::string pass_text(const compiler::Outcome& outcome);

/// The member "passes" of an object that is being written.
void write_passes(JsonWriter& json, const compiler::Outcome& outcome);

}  // namespace tessera::cli

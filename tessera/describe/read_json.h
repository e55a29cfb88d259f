// Descriptions as JSON. docs/describe.md has the format.
#pragma once

#include "tessera/base/json.h"
#include "tessera/describe/description.h"
#include "tessera/describe/diagnostic.h"

namespace tessera::description {

struct Reading {
  Description description;
  Report problems;  ///< fields that are missing, unknown or of the wrong kind, each with line and column
};

/// Reads a description, going on past what is wrong so that validation can say the rest. Fails for a text
/// that is no JSON object.
[[nodiscard]] Result<Reading> read_description(std::string file, std::string text);

}  // namespace tessera::description

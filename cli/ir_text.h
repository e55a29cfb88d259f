// Telling the kinds of files apart by how they begin.
#pragma once

#include <string>
#include <string_view>

#include "tessera/ir/parse.h"

namespace tessera::cli {

/// Whether this begins as the plans that `compile -o` writes.
[[nodiscard]] bool begins_plan(std::string_view content);

/// An error if what is in a file is no text of the IR, but a compiled plan, JSON or a model: it says which
/// command takes it.
[[nodiscard]] Result<void> check_ir_text(const std::string& path, std::string_view content);

/// The node that a text of the IR describes. A text with too many nodes is an error that says what raises the
/// limit: the environment variable TESSERA_MAX_NODES.
[[nodiscard]] Result<ir::NodeRef> parse_ir_text(const std::string& path, std::string_view text,
                                                ir::FreeVariables* free_variables = nullptr);

}  // namespace tessera::cli

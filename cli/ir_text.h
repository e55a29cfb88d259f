// Telling the kinds of files apart by how they begin.
#pragma once

#include <string>
#include <string_view>

#include "tessera/base/result.h"

namespace tessera::cli {

/// Whether this begins as the plans that `compile -o` writes.
[[nodiscard]] bool begins_plan(std::string_view content);

/// An error if what is in a file is no text of the IR, but a compiled plan, JSON or a model: it says which
/// command takes it.
[[nodiscard]] Result<void> check_ir_text(const std::string& path, std::string_view content);

}  // namespace tessera::cli

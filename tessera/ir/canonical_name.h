// Many spellings, one op: the functional, method, module, in-place, ONNX and PyTorch FX names of an operation
// all have one canonical name.
//
// The table (canonical_names.inc) is data: a spelling, the op it means, and whether it overwrites its first
// input. A namespace in front (`torch.nn.functional.relu`, `aten::add.Tensor`) is taken off first. A name
// that is not in the table is an ordinary op and its own canonical name. Names are case-sensitive: `Max` is
// ONNX's element-wise maximum, `max` a reduction.
#pragma once

#include <span>
#include <string_view>

namespace tessera::ir {

/// One row of the table.
struct OpSpelling {
  std::string_view spelling;
  std::string_view canonical;
  /// The spelling overwrites its first input (`add_`, `operator.iadd`). It means the canonical op only where
  /// nobody reads the overwritten value afterwards; who has the whole program decides.
  bool in_place = false;
};

/// The table, sorted by spelling. Every canonical name is in it as its own spelling.
[[nodiscard]] std::span<const OpSpelling> op_spellings();

/// The row that `spelling` means, namespace or not, or null if it is an ordinary op.
[[nodiscard]] const OpSpelling* find_op_spelling(std::string_view spelling);

/// The canonical name of an op; `spelling` itself if the table does not have it.
[[nodiscard]] std::string_view canonical_name(std::string_view spelling);

/// Whether the spelling says that the first input is overwritten.
[[nodiscard]] bool is_in_place_spelling(std::string_view spelling);

}  // namespace tessera::ir

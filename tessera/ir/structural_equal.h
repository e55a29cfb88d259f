// Structural equality: an equivalence relation on nodes and types, and the first place where two differ.
//
// Never compared: spans and names. Floats are compared by bits. Sharing is not structure: `t + t` with one t
// equals the same written out twice. Definitions (parameters, targets) are compared by position and a use of
// a definition by which one it is; free variables as the mode says.
#pragma once

#include <optional>
#include <string>

#include "tessera/ir/node.h"
#include "tessera/ir/structural_mode.h"

namespace tessera::ir {

/// Linear in the number of distinct nodes of both sides, whatever their depth or sharing.
[[nodiscard]] bool structural_equal(const Node& a, const Node& b, CompareMode mode);

/// Where two nodes differ, and how.
struct Mismatch {
  std::string path;    ///< "main.body[1].value"
  std::string left;    ///< "add"
  std::string right;   ///< "sub"
  std::string reason;  ///< "different op"

  /// "main.body[1].value: add ≠ sub"
  [[nodiscard]] std::string to_text() const;
};

/// The first difference in the order of the fields, or nothing if the nodes are equal.
[[nodiscard]] std::optional<Mismatch> first_mismatch(const Node& a, const Node& b, CompareMode mode);

/// Throws Exception with the path of the first difference. For tests and invariants.
void assert_structural_equal(const Node& a, const Node& b, CompareMode mode);

}  // namespace tessera::ir

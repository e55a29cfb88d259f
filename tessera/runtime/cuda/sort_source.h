// Sorting rows: what sort is, and what scatters with duplicates are made of.
#pragma once

#include "tessera/runtime/cuda/rows.h"

namespace tessera::runtime::cuda {

/// The order of the elements of each row, in scratch memory: `keys` and `order` are [rows, length].
struct SortedRows {
  Memory keys;   ///< K of key_text, or ~K if descending
  Memory order;  ///< `N`: the places of the elements in their order
  bool is_wide = false;

  [[nodiscard]] std::string_view order_type() const { return is_wide ? "unsigned long long" : "unsigned"; }
};

enum class SortOrder : std::uint8_t { ascending, descending };

/// Sorts the rows of an operand. Equal elements keep their order.
[[nodiscard]] SortedRows write_sorted_rows(ProgramWriter& program, const Operand& x, const Rows& rows,
                                           SortOrder order);

}  // namespace tessera::runtime::cuda

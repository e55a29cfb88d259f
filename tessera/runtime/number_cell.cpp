#include "tessera/runtime/number_cell.h"

#include <bit>

#include "tessera/op/wide.h"

using namespace tessera;

std::uint64_t tessera::runtime::number_cell(std::uint64_t bits, ir::Dtype dtype) {
  std::uint64_t cell = 0;
  auto* at = reinterpret_cast<std::byte*>(&cell);
  if (ir::is_float(dtype)) {
    const auto value = std::bit_cast<double>(bits);
    op::storer<double>(dtype)(at, 0, 1, 1, &value);
  } else {
    const op::SignedWide value = static_cast<std::int64_t>(bits);
    op::storer<op::SignedWide>(dtype)(at, 0, 1, 1, &value);
  }
  return cell;
}

#include "tessera/ir/scalar_opcode.h"

using namespace tessera::ir;

std::optional<ScalarOpcode> tessera::ir::parse_scalar_opcode(std::string_view name) {
  for (std::size_t i = 0; i < scalar_opcode_count; ++i)
    if (detail::opcode_table[i].name == name) return static_cast<ScalarOpcode>(i);
  return std::nullopt;
}

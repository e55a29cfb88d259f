// Numbers for the size symbols of an encoding that do not depend on what the symbols are called.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/stream/symbolic_size.h"

namespace tessera::stream {

class SymbolNumbers {
 public:
  /// Numbers the symbols of `sizes`, which are in canonical order. A symbol is numbered by the first size
  /// that leaves no choice; those that are left then by the part they play in the sizes
  /// (ir/symbol_colours.h). Where two play the same part, either may come first; only for contrived sizes
  /// that makes a difference, and then it costs a miss.
  void assign(std::span<const SymbolicSize* const> sizes);

  /// In the order of their numbers.
  [[nodiscard]] std::span<const ir::Var* const> symbols() const { return symbols_; }
  /// The words of a size with its symbols labelled by their numbers.
  [[nodiscard]] std::vector<std::uint64_t> words(const SymbolicSize& size) const;

 private:
  void add(const ir::Var& symbol);
  std::size_t add_only(const SymbolicSize& size);
  void assign_the_rest(std::span<const SymbolicSize* const> sizes);

  std::vector<const ir::Var*> symbols_;
  std::unordered_map<SymbolId, std::uint32_t> number_;
};

}  // namespace tessera::stream

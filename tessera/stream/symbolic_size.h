// A dimension that is an expression over size symbols, as streams know it: by what it means, so that the
// names of the symbols and the order they stand in do not count.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/ir/expr.h"
#include "tessera/ir/size_form.h"

namespace tessera::stream {

/// Identifies a size symbol: the id of its ir::Var.
using SymbolId = std::uint64_t;

/// Immutable; may be read by any thread.
struct SymbolicSize {
  ir::ExprRef expr;
  std::optional<ir::SizeForm> form;  ///< absent if the expression is more than arithmetic of scalars

  explicit SymbolicSize(ir::ExprRef expression);

  /// The symbols, each once, in an order that says nothing.
  [[nodiscard]] std::span<const ir::Var* const> symbols() const {
    return form ? form->symbols() : std::span<const ir::Var* const>();
  }
  /// A hash that depends on the colours of the symbols, in the order of symbols().
  [[nodiscard]] Hash128 hash(std::span<const Hash128> colours) const;
  /// Equal for two sizes exactly when they mean the same under these labels of their symbols.
  [[nodiscard]] std::vector<std::uint64_t> words(std::span<const std::uint64_t> labels) const;
  /// How many words there are, whatever the labels.
  [[nodiscard]] std::size_t word_count() const { return form ? form->word_count() : 2; }
  /// "2*d0+d1", where a symbol is "d" and its label.
  [[nodiscard]] std::string text(std::span<const std::uint64_t> labels) const;
};

using SymbolicSizeRef = std::shared_ptr<const SymbolicSize>;

/// The words with each symbol labelled by its id.
[[nodiscard]] std::vector<std::uint64_t> words_by_id(const SymbolicSize& size);

}  // namespace tessera::stream

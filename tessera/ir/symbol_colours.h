// Tells apart symbols that are only known by the sizes they stand in.
//
// In `A * B + A` the two symbols play different parts, whatever they are called; in `A + B` they do not. Each
// symbol has a colour, which is refined by where the symbol stands among the colours of the others
// (Weisfeiler and Leman) until that says no more.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/ir/size_form.h"

namespace tessera::ir {

/// A size some of whose symbols are known by labels. The others are open.
struct OpenSize {
  SizeForm form;
  std::vector<std::optional<std::uint64_t>> labels;  ///< in the order of form.symbols()
};

class SymbolColours {
 public:
  /// A size to look at. Places tell sizes apart; sizes with one place are a set.
  void add(const OpenSize& size, std::uint64_t place);

  /// The open symbols, in the order they were met.
  [[nodiscard]] std::span<const Var* const> symbols() const { return symbols_; }
  [[nodiscard]] std::span<const Hash128> colours() const { return colours_; }
  void set_colours(std::vector<Hash128> colours) { colours_ = std::move(colours); }
  /// Gives one symbol a colour of its own.
  void single_out(std::size_t symbol, std::uint64_t number);
  /// Refines until a round tells no more symbols apart.
  void refine();
  /// The work of one round.
  [[nodiscard]] std::size_t weight() const { return weight_; }

  /// The words of size `index` when open symbols have these labels, by their number.
  [[nodiscard]] std::vector<std::uint64_t> words(std::size_t index,
                                                 std::span<const std::uint64_t> labels) const;

 private:
  struct Entry {
    OpenSize size;
    std::uint64_t place = 0;
    std::vector<std::size_t> numbers;  ///< of the open symbols; 0 for the others
  };

  [[nodiscard]] std::size_t distinct() const;
  void refine_once();

  std::vector<Entry> entries_;
  std::vector<const Var*> symbols_;
  std::vector<Hash128> colours_;
  std::unordered_map<const Var*, std::size_t> number_of_;
  std::size_t weight_ = 0;
};

}  // namespace tessera::ir

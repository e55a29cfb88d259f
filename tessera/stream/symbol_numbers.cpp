#include "tessera/stream/symbol_numbers.h"

#include <algorithm>
#include <numeric>

#include "tessera/ir/symbol_colours.h"

using namespace tessera;
using namespace tessera::stream;

void SymbolNumbers::add(const ir::Var& symbol) {
  if (number_.try_emplace(symbol.id, static_cast<std::uint32_t>(symbols_.size())).second)
    symbols_.push_back(&symbol);
}

/// How many symbols of a size have no number; if it is one, that gets the next.
std::size_t SymbolNumbers::add_only(const SymbolicSize& size) {
  const ir::Var* only = nullptr;
  std::size_t count = 0;
  for (const ir::Var* symbol : size.symbols()) {
    if (number_.contains(symbol->id)) continue;
    only = symbol;
    ++count;
  }
  if (count == 1) add(*only);
  return count;
}

void SymbolNumbers::assign(std::span<const SymbolicSize* const> sizes) {
  symbols_.clear();
  number_.clear();
  std::vector<const SymbolicSize*> open(sizes.begin(), sizes.end());
  for (std::size_t before = open.size() + 1;
       open.size() < before;) {  // a number may leave no choice elsewhere
    before = open.size();
    std::erase_if(open, [&](const SymbolicSize* size) { return add_only(*size) <= 1; });
  }
  if (!open.empty()) assign_the_rest(open);
}

void SymbolNumbers::assign_the_rest(std::span<const SymbolicSize* const> sizes) {
  ir::SymbolColours colours;
  std::uint64_t place = 0;
  for (const SymbolicSize* size : sizes) {
    ir::OpenSize open{*size->form, {}};
    for (const ir::Var* symbol : size->symbols()) {
      const auto at = number_.find(symbol->id);
      open.labels.push_back(at == number_.end() ? std::nullopt : std::optional<std::uint64_t>(at->second));
    }
    colours.add(open, place++);
  }
  // Those that come before the first tie are numbered, and of the tied ones the first; that tells more apart.
  std::vector<std::size_t> left(colours.symbols().size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {
    colours.refine();
    const auto colour = [&](std::size_t i) -> const Hash128& { return colours.colours()[i]; };
    std::stable_sort(left.begin(), left.end(),
                     [&](std::size_t a, std::size_t b) { return colour(a) < colour(b); });
    std::size_t done = 0;
    for (bool is_tied = false; done < left.size() && !is_tied; ++done) {
      is_tied = done + 1 < left.size() && colour(left[done]) == colour(left[done + 1]);
      add(*colours.symbols()[left[done]]);
      if (is_tied) colours.single_out(left[done], symbols_.size());
    }
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(done));
  }
}

std::vector<std::uint64_t> SymbolNumbers::words(const SymbolicSize& size) const {
  std::vector<std::uint64_t> numbers;
  for (const ir::Var* symbol : size.symbols()) numbers.push_back(number_.at(symbol->id));
  return size.words(numbers);
}

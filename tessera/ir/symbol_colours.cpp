#include "tessera/ir/symbol_colours.h"

#include <algorithm>

#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

enum : std::uint64_t { mark_open = 0x0c0100, mark_refined, mark_single, mark_place };

}  // namespace

void SymbolColours::add(const OpenSize& size, std::uint64_t place) {
  Entry entry{size, place, {}};
  const auto symbols = size.form.symbols();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    entry.numbers.push_back(0);
    if (size.labels[i]) continue;
    const auto [at, is_new] = number_of_.try_emplace(symbols[i], symbols_.size());
    entry.numbers.back() = at->second;
    if (!is_new) continue;
    symbols_.push_back(symbols[i]);
    const Hash128 type = structural_hash(*symbols[i]->type, CompareMode::mapping);
    colours_.push_back(Hasher(mark_open).add(type).finish());
  }
  weight_ += size.form.weight();
  entries_.push_back(std::move(entry));
}

void SymbolColours::single_out(std::size_t symbol, std::uint64_t number) {
  colours_[symbol] = Hasher(mark_single).add(number).finish();
}

void SymbolColours::refine_once() {
  std::vector<std::vector<Hash128>> around(symbols_.size());
  std::vector<Hash128> colours;
  for (const Entry& entry : entries_) {
    const auto& labels = entry.size.labels;
    colours.clear();
    for (std::size_t i = 0; i < labels.size(); ++i)
      colours.push_back(labels[i] ? SizeForm::colour_of(*labels[i]) : colours_[entry.numbers[i]]);
    const Hash128 whole = Hasher(mark_place).add(entry.place).add(entry.size.form.hash(colours)).finish();
    const std::vector<Hash128> contexts = entry.size.form.contexts(colours);
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (!labels[i])
        around[entry.numbers[i]].push_back(Hasher(mark_place).add(whole).add(contexts[i]).finish());
  }
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    std::sort(around[i].begin(), around[i].end());
    around[i].erase(std::unique(around[i].begin(), around[i].end()), around[i].end());
    Hasher hasher(mark_refined);
    hasher.add(colours_[i]);
    for (const Hash128& context : around[i]) hasher.add(context);
    colours_[i] = hasher.finish();
  }
}

std::size_t SymbolColours::distinct() const {
  std::vector<Hash128> sorted = colours_;
  std::sort(sorted.begin(), sorted.end());
  return static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

void SymbolColours::refine() {
  for (std::size_t known = 0;;) {
    refine_once();
    const std::size_t now = distinct();
    if (now == known || now == symbols_.size()) return;
    known = now;
  }
}

std::vector<std::uint64_t> SymbolColours::words(std::size_t index,
                                                std::span<const std::uint64_t> labels) const {
  const Entry& entry = entries_[index];
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < entry.numbers.size(); ++i)
    all.push_back(entry.size.labels[i] ? *entry.size.labels[i] : labels[entry.numbers[i]]);
  return entry.size.form.words(all);
}

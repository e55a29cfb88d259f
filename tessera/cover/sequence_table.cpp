#include "tessera/cover/sequence_table.h"

#include <algorithm>

using namespace tessera::cover;

std::uint64_t tessera::cover::mix_words(std::span<const std::uint64_t> words) {
  std::uint64_t h = 0x9e3779b97f4a7c15ULL + words.size();
  for (std::uint64_t word : words) {
    h = (h ^ word) * 0xbf58476d1ce4e5b9ULL;
    h ^= h >> 29;
  }
  h *= 0x94d049bb133111ebULL;
  return h ^ (h >> 32);
}

std::uint32_t SequenceTable::intern(std::span<const std::uint64_t> words) {
  const std::uint64_t hash = mix_words(words) & hash_mask_;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    const std::uint32_t number = slots_[at] - 1;
    if (hashes_[number] == hash && std::ranges::equal((*this)[number], words)) return number;
  }
  const std::uint32_t number = size();
  slots_[at] = number + 1;
  hashes_.push_back(hash);
  pool_.insert(pool_.end(), words.begin(), words.end());
  begin_.push_back(pool_.size());
  if (2 * hashes_.size() > slots_.size()) grow();
  return number;
}

void SequenceTable::grow() {
  slots_.assign(2 * slots_.size(), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t number = 0; number < size(); ++number) {
    std::size_t at = hashes_[number] & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = number + 1;
  }
}

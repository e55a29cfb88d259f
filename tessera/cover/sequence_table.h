// Gives equal sequences of words the same small number. A hash finds, equality decides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::cover {

/// Numbers are dense and given in the order of first appearance.
class SequenceTable {
 public:
  /// `hash_mask` thins the hash out; tests pass 0 to make every sequence collide.
  explicit SequenceTable(std::uint64_t hash_mask = ~std::uint64_t{0})
      : hash_mask_(hash_mask), slots_(64, 0) {}

  /// The number of `words`, new if the sequence was not seen before.
  std::uint32_t intern(std::span<const std::uint64_t> words);
  /// Valid until the next intern.
  [[nodiscard]] std::span<const std::uint64_t> operator[](std::uint32_t number) const {
    return {pool_.data() + begin_[number], begin_[number + 1] - begin_[number]};
  }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(hashes_.size()); }

 private:
  void grow();

  std::uint64_t hash_mask_;
  std::vector<std::uint32_t> slots_;  ///< number + 1, or 0; open addressing, a power of two
  std::vector<std::uint64_t> hashes_;
  std::vector<std::size_t> begin_{0};
  std::vector<std::uint64_t> pool_;
};

/// A 64-bit mix of `words`, the same on every machine.
[[nodiscard]] std::uint64_t mix_words(std::span<const std::uint64_t> words);

}  // namespace tessera::cover

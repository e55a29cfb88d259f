// Numbers for patterns, so that a trace holds four bytes for each op and type. Equal bytes, equal number.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tessera/ir/dtype.h"

namespace tessera::stream {

using PatternId = std::uint32_t;

/// Grows by what is interned and never shrinks. Not thread-safe.
class PatternTable {
 public:
  static constexpr PatternId unknown_type = 0;
  /// Types of tensors up to this rank whose dimensions are numbers have fixed ids, known without a search.
  static constexpr std::uint32_t fixed_rank = 8;

  PatternTable();

  PatternId intern(std::string_view bytes);
  /// The type of a tensor whose dimensions are numbers.
  PatternId tensor(ir::Dtype dtype, std::size_t rank);

  [[nodiscard]] std::string_view bytes(PatternId id) const { return entries_[id].bytes; }
  /// A hash of the bytes, the same in every process.
  [[nodiscard]] std::uint64_t hash(PatternId id) const { return entries_[id].hash; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string bytes;
    std::uint64_t hash = 0;
  };
  std::deque<Entry> entries_;  // texts that do not move: the index refers to them
  std::unordered_map<std::string_view, PatternId> index_;
};

}  // namespace tessera::stream

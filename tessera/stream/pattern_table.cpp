#include "tessera/stream/pattern_table.h"

#include "tessera/base/hash.h"
#include "tessera/stream/pattern.h"

using namespace tessera;
using namespace tessera::stream;

PatternTable::PatternTable() {
  Pattern unknown;
  append_type(unknown, nullptr);
  (void)intern(unknown.bytes);
  for (const ir::Dtype dtype : ir::all_dtypes())
    for (std::uint32_t rank = 0; rank <= fixed_rank; ++rank) (void)intern(tensor_pattern(dtype, rank));
}

PatternId PatternTable::intern(std::string_view bytes) {
  if (const auto at = index_.find(bytes); at != index_.end()) return at->second;
  const auto id = static_cast<PatternId>(entries_.size());
  entries_.push_back({std::string(bytes), hash_text(bytes).low});
  index_.emplace(entries_.back().bytes, id);
  return id;
}

PatternId PatternTable::tensor(ir::Dtype dtype, std::size_t rank) {
  if (rank <= fixed_rank)
    return static_cast<PatternId>(1 + static_cast<std::size_t>(dtype) * (fixed_rank + 1) + rank);
  return intern(tensor_pattern(dtype, static_cast<std::uint32_t>(rank)));
}

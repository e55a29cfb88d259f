// The order in which an encoding visits results that nobody asked for in a particular order.
//
// It must depend on structure alone, never on the order of recording. Sinks are sorted by a hash of what they
// compute. Where hashes tie, colours are refined along all edges in both directions (Weisfeiler and Leman)
// until they say no more, and what still ties is singled out one by one: such sinks are interchangeable but
// for contrived graphs, where a tie costs a miss, never a wrong hit.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tessera/stream/encoding.h"

namespace tessera::stream {

/// Keeps its arrays from call to call.
class SinkOrder {
 public:
  /// Sorts `sinks`, ops that no other op of `ops` needs. `ops` ascend and contain the producers of all they
  /// read. `begun` has the ops and inputs that are numbered already.
  void sort(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun,
            std::vector<OpIndex>& sinks);

 private:
  /// `user` has `used` in place `place`.
  struct Edge {
    std::uint32_t user;
    std::uint32_t used;
    std::uint64_t place;
  };

  void hash_down(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun);
  [[nodiscard]] bool has_ties(std::span<const OpIndex> sinks) const;
  void break_ties(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun,
                  std::vector<OpIndex>& sinks);
  void collect_edges(const Trace& trace, std::span<const OpIndex> ops, const Encoding& begun);
  void add_symbols(std::uint32_t user, std::uint64_t place, std::span<const SymbolId> symbols);
  void refine();
  [[nodiscard]] std::size_t count_colours();
  void sort_by_colour(std::vector<OpIndex>& sinks);

  // Vertices are ops, then inputs, then symbols.
  std::vector<std::uint64_t> colour_;
  std::vector<std::uint64_t> around_;  // sums over the neighbours in one round
  std::vector<std::uint64_t> sorted_;
  std::vector<Edge> edges_;
  std::unordered_map<SymbolId, std::uint32_t> symbol_vertex_;
  std::uint64_t budget_ = 0;
};

}  // namespace tessera::stream

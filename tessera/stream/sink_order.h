// The order in which an encoding visits results that nobody asked for in a particular order.
//
// It must depend on structure alone, never on the order of recording. Sinks are sorted by a hash of what they
// compute. Where hashes tie, colours are refined along all edges in both directions (Weisfeiler and Leman)
// until they say no more. What has a colour of its own is told apart; the rest falls into pieces that hang
// together. Pieces of one colour are interchangeable but for contrived graphs, where a tie costs a miss,
// never a wrong hit; within a piece, tied sinks are singled out one by one.
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
  /// A vertex is an op, an input (behind the ops) or a symbol (behind the inputs).
  using Vertex = std::uint32_t;

  void hash_down(const Encoding& begun);
  [[nodiscard]] bool has_ties(std::span<const OpIndex> sinks) const;
  void sort_by_colour(std::vector<OpIndex>& sinks) const;

  void break_ties(std::vector<OpIndex>& sinks);
  void collect_vertices();
  void add_symbols(std::span<const SymbolicSizeRef> sizes);
  template <class F>
  void for_each_neighbour(OpIndex op, F&& f) const;
  template <class F>
  void for_each_size(OpIndex op, F&& f) const;
  [[nodiscard]] std::span<const SymbolicSizeRef> sizes_of_input(Vertex input) const;
  [[nodiscard]] std::span<const Hash128> colours_of(const SymbolicSize& size);
  void take_in(Vertex vertex, const SymbolicSize& size, std::uint64_t place);
  void pass_to_symbols(Vertex vertex, const SymbolicSize& size, std::uint64_t place);
  void refine();
  void pass_down();
  void pass_up();
  [[nodiscard]] std::size_t count_colours();
  [[nodiscard]] bool is_unique(Vertex vertex) const;
  void find_pieces();
  [[nodiscard]] Vertex piece_of(Vertex vertex);
  void sort_by_piece(std::vector<OpIndex>& sinks);
  [[nodiscard]] bool single_out(std::span<const OpIndex> sinks, std::uint64_t number);

  const Trace* trace_ = nullptr;
  std::span<const OpIndex> ops_;
  std::vector<std::uint64_t> colour_;
  std::vector<std::uint64_t> around_;  // sums over the users in one pass
  std::vector<std::uint64_t> sorted_;  // all colours
  std::vector<Vertex> inputs_;         // vertices that are not ops
  std::vector<Vertex> symbols_;
  std::vector<Vertex> parent_;  // union-find over what has no colour of its own
  std::unordered_map<SymbolId, Vertex> symbol_vertex_;
  std::vector<Hash128> symbol_colours_;  // of one size
  std::uint64_t budget_ = 0;
};

}  // namespace tessera::stream

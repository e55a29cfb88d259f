// A piece as a sequence of steps, one for each position, in terms of slots instead of positions.
//
// While a walk along the piece stands at a step, only some positions matter: those ahead that a tile chosen
// before may already cover, and, where cycles must be watched, those behind whose outputs are still ahead.
// Each such position holds a slot for as long as it matters. Slots are given lowest first, so parts of a
// graph that repeat become the same steps, and a step says all that a solver needs to know. Steps are
// interned: equal steps have equal numbers, so two pieces are alike exactly if their lists of numbers are
// equal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cover/model.h"
#include "tessera/cover/pieces.h"
#include "tessera/cover/sequence_table.h"

namespace tessera::cover {

using Slot = std::uint32_t;
inline constexpr Slot no_slot = 0xffffffff;

/// One way to cover the position of a step. Choice 0 is the position alone; choice k is the k-th tile there.
struct StepChoice {
  Cost cost = 0;
  std::vector<Slot> slots;  ///< of the tile's other positions
  bool is_hinge = false;
  std::vector<Slot> gates;  ///< of a hinge: those of the slots with an input from outside the tile
};

struct StepKind {
  Slot own = no_slot;
  bool stays = false;         ///< the own slot is kept after the step: cycles may run on from here
  std::vector<Slot> inputs;   ///< of the position's inputs; empty where no cycle is possible
  std::vector<Slot> retired;  ///< inputs that nothing after this step reads
  std::vector<StepChoice> choices;
};

/// The steps of one piece.
struct StepList {
  std::vector<std::uint64_t> kinds;  ///< numbers in the StepTable, one for each local index
  std::uint32_t slots = 0;           ///< all slot numbers are below
  bool has_hinges = false;
};

/// Turns pieces of one model into steps. What it says of a piece depends on the piece's shape and costs only.
class StepTable {
 public:
  StepTable(const Model& model, const Pieces& pieces);

  /// Valid until the next call.
  [[nodiscard]] const StepList& steps_of(std::uint32_t piece);
  [[nodiscard]] const StepKind& operator[](std::uint64_t kind) const { return kinds_[kind]; }
  [[nodiscard]] std::size_t size() const { return kinds_.size(); }

 private:
  void find_last_uses(const Piece& piece);
  std::uint64_t take_step(const Piece& piece, std::uint32_t position);
  void write_inputs(std::uint32_t position);
  void write_tile(const Tile& tile);
  [[nodiscard]] bool is_gate(std::uint32_t position, std::span<const std::uint32_t> tile) const;
  void give_slot(std::uint32_t position);
  void free_slot(std::uint32_t position);

  const Model& model_;
  const Pieces& pieces_;
  StepList list_;
  SequenceTable sequences_;
  std::vector<StepKind> kinds_;
  std::vector<Slot> slot_;               ///< by position
  std::vector<std::uint32_t> last_use_;  ///< by position: the last of its outputs in the piece, or itself
  std::vector<std::uint64_t> free_;      ///< a bit for each slot that nobody holds
  std::vector<std::uint64_t> words_;     ///< the step being written
  std::vector<std::uint32_t> retired_;   ///< positions
};

}  // namespace tessera::cover

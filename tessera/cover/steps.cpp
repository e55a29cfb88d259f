#include "tessera/cover/steps.h"

#include <algorithm>
#include <bit>

using namespace tessera::cover;

namespace {

/// Reads back what StepTable::take_step wrote.
class StepReader {
 public:
  explicit StepReader(std::span<const std::uint64_t> words) : words_(words) {}

  StepKind read() {
    StepKind kind;
    kind.own = static_cast<Slot>(next());
    kind.stays = next() != 0;
    kind.inputs = read_slots();
    kind.retired = read_slots();
    kind.choices.emplace_back().cost = static_cast<Cost>(next());
    while (at_ < words_.size()) {
      StepChoice& choice = kind.choices.emplace_back();
      choice.cost = static_cast<Cost>(next());
      choice.slots = read_slots();
      choice.is_hinge = next() != 0;
      choice.gates = read_slots();
    }
    return kind;
  }

 private:
  std::uint64_t next() { return words_[at_++]; }
  std::vector<Slot> read_slots() {
    std::vector<Slot> slots(next());
    for (Slot& slot : slots) slot = static_cast<Slot>(next());
    return slots;
  }

  std::span<const std::uint64_t> words_;
  std::size_t at_ = 0;
};

}  // namespace

StepTable::StepTable(const Model& model, const Pieces& pieces)
    : model_(model), pieces_(pieces), slot_(model.size(), no_slot), last_use_(model.size(), 0) {}

const StepList& StepTable::steps_of(std::uint32_t piece_index) {
  const Piece& piece = pieces_.pieces[piece_index];
  free_.clear();
  find_last_uses(piece);
  list_.has_hinges = piece.has_hinges;
  list_.kinds.clear();
  list_.kinds.reserve(piece.size);
  for (std::uint32_t position : pieces_.positions_of(piece))
    list_.kinds.push_back(take_step(piece, position));
  list_.slots = static_cast<std::uint32_t>(64 * free_.size());
  return list_;
}

void StepTable::find_last_uses(const Piece& piece) {
  for (std::uint32_t p : pieces_.positions_of(piece)) {
    last_use_[p] = p;
    if (!piece.has_hinges) continue;
    for (std::uint32_t output : model_.graph.outputs[p])
      if (pieces_.piece_of[output] == pieces_.piece_of[p]) last_use_[p] = output;
  }
}

std::uint64_t StepTable::take_step(const Piece& piece, std::uint32_t position) {
  const bool stays = last_use_[position] != position;
  for (const Tile& tile : model_.tiles_at(position))
    for (std::uint32_t other : model_.positions_of(tile).subspan(1)) give_slot(other);
  if (stays) give_slot(position);

  words_.clear();
  words_.push_back(slot_[position]);
  words_.push_back(stays ? 1 : 0);
  retired_.clear();
  if (piece.has_hinges) {
    write_inputs(position);
  } else {
    words_.insert(words_.end(), {0, 0});
  }
  words_.push_back(static_cast<std::uint64_t>(model_.singles[position].cost));
  for (const Tile& tile : model_.tiles_at(position)) write_tile(tile);

  for (std::uint32_t input : retired_) free_slot(input);
  if (!stays) free_slot(position);
  const std::uint32_t kind = sequences_.intern(words_);
  if (kind == kinds_.size()) kinds_.push_back(StepReader(words_).read());
  return kind;
}

void StepTable::write_inputs(std::uint32_t position) {
  const auto begin = words_.size();
  words_.push_back(0);
  for (std::uint32_t input : model_.graph.inputs[position]) {
    if (pieces_.piece_of[input] != pieces_.piece_of[position]) continue;
    words_.push_back(slot_[input]);
    ++words_[begin];
    if (last_use_[input] == position) retired_.push_back(input);
  }
  // Inputs are listed by slot, not by position: only then are steps equal that do the same.
  std::sort(words_.begin() + static_cast<std::ptrdiff_t>(begin) + 1, words_.end());
  words_.push_back(retired_.size());
  for (std::uint32_t input : retired_) words_.push_back(slot_[input]);
  std::sort(words_.end() - static_cast<std::ptrdiff_t>(retired_.size()), words_.end());
}

void StepTable::write_tile(const Tile& tile) {
  const auto positions = model_.positions_of(tile);
  words_.push_back(static_cast<std::uint64_t>(tile.cost));
  words_.push_back(positions.size() - 1);
  for (std::uint32_t other : positions.subspan(1)) words_.push_back(slot_[other]);
  words_.push_back(tile.is_hinge ? 1 : 0);
  const auto begin = words_.size();
  words_.push_back(0);
  if (!tile.is_hinge) return;
  for (std::uint32_t other : positions.subspan(1))
    if (is_gate(other, positions)) words_.push_back(slot_[other]);
  words_[begin] = words_.size() - begin - 1;
}

bool StepTable::is_gate(std::uint32_t position, std::span<const std::uint32_t> tile) const {
  return std::ranges::any_of(model_.graph.inputs[position], [&](std::uint32_t input) {
    return pieces_.piece_of[input] == pieces_.piece_of[position] && !std::ranges::binary_search(tile, input);
  });
}

void StepTable::give_slot(std::uint32_t position) {
  if (slot_[position] != no_slot) return;
  std::size_t word = 0;
  while (word < free_.size() && free_[word] == 0) ++word;
  if (word == free_.size()) free_.push_back(~std::uint64_t{0});
  slot_[position] = static_cast<Slot>(64 * word) + static_cast<Slot>(std::countr_zero(free_[word]));
  free_[word] &= free_[word] - 1;
}

void StepTable::free_slot(std::uint32_t position) {
  const Slot slot = slot_[position];
  if (slot == no_slot) return;
  free_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  slot_[position] = no_slot;
}

// Finds the sequences of instructions that a stream repeats, while it is running and in bounded memory.
//
// A unit is a sequence of instructions, no power of a shorter one, that has occurred twice in a row in one of
// the streams that are interleaved in the stream (lane_set.h): either as two rounds of one component, what is
// carried from round to round being an input of the unit, or as two whole components, the first of which was
// over when the second began. From then on it is recognised wherever it occurs, other instructions before,
// after and in between or not. Rotations of a unit are that unit, which begins where it was first seen. Where
// a unit is part of a longer one, only the longer one is counted. Components shorter than the minimum length
// are taken together as one stream.
//
//   HotPathDetector detector({.threshold = 10});
//   for (const Instruction& instruction : stream)
//     if (const auto answer = detector.record(instruction); answer.hot) compile(answer.signature);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/stream/encoding.h"
#include "tessera/stream/instruction.h"

namespace tessera::stream {

struct HotPathOptions {
  std::uint64_t threshold = 10;        ///< occurrences that make a unit hot
  std::uint64_t min_length = 2;        ///< instructions of the shortest unit
  std::uint64_t max_period = 1 << 14;  ///< instructions of the longest unit
  std::size_t max_tracked = 1024;      ///< units that are remembered; those with the least heat go first
  std::size_t max_components = 1024;   ///< streams that are followed at the same time
  /// Instructions without an occurrence after which the heat of a unit is halved, again and again; 0 is
  /// never.
  std::uint64_t decay = 1 << 20;
  /// For tests that force collisions: the signature, and the bits that are left of hashes of sequences.
  EncodingHash signature_hash = &hash_encoding;
  std::uint64_t hash_mask = ~std::uint64_t{0};
};

/// What an instruction completed.
struct HotPathAnswer {
  bool hot = false;          ///< it is the last of an occurrence of a unit that is hot
  std::uint64_t length = 0;  ///< of the unit
  Hash128 signature = {};    ///< of the unit, where the results it does not read itself are live
};

struct HotUnit {
  Hash128 signature;
  std::uint64_t length = 0;
  std::uint64_t count = 0;  ///< occurrences that do not overlap, also those before it was hot
  std::uint64_t first_hot_at =
      0;                ///< instructions read when the count reached the threshold; 0 if it did not
  bool is_hot = false;  ///< now, after decay
};

struct HotPathStatistics {
  std::uint64_t instructions = 0;
  std::uint64_t hot_instructions = 0;  ///< in occurrences of units that were hot already
  std::uint64_t units = 0;             ///< known now
  std::uint64_t hits = 0;              ///< occurrences of known units
  std::uint64_t misses = 0;            ///< occurrences of known units that broke off
  std::uint64_t evictions = 0;         ///< units dropped for want of room
};

/// Not thread-safe.
class HotPathDetector {
 public:
  explicit HotPathDetector(const HotPathOptions& options = {});
  ~HotPathDetector();
  HotPathDetector(HotPathDetector&&) noexcept;
  HotPathDetector& operator=(HotPathDetector&&) noexcept;

  /// The next instruction of the stream.
  HotPathAnswer record(const Instruction& instruction);
  /// The stream is over, or its order is about to be lost: what is pending is counted, values are forgotten,
  /// an occurrence that has begun does not go on. Units are kept.
  void flush();

  [[nodiscard]] HotPathStatistics statistics() const;
  /// The units that were hot at some time, in the order they became so.
  [[nodiscard]] std::vector<HotUnit> hot_units() const;
  /// The units with the most occurrences, hot or not.
  [[nodiscard]] std::vector<HotUnit> top_units(std::size_t count) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::stream

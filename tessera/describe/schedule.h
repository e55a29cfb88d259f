// The order a description runs in, as data: steps with what each waits for, and where each buffer lies in
// memory. Says nothing about how a step is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/describe/graph.h"

namespace tessera::description {

/// Why one step waits for another.
enum class Cause : std::uint8_t { edge, dependency, read_after_write, write_after_read, write_after_write };
[[nodiscard]] std::string_view to_string(Cause cause);

struct Wait {
  std::uint32_t step = 0;  ///< of the same sequence
  Cause cause = Cause::edge;
  std::uint32_t what = no_index;  ///< the edge, the dependency, or the buffer

  static constexpr auto fields() {
    return std::tuple{usual("step", &Wait::step), usual("cause", &Wait::cause), usual("what", &Wait::what)};
  }
};

enum class StepKind : std::uint8_t {
  node,
  region,
  reset_counter,  ///< of an append buffer
  zero,           ///< of a buffer that an if or a switch may not write
};

struct Step {
  StepKind kind = StepKind::node;
  std::uint32_t index = 0;  ///< the node, the region or the buffer
  std::vector<Wait> waits;  ///< one step may be there for several causes
  std::uint32_t level = 0;  ///< steps of one level may run at once

  static constexpr auto fields() {
    return std::tuple{usual("kind", &Step::kind), usual("index", &Step::index), usual("waits", &Step::waits),
                      usual("level", &Step::level)};
  }
};

/// The steps of the launch, or of one branch of a region, in an order that respects all waits.
struct Sequence {
  std::vector<Step> steps;
  std::uint32_t levels = 0;

  static constexpr auto fields() {
    return std::tuple{usual("steps", &Sequence::steps), usual("levels", &Sequence::levels)};
  }
};

/// Where a buffer lies.
struct Home {
  enum class Kind : std::uint8_t { external, own, shared, unused };
  Kind kind = Kind::unused;
  std::uint64_t offset = 0;  ///< shared: in the memory that temporary buffers share

  static constexpr auto fields() {
    return std::tuple{usual("kind", &Home::kind), usual("offset", &Home::offset)};
  }
};

struct MemoryPlan {
  std::vector<Home> homes;           ///< by buffer
  std::uint64_t shared_bytes = 0;    ///< for all temporary buffers together
  std::uint64_t own_bytes = 0;       ///< graph buffers
  std::uint64_t external_bytes = 0;  ///< the caller's
  std::uint64_t lower_bound = 0;     ///< of shared_bytes in this order: the most that is live at once
  std::uint64_t without_reuse = 0;   ///< what shared_bytes would be

  /// All of it together; the largest number if it does not fit 64 bits.
  [[nodiscard]] std::uint64_t peak() const;

  static constexpr auto fields() {
    return std::tuple{usual("homes", &MemoryPlan::homes),
                      usual("shared_bytes", &MemoryPlan::shared_bytes),
                      usual("own_bytes", &MemoryPlan::own_bytes),
                      usual("external_bytes", &MemoryPlan::external_bytes),
                      usual("lower_bound", &MemoryPlan::lower_bound),
                      usual("without_reuse", &MemoryPlan::without_reuse)};
  }
};

struct Schedule {
  std::vector<Sequence> sequences;  ///< by scope; 0 is the launch
  MemoryPlan memory;

  static constexpr auto fields() {
    return std::tuple{usual("sequences", &Schedule::sequences), usual("memory", &Schedule::memory)};
  }
};

}  // namespace tessera::description

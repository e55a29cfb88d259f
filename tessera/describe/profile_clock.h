// Takes the times of a launch, as far as the level asks: without profiling no clock is read.
#pragma once

#include "tessera/describe/description.h"
#include "tessera/describe/profile.h"

namespace tessera::description {

class ProfileClock {
 public:
  using Clock = std::chrono::steady_clock;

  ProfileClock(const Description& description, ProfilingLevel level);

  [[nodiscard]] ProfilingLevel level() const { return level_; }

  void begin();
  [[nodiscard]] Profile end();

  /// A node ran so long.
  void add(std::uint32_t node, Clock::duration time);

  /// Adds the time until it is destroyed to a node.
  class Timer {
   public:
    Timer(ProfileClock* clock, std::uint32_t node) : clock_(clock), node_(node) {
      if (clock_ != nullptr) begin_ = Clock::now();
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    ~Timer() {
      if (clock_ != nullptr) clock_->add(node_, Clock::now() - begin_);
    }

   private:
    ProfileClock* clock_;
    std::uint32_t node_;
    Clock::time_point begin_;
  };
  [[nodiscard]] Timer time_node(std::uint32_t node) {
    return Timer(level_ >= ProfilingLevel::per_block ? this : nullptr, node);
  }

 private:
  void add_blocks(Profile& out) const;

  const Description& description_;
  ProfilingLevel level_;
  Clock::time_point begin_;
  std::vector<Clock::duration> times_;  // by node
  std::vector<std::uint64_t> runs_;     // by node
};

}  // namespace tessera::description

// How much work may still be done.
//
// Work is counted where it is done, in units of about a nanosecond on a processor of today. So a limit on it
// ends a search at the same place on every machine, idle or busy, and what was found by then is the same. A
// limit on time is one only where somebody asked for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace tessera::cover {

/// Counts the work of one thread. Without limits it is never over.
class Effort {
 public:
  using Clock = std::chrono::steady_clock;

  /// Where it is over: so much work was done, or that moment has come.
  struct End {
    std::uint64_t work = unlimited;
    std::optional<Clock::time_point> time = {};
  };

  Effort() = default;
  Effort(std::optional<std::uint64_t> work, std::optional<std::chrono::milliseconds> time)
      : end_{.work = work.value_or(unlimited)} {
    if (time) end_.time = Clock::now() + *time;
  }

  void spend(std::uint64_t work) { spent_ += work; }
  [[nodiscard]] std::uint64_t spent() const { return spent_; }

  /// Looks at the clock only if there is a limit on time.
  [[nodiscard]] bool is_over() const { return !leaves(0); }
  /// Whether so much more work would end before the end.
  [[nodiscard]] bool leaves(std::uint64_t work) const {
    if (spent_ >= end_.work || work >= end_.work - spent_) return false;
    return !end_.time || Clock::now() + std::chrono::nanoseconds(work) < *end_.time;
  }

  [[nodiscard]] const End& end() const { return end_; }
  void set_end(const End& end) { end_ = end; }
  /// One of so many equal parts of what is left until `end`, from now on.
  [[nodiscard]] End share(const End& end, std::uint32_t parts) const {
    End out = end;
    if (end.work != unlimited && end.work > spent_) out.work = spent_ + (end.work - spent_) / parts;
    if (end.time) {
      const auto now = Clock::now();
      out.time = now + (*end.time - now) / parts;
    }
    return out;
  }

  /// What is left, for one who counts on.
  [[nodiscard]] std::optional<std::uint64_t> work_left() const {
    if (end_.work == unlimited) return std::nullopt;
    return end_.work - std::min(spent_, end_.work);
  }
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_left() const {
    if (!end_.time) return std::nullopt;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*end_.time - Clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }

 private:
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t spent_ = 0;
  End end_;
};

}  // namespace tessera::cover

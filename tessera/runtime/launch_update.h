// What a device holds from launch to launch, and what a launch had to change in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tessera::runtime {

struct LaunchUpdate {
  std::uint32_t patched = 0;     ///< nodes whose addresses, numbers or extents are others
  std::uint32_t new_code = 0;    ///< those of them that run another function
  std::uint32_t recaptured = 0;  ///< those of them that were captured again
  bool is_remade = false;        ///< all of it was made anew
  std::chrono::nanoseconds time{};
};

/// An executable of a device that holds something from launch to launch.
class HoldsLaunches {
 public:
  virtual ~HoldsLaunches() = default;
  /// Of the last run.
  [[nodiscard]] virtual LaunchUpdate launch_update() const = 0;
  /// The regions that the host drives instead of the device, each with the reason; empty: none.
  [[nodiscard]] virtual std::string driven_by_host() const = 0;
  /// The memory of the device that it keeps for what its steps need while they run, beside what its binding
  /// says.
  [[nodiscard]] virtual std::uint64_t scratch_bytes() const = 0;
};

}  // namespace tessera::runtime

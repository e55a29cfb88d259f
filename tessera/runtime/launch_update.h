// What a launch had to change in what a device holds.
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
};

}  // namespace tessera::runtime

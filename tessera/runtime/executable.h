// A plan on a device, ready to run again and again.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/plan/binding.h"
#include "tessera/runtime/buffer.h"

namespace tessera::runtime {

/// When one step ran.
struct TimedStep {
  using Clock = std::chrono::steady_clock;

  std::uint32_t step = 0;
  std::uint32_t thread = 0;  ///< of the device's, which may run several at once
  Clock::time_point begin, end;
};

/// What changes from launch to launch.
struct Launch {
  std::span<std::byte* const> inputs;         ///< the first element of each
  std::span<const std::uint64_t> parameters;  ///< bits of a double for floats, of an i64 for the others
  std::span<std::byte* const> outputs;        ///< one per buffer of the binding
  /// The buffers that the inputs lie in, null where a buffer is not known or may change without a word; may
  /// be empty. What is derived from their contents is kept with them.
  std::span<const Buffer* const> buffers = {};
  std::vector<TimedStep>* times = nullptr;  ///< given: gets when each step ran that is no view
};

/// One thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Sets sizes and the layouts of the inputs, whose offsets are 0; before the first launch, and when they
  /// change. After an error the last ones that worked stay.
  [[nodiscard]] virtual Result<void> prepare(std::span<const std::int64_t> sizes,
                                             std::span<const op::Layout> inputs) = 0;
  /// What prepare() decided.
  [[nodiscard]] virtual const plan::Binding& binding() const = 0;
  [[nodiscard]] virtual Result<void> run(const Launch& launch) = 0;
};

}  // namespace tessera::runtime

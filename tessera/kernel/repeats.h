// Instructions that repeat themselves: a long chain of calls that are alike is a loop, for those who write a
// kernel as code.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tessera/kernel/kernel.h"

namespace tessera::kernel {

/// `times` times `period` neighbours among some values. Each time computes from values before the stretch,
/// from the same time, and from the last value of the time before: of the first time that is the value before
/// the stretch. Nothing else reads a value of it but the last.
struct Repeat {
  std::size_t begin = 0;
  std::size_t period = 0;
  std::size_t times = 0;

  [[nodiscard]] std::size_t end() const { return begin + period * times; }
  bool operator==(const Repeat&) const = default;
};

/// Those of at least `least` instructions, in order. `values` are some of the kernel's, operands before what
/// uses them. The cost is linear.
[[nodiscard]] std::vector<Repeat> find_repeats(const Kernel& kernel, std::span<const ValueId> values,
                                               std::size_t least);

}  // namespace tessera::kernel

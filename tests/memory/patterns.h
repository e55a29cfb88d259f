// Ways to use Tessera that must not grow, however long they go on. growth_test.cpp runs them for seconds,
// tools/soak for minutes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace tessera::fixture {

/// Does it some times more; the number of evaluations.
using Round = std::function<std::int64_t()>;

struct Pattern {
  std::string_view name, what;
  Round (*begin)();
};

[[nodiscard]] std::span<const Pattern> patterns();
/// What makes code is opened then. Throws if there is no such pattern.
[[nodiscard]] Round begin_pattern(std::string_view name);

}  // namespace tessera::fixture

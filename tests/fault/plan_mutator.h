// Changes the bytes of a saved plan and gives it the checksum that fits, as somebody would who wants it to be
// believed.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::fixture {

/// One to three changes. The same number gives the same bytes. REQUIRES the bytes of a plan.
[[nodiscard]] std::string changed_plan(const std::string& bytes, std::uint64_t number);

}  // namespace tessera::fixture

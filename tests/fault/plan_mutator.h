// Changes the bytes of a saved plan and gives it the checksum that fits, as somebody would who wants it to be
// believed.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::fixture {

/// One to three changes. The same number gives the same bytes. REQUIRES the bytes of a plan.
[[nodiscard]] std::string changed_plan(const std::string& bytes, std::uint64_t number);

/// One byte of one section is another. REQUIRES numbers below one_byte_changes(bytes).
[[nodiscard]] std::string with_one_byte(const std::string& bytes, std::uint64_t number);
[[nodiscard]] std::uint64_t one_byte_changes(const std::string& bytes);

/// A section ends before its time. REQUIRES numbers below cuts(bytes).
[[nodiscard]] std::string cut_plan(const std::string& bytes, std::uint64_t number);
[[nodiscard]] std::uint64_t cuts(const std::string& bytes);

}  // namespace tessera::fixture

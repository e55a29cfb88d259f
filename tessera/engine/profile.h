// What evaluations took, as far as was asked: by block, by kernel, with the lines of the program that the ops
// come from.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/profiling_level.h"

namespace tessera::engine {

/// An op and the line that called it.
struct ProfiledOp {
  std::string name;
  std::string file;
  std::uint32_t line = 0;

  bool operator==(const ProfiledOp&) const = default;
};

struct BlockTime {
  std::string block;  ///< "encoder/layer1"; empty: none
  std::uint64_t runs = 0;
  std::chrono::nanoseconds time{};  ///< of its own kernels and of the blocks in it
};

/// All runs of one kernel: an op, or several that are fused.
struct KernelTime {
  std::string name;  ///< "matmul", "mul+add+relu"
  std::vector<ProfiledOp> ops;
  std::string block;
  std::uint64_t runs = 0;
  std::chrono::nanoseconds time{};
};

/// One run of a kernel, or one evaluation.
struct ProfileEvent {
  std::uint32_t kernel = 0;          ///< of Profile::kernels; none for an evaluation
  std::uint32_t thread = 0;          ///< that evaluated; numbered in the order they were first seen
  std::uint32_t device_thread = 0;   ///< that ran it
  std::chrono::nanoseconds begin{};  ///< since profiling began
  std::chrono::nanoseconds time{};

  static constexpr std::uint32_t none = ~std::uint32_t{0};
};

struct Profile {
  ProfilingLevel level = ProfilingLevel::none;
  std::uint64_t evaluations = 0;
  std::chrono::nanoseconds time{};   ///< of all evaluations
  std::vector<BlockTime> blocks;     ///< longest first
  std::vector<KernelTime> kernels;   ///< in the order they were first seen
  std::vector<ProfileEvent> events;  ///< per_kernel: the first of them
  std::uint64_t events_lost = 0;     ///< that there was no room for; they are in the times

  /// Tables for people, longest first.
  [[nodiscard]] std::string to_text() const;
  /// The events as chrome://tracing and Perfetto read them.
  [[nodiscard]] std::string to_json() const;
};

}  // namespace tessera::engine

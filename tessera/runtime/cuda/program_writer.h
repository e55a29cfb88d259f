// Writing the program of a step: operands, scratch memory, and kernels whose parameters and arguments are
// listed together, so that they cannot differ.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tessera/op/array.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/launch.h"
#include "tessera/runtime/cuda/walk.h"

namespace tessera::runtime::cuda {

/// An array of the step, or scratch memory seen as one.
struct Operand {
  Memory memory;  ///< of the first element
  ir::Dtype dtype = ir::Dtype::f32;
  op::Extents shape;
  op::Extents strides;          ///< in elements
  std::int64_t alignment = 16;  ///< of the first element, in bytes: a power of two, 16 at most

  [[nodiscard]] std::size_t rank() const { return shape.size(); }
  [[nodiscard]] std::int64_t size() const { return op::element_count(shape); }
  [[nodiscard]] std::int64_t element_bytes() const { return static_cast<std::int64_t>(ir::size_of(dtype)); }
  [[nodiscard]] bool is_contiguous() const { return op::Layout{shape, strides, 0}.is_contiguous(); }
};

/// The type `I` that places are counted in.
enum class IndexWidth : std::uint8_t { narrow, wide };

[[nodiscard]] inline IndexWidth width_of(const Walk& walk) {
  return walk.is_small() ? IndexWidth::narrow : IndexWidth::wide;
}

/// Threads of a block, where a kernel does not need another number of them.
inline constexpr std::int64_t block_threads = 256;

/// Enough for every device; beyond it each thread takes several items.
inline constexpr std::int64_t most_walking_blocks = 65536;

/// One kernel: the text before it, its parameters with their arguments, its body.
class KernelWriter {
 public:
  /// `prelude` is what stands before the kernel, behind `I`.
  KernelWriter(std::string entry, IndexWidth width, std::string prelude);

  /// A parameter `type* name`.
  KernelWriter& pointer(std::string_view type, std::string_view name, const Memory& memory);
  /// A variable `const I name`.
  KernelWriter& integer(std::string_view name, std::int64_t value);
  /// A variable `const I name[]`, of one element at least.
  KernelWriter& integers(std::string_view name, std::span<const std::int64_t> values);
  /// The axes of a walk: `R`, `size[R]`, and `names[k]` for the strides of array k.
  KernelWriter& walk(const Walk& walk, std::span<const std::string_view> names);

  /// More text before the kernel, which may use what was listed so far: `R`, say.
  KernelWriter& prelude(std::string_view text);
  /// Of a block, for kernels that are launched with more than compilers give registers to by themselves.
  KernelWriter& most_threads(std::int64_t threads);

  /// The launch of the kernel with this body.
  [[nodiscard]] Launch launch(std::string_view body, std::int64_t blocks,
                              std::int64_t threads = block_threads, std::int64_t shared_bytes = 0) &&;
  /// The same with a thread per item, which takes further ones if there are very many: the body sees `at`.
  [[nodiscard]] Launch launch_items(std::string_view body, std::int64_t items) &&;

 private:
  void parameter(std::string text, Argument argument);

  std::string entry_, prelude_, bounds_, parameters_, variables_;
  std::vector<Argument> arguments_;
};

/// The program of a step.
class ProgramWriter {
 public:
  ProgramWriter(std::span<const op::Array> inputs, std::span<const op::Array> results,
                const DeviceLimits& limits)
      : inputs_(inputs), results_(results), limits_(limits) {}

  [[nodiscard]] const DeviceLimits& limits() const { return limits_; }

  [[nodiscard]] Operand input(std::uint32_t i) const;
  [[nodiscard]] Operand result(std::uint32_t i) const;
  /// Whether a result lies in the memory of an input, element for element.
  [[nodiscard]] bool is_in_place(std::uint32_t input, std::uint32_t result) const;

  [[nodiscard]] Memory scratch(std::int64_t bytes);
  /// Contiguous scratch.
  [[nodiscard]] Operand scratch(ir::Dtype dtype, const op::Extents& shape);
  [[nodiscard]] Memory status(IndexCheck check);

  void clear(const Memory& to, std::int64_t bytes);
  void add(Launch launch) { program_.launches.push_back(std::move(launch)); }
  /// Copies elements of any strides; the shapes and dtypes are the same.
  void copy(const Operand& from, const Operand& to);
  /// The operand, or a copy of it that is contiguous.
  [[nodiscard]] Operand dense(const Operand& from);

  [[nodiscard]] StepProgram take() { return std::move(program_); }

 private:
  std::span<const op::Array> inputs_, results_;
  DeviceLimits limits_;
  StepProgram program_;
};

}  // namespace tessera::runtime::cuda

// Runs kernels at once, anywhere: precompiled loops over blocks of elements, no compiler.
//
//   const Interpreter interpreter(kernel);
//   Job job;
//   TESSERA_TRY(interpreter.prepare(inputs, outputs, job));
//   interpreter.run(job, parameters, {0, job.items}, scratch);
//
// The items of a job are independent: threads may run disjoint ranges at once, each with its own scratch. The
// result does not depend on how they are split.
#pragma once

#include <memory>
#include <span>

#include "tessera/base/large_pages.h"
#include "tessera/kernel/binding.h"
#include "tessera/kernel/program.h"

namespace tessera::kernel {

/// Memory for one thread. Grows when a run needs more than any before, and never otherwise.
class Scratch {
 public:
  /// At least `bytes`, aligned to 64. Throws std::bad_alloc.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > size_) {
      memory_ = allocate_block(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  MemoryBlock memory_;
  std::size_t size_ = 0;
};

struct ItemRange {
  std::int64_t begin = 0, end = 0;
};

/// One run of a kernel on certain arrays.
struct Job {
  Binding binding;
  Lanes lanes = Lanes::outer;
  std::int64_t lane_block = 1;       ///< lanes of one item, if they lie along an outer axis
  std::int64_t blocks_per_line = 1;  ///< items along that axis
  std::int64_t items = 0;
  bool writes_in_place = true;  ///< no output is an input
};

/// Immutable: any number of threads may run it.
class Interpreter {
 public:
  explicit Interpreter(Kernel kernel, Accuracy accuracy = Accuracy::usual);

  [[nodiscard]] const Kernel& kernel() const { return kernel_; }
  [[nodiscard]] const Passes& passes() const { return passes_; }

  /// Checks the arrays and lays out the run. Reuses the memory of `job`.
  [[nodiscard]] Result<void> prepare(std::span<const op::Array> inputs, std::span<const op::Array> outputs,
                                     Job& job) const;
  /// Computes some of the items. `parameters` has the kernel's scalar parameters in its order, as
  /// ir::number_bits. Allocates only if `scratch` has to grow.
  void run(const Job& job, std::span<const std::uint64_t> parameters, ItemRange range,
           Scratch& scratch) const;

 private:
  [[nodiscard]] std::int64_t lanes_at_once(const Binding& binding) const;
  [[nodiscard]] const Program& program(Lanes lanes) const {
    return lanes == Lanes::outer ? over_rows_ : along_rows_;
  }

  Kernel kernel_;
  Passes passes_;
  Program over_rows_;   ///< lanes along the last outer axis
  Program along_rows_;  ///< lanes along the last reduced axis; the same if there is none
};

/// Writes constants, parameters and extents, as registers hold them, to `out`, which has an entry for every
/// value of the body. REQUIRES a parameter for each of the kernel's; `uniforms` are those of its passes.
void hold_scalars(const Kernel& kernel, std::span<const ValueId> uniforms, const Binding& binding,
                  std::span<const std::uint64_t> parameters, std::uint64_t* out);

/// Binds and runs all items. Fails if arrays or the number of parameters do not fit.
[[nodiscard]] Result<void> run(const Interpreter& interpreter, std::span<const op::Array> inputs,
                               std::span<const op::Array> outputs, std::span<const std::uint64_t> parameters,
                               Scratch& scratch);

}  // namespace tessera::kernel

// Chains of steps that go over the same rows, as the layers of a network do between two attentions: each row
// of a result follows from the same row of what the steps before it computed, and from values that were there
// before. Threads share the rows out once for the whole chain, not once for every step, and a block of rows
// stays in the cache of the thread that computes it.
//
// find_row_bands() goes by sizes, before there is memory. Whether a step then reads and writes no other rows
// than its own is seen by its strides (RowMemory): what does not is run between two chains.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tessera/kernel/interpreter.h"
#include "tessera/plan/binding.h"
#include "tessera/runtime/cpu/library_form.h"
#include "tessera/runtime/cpu/schedule.h"

namespace tessera::runtime::cpu {

struct RowBand {
  plan::StepSpan steps;
  std::int64_t rows = 0;
  std::int64_t block = 0;  ///< rows that are computed at once

  [[nodiscard]] std::int64_t blocks() const { return (rows + block - 1) / block; }
  /// Whether a block ends where an item of a job over the rows does: those of a job over one axis may have
  /// parts of several rows.
  [[nodiscard]] bool has_whole_items(const kernel::Job& job) const;
  /// The items of such a job that belong to some of the blocks.
  [[nodiscard]] kernel::ItemRange items_of(kernel::ItemRange blocks, const kernel::Job& job) const;

  bool operator==(const RowBand&) const = default;
};

/// Where a chain is predicted to end sooner than its steps in turn. Blocks are at least so many that each of
/// `threads` has one; a row is computed the same way in blocks of any size from 16 on. `forms` and `times`
/// are by step.
[[nodiscard]] std::vector<RowBand> find_row_bands(const plan::Plan& plan, const plan::Binding& binding,
                                                  std::span<const std::optional<LibraryForm>> forms,
                                                  std::span<const StepTime> times, unsigned threads);

/// The results of a chain.
class RowMemory {
 public:
  explicit RowMemory(const RowBand& band) : band_(band) {}

  /// Whether a kernel computes the rows of its results from the same rows of what is here; if so, its results
  /// are here, too.
  [[nodiscard]] bool take(const kernel::Kernel& kernel, const kernel::Job& job,
                          std::span<const op::Array> results);
  /// The same of a product, which goes by the rows of its result.
  [[nodiscard]] bool take(const LibraryForm& form, std::span<const op::Array> inputs,
                          std::span<const op::Array> results);

 private:
  struct Block {
    const std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };

  [[nodiscard]] const Block* find(const std::byte* data) const;
  [[nodiscard]] bool add(const op::Array& result);
  [[nodiscard]] bool add_all(std::span<const op::Array> results);
  [[nodiscard]] bool lies_by_rows(const kernel::Kernel& kernel, const kernel::Binding& binding,
                                  std::size_t operand) const;
  [[nodiscard]] bool is_elsewhere_or_dense(const op::Array& array) const;

  RowBand band_;
  std::vector<Block> blocks_;
};

}  // namespace tessera::runtime::cpu

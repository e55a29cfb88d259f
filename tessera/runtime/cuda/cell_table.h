// What kernels read from memory beside arrays: the numbers of a launch and those that follow from sizes, each
// in a cell of eight bytes. It knows what the device was given, so that a launch copies what changed, at
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/runtime/cuda/plan_program.h"

namespace tessera::runtime::cuda {

/// One thread at a time.
class CellTable {
 public:
  CellTable() = default;
  /// For a program of the plan. The device has nothing of it yet.
  CellTable(const plan::Plan& plan, const PlanProgram& program);

  /// The cells from `begin` to `end` are others than those on the device.
  struct Change {
    std::size_t begin = 0, end = 0;

    [[nodiscard]] bool is_empty() const { return begin >= end; }
    bool operator==(const Change&) const = default;
  };

  /// Takes the numbers of a launch, one for each parameter of the plan. It tells a change again until
  /// `note_copied` says that the device has it.
  [[nodiscard]] Change follow(std::span<const std::uint64_t> numbers);
  void note_copied() { is_copied_ = true; }

  /// The parameters as arrays, then what follows from sizes, then numbers as kernels read them.
  [[nodiscard]] std::span<const std::uint64_t> cells() const { return cells_; }

 private:
  /// A number as a kernel reads it.
  struct Use {
    std::uint32_t slot = 0;
    std::uint32_t cell = 0;
    ir::Dtype from = ir::Dtype::f32, as = ir::Dtype::f32;
  };

  void list_uses(const plan::Plan& plan, const PlanProgram& program);
  [[nodiscard]] Change set(std::size_t first, std::size_t last);

  std::vector<ir::Dtype> parameters_;  ///< of the plan, where cells hold them as arrays
  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint64_t> cells_;
  std::vector<Use> uses_;              ///< ordered by slot
  std::vector<std::size_t> first_of_;  ///< by slot: where its uses begin, and the end
  bool is_read_ = false;
  bool is_copied_ = false;
};

}  // namespace tessera::runtime::cuda

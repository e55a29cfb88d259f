// A program that is put together from programs of parts, over the arrays of a step and memory of its own.
#pragma once

#include <span>
#include <vector>

#include "tessera/op/array.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// An array with the memory that its address counts from.
struct ProgramArray {
  op::Array array;
  Memory memory;
};

class ProgramDraft {
 public:
  ProgramDraft(std::span<const op::Array> inputs, std::span<const op::Array> results)
      : inputs_(inputs), results_(results) {}

  [[nodiscard]] ProgramArray input(std::size_t i) const {
    return {inputs_[i], {Memory::Kind::input, static_cast<std::uint32_t>(i), 0}};
  }
  [[nodiscard]] ProgramArray result(std::size_t i) const {
    return {results_[i], {Memory::Kind::result, static_cast<std::uint32_t>(i), 0}};
  }
  /// Memory for as long as the step runs, without gaps.
  [[nodiscard]] ProgramArray scratch(op::Dtype dtype, const op::Extents& shape);

  /// Appends a program whose inputs and results are these.
  void add(StepProgram part, std::span<const ProgramArray> inputs, std::span<const ProgramArray> results);

  /// Appends a launch over the memory of this program.
  void append(Launch launch) { out_.launches.push_back(std::move(launch)); }

  /// Whether scratch memory could take the place of result `i`: it is a whole array and lies as the result
  /// does, and the result lies in no input.
  [[nodiscard]] bool can_become_result(const ProgramArray& from, std::size_t i) const;
  /// From its first use on, scratch memory is this result.
  void become_result(const ProgramArray& from, std::size_t i);

  [[nodiscard]] StepProgram finish() && { return std::move(out_); }

 private:
  std::span<const op::Array> inputs_, results_;
  StepProgram out_;
};

[[nodiscard]] std::vector<op::Array> arrays_of(std::span<const ProgramArray> list);

}  // namespace tessera::runtime::cuda

// A kernel's arrays, values and loops as CUDA C++: what the forms (element, row, looped, tiled) are made of.
// Sizes and strides are arguments, so that one source serves many sizes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/kernel/binding.h"
#include "tessera/kernel/passes.h"
#include "tessera/runtime/cuda/device_limits.h"
#include "tessera/runtime/cuda/launch.h"
#include "tessera/runtime/cuda/scalar_text.h"

namespace tessera::runtime::cuda {

using kernel::Binding;
using kernel::Instruction;
using kernel::InstructionKind;
using kernel::Kernel;
using kernel::Level;
using kernel::Pass;
using kernel::Passes;
using kernel::Store;
using kernel::Term;
using kernel::ValueId;
using kernel::wide_dtype;

/// A kernel with its arrays, as all forms see it.
struct BoundKernel {
  const kernel::Kernel& kernel;
  const kernel::Passes& passes;
  const kernel::Binding& binding;
  std::span<const op::Array> inputs, results;

  /// Whether values of the operand change along an axis that is joined.
  [[nodiscard]] bool varies(std::size_t operand, std::size_t axis) const {
    return binding.stride(operand, axis) != 0;
  }
  [[nodiscard]] std::size_t outer_count() const { return binding.outer.size(); }
  [[nodiscard]] std::int64_t size_of_axis(std::size_t axis) const;
  /// Operands that are loaded or stored at every point, and not once per outer point.
  [[nodiscard]] const std::vector<bool>& is_at_points() const { return at_points; }
  /// The most elements that all of them can be accessed with at once along `axis`, 16 bytes of the widest; 1
  /// if one of them is not contiguous there. `may_have_tail`: the last vector of the axis need not be
  /// whole.
  [[nodiscard]] unsigned vector_width(std::size_t axis, bool may_have_tail) const;
  /// Whether indices and offsets fit into 32 bits.
  [[nodiscard]] bool has_small_indices() const;
  [[nodiscard]] std::size_t load_count() const;
  /// Everything that must be computed at every point for these reductions and stores, without `known` values.
  [[nodiscard]] std::vector<ValueId> elements_for(std::span<const ValueId> reductions,
                                                  std::span<const std::uint32_t> stores,
                                                  const std::vector<bool>& known) const;
  /// The operands that the values load.
  [[nodiscard]] std::vector<std::uint32_t> loaded_operands(std::span<const ValueId> values) const;
  /// The stores of a pass over a row. All are in the last: results may stand in place of inputs, which every
  /// pass may read.
  [[nodiscard]] std::vector<std::uint32_t> stores_of(std::size_t pass) const;

  std::vector<bool> at_points;  ///< by operand
};

[[nodiscard]] BoundKernel bound_kernel(const kernel::Kernel& kernel, const kernel::Passes& passes,
                                       const kernel::Binding& binding, std::span<const op::Array> inputs,
                                       std::span<const op::Array> results);

/// A source that is being written: what is around the text of its function.
struct SourceDraft {
  /// Once per name.
  void add_argument(std::string_view type, std::string_view name, const Argument& argument);
  [[nodiscard]] Launch launch(std::string entry, std::string_view text, bool has_small_indices,
                              unsigned most_threads) const;

  ScalarText scalar;
  std::string parameters;  ///< of the function
  std::vector<Argument> arguments;
  std::vector<std::string> names;  ///< of the arguments
  bool starts_next = false;        ///< the text says when what comes after may start
};

class KernelText {
 public:
  /// A kernel that is a source of its own.
  explicit KernelText(const BoundKernel& bound);
  /// A kernel that is a part of another one. `arrays` are texts of the addresses of its inputs and results,
  /// of type unsigned char*; `prefix` stands before its arguments.
  KernelText(const BoundKernel& bound, SourceDraft& draft, std::string prefix,
             std::span<const std::string> arrays);

 protected:
  ~KernelText() = default;

  template <class... Args>
  void line(const Args&... args) {
    text_ += cat(args..., "\n");
  }

  /// What comes after may start here.
  void start_next() {
    line("start_next();");
    draft_.starts_next = true;
  }

  // ---- arguments

  void add_argument(std::string_view type, const std::string& name, Argument argument);
  /// A number of the index type, once per name.
  void add_index(const std::string& name, std::int64_t value);
  void add_int(const std::string& name, std::int64_t value);
  void add_pointer(std::string_view type, const std::string& name, Memory memory);

  // ---- indices

  /// Declares "<prefix>k" for each axis from `first` on, from the index `from`, which counts vectors of
  /// `width` along the last of them.
  void split_index(const std::string& from, std::size_t first, std::size_t count, unsigned width);
  /// The name of the index along a joined axis, in vectors along the last one that was split.
  [[nodiscard]] static std::string coordinate(std::size_t axis) { return cat("c", axis); }
  /// The offset of an operand by the indices along `count` axes from `first`; "0" if there is none.
  [[nodiscard]] std::string offset(std::size_t operand, std::size_t first, std::size_t count, unsigned width);
  /// The same, if `axis` counts elements by the expression `element`.
  void set_place(std::size_t axis, const std::string& text) { places_[axis] = text; }

  /// Declares "r<operand>", the operand at an outer point, and sets the elements of those that are the same
  /// for all of its points.
  void move_to_outer_point();

  // ---- values

  [[nodiscard]] Dtype wide(ValueId value) const { return kernel::wide_dtype(body_[value].dtype); }
  /// Declares the value; it is in values_ then.
  [[nodiscard]] Result<void> write(ValueId value);
  /// In order; chains of many that are alike as loops.
  [[nodiscard]] Result<void> write_all(std::span<const ValueId> values);
  [[nodiscard]] Result<std::string> expression(ValueId value);
  /// Declares the reciprocals of what these elements are divided by, where that is the same for many: ahead
  /// of the loop over them.
  void write_reciprocals(std::span<const ValueId> elements);
  [[nodiscard]] std::string narrowed(const kernel::Store& store);
  /// `a` and `b` joined as a reduction does, in `dtype`.
  [[nodiscard]] Result<std::string> joined(ScalarOpcode opcode, Dtype dtype, const std::string& a,
                                           const std::string& b);

  // ---- reductions

  /// What elements are joined in by one thread before they go to the total.
  [[nodiscard]] Dtype part_dtype(ValueId reduction) const;
  /// Declares "s<value>", where a thread joins elements.
  void declare_part(ValueId reduction);
  [[nodiscard]] Result<void> join_element(ValueId reduction);
  /// "name = name joined with that of other lanes", for distances from `from` down to 1. It is of this dtype,
  /// else of that of the total.
  [[nodiscard]] Result<void> join_lanes(ValueId reduction, const std::string& name, const std::string& from,
                                        std::optional<Dtype> dtype = {});

  [[nodiscard]] std::string_view element_type(std::size_t operand) const {
    return memory_type(kernel_.operands[operand].dtype);
  }
  /// "Vector<float, 4>": 1 if the operand does not vary along `axis`.
  [[nodiscard]] unsigned width_of(std::size_t operand, std::size_t axis, unsigned width) const {
    return bound_.varies(operand, axis) ? width : 1;
  }

  /// The launch of what was written.
  [[nodiscard]] Launch launch(std::string entry, Extent3 grid, Extent3 block, unsigned most_threads) const;
  /// What was written, as a part of another kernel.
  [[nodiscard]] std::string part() const { return cat("{\n", locals_, text_, "}\n"); }

  const BoundKernel& bound_;
  const kernel::Kernel& kernel_;
  const kernel::Passes& passes_;
  const kernel::Binding& binding_;
  const std::vector<Instruction>& body_;

 private:
  SourceDraft own_;
  SourceDraft& draft_;

 protected:
  ScalarText& scalar_;
  std::vector<std::string> values_;    ///< by value: its text at this place
  std::vector<std::string> elements_;  ///< by operand: the text of the element at this place
  std::string text_;

 private:
  [[nodiscard]] Result<void> write_loop(std::span<const ValueId> values, std::size_t times, ValueId before);
  [[nodiscard]] Result<std::string> operation(const Instruction& instruction);
  [[nodiscard]] bool is_by_reciprocal(const Instruction& instruction) const;
  [[nodiscard]] std::string parameter(const Instruction& instruction);
  [[nodiscard]] std::string place(std::uint32_t number) const;
  [[nodiscard]] const Instruction* operation_at(ValueId value, ScalarOpcode opcode) const;
  [[nodiscard]] bool is_number(ValueId value, float number) const;
  [[nodiscard]] std::string gelu(const Instruction& instruction) const;
  [[nodiscard]] std::string stride(std::size_t operand, std::size_t axis);

  const std::string prefix_;
  std::string locals_;                ///< of a part: its names for its arguments
  std::vector<std::string> places_;   ///< by joined axis: the element's index there
  std::vector<bool> has_reciprocal_;  ///< by value
  const bool has_jumps_;
  const bool has_small_indices_;
};

/// Ahead of every source.
extern const std::string_view kernel_prelude;

/// Launches of all forms have at most so many threads a block.
inline constexpr unsigned usual_threads = 256;
/// About what fills a large device.
inline constexpr std::int64_t many_blocks = 512;

// ---- the forms

/// Kernels that reduce nothing.
[[nodiscard]] Result<StepProgram> element_program(const BoundKernel& bound);
/// An operand is contiguous along another axis than the results: through tiles in shared memory.
[[nodiscard]] Result<StepProgram> tiled_program(const BoundKernel& bound, std::size_t axis);
/// Rows that are held in registers and in the block's memory: one read. REQUIRES fits_block().
[[nodiscard]] Result<StepProgram> row_program(const BoundKernel& bound, const DeviceLimits& limits);
/// Whether a block, or a part of one, can hold a row.
[[nodiscard]] bool fits_block(const BoundKernel& bound, const DeviceLimits& limits);
/// Rows or columns of any length, in one launch or, where there are few, in one per pass and a last one.
[[nodiscard]] Result<StepProgram> looped_program(const BoundKernel& bound, bool has_columns);

}  // namespace tessera::runtime::cuda

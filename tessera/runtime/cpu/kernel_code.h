// A kernel's values and arrays as vector code: what the generators of loops (row_code.cpp, column_code.cpp)
// are made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/runtime/cpu/codegen.h"
#include "tessera/runtime/cpu/vector_code.h"

namespace tessera::runtime::cpu {

using kernel::Instruction;
using kernel::ValueId;

class KernelCode {
 public:
  KernelCode(const kernel::Kernel& kernel, const kernel::Passes& passes, const CodeShape& shape);

 protected:
  ~KernelCode() = default;

  /// Where in the loops an element is computed.
  struct Point {
    std::string index = {};  ///< of the first lane of the vector, i64
    std::string mask = {};   ///< of the lanes that count; empty: all
    std::string row = {};    ///< the index along the reduced axis, where lanes lie along another; else empty
  };

  /// The declarations and the function around what was written.
  [[nodiscard]] std::string function_text() const;

  // ---- the frame

  std::string field(std::size_t number);
  std::string loaded(std::string_view type, const std::string& pointer);
  std::string entry(const std::string& table, std::string_view type, std::size_t number);
  void load_frame();

  // ---- values

  [[nodiscard]] Dtype wide(ValueId value) const { return kernel::wide_dtype(kernel_.body[value].dtype); }
  /// Whether it differs from lane to lane.
  [[nodiscard]] bool is_vector(ValueId value) const {
    return shape_.lanes == kernel::Lanes::outer ? passes_.levels[value] != kernel::Level::uniform
                                                : passes_.levels[value] == kernel::Level::element;
  }
  /// Computes a value at a point; it has the name values_[value] then.
  Result<void> write(ValueId value, const Point& point);
  /// The value as the code that is being written wants it: of one number, or of a whole vector.
  std::string use(ValueId value);
  /// A vector of one number as a whole vector. REQUIRES width 1.
  std::string in_all_lanes(std::string_view type, const std::string& one);
  /// What is the same in all lanes, as a whole vector: ahead of the loops that use it. REQUIRES width 1.
  void repeat(ValueId value);
  void repeat_operands_of(ValueId value);

  // ---- memory

  std::string load_at(const std::string& base, std::string_view type, std::size_t alignment,
                      const Point& point);
  void store_at(const std::string& value, const std::string& base, std::string_view type,
                std::size_t alignment, const Point& point);
  void store(const kernel::Store& store, const Point& point);

  void phi(const std::string& name, std::string_view type, const std::string& a, const std::string& from_a,
           const std::string& b, const std::string& from_b);
  /// The lanes of the vector at `index` that lie before `end`.
  std::string mask(const std::string& index, const std::string& end);

  const kernel::Kernel& kernel_;
  const kernel::Passes& passes_;
  const CodeShape& shape_;
  VectorCode code_;
  std::vector<std::string> values_;  ///< by value: its name now; of one number if it is no vector
  std::vector<std::string> data_, kept_;
  std::string count_, row_count_;

 private:
  void report_failure();
  Result<std::string> text_of(ValueId value, const Point& point);
  std::string scalar(ValueId value);
  std::string place(std::uint32_t axis, const Point& point);
  [[nodiscard]] bool is_by_reciprocal(const Instruction& instruction) const;
  void write_reciprocal(ValueId value);
  Result<std::string> operation(const Instruction& instruction);
  [[nodiscard]] std::string all_lanes() const { return code_.constant("i1", "true"); }
  std::string lane_offsets(std::size_t operand, const Point& point);
  std::string base_of(std::size_t operand, const Point& point);
  std::string load(std::uint32_t operand, const Point& point);
  std::string pointer_at(const std::string& base, std::string_view type, const Point& point);

  const bool has_jumps_;
  std::vector<std::string> repeated_;     ///< by value: the same as a whole vector
  std::vector<std::string> reciprocals_;  ///< by value: 1 / value as a whole vector
  std::vector<std::string> strides_, row_strides_;
  std::string scalars_, places_, failed_;
};

/// Lanes along the reduced axis, or along an outer one of a kernel that reduces nothing.
[[nodiscard]] Result<std::string> generate_rows(const kernel::Kernel& kernel, const kernel::Passes& passes,
                                                const CodeShape& shape);
/// Lanes along an outer axis, each with a loop over the reduced one.
[[nodiscard]] Result<std::string> generate_columns(const kernel::Kernel& kernel, const kernel::Passes& passes,
                                                   const CodeShape& shape);

}  // namespace tessera::runtime::cpu

// The numbers of a plan's size symbols, and what sizes, types and attributes are with them.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/op/call_info.h"

namespace tessera::plan {

/// The symbols of a plan or a function with their numbers, in the same order. Looks at both lists.
struct KnownSizes {
  std::span<const Ref<ir::Var>> dims;
  std::span<const std::int64_t> numbers;

  /// Fails if a symbol has no number or the result does not fit.
  [[nodiscard]] Result<std::int64_t> of(const op::Dim& dim) const;
  /// The type with numbers for its sizes. Fails if one is negative, or if there would be too many elements to
  /// address their bytes.
  [[nodiscard]] Result<op::ValueType> of(const op::ValueType& type) const;
  /// The same of any numbers, as when it is asked whether something is known at all.
  [[nodiscard]] Result<op::ValueType> of_any(const op::ValueType& type) const;
  [[nodiscard]] Result<op::ValueTypes> of(std::span<const op::ValueType> types) const;
  /// The attributes with numbers for their sizes.
  [[nodiscard]] Result<op::Attributes> of(const op::Attributes& attributes) const;
};

/// Whether a symbol can be this number: what was compiled relies on the range that its type gives, or on 0 as
/// the least. An error names the symbol.
[[nodiscard]] Result<void> check_range(const ir::Var& dim, std::int64_t number);

}  // namespace tessera::plan

#include "tessera/plan/known_sizes.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

/// So many elements of any dtype have a number of bytes that fits.
constexpr std::int64_t most_elements = INT64_MAX / 16;

}  // namespace

Result<std::int64_t> KnownSizes::of(const op::Dim& dim) const {
  if (dim.is_constant()) return dim.value();
  const auto number = ir::evaluate(dim, [&](const ir::Var& var) -> std::optional<std::int64_t> {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i].get() == &var) return numbers[i];
    return std::nullopt;
  });
  if (!number) return Error(ErrorCode::shape, cat("the size ", dim, " is not known"));
  return *number;
}

Result<op::ValueType> KnownSizes::of_any(const op::ValueType& type) const {
  op::ValueType out{type.dtype, {}};
  for (const op::Dim& dim : type.shape) out.shape.push_back(TESSERA_TRY(of(dim)));
  return out;
}

Result<op::ValueType> KnownSizes::of(const op::ValueType& type) const {
  op::ValueType out = TESSERA_TRY(of_any(type));
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < out.rank(); ++axis) {
    const std::int64_t size = out.shape[axis].value();
    if (size < 0) return Error(ErrorCode::shape, cat("the size ", type.shape[axis], " is ", size));
    if (size > 0 && (__builtin_mul_overflow(count, size, &count) || count > most_elements))
      return Error(ErrorCode::shape, cat("a value of type ", type, " is too large"));
  }
  return out;
}

Result<op::ValueTypes> KnownSizes::of(std::span<const op::ValueType> types) const {
  op::ValueTypes out;
  for (const op::ValueType& type : types) out.push_back(TESSERA_TRY(of(type)));
  return out;
}

Result<op::Attributes> KnownSizes::of(const op::Attributes& attributes) const {
  op::Attributes out = attributes;
  for (auto& [name, value] : out.mutable_entries())
    if (auto* shape = std::get_if<op::Shape>(&value))
      for (op::Dim& dim : *shape) dim = TESSERA_TRY(of(dim));
  return out;
}

Result<void> plan::check_range(const ir::Var& dim, std::int64_t number) {
  const auto* type = ir::as<ir::ScalarType>(dim.type);
  const ir::Range range = type == nullptr ? ir::Range() : type->range;
  const std::int64_t least = std::max<std::int64_t>(range.lower.value_or(0), 0);
  if (number >= least && (!range.upper || number <= *range.upper)) return {};
  return Error(ErrorCode::shape,
               cat("the size '", printable(dim.name), "' is ", number, ", but must be at least ", least,
                   range.upper ? cat(" and at most ", *range.upper) : ""));
}

// Arithmetic of dimensions. Results are in one normal form: a sum of products, `2 * N * M + N + 1`, with what
// is no sum or product (//, %, min, max) kept as a factor. Two dimensions that mean the same polynomial are
// the same expression, so that structural comparison is enough.
//
// Symbols are sorted by name (a trailing _number as a number), then by age, for people to read: comparison
// does not depend on it (size_form.h). A size symbol without a lower bound counts as at least 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/ir/expr.h"

namespace tessera::ir {

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
/// Rounds down; dividing by 0 gives 0.
[[nodiscard]] Dim floor_div(const Dim& a, const Dim& b);
/// a - b * floor_div(a, b); by 0 it gives a.
[[nodiscard]] Dim floor_mod(const Dim& a, const Dim& b);
/// Rounds up. REQUIRES b is positive.
[[nodiscard]] Dim ceil_div(const Dim& a, const Dim& b);
[[nodiscard]] Dim min(const Dim& a, const Dim& b);
[[nodiscard]] Dim max(const Dim& a, const Dim& b);
/// The product of all, 1 for none.
[[nodiscard]] Dim product(std::span<const Dim> dims);

/// An i64 scalar expression in normal form. An expression nested deeper than 1,000 levels in // % min max
/// comes back as it is.
[[nodiscard]] Dim simplified(const ExprRef& expr);

/// Inclusive bounds that follow from the bounds of the symbols.
[[nodiscard]] Range bounds(const Dim& dim);
/// Whether a == b, a >= b, a != b for all values the symbols can take. False means not proven.
[[nodiscard]] bool provably_equal(const Dim& a, const Dim& b);
[[nodiscard]] bool provably_at_least(const Dim& a, const Dim& b);
[[nodiscard]] bool provably_different(const Dim& a, const Dim& b);

/// The dimension with each symbol replaced by what `value_of` says; a symbol it says nothing about stays.
[[nodiscard]] Dim substitute(const Dim& dim, const std::function<std::optional<Dim>(const Var&)>& value_of);
/// The number, if every symbol has one and nothing overflows.
[[nodiscard]] std::optional<std::int64_t> evaluate(
    const Dim& dim, const std::function<std::optional<std::int64_t>(const Var&)>& value_of);
/// The same of an expression of few nodes, fast; nothing also where there are more.
[[nodiscard]] std::optional<std::int64_t> evaluate_small(
    const Expr& size, const std::function<std::optional<std::int64_t>(const Var&)>& value_of);

/// The dimension as a text: "784", "2 * N + 1".
[[nodiscard]] std::string to_text(const Dim& dim);
/// "[64, N]"
[[nodiscard]] std::string to_text(const Shape& shape);
inline void append_text(std::string& out, const Dim& dim) { out += to_text(dim); }
inline void append_text(std::string& out, const Shape& shape) { out += to_text(shape); }

/// A shape of numbers.
[[nodiscard]] Shape shape_of(std::span<const std::int64_t> dims);
/// The numbers, if all dimensions are constant.
[[nodiscard]] std::optional<SmallVector<std::int64_t, 4>> constant_shape(const Shape& shape);
/// The number of elements, if all dimensions are constant and the product fits.
[[nodiscard]] std::optional<std::int64_t> element_count(const Shape& shape);

/// A name split at its trailing number: "N_2" is {"N", 2}, "N" is {"N", 0}.
struct SizeName {
  std::string_view base;
  std::uint64_t number = 0;
};
[[nodiscard]] SizeName split_size_name(std::string_view name);
/// The order in which symbols stand in a normal form. It is for reading; nothing may depend on names.
[[nodiscard]] bool size_symbol_less(const Var& a, const Var& b);

}  // namespace tessera::ir

// Types: scalars with bounds, tensors whose dimensions are numbers or expressions, tuples.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tessera/base/reflect.h"
#include "tessera/base/small_vector.h"
#include "tessera/ir/dtype.h"
#include "tessera/ir/node.h"

namespace tessera::ir {

/// One dimension: a number, or an expression over size symbols. dim.h has its arithmetic.
class Dim {
 public:
  Dim(std::int64_t value = 0) : value_(value) {}
  /// An integer constant becomes a number, so that every constant dimension has one form.
  explicit Dim(ExprRef expr);

  [[nodiscard]] bool is_constant() const { return expr_ == nullptr; }
  /// The number. REQUIRES is_constant().
  [[nodiscard]] std::int64_t value() const { return value_; }
  /// The expression. REQUIRES !is_constant().
  [[nodiscard]] const ExprRef& expr() const { return expr_; }

  /// Structural, strict: two symbols are the same only if they are the same object.
  bool operator==(const Dim& other) const;

 private:
  std::int64_t value_ = 0;
  ExprRef expr_;
};

using Shape = SmallVector<Dim, 4>;

/// Inclusive bounds of an integer scalar; an absent end is open.
struct Range {
  std::optional<std::int64_t> lower;
  std::optional<std::int64_t> upper;

  bool operator==(const Range&) const = default;
  [[nodiscard]] bool is_open() const { return !lower && !upper; }
  static constexpr auto fields() {
    return std::tuple{usual("lower", &Range::lower), usual("upper", &Range::upper)};
  }
};

/// A single number that is not a tensor: size symbols, loop counters, scalars inside kernel bodies.
struct ScalarType final : Concrete<Type, NodeKind::scalar_type> {
  using Concrete::Concrete;
  Dtype dtype = Dtype::i64;
  Range range;

  static constexpr std::string_view syntax = "$dtype$range";
  static constexpr auto fields() {
    return std::tuple{head("dtype", &ScalarType::dtype), usual("range", &ScalarType::range)};
  }
};

struct TensorType final : Concrete<Type, NodeKind::tensor_type> {
  using Concrete::Concrete;
  Dtype dtype = Dtype::f32;
  Shape shape;

  static constexpr std::string_view syntax = "$dtype[$shape]";
  static constexpr auto fields() {
    return std::tuple{usual("dtype", &TensorType::dtype), usual("shape", &TensorType::shape)};
  }
};

struct TupleType final : Concrete<Type, NodeKind::tuple_type> {
  using Concrete::Concrete;
  std::vector<TypeRef> elements;

  static constexpr std::string_view syntax = "($elements)";
  static constexpr auto fields() { return std::tuple{usual("elements", &TupleType::elements)}; }
};

[[nodiscard]] Ref<ScalarType> scalar_type(Dtype dtype, Range range = {});
[[nodiscard]] Ref<TensorType> tensor_type(Dtype dtype, Shape shape);
[[nodiscard]] Ref<TupleType> tuple_type(std::vector<TypeRef> elements);

}  // namespace tessera::ir

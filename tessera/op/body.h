// The bodies of element-wise ops and reductions, made from formulas: for blocks of wide values (the
// reference) and as scalar expressions (generated kernels).
#pragma once

#include <array>
#include <span>
#include <utility>

#include "tessera/op/formula.h"

namespace tessera::op {

/// `value(a, b, …)` of a formula, for every type it exists on. An entry is null where the card's dtypes do
/// not need it.
struct PointwiseBody {
  template <class W>
  using Block = void (*)(const W* const* in, std::size_t count, void* out);

  Block<double> on_double = nullptr;
  Block<SignedWide> on_signed = nullptr;
  Block<UnsignedWide> on_unsigned = nullptr;
  bool boolean = false;  ///< results are one byte each, 0 or 1; otherwise of the wide type
  ir::Scalar (*scalar)(std::span<const ir::Scalar> in) = nullptr;
  std::uint8_t arity = 0;

  template <class W>
  [[nodiscard]] Block<W> block() const {
    if constexpr (std::is_same_v<W, double>) return on_double;
    if constexpr (std::is_same_v<W, SignedWide>) return on_signed;
    if constexpr (std::is_same_v<W, UnsignedWide>) return on_unsigned;
  }
};

/// Where an element of a result is, as i64 scalars. A kernel takes the axes from its loops; what a body does
/// not use costs nothing.
struct Place {
  ir::Scalar number;                 ///< in row-major order
  std::span<const ir::Scalar> axes;  ///< the index along each axis
};

/// Which wide types a formula is written for.
enum class Domain : std::uint8_t { floats = 1, integers = 2, numbers = 3 };

namespace detail {

template <class F, class W, std::size_t... i>
auto apply_formula(const W* const* in, std::size_t at, std::index_sequence<i...>) {
  return F::value(in[i][at]...);
}

template <class F, class W, std::size_t arity>
void run_block(const W* const* in, std::size_t count, void* out) {
  using Out = decltype(apply_formula<F>(in, 0, std::make_index_sequence<arity>()));
  constexpr bool is_bool = std::is_same_v<Out, bool>;
  auto* to = static_cast<std::conditional_t<is_bool, std::uint8_t, W>*>(out);
  for (std::size_t k = 0; k < count; ++k) to[k] = apply_formula<F>(in, k, std::make_index_sequence<arity>());
}

template <class F, std::size_t... i>
ir::Scalar apply_scalar(std::span<const ir::Scalar> in, std::index_sequence<i...>) {
  return F::value(in[i]...);
}

template <class F, std::size_t arity>
ir::Scalar scalar_of(std::span<const ir::Scalar> in) {
  return apply_scalar<F>(in, std::make_index_sequence<arity>());
}

}  // namespace detail

template <class F, std::size_t arity, Domain domain>
constexpr PointwiseBody make_pointwise() {
  PointwiseBody out;
  constexpr auto has = [](Domain d) { return (static_cast<int>(domain) & static_cast<int>(d)) != 0; };
  if constexpr (has(Domain::floats)) {
    out.on_double = &detail::run_block<F, double, arity>;
    out.boolean = std::is_same_v<decltype(detail::apply_formula<F>(static_cast<const double* const*>(nullptr),
                                                                   0, std::make_index_sequence<arity>())),
                                 bool>;
  }
  if constexpr (has(Domain::integers)) {
    out.on_signed = &detail::run_block<F, SignedWide, arity>;
    out.on_unsigned = &detail::run_block<F, UnsignedWide, arity>;
    out.boolean =
        std::is_same_v<decltype(detail::apply_formula<F>(static_cast<const SignedWide* const*>(nullptr), 0,
                                                         std::make_index_sequence<arity>())),
                       bool>;
  }
  out.scalar = &detail::scalar_of<F, arity>;
  out.arity = arity;
  return out;
}

/// The body of formula F, one object per formula.
template <class F, std::size_t arity, Domain domain>
inline constexpr PointwiseBody pointwise_body = make_pointwise<F, arity, domain>();

/// A reduction: finish(combine(… combine(init, map(x0)), … map(xn)), n). All four are templates over the
/// scalar type.
struct ReductionBody {
  template <class W>
  struct On {
    W (*init)() = nullptr;
    W (*accumulate)(W accumulated, const W* values, std::size_t count) = nullptr;
    W (*finish)(W accumulated, W count) = nullptr;
  };
  struct OnScalar {
    ir::Scalar (*init)() = nullptr;
    ir::Scalar (*map)(const ir::Scalar& x) = nullptr;
    ir::Scalar (*combine)(const ir::Scalar& a, const ir::Scalar& b) = nullptr;
    ir::Scalar (*finish)(const ir::Scalar& accumulated, const ir::Scalar& count) = nullptr;
  };

  On<double> on_double;
  On<SignedWide> on_signed;
  On<UnsignedWide> on_unsigned;
  OnScalar on_scalar;
  bool needs_elements = false;  ///< reducing nothing has no value (max, min)

  template <class W>
  [[nodiscard]] const On<W>& on() const {
    if constexpr (std::is_same_v<W, double>) return on_double;
    if constexpr (std::is_same_v<W, SignedWide>) return on_signed;
    if constexpr (std::is_same_v<W, UnsignedWide>) return on_unsigned;
  }
};

namespace detail {

template <class F, class W>
W accumulate_block(W accumulated, const W* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) accumulated = F::combine(accumulated, F::map(values[i]));
  return accumulated;
}

template <class F, class W>
constexpr ReductionBody::On<W> reduction_on() {
  return {[]() -> W { return F::template init<W>(); }, &accumulate_block<F, W>,
          [](W accumulated, W count) -> W { return F::finish(accumulated, count); }};
}

}  // namespace detail

template <class F, Domain domain, bool needs_elements>
constexpr ReductionBody make_reduction() {
  ReductionBody out;
  constexpr auto has = [](Domain d) { return (static_cast<int>(domain) & static_cast<int>(d)) != 0; };
  if constexpr (has(Domain::floats)) out.on_double = detail::reduction_on<F, double>();
  if constexpr (has(Domain::integers)) {
    out.on_signed = detail::reduction_on<F, SignedWide>();
    out.on_unsigned = detail::reduction_on<F, UnsignedWide>();
  }
  out.on_scalar = {[]() -> ir::Scalar { return F::template init<ir::Scalar>(); },
                   [](const ir::Scalar& x) -> ir::Scalar { return F::map(x); },
                   [](const ir::Scalar& a, const ir::Scalar& b) -> ir::Scalar { return F::combine(a, b); },
                   [](const ir::Scalar& a, const ir::Scalar& n) -> ir::Scalar { return F::finish(a, n); }};
  out.needs_elements = needs_elements;
  return out;
}

template <class F, Domain domain, bool needs_elements = false>
inline constexpr ReductionBody reduction_body = make_reduction<F, domain, needs_elements>();

}  // namespace tessera::op

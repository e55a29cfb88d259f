// Short ways to write the cards of element-wise ops and reductions.
#pragma once

#include "tessera/op/body.h"
#include "tessera/op/builder.h"
#include "tessera/op/card.h"
#include "tessera/op/catalogue.h"

namespace tessera::op {

inline constexpr Input input_x[] = {{"x"}};
inline constexpr Input inputs_ab[] = {{"a"}, {"b"}};
inline constexpr AttributeSpec reduction_attributes[] = {{"axes", AttributeKind::integers},
                                                         {"keepdims", AttributeKind::boolean}};

/// Of matrices: the axes before the last two.
inline Shape batch_of(const Shape& matrices) { return Shape(matrices.begin(), matrices.end() - 2); }

/// The gradients of an element-wise op, summed over what was broadcast. F::gradient gives them at the shape
/// of the result.
template <class F>
Values elementwise_gradient(GradientCall& g) {
  Values out = F::gradient(g);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = sum_to(out[i], g.x(i).shape());
  return out;
}

/// An element-wise card of formula F. `card` says what the formula does not: name, dtypes, traits, …
template <class F, std::size_t arity, Domain domain>
constexpr Card elementwise(Card card) {
  if (card.inputs.empty())
    card.inputs = arity == 1 ? std::span<const Input>(input_x) : std::span<const Input>(inputs_ab);
  card.traits.elementwise = true;
  card.pointwise = &pointwise_body<F, arity, domain>;
  if (card.pointwise->boolean && card.infer == nullptr) card.result = ResultDtype::boolean;
  if constexpr (requires { &F::gradient; }) card.gradient = &elementwise_gradient<F>;
  return card;
}

/// Of one operand, on floats.
template <class F>
constexpr Card float_unary(Card card) {
  card.T = float_dtypes;
  return elementwise<F, 1, Domain::floats>(card);
}
/// Of one operand, on floats and integers.
template <class F>
constexpr Card number_unary(Card card) {
  card.T = number_dtypes;
  return elementwise<F, 1, Domain::numbers>(card);
}
/// Of two operands.
template <class F>
constexpr Card float_binary(Card card) {
  card.T = float_dtypes;
  return elementwise<F, 2, Domain::floats>(card);
}
template <class F>
constexpr Card number_binary(Card card) {
  card.T = number_dtypes;
  return elementwise<F, 2, Domain::numbers>(card);
}
template <class F>
constexpr Card integer_binary(Card card) {
  card.T = integer_dtypes;
  return elementwise<F, 2, Domain::integers>(card);
}

}  // namespace tessera::op

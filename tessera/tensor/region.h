// Control flow that depends on values: a body is traced once into a function and runs when the result is
// evaluated. A body sees the tensors around it; they become its captures. It cannot look at a value while it
// is traced: that is an error at that line. Gradients flow through.
//
//   ts::Tensor y = ts::cond(ts::sum(x) > 0, [&] { return x * 2; }, [&] { return x - 1; });
//   const auto next = [](ts::Tensor, const ts::Tensors& s) { return ts::Tensors{s[1], s[0] + s[1]}; };
//   const ts::Tensors last = ts::for_loop(10, next, {zero, one});
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

using Tensors = std::vector<Tensor>;

/// The results of `then` where `predicate`, which has one element, is not 0, else those of `otherwise`. Both
/// give the same types.
[[nodiscard]] Tensors cond(const Tensor& predicate, const std::function<Tensors()>& then,
                           const std::function<Tensors()>& otherwise, Here here = {});
[[nodiscard]] Tensor cond(const Tensor& predicate, const std::function<Tensor()>& then,
                          const std::function<Tensor()>& otherwise, Here here = {});
/// The results of `body` where `predicate` holds, else zeros.
[[nodiscard]] Tensors if_(const Tensor& predicate, const std::function<Tensors()>& body, Here here = {});
[[nodiscard]] Tensor if_(const Tensor& predicate, const std::function<Tensor()>& body, Here here = {});
/// The results of bodies[index]; an index outside runs the last one.
[[nodiscard]] Tensors switch_(const Tensor& index, const std::vector<std::function<Tensors()>>& bodies,
                              Here here = {});

struct WhileOptions {
  /// More iterations are an error. Gradients need it, and room for that many states.
  std::optional<std::int64_t> max_iterations = std::nullopt;
};
/// While `condition` of the state holds, the state is what `body` makes of it.
[[nodiscard]] Tensors while_loop(const std::function<Tensor(const Tensors&)>& condition,
                                 const std::function<Tensors(const Tensors&)>& body, const Tensors& state,
                                 const WhileOptions& options = {}, Here here = {});
/// For i in 0 … count-1, the state is what `body` makes of i (an i64 of rank 0) and the state. `count` is a
/// number or a tensor of one integer; 0 or less runs nothing.
[[nodiscard]] Tensors for_loop(const Operand& count,
                               const std::function<Tensors(const Tensor& i, const Tensors&)>& body,
                               const Tensors& state);

}  // namespace tessera

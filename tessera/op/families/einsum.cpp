// Sums of products, by Einstein's notation.
#include <algorithm>

#include "tessera/op/by_parts.h"
#include "tessera/op/families/equation.h"
#include "tessera/op/families/make.h"
#include "tessera/op/wide_buffer.h"
#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

namespace {

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Result<ValueTypes> infer_einsum(const CallInfo& call) {
  const Equation equation = TESSERA_TRY(read_equation(call));
  return ValueTypes{{call.input(0).dtype, equation.shape_of(equation.result)}};
}

// ---- the reference: one loop over all labels

/// The labels of the result, then those that are summed over.
Labels loop_labels(const Equation& equation) {
  Labels out = equation.result;
  for (const auto& [label, size] : equation.sizes)
    if (!contains(out, label)) out.push_back(label);
  return out;
}

/// A row-major tensor whose axes have these labels, seen from the loop: labels that repeat go along a
/// diagonal, labels that it does not have, or has with size 1, do not move.
Layout layout_in_loop(const Extents& shape, const Labels& labels, const Labels& loop, const Extents& sizes) {
  const Layout own = contiguous(shape);
  Layout out{sizes, Extents(sizes.size(), 0), 0};
  for (std::size_t axis = 0; axis < labels.size(); ++axis)
    for (std::size_t i = 0; i < loop.size(); ++i)
      if (loop[i] == labels[axis] && shape[axis] != 1) out.strides[i] += own.strides[axis];
  return out;
}

/// The operands and the result (the last) of a call in the loop.
template <class W>
struct Loop {
  std::vector<WideBuffer<W>> operands;
  WideBuffer<W> result;
  std::vector<Layout> layouts;
  bool sums =
      false;  ///< else every product is an element: no zero is added, which would lose the sign of one

  void run(const Extents& sizes) {
    std::vector<std::int64_t> offsets(layouts.size(), 0);
    Extents outer = sizes;
    const std::int64_t inner = outer.empty() ? 1 : outer.back();
    if (!outer.empty()) outer.pop_back();
    for_each_place(outer, [&](const Extents& at) {
      for (std::size_t k = 0; k < layouts.size(); ++k) {
        offsets[k] = 0;
        for (std::size_t i = 0; i < at.size(); ++i) offsets[k] += at[i] * layouts[k].strides[i];
      }
      run_inner(offsets, inner);
    });
  }

 private:
  void run_inner(const std::vector<std::int64_t>& offsets, std::int64_t count) {
    const auto stride = [&](std::size_t k) { return layouts[k].rank() == 0 ? 0 : layouts[k].strides.back(); };
    for (std::int64_t i = 0; i < count; ++i) {
      W product = operands[0][offsets[0] + i * stride(0)];
      for (std::size_t k = 1; k < operands.size(); ++k)
        product = product * operands[k][offsets[k] + i * stride(k)];
      W& to = result[offsets.back() + i * stride(layouts.size() - 1)];
      to = sums ? to + product : product;
    }
  }
};

Result<void> run_einsum(const CallInfo& call, std::span<const Array> inputs, std::span<const Array> results) {
  const Equation equation = TESSERA_TRY(read_equation(call));
  const Labels labels = loop_labels(equation);
  const Extents sizes = extents_of(equation.shape_of(labels));
  return visit_wide(inputs[0].dtype, [&]<class W>(W*) -> Result<void> {
    Loop<W> loop;
    loop.sums = labels.size() > equation.result.size();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      loop.operands.push_back(TESSERA_TRY(WideBuffer<W>::load(inputs[k])));
      loop.layouts.push_back(layout_in_loop(inputs[k].shape(), equation.operands[k], labels, sizes));
    }
    loop.result = TESSERA_TRY(WideBuffer<W>::zeros(results[0].size()));
    loop.layouts.push_back(layout_in_loop(results[0].shape(), equation.result, labels, sizes));
    if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) loop.run(sizes);
    loop.result.store(results[0]);
    return {};
  });
}

// ---- by parts: from left to right, two operands at a time

/// A value with a label for each axis.
struct Labelled {
  Value value;
  Labels labels;
};

Labelled with_order(const Labelled& x, const Labels& order) {
  if (x.labels == order) return x;
  std::vector<std::int64_t> permutation;
  for (Label label : order)
    permutation.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  return {transpose(x.value, permutation), order};
}

/// Sums over the axes that `drop` says.
template <class F>
Labelled sum_where(const Labelled& x, F&& drop) {
  Labelled out;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    if (drop(i))
      axes.push_back(static_cast<std::int64_t>(i));
    else
      out.labels.push_back(x.labels[i]);
  }
  out.value = sum(x.value, std::move(axes), false);
  return out;
}

/// Without labels that repeat: all but the diagonal is made 0 and summed.
Labelled diagonal(Builder& b, Labelled x) {
  for (std::size_t second = x.labels.size(); second-- > 0 && x.value;) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), x.labels[second]) - x.labels.begin();
    const auto first = static_cast<std::size_t>(at);
    if (first == second) continue;
    const Dim& size = x.value.shape()[first];
    Shape around(x.labels.size(), Dim(1));
    around[first] = around[second] = size;
    const Value is_on =
        b.call("eye", std::span<const Value>(), {{"shape", Shape{size, size}}, {"dtype", Dtype::boolean}});
    x.value = where(reshape(is_on, around), x.value, b.constant(0, x.value.dtype()));
    x = sum_where(x, [&](std::size_t i) { return i == second; });
  }
  return x;
}

/// Without the axes of size 1 whose label has another size elsewhere: they repeat what they have.
Labelled without_ones(Labelled x, const Equation& equation) {
  Labelled out{x.value, {}};
  Shape shape;
  for (std::size_t i = 0; i < x.labels.size() && x.value; ++i) {
    const Dim& size = x.value.shape()[i];
    if (size == Dim(1) && equation.sizes.at(x.labels[i]) != Dim(1)) continue;
    out.labels.push_back(x.labels[i]);
    shape.push_back(size);
  }
  out.value = reshape(x.value, shape);
  return out;
}

/// The labels of a product, by what becomes of them.
struct Roles {
  Labels batch, left, right, summed;
};

Roles roles_of(const Labels& a, const Labels& b, const Labels& kept) {
  Roles out;
  for (Label label : a)
    (!contains(b, label) ? out.left : contains(kept, label) ? out.batch : out.summed).push_back(label);
  for (Label label : b)
    if (!contains(a, label)) out.right.push_back(label);
  return out;
}

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Shape operator+(Shape a, const Shape& b) {
  for (const Dim& dim : b) a.push_back(dim);
  return a;
}

Shape ones(const Labels& labels) { return Shape(labels.size(), Dim(1)); }

/// The product of two operands, summed over the labels of both that are not `kept`.
Labelled product(const Labelled& a, const Labelled& b, const Labels& kept, const Equation& equation) {
  const Roles roles = roles_of(a.labels, b.labels, kept);
  const Shape batch = equation.shape_of(roles.batch), left = equation.shape_of(roles.left),
              right = equation.shape_of(roles.right), depth = equation.shape_of(roles.summed);
  const Labels labels = roles.batch + roles.left + roles.right;
  const Value x = with_order(a, roles.batch + roles.left + roles.summed).value;
  if (roles.summed.empty()) {
    const Value y = with_order(b, roles.batch + roles.right).value;
    return {reshape(x, batch + left + ones(roles.right)) * reshape(y, batch + ones(roles.left) + right),
            labels};
  }
  const Value y = with_order(b, roles.batch + roles.summed + roles.right).value;
  const Value matrices = matmul(reshape(x, batch + Shape{ir::product(left), ir::product(depth)}),
                                reshape(y, batch + Shape{ir::product(depth), ir::product(right)}));
  return {reshape(matrices, batch + left + right), labels};
}

/// The labels that are needed once operand `next` has been taken.
Labels kept_after(const std::vector<Labelled>& operands, std::size_t next, const Equation& equation) {
  Labels out = equation.result;
  for (std::size_t i = next + 1; i < operands.size(); ++i) out = out + operands[i].labels;
  return out;
}

Values decompose_einsum(Builder& b, const CallInfo& call, std::span<const Value> inputs) {
  Assumptions assumed;  // the call was checked: what it assumed about symbols holds
  const CallInfo checked(call.card(), call.inputs(), call.attributes(), &assumed);
  const Equation equation = value_or_throw(read_equation(checked));
  std::vector<Labelled> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(without_ones(diagonal(b, {inputs[i], equation.operands[i]}), equation));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Labels elsewhere = equation.result;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (k != i) elsewhere = elsewhere + operands[k].labels;
    operands[i] = sum_where(operands[i], [&, labels = operands[i].labels](std::size_t axis) {
      return !contains(elsewhere, labels[axis]);
    });
  }
  Labelled total = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i)
    total = product(total, operands[i], kept_after(operands, i, equation), equation);
  return {with_order(total, equation.result).value};
}

/// Each operand after the first meets every combination of labels, at most.
double work_of_einsum(const CallInfo& call, const ValueTypes&) {
  const auto equation = read_equation(call);
  if (!equation) return 0;  // the call is refused before it takes anything
  Shape sizes;
  for (const auto& [label, size] : equation->sizes) sizes.push_back(size);
  return element_estimate(sizes) * static_cast<double>(call.inputs().size());
}

// ---- cards

constexpr Input einsum_inputs[] = {{"operands", "T", InputKind::variadic}};
constexpr AttributeSpec einsum_attributes[] = {{"equation", AttributeKind::text, true}};

constexpr Card einsum_family[] = {
    {.name = "einsum",
     .summary = "sum of products by an equation: \"bij,bjk->bik\"; a letter twice in a term is a diagonal, "
                "\"...\" stands for any axes, which broadcast; without \"->\" the letters that occur once, "
                "sorted",
     .inputs = einsum_inputs,
     .attributes = einsum_attributes,
     .T = number_dtypes,
     .traits = {.costly = true, .composite = true},
     .onnx = {"Einsum"},
     .oracle = "torch:einsum",
     .infer = infer_einsum,
     .reference = run_einsum,
     .gradient = gradient_by_parts,
     .decompose = decompose_einsum,
     .work = work_of_einsum},
};

}  // namespace

std::span<const Card> tessera::op::einsum_cards() { return einsum_family; }

#include "tests/differential/wide_run.h"

#include <algorithm>

#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tests/support/compare.h"

using namespace tessera;
using namespace tessera::differential;
using op::Dtype;

namespace {

std::size_t size_of(const op::HostTensor& tensor) { return static_cast<std::size_t>(tensor.size()); }

op::HostTensor copy_of(const op::Array& array) {
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(array.dtype, array.shape()));
  op::copy_elements(array, out.array());
  return out;
}

/// What one or the other allows.
Result<Bounds> either(Result<Bounds> a, const Result<Bounds>& b) {
  if (!a || !b) return a ? b : a;
  for (std::size_t i = 0; i < a->size(); ++i)
    for (std::size_t k = 0; k < (*a)[i].size() && k < (*b)[i].size(); ++k)
      (*a)[i][k] = hull((*a)[i][k], (*b)[i][k]);
  return a;
}

/// The results with the bounds that are known of them, or with none.
std::vector<Bounded> joined(const Results& narrow, Result<Results> values, Result<Bounds> bounds) {
  bool fits = values.ok() && bounds.ok() && values->size() == narrow.size();
  for (std::size_t i = 0; fits && i < narrow.size(); ++i)
    fits = (*values)[i].shape() == narrow[i].shape() && (*bounds)[i].size() == size_of(narrow[i]);
  std::vector<Bounded> out;
  Bounds open = all_open(narrow);
  for (std::size_t i = 0; i < narrow.size(); ++i)
    out.push_back({widened(fits ? (*values)[i] : narrow[i]), std::move(fits ? (*bounds)[i] : open[i])});
  return out;
}

}  // namespace

Bounded WideRun::known(const op::Array& array) const {
  const auto found = array.size() == 0 ? known_.end() : known_.find(array.data);
  return found == known_.end() ? exact_tensor(copy_of(array)) : found->second.known;
}

void WideRun::remember(const op::HostTensor& tensor, Bounded known) {
  if (tensor.size() == 0) return;  // has no place of its own
  if (tensor.dtype() == Dtype::boolean)
    for (Interval& bound : known.bounds) bound = {std::max(bound.low, 0.0), std::min(bound.high, 1.0)};
  known_.insert_or_assign(tensor.array().data, Entry{tensor, std::move(known)});
}

Result<Results> WideRun::run(const op::Card& card, std::span<const op::Array> arrays,
                             const op::Attributes& attributes) {
  Results narrow = TESSERA_TRY(op::run_reference(card, arrays, attributes));
  std::vector<Bounded> inputs;
  std::vector<op::Array> wide;
  for (const op::Array& array : arrays) inputs.push_back(known(array));
  for (const Bounded& input : inputs) wide.push_back(input.value.array());
  if (!is_exact(inputs)) {
    const bool is_choice = card.name == choice_mark && !ir::is_float(arrays[0].dtype);
    may_choose_otherwise_ = may_choose_otherwise_ || is_choice;
    may_count_otherwise_ = may_count_otherwise_ || card.traits.data_dependent;
  }
  const op::Attributes as_f64 = widened(attributes);
  const Call call{card, inputs, as_f64, narrow};
  const Growth growth = growth_of(card, attributes);
  // What only takes or places exact elements rounds nothing; and random numbers of another dtype are others.
  const bool is_same = is_exact(inputs) && (growth == Growth::moves || growth == Growth::places);
  Result<Results> values = is_same ? Result<Results>(narrow) : op::run_reference(card, wide, as_f64);
  Result<Bounds> bounds = all_open(narrow);
  if (is_same)
    bounds = all_exact(narrow);
  else if (growth == Growth::elements)
    bounds = element_bounds(call);
  else if (growth == Growth::moves || growth == Growth::rises)
    bounds = moved_bounds(call, growth);
  else if (growth == Growth::adds && values)
    bounds = sum_bounds(call, (*values)[0]);
  else if (growth == Growth::parts && values)
    bounds = by_parts(call, arrays, attributes, *values);
  if (growth == Growth::elements && card.decompose != nullptr && values)
    bounds = either(std::move(bounds), by_parts(call, arrays, attributes, *values));
  auto known = joined(narrow, std::move(values), std::move(bounds));
  for (std::size_t i = 0; i < narrow.size(); ++i) remember(narrow[i], std::move(known[i]));
  return narrow;
}

/// By the parts, or as a whole: what that gives is one of the results that are right.
Result<Bounds> WideRun::by_parts(const Call& call, std::span<const op::Array> arrays,
                                 const op::Attributes& attributes, const Results& whole) {
  op::IrBuilder builder;
  op::Values values;
  op::ValueTypes types;
  Results copies;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    types.push_back({arrays[i].dtype, ir::shape_of(arrays[i].shape())});
    values.push_back(builder.parameter("x", types.back()));
    copies.push_back(copy_of(arrays[i]));
    remember(copies.back(), call.inputs[i]);
  }
  const op::Values results = call.card.decompose(builder, op::CallInfo(call.card, types, attributes), values);
  const auto function = TESSERA_TRY(builder.function("parts", results));
  const auto narrow = TESSERA_TRY(op::interpret(
      *function, copies, {.run_call = [&](const auto& part, auto operands, const auto& settings) {
        return run(part, operands, settings);
      }}));
  Bounds out;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    out.push_back(known(narrow[i].array()).bounds);
    if (out[i].size() != size_of(whole[i]) || !ir::is_float(whole[i].dtype())) continue;
    const auto values_of_whole = fixture::doubles(whole[i]);
    for (std::size_t k = 0; k < out[i].size(); ++k)
      out[i][k] = hull(out[i][k], stored(exactly(values_of_whole[k]), precision_of(call.narrow[i].dtype())));
  }
  return out;
}

#include "tessera/onnx/budget.h"

#include <algorithm>

#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::onnx;

Result<void> Budget::take_step() {
  if (++steps_ > limits_.steps)
    return Error(ErrorCode::limit, cat("more than ", limits_.steps, " nodes would be run"));
  return meter_.check_time();
}

Result<void> Budget::take_call(const op::Card& card, std::span<const op::Value> inputs,
                               const op::Attributes& attributes, const op::ValueTypes& results) {
  for (const op::ValueType& type : results) {
    const auto count = ir::element_count(type.shape);
    if (ir::constant_shape(type.shape) && (!count || *count > limits_.elements))
      return Error(ErrorCode::limit,
                   cat("a result would be ", type, ", at most ", limits_.elements, " elements are allowed"));
  }
  op::ValueTypes types;
  for (const op::Value& input : inputs) types.push_back(input.type());
  const auto has_numbers = [](const op::ValueType& type) {
    return ir::constant_shape(type.shape).has_value();
  };
  if (!std::all_of(types.begin(), types.end(), has_numbers) ||
      !std::all_of(results.begin(), results.end(), has_numbers))
    return {};
  work_ += op::work_of({card, types, attributes}, results);
  if (work_ > static_cast<double>(limits_.work))
    return Error(ErrorCode::limit, cat("'", card.name, "' would bring the work to ", work_,
                                       " multiply-adds, at most ", limits_.work, " are allowed"));
  return {};
}

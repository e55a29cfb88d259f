// Calling one op in a unit test: values in, values out; types in, the message out.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tessera/op/reference.h"
#include "tests/support/compare.h"

namespace tessera::fixture {

/// A tensor of these values, rounded to `dtype`.
inline op::HostTensor tensor(op::Extents shape, const std::vector<double>& values,
                             ir::Dtype dtype = ir::Dtype::f64) {
  return converted(op::HostTensor::of<double>(ir::Dtype::f64, std::move(shape), values), dtype);
}

/// 0, 1, 2, … times `step`, beginning with `first`.
inline op::HostTensor counting(op::Extents shape, double first = 0, double step = 1,
                               ir::Dtype dtype = ir::Dtype::f64) {
  std::vector<double> values(static_cast<std::size_t>(op::element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<double>(i);
  return tensor(std::move(shape), values, dtype);
}

inline constexpr std::int64_t lowest_integer = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t highest_integer = std::numeric_limits<std::int64_t>::max();

/// All results of a call by the reference. Throws what went wrong.
inline std::vector<op::HostTensor> call_all(std::string_view name, const std::vector<op::HostTensor>& inputs,
                                            const op::Attributes& attributes = {}) {
  const op::Card& card = *op::find_card(name);
  std::vector<op::Array> arrays;
  for (const auto& input : inputs) arrays.push_back(input.array());
  return value_or_throw(
      op::run_reference(card, arrays, value_or_throw(op::complete_attributes(card, attributes))));
}

/// The first result.
inline op::HostTensor call(std::string_view name, const std::vector<op::HostTensor>& inputs,
                           const op::Attributes& attributes = {}) {
  return call_all(name, inputs, attributes)[0];
}

/// The first result by the decomposition of the op.
inline op::HostTensor call_decomposed(std::string_view name, const std::vector<op::HostTensor>& inputs,
                                      const op::Attributes& attributes = {}) {
  const op::Card& card = *op::find_card(name);
  op::IrBuilder builder;
  op::Values values;
  op::ValueTypes types;
  for (const auto& input : inputs) {
    types.push_back(
        {input.dtype(), ir::shape_of(std::vector<std::int64_t>(input.shape().begin(), input.shape().end()))});
    values.push_back(builder.parameter("x", types.back()));
  }
  const op::Attributes complete = value_or_throw(op::complete_attributes(card, attributes));
  const op::Values results = card.decompose(builder, op::CallInfo(card, types, complete), values);
  return value_or_throw(op::interpret(*value_or_throw(builder.function("f", results)), inputs))[0];
}

inline void expect_near(const op::HostTensor& actual, const std::vector<double>& expected,
                        double within = 1e-14) {
  const auto values = doubles(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], within) << i;
}

inline op::ValueType f32(ir::Shape shape) { return {ir::Dtype::f32, std::move(shape)}; }

/// The types of the results as a text, or the message of the error.
inline std::string inferred(std::string_view name, const op::ValueTypes& types,
                            const op::Attributes& attributes = {}) {
  const op::Card& card = *op::find_card(name);
  const auto complete = op::complete_attributes(card, attributes);
  if (!complete) return complete.error().message();
  const auto results = op::infer(card, types, *complete);
  return results ? join(*results, " ") : results.error().message();
}

}  // namespace tessera::fixture

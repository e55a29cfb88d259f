// Every op of the catalogue on its samples: rules on symbols and numbers agree, strides do not matter,
// decompositions and kernel bodies agree with the reference, scalars and empty tensors work. Large ones are
// in large_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tessera/ir/verify.h"
#include "tessera/op/body.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/ir_builder.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::op;
using tessera::fixture::dtypes_of;
using tessera::fixture::op_samples;
using tessera::fixture::run;
using tessera::fixture::Sample;
using tessera::fixture::scattered;

namespace {

TEST(Catalogue, IsSortedAndComplete) {
  std::set<std::string_view> sampled;
  for (const Sample& sample : op_samples()) sampled.insert(sample.card->name);
  for (const Card* card : all_cards()) {
    EXPECT_TRUE(sampled.contains(card->name)) << card->name << " has no row in tests/data/op_samples.txt";
    EXPECT_FALSE(card->summary.empty()) << card->name;
    EXPECT_FALSE(card->oracle.empty()) << card->name;
    EXPECT_TRUE(card->gradient != nullptr || !card->no_gradient.empty())
        << card->name << " has no gradient and no reason";
    EXPECT_EQ(card->traits.composite, card->decompose != nullptr) << card->name;
    EXPECT_EQ(find_card(card->name), card);
  }
}

TEST(Catalogue, NineInTenOpsHaveAnOracle) {
  std::size_t with = 0;
  for (const Card* card : all_cards())
    if (card->oracle.substr(0, 4) != "none") ++with;
  EXPECT_GE(with * 10, all_cards().size() * 9);
}

TEST(Catalogue, EverySampleRunsInEveryDtype) {
  for (const Sample& sample : op_samples())
    for (Dtype dtype : dtypes_of(*sample.card)) {
      SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype)));
      const auto inputs = sample.values(dtype, sample.sizes, 1);
      const auto results = run(sample, inputs, sample.sizes);
      ASSERT_TRUE(results) << results.error().to_text();
      const auto types =
          infer(*sample.card, sample.types(dtype, &sample.sizes), sample.attributes_with(&sample.sizes));
      ASSERT_TRUE(types);
      ASSERT_EQ(types->size(), results->size());
    }
}

/// Sizes around those of the row.
Sample::Sizes random_sizes(const Sample& sample, std::mt19937_64& random) {
  Sample::Sizes out = sample.sizes;
  for (auto& [name, size] : out) size = std::max<std::int64_t>(size - 1, 0) + std::int64_t(random() % 6);
  return out;
}

/// The results of the rule on symbols with numbers put in, which must be those of the rule on numbers.
/// Returns false for sizes that the call does not allow.
bool check_substituted(const Sample& sample, const ValueTypes& symbolic, const Assumptions& assumptions,
                       const Sample::Sizes& sizes) {
  const auto number = [&](const Dim& dim) {
    return *ir::evaluate(dim, [&](const ir::Var& var) { return std::optional(sizes.at(var.name)); });
  };
  const Dtype dtype = dtypes_of(*sample.card).front();
  const auto numeric = infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes));
  if (!numeric) return false;
  for (const auto& [a, b] : assumptions.equal)
    if (number(a) != number(b)) return false;
  EXPECT_EQ(symbolic.size(), numeric->size());
  for (std::size_t k = 0; k < std::min(symbolic.size(), numeric->size()); ++k) {
    EXPECT_EQ(symbolic[k].dtype, (*numeric)[k].dtype);
    Shape substituted;
    for (const Dim& dim : symbolic[k].shape) substituted.push_back(number(dim));
    EXPECT_EQ(substituted, (*numeric)[k].shape) << "result " << k << ": " << to_text(symbolic[k]);
  }
  return true;
}

TEST(Catalogue, TheRuleOnSymbolsSubstitutedIsTheRuleOnNumbers) {
  std::mt19937_64 random(3);
  for (const Sample& sample : op_samples()) {
    SCOPED_TRACE(sample.text);
    Assumptions assumptions;
    const auto symbolic = infer(*sample.card, sample.types(dtypes_of(*sample.card).front(), nullptr),
                                sample.attributes_with(nullptr), &assumptions);
    ASSERT_TRUE(symbolic) << symbolic.error().to_text();
    ASSERT_TRUE(check_substituted(sample, *symbolic, assumptions, sample.sizes));
    int checked = 0;
    for (int round = 0; round < 2000 && checked < 20; ++round)
      if (check_substituted(sample, *symbolic, assumptions, random_sizes(sample, random))) ++checked;
    EXPECT_EQ(checked, 20) << "too few random sizes are allowed";
  }
}

TEST(Catalogue, StridesDoNotMatter) {
  for (const Sample& sample : op_samples())
    for (Dtype dtype : dtypes_of(*sample.card)) {
      SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype)));
      const auto inputs = sample.values(dtype, sample.sizes, 2);
      std::vector<HostTensor> held;
      std::vector<Array> strided;
      for (const HostTensor& input : inputs) {
        Layout layout;
        held.push_back(scattered(input, layout));
        strided.push_back({input.dtype(), layout, held.back().array().data});
      }
      const auto plain = run(sample, inputs, sample.sizes);
      const auto other = run_reference(*sample.card, strided, sample.attributes_with(&sample.sizes));
      ASSERT_TRUE(plain && other);
      for (std::size_t k = 0; k < plain->size(); ++k)
        EXPECT_TRUE(fixture::same_bits((*plain)[k], (*other)[k])) << "result " << k;
    }
}

/// The call gives results of the types inferred, or a message that begins with the op.
void expect_result_or_message(const Sample& sample, Dtype dtype, const Sample::Sizes& sizes) {
  const std::string begin = cat(sample.card->name, ": ");
  const auto types = infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes));
  if (!types) {
    EXPECT_EQ(types.error().message().substr(0, begin.size()), begin) << sample.text;
    return;
  }
  const auto results = run(sample, sample.values(dtype, sizes, 3), sizes);
  if (results)
    EXPECT_EQ(results->size(), types->size()) << sample.text;
  else
    EXPECT_EQ(results.error().message().substr(0, begin.size()), begin) << sample.text;
}

TEST(Catalogue, EmptyTensorsWorkOrAreRefusedWithAMessage) {
  for (const Sample& sample : op_samples())
    for (const auto& [name, symbol] : sample.symbols) {
      Sample::Sizes sizes = sample.sizes;
      sizes[name] = 0;
      for (Dtype dtype : dtypes_of(*sample.card)) expect_result_or_message(sample, dtype, sizes);
    }
}

TEST(Catalogue, ScalarsWorkOrAreRefusedWithAMessage) {
  for (Sample sample : op_samples()) {
    for (auto& input : sample.inputs) input.shape.clear();
    for (Dtype dtype : dtypes_of(*sample.card)) expect_result_or_message(sample, dtype, sample.sizes);
  }
}

/// The elements of `tensor` repeated up to a shape.
HostTensor repeated(const HostTensor& tensor, const Extents& shape) {
  HostTensor out = value_or_throw(HostTensor::allocate(tensor.dtype(), shape));
  copy_elements({tensor.dtype(), broadcast_layout(tensor.array().layout, shape), tensor.array().data},
                out.array());
  return out;
}

TEST(Catalogue, ElementwiseOpsBroadcastFromScalarsToAnyRank) {
  const Shape shapes[][3] = {
      {{}, {}, {}}, {{3, 1}, {4}, {1, 1}}, {{}, {2, 3}, {3}}, {{1}, {2, 1, 3}, {4, 1}}};
  for (Sample sample : op_samples()) {
    if (!sample.card->traits.elementwise) continue;
    for (const auto& shape : shapes)
      for (Dtype dtype : dtypes_of(*sample.card)) {
        SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype), " of ", shape[0], " and ", shape[1]));
        for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
          const bool is_scalar = sample.card->inputs[i].kind == InputKind::scalar;
          sample.inputs[i].shape = is_scalar ? Shape() : shape[i];
        }
        auto inputs = sample.values(dtype, sample.sizes, 13);
        const auto broadcast = run(sample, inputs, sample.sizes);
        ASSERT_TRUE(broadcast) << broadcast.error().to_text();
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (sample.card->inputs[i].kind != InputKind::scalar)
            inputs[i] = repeated(inputs[i], (*broadcast)[0].shape());
        const auto plain = run(sample, inputs, sample.sizes);
        ASSERT_TRUE(plain) << plain.error().to_text();
        EXPECT_TRUE(fixture::same_bits((*broadcast)[0], (*plain)[0]));
      }
  }
}

/// `sizes` may be null: then the decomposition is one for all sizes.
void check_decomposition(const Sample& sample, const Sample::Sizes* sizes) {
  IrBuilder builder;
  Values inputs;
  for (const auto& [name, symbol] : sample.symbols) builder.adopt_size(symbol);
  const ValueTypes types = sample.types(Dtype::f64, sizes);
  for (std::size_t i = 0; i < types.size(); ++i) inputs.push_back(builder.parameter(cat("x", i), types[i]));
  const Attributes attributes = sample.attributes_with(sizes);
  Assumptions assumptions;
  const CallInfo call(*sample.card, types, attributes, &assumptions);
  const Values results = sample.card->decompose(builder, call, inputs);
  const auto function = builder.function("decomposed", results);
  ASSERT_TRUE(function) << function.error().to_text();
  const auto values = sample.values(Dtype::f64, sample.sizes, 5);
  const auto composed = interpret(**function, values, {}, sample.size_list());
  ASSERT_TRUE(composed) << composed.error().to_text();
  const auto direct = run(sample, values, sample.sizes);
  ASSERT_TRUE(direct);
  ASSERT_EQ(composed->size(), direct->size());
  for (std::size_t k = 0; k < direct->size(); ++k) {
    EXPECT_EQ((*composed)[k].shape(), (*direct)[k].shape());
    EXPECT_LE(fixture::largest_difference((*composed)[k], (*direct)[k]), 1e-12) << "result " << k;
  }
}

TEST(Catalogue, DecompositionsAgreeWithTheReference) {
  for (const Sample& sample : op_samples()) {
    if (sample.card->decompose == nullptr) continue;
    SCOPED_TRACE(sample.text);
    check_decomposition(sample, &sample.sizes);
    check_decomposition(sample, nullptr);
  }
}

TEST(Catalogue, KernelBodiesAgreeWithTheReference) {
  for (const Sample& sample : op_samples()) {
    if (sample.card->pointwise == nullptr) continue;
    for (Dtype dtype : dtypes_of(*sample.card)) {
      if (dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32)
        continue;  // rounded after each step, not once
      SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype)));
      const auto inputs = sample.values(dtype, sample.sizes, 6);
      const auto results = run(sample, inputs, sample.sizes);
      ASSERT_TRUE(results);
      std::vector<ir::Scalar> operands;
      std::vector<Ref<ir::Var>> vars;
      for (const HostTensor& input : inputs) {
        vars.push_back(ir::variable("x", ir::scalar_type(input.dtype())));
        operands.emplace_back(ir::ExprRef(vars.back()));
      }
      ir::ExprRef body = sample.card->pointwise->scalar(operands).expr(dtype);
      const Array& out = (*results)[0].array();
      if (ir::scalar_dtype(*body) != out.dtype) body = ir::scalar_cast(out.dtype, body);
      std::vector<Layout> layouts;
      for (const HostTensor& input : inputs)
        layouts.push_back(broadcast_layout(input.array().layout, out.shape()));
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const auto leaf = [&](const ir::Expr& expr) -> std::optional<ScalarValue> {
          for (std::size_t k = 0; k < vars.size(); ++k) {
            if (static_cast<const ir::Expr*>(vars[k].get()) != &expr) continue;
            std::int64_t rest = i, offset = 0;
            for (std::size_t axis = out.rank(); axis-- > 0; rest /= out.shape()[axis])
              offset += rest % out.shape()[axis] * layouts[k].strides[axis];
            return fixture::element(inputs[k].array(), offset);
          }
          return std::nullopt;
        };
        const auto value = evaluate_scalar(*body, leaf);
        ASSERT_TRUE(value);
        const auto expected = fixture::element(out, i);
        const bool same_nan = std::isnan(value->number) && std::isnan(expected.number);
        EXPECT_TRUE(same_nan || (std::abs(value->number - expected.number) <=
                                     1e-12 * std::max(1.0, std::abs(expected.number)) &&
                                 value->integer == expected.integer))
            << "element " << i << ": " << value->number << " " << value->integer << ", expected "
            << expected.number << " " << expected.integer;
      }
    }
  }
}

TEST(Catalogue, IndexedBodiesAgreeWithTheReference) {
  for (const Sample& sample : op_samples()) {
    if (sample.card->indexed == nullptr) continue;
    for (Dtype dtype : dtypes_of(*sample.card)) {
      SCOPED_TRACE(cat(sample.text, " in ", to_string(dtype)));
      const auto inputs = sample.values(dtype, sample.sizes, 9);
      const auto results = run(sample, inputs, sample.sizes);
      ASSERT_TRUE(results);
      const Array& out = (*results)[0].array();
      const ValueTypes types = sample.types(dtype, &sample.sizes);
      const Attributes attributes = sample.attributes_with(&sample.sizes);
      const CallInfo call(*sample.card, types, attributes);
      std::vector<Layout> layouts;
      for (const HostTensor& input : inputs)
        layouts.push_back(broadcast_layout(input.array().layout, out.shape()));
      std::int64_t number = 0;
      for_each_place(out.shape(), [&](const Extents& at) {
        const auto index = [](std::int64_t value) { return ir::Scalar(ir::ExprRef(ir::int_const(value))); };
        std::vector<ir::Scalar> axes, operands;
        for (std::int64_t value : at) axes.push_back(index(value));
        for (std::size_t k = 0; k < inputs.size(); ++k) {
          std::int64_t offset = layouts[k].offset;
          for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * layouts[k].strides[i];
          const ScalarValue value = fixture::element(inputs[k].array(), offset);
          operands.emplace_back(
              ir::is_float(value.dtype)       ? ir::ExprRef(ir::float_const(value.number, value.dtype))
              : value.dtype == Dtype::boolean ? ir::ExprRef(ir::bool_const(value.integer != 0))
                                              : ir::ExprRef(ir::int_const(value.integer, value.dtype)));
        }
        const ir::Scalar body = sample.card->indexed(call, {index(number), axes}, operands);
        const ir::ExprRef expr = formula::cast(body, out.dtype).expr(out.dtype);
        const auto verified = ir::verify(*expr);
        ASSERT_TRUE(verified) << verified.error().to_text();
        const auto value = evaluate_scalar(*expr, [](const ir::Expr&) { return std::nullopt; });
        ASSERT_TRUE(value);
        const ScalarValue expected = fixture::element(out, number);
        EXPECT_EQ(value->dtype, expected.dtype);
        EXPECT_EQ(value->number, expected.number) << "element " << number;
        EXPECT_EQ(value->integer, expected.integer) << "element " << number;
        ++number;
      });
    }
  }
}

}  // namespace

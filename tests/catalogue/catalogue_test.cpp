// Every op of the catalogue on its samples: rules on symbols and numbers agree, strides do not matter,
// decompositions and kernel bodies agree with the reference, empty and large tensors work.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

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
using tessera::fixture::Sample;

namespace {

std::vector<Array> arrays_of(const std::vector<HostTensor>& tensors) {
  std::vector<Array> out;
  for (const HostTensor& tensor : tensors) out.push_back(tensor.array());
  return out;
}

Result<std::vector<HostTensor>> run(const Sample& sample, const std::vector<HostTensor>& inputs,
                                    const Sample::Sizes& sizes) {
  return run_reference(*sample.card, arrays_of(inputs), sample.attributes_with(&sizes));
}

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

TEST(Catalogue, TheRuleOnSymbolsSubstitutedIsTheRuleOnNumbers) {
  std::mt19937_64 random(3);
  for (const Sample& sample : op_samples()) {
    SCOPED_TRACE(sample.text);
    const Dtype dtype = dtypes_of(*sample.card).front();
    Assumptions assumptions;
    const auto symbolic =
        infer(*sample.card, sample.types(dtype, nullptr), sample.attributes_with(nullptr), &assumptions);
    ASSERT_TRUE(symbolic) << symbolic.error().to_text();
    for (int round = 0; round < 20; ++round) {
      Sample::Sizes sizes = sample.sizes;
      if (round > 0)
        for (auto& [name, size] : sizes) size += static_cast<std::int64_t>(random() % 5);
      const auto number = [&](const Dim& dim) {
        return *ir::evaluate(dim, [&](const ir::Var& var) { return std::optional(sizes.at(var.name)); });
      };
      const bool assumed =
          std::all_of(assumptions.equal.begin(), assumptions.equal.end(),
                      [&](const auto& pair) { return number(pair.first) == number(pair.second); });
      const auto numeric = infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes));
      if (!assumed || !numeric) continue;  // sizes that the call does not allow
      ASSERT_EQ(symbolic->size(), numeric->size());
      for (std::size_t k = 0; k < numeric->size(); ++k) {
        EXPECT_EQ((*symbolic)[k].dtype, (*numeric)[k].dtype);
        Shape substituted;
        for (const Dim& dim : (*symbolic)[k].shape) substituted.push_back(number(dim));
        EXPECT_EQ(substituted, (*numeric)[k].shape) << "result " << k << ": " << to_text((*symbolic)[k]);
      }
    }
  }
}

/// The same elements behind other strides: every second element of a buffer twice as long, last axis first.
HostTensor scattered(const HostTensor& tensor, Layout& layout) {
  const Extents& shape = tensor.shape();
  Extents reversed(shape.size() + 1, 2);
  for (std::size_t i = 0; i < shape.size(); ++i)
    reversed[i] = std::max<std::int64_t>(shape[shape.size() - 1 - i], 1);
  HostTensor out = value_or_throw(HostTensor::allocate(tensor.dtype(), reversed));
  const Layout whole = contiguous(reversed);
  layout = {shape, Extents(shape.size(), 0), 1};
  for (std::size_t i = 0; i < shape.size(); ++i) layout.strides[i] = whole.strides[shape.size() - 1 - i];
  copy_elements(tensor.array(), {tensor.dtype(), layout, out.array().data});
  return out;
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

TEST(Catalogue, EmptyTensorsWorkOrAreRefusedWithAMessage) {
  for (const Sample& sample : op_samples())
    for (const auto& [name, symbol] : sample.symbols) {
      Sample::Sizes sizes = sample.sizes;
      sizes[name] = 0;
      const Dtype dtype = dtypes_of(*sample.card).front();
      const auto types = infer(*sample.card, sample.types(dtype, &sizes), sample.attributes_with(&sizes));
      if (!types) {
        EXPECT_EQ(types.error().message().substr(0, sample.card->name.size() + 2),
                  cat(sample.card->name, ": "))
            << sample.text;
        continue;
      }
      const auto results = run(sample, sample.values(dtype, sizes, 3), sizes);
      EXPECT_TRUE(results || results.error().message().find(sample.card->name) == 0)
          << sample.text << " with " << name << " = 0: " << results.error().to_text();
    }
}

TEST(Catalogue, LargeTensorsAgreeWithTheirParts) {
  // 2^20 elements; the answer is checked where it can be: the same call again gives the same bits, and f32
  // agrees with f64.
  for (const Sample& sample : op_samples()) {
    SCOPED_TRACE(sample.text);
    Sample::Sizes sizes = sample.sizes;
    if (!sample.large.empty()) {
      for (const auto& [name, size] : sample.large) sizes[name] = size;
    } else {
      const auto types = sample.types(Dtype::f32, nullptr);
      const ir::Var* first = nullptr;
      for (const auto& type : types)
        for (const Dim& dim : type.shape)
          if (first == nullptr && !dim.is_constant()) first = ir::as<ir::Var>(dim.expr());
      if (first == nullptr) continue;
      std::int64_t rest = 1;
      for (const Dim& dim : types[0].shape)
        if (!dim.is_constant() && ir::as<ir::Var>(dim.expr()) != first)
          rest *=
              *ir::evaluate(dim, [&](const ir::Var& v) { return std::optional(sample.sizes.at(v.name)); });
      sizes[first->name] = ((1 << 20) + rest - 1) / rest;
    }
    const std::vector<Dtype> dtypes = dtypes_of(*sample.card);
    const bool floats = sample.card->T.contains(Dtype::f32);
    const Dtype dtype = floats ? Dtype::f32 : dtypes.front();
    const auto inputs = sample.values(dtype, sizes, 4);
    const auto results = run(sample, inputs, sizes);
    ASSERT_TRUE(results) << results.error().to_text();
    if (!floats) continue;
    std::vector<HostTensor> wide;
    for (const HostTensor& input : inputs)
      wide.push_back(fixture::converted(input, input.dtype() == Dtype::f32 ? Dtype::f64 : input.dtype()));
    const auto exact = run(sample, wide, sizes);
    ASSERT_TRUE(exact);
    for (std::size_t k = 0; k < results->size(); ++k)
      EXPECT_LE(fixture::largest_difference((*results)[k], (*exact)[k]), 1e-3) << "result " << k;
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
        const auto value = evaluate_scalar(*formula::cast(body, out.dtype).expr(out.dtype),
                                           [](const ir::Expr&) { return std::nullopt; });
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

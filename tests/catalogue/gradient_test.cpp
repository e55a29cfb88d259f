// Every gradient of the catalogue against finite differences in f64 along random directions, first and second
// order.
#include <gtest/gtest.h>

#include <set>

#include "tessera/autodiff/gradient.h"
#include "tessera/op/ir_builder.h"
#include "tests/support/finite_differences.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::op;
using tessera::fixture::check_gradient;
using tessera::fixture::op_samples;
using tessera::fixture::random_like;
using tessera::fixture::Sample;

namespace {

/// One call as a function of its inputs in f64, for these sizes, or for all if null.
Result<ir::FunctionRef> function_of(const Sample& sample, const Sample::Sizes* sizes) {
  IrBuilder builder;
  Values inputs;
  for (const auto& [name, symbol] : sample.symbols) builder.adopt_size(symbol);
  const ValueTypes types = sample.types(Dtype::f64, sizes);
  for (std::size_t i = 0; i < types.size(); ++i) inputs.push_back(builder.parameter(cat("x", i), types[i]));
  const Values results = builder.call_all(sample.card->name, inputs, sample.attributes_with(sizes));
  return builder.function("f", results);
}

/// Parameters of kind scalar have no gradient: they are settings.
std::vector<std::size_t> differentiable(const Sample& sample) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const Input& spec = sample.card->inputs[std::min(i, sample.card->inputs.size() - 1)];
    if (sample.inputs[i].type == "T" && spec.kind != InputKind::scalar) out.push_back(i);
  }
  return out;
}

TEST(Gradients, AgreeWithFiniteDifferences) {
  std::set<std::string_view> checked;
  for (const Sample& sample : op_samples()) {
    if (sample.card->gradient == nullptr || !sample.card->T.contains(Dtype::f64)) continue;
    const auto function = function_of(sample, &sample.sizes);
    ASSERT_TRUE(function) << sample.text << ": " << function.error().to_text();
    const auto inputs = sample.values(Dtype::f64, sample.sizes, 7);
    check_gradient(*function, inputs, differentiable(sample), 1e-6, sample.text);
    checked.insert(sample.card->name);
  }
  EXPECT_GE(checked.size(), 60u);
}

TEST(Gradients, OfGradientsAgreeWithFiniteDifferences) {
  for (const Sample& sample : op_samples()) {
    if (sample.card->gradient == nullptr || !sample.card->T.contains(Dtype::f64)) continue;
    const auto function = value_or_throw(function_of(sample, &sample.sizes));
    const auto wrt = differentiable(sample);
    const auto first = autodiff::vjp(function, wrt);
    ASSERT_TRUE(first) << sample.text;
    std::vector<HostTensor> inputs = sample.values(Dtype::f64, sample.sizes, 8);
    std::mt19937_64 random(5);
    for (const HostTensor& result : value_or_throw(interpret(*function, inputs)))
      if (result.dtype() == Dtype::f64) inputs.push_back(random_like(result, random));
    std::vector<std::size_t> all = wrt;
    for (std::size_t i = sample.inputs.size(); i < inputs.size(); ++i) all.push_back(i);
    check_gradient(*first, inputs, all, 1e-5, sample.text + " (second order)");
  }
}

TEST(Gradients, OnSymbolsAreThoseOnNumbers) {
  for (const Sample& sample : op_samples()) {
    if (sample.card->gradient == nullptr || !sample.card->T.contains(Dtype::f64)) continue;
    SCOPED_TRACE(sample.text);
    const auto wrt = differentiable(sample);
    std::vector<HostTensor> inputs = sample.values(Dtype::f64, sample.sizes, 12);
    const auto on_numbers = value_or_throw(function_of(sample, &sample.sizes));
    const auto on_symbols = function_of(sample, nullptr);
    ASSERT_TRUE(on_symbols) << on_symbols.error().to_text();
    std::mt19937_64 random(6);
    for (const HostTensor& result : value_or_throw(interpret(*on_numbers, inputs)))
      if (result.dtype() == Dtype::f64) inputs.push_back(random_like(result, random));
    const auto expected = interpret(*value_or_throw(autodiff::vjp(on_numbers, wrt)), inputs);
    ASSERT_TRUE(expected) << expected.error().to_text();
    const auto gradient = autodiff::vjp(*on_symbols, wrt);
    ASSERT_TRUE(gradient) << gradient.error().to_text();
    const auto actual = interpret(**gradient, inputs, {}, sample.size_list());
    ASSERT_TRUE(actual) << actual.error().to_text() << "\n" << ir::print(**gradient);
    for (std::size_t k = 0; k < wrt.size(); ++k)
      EXPECT_LE(fixture::largest_difference((*actual)[k], (*expected)[k]), 1e-12) << "gradient " << k;
  }
}

}  // namespace

// Every op of the catalogue on tensors of at least 2^20 elements, in every dtype.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/op/catalogue.h"
#include "tests/support/compare.h"
#include "tests/support/op_samples.h"

using namespace tessera;
using namespace tessera::op;
using tessera::fixture::op_samples;
using tessera::fixture::run;
using tessera::fixture::Sample;

namespace {

constexpr std::int64_t large = 1 << 20;

/// The sizes for the large test: those the row gives, else the first symbol of the inputs grows.
std::optional<Sample::Sizes> large_sizes(const Sample& sample) {
  Sample::Sizes out = sample.sizes;
  for (const auto& [name, size] : sample.large) out[name] = size;
  if (!sample.large.empty()) return out;
  const ir::Var* first = nullptr;
  std::int64_t rest = 1;
  for (const ValueType& type : sample.types(Dtype::f32, nullptr))
    for (const Dim& dim : type.shape) {
      const auto* symbol = dim.is_constant() ? nullptr : ir::as<ir::Var>(dim.expr());
      if (first == nullptr) first = symbol;
    }
  if (first == nullptr) return std::nullopt;
  for (const Dim& dim : sample.inputs[0].shape)
    if (!dim.is_constant() && ir::as<ir::Var>(dim.expr()) != first)
      rest *= *ir::evaluate(dim, [&](const ir::Var& v) { return std::optional(sample.sizes.at(v.name)); });
  out[first->name] = (large + rest - 1) / rest;
  return out;
}

/// The inputs of type T as another dtype.
std::vector<HostTensor> inputs_as(const Sample& sample, const std::vector<HostTensor>& inputs, Dtype dtype) {
  std::vector<HostTensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    out.push_back(sample.inputs[i].type == "T" ? fixture::converted(inputs[i], dtype) : inputs[i]);
  return out;
}

/// What one rounding of a result may change, relative.
double rounding(Dtype dtype) {
  if (!ir::is_float(dtype)) return 0;
  return dtype == Dtype::bf16 ? 0x1p-8 : dtype == Dtype::f16 ? 0x1p-10 : 0x1p-22;
}

/// Inputs that every dtype of `dtypes` holds exactly (those of `narrow`) give the same results in all of
/// them, rounded or wrapped, as in `wide`.
bool check_large(const Sample& sample, const Sample::Sizes& sizes, Dtype narrow, Dtype wide,
                 std::span<const Dtype> dtypes) {
  const auto inputs = sample.values(narrow, sizes, 4);
  const auto exact = run(sample, inputs_as(sample, inputs, wide), sizes);
  EXPECT_TRUE(exact) << exact.error().to_text();
  if (!exact) return false;
  for (const Dtype dtype : dtypes) {
    const auto results = run(sample, inputs_as(sample, inputs, dtype), sizes);
    EXPECT_TRUE(results) << results.error().to_text();
    for (std::size_t k = 0; results && k < results->size(); ++k) {
      const HostTensor expected = fixture::converted((*exact)[k], (*results)[k].dtype());
      EXPECT_LE(fixture::largest_difference((*results)[k], expected), rounding((*results)[k].dtype()))
          << "result " << k << " in " << to_string(dtype);
    }
  }
  const auto is_large = [](const HostTensor& tensor) { return tensor.size() >= large; };
  return std::any_of(inputs.begin(), inputs.end(), is_large) ||
         std::any_of(exact->begin(), exact->end(), is_large);
}

/// Numbers of the dtypes `all` that the card takes.
std::vector<Dtype> taken(const Card& card, std::initializer_list<Dtype> all) {
  std::vector<Dtype> out;
  for (Dtype dtype : all)
    if (card.T.contains(dtype)) out.push_back(dtype);
  return out;
}

TEST(LargeTensors, AgreeInEveryDtype) {
  std::set<std::string_view> seen;
  for (const Sample& sample : op_samples()) {
    SCOPED_TRACE(sample.text);
    const auto sizes = large_sizes(sample);
    if (!sizes) continue;
    // All dtypes for one row of an op, one for the others.
    const bool is_first = !seen.contains(sample.card->name);
    auto floats = taken(*sample.card, {Dtype::f32, Dtype::f16, Dtype::bf16});
    auto integers = taken(*sample.card,
                          {Dtype::u8, Dtype::i8, Dtype::i16, Dtype::u16, Dtype::i32, Dtype::u32, Dtype::u64});
    if (!is_first) {
      floats.resize(std::min<std::size_t>(floats.size(), 1));
      integers.resize(floats.empty() ? std::min<std::size_t>(integers.size(), 1) : 0);
    }
    bool was_large = false;
    if (!floats.empty()) was_large = check_large(sample, *sizes, Dtype::bf16, Dtype::f64, floats);
    if (!integers.empty()) was_large = check_large(sample, *sizes, Dtype::u8, Dtype::i64, integers);
    if (sample.card->T.contains(Dtype::boolean) && is_first)
      was_large = check_large(sample, *sizes, Dtype::boolean, Dtype::boolean, std::vector{Dtype::boolean});
    if (was_large) seen.insert(sample.card->name);
  }
  for (const Card* card : all_cards())
    EXPECT_TRUE(seen.contains(card->name)) << card->name << " has no row of 2^20 elements";
}

}  // namespace

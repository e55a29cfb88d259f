// Calls without a plan, beside what the reference makes of them.
#include "tessera/runtime/cpu/single_call.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/cpu/wide_matmul.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using op::Dtype;
using op::HostTensor;

namespace {

/// Few different numbers, so that some are equal, with what is special of floats among them.
HostTensor random_tensor(Dtype dtype, op::Extents shape, std::uint32_t seed, bool has_special = false) {
  HostTensor out = value_or_throw(HostTensor::allocate(dtype, std::move(shape)));
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const auto number = static_cast<std::int64_t>(random() % 2001) - 1000;
    if (ir::is_float(dtype)) {
      double value = static_cast<double>(number) / 256;
      if (has_special && number % 19 == 0)
        value = number % 2 == 0 ? std::nan("") : number < 0 ? -0.0 : std::numeric_limits<double>::infinity();
      op::storer<double>(dtype)(out.array().data, i, 1, 1, &value);
    } else {
      const op::SignedWide value = number;
      op::storer<op::SignedWide>(dtype)(out.array().data, i, 1, 1, &value);
    }
  }
  return out;
}

/// The array with its last two axes exchanged.
op::Array transposed(op::Array array) {
  const std::size_t rank = array.rank();
  std::swap(array.layout.shape[rank - 1], array.layout.shape[rank - 2]);
  std::swap(array.layout.strides[rank - 1], array.layout.strides[rank - 2]);
  return array;
}

double number_at(const op::Array& array, std::int64_t i) {
  double out = 0;
  op::loader<double>(array.dtype)(array.data, i, 1, 1, &out);
  return out;
}

/// The largest difference over the largest element.
double difference(const HostTensor& a, const HostTensor& b) {
  double largest = 0, most = 1e-30;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(number_at(b.array(), i)));
    largest = std::max(largest, std::abs(number_at(a.array(), i) - number_at(b.array(), i)));
  }
  return largest / most;
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return std::memcmp(a.array().data, b.array().data, a.byte_size()) == 0;
}

struct Outcome {
  std::vector<HostTensor> got, expected;
};

/// By the CPU, which must have a way of its own, and by the reference.
Outcome run_both(std::string_view name, std::span<const op::Array> inputs, const op::Attributes& attributes) {
  const op::Card& card = *op::find_card(name);
  const op::Attributes complete = value_or_throw(op::complete_attributes(card, attributes));
  op::ValueTypes types;
  for (const op::Array& input : inputs)
    types.push_back({input.dtype, ir::shape_of(std::span<const std::int64_t>(input.shape()))});
  Outcome out{{}, value_or_throw(op::run_reference(card, inputs, complete))};
  std::vector<op::Array> results;
  for (const HostTensor& expected : out.expected) {
    out.got.push_back(value_or_throw(HostTensor::allocate(expected.dtype(), expected.shape())));
    std::memset(out.got.back().array().data, 0x5a, out.got.back().byte_size());  // all of it is written
    results.push_back(out.got.back().array());
  }
  ThreadPool threads(2);
  Libraries libraries(false, threads.size());
  EXPECT_TRUE(value_or_throw(run_single_call({card, types, complete}, inputs, results,
                                             {.threads = threads, .libraries = libraries})));
  return out;
}

/// What a difference may be, of sums that are rounded in the end, or of each of them.
double bound(Dtype dtype) {
  if (dtype == Dtype::f64) return 1e-13;
  return dtype == Dtype::f32 ? 1e-5 : dtype == Dtype::f16 ? 2e-3 : dtype == Dtype::bf16 ? 1e-2 : 0;
}

constexpr Dtype number_dtypes[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64, Dtype::i32,
                                   Dtype::i16, Dtype::i8,  Dtype::u8,  Dtype::u16,  Dtype::u32, Dtype::u64};

/// All of them; under sanitizers, which see the same code for each, some.
std::vector<Dtype> tried(std::span<const Dtype> dtypes) {
  std::vector<Dtype> out;
  for (std::size_t i = 0; i < dtypes.size(); i += fixture::is_sanitized ? 4 : 1) out.push_back(dtypes[i]);
  return out;
}

void expect_product(Dtype dtype, const op::Array& a, const op::Array& b) {
  SCOPED_TRACE(cat(dtype, "[", join(a.shape(), ", "), "] by [", join(b.shape(), ", "), "]"));
  const op::Array inputs[] = {a, b};
  const Outcome out = run_both("matmul", inputs, {});
  if (ir::is_float(dtype))
    EXPECT_LE(difference(out.got[0], out.expected[0]), bound(dtype));
  else
    EXPECT_TRUE(same_bytes(out.got[0], out.expected[0]));
}

}  // namespace

TEST(SingleCall, ProductsOfAllDtypesAgreeWithTheReference) {
  for (const Dtype dtype : tried(number_dtypes)) {
    const auto a = random_tensor(dtype, {2, 1, 61, 300}, 1), b = random_tensor(dtype, {3, 300, 45}, 2);
    expect_product(dtype, a.array(), b.array());  // batches that broadcast
    const auto long_rows = random_tensor(dtype, {130, 9}, 3), wide = random_tensor(dtype, {9, 521}, 4);
    expect_product(dtype, long_rows.array(), wide.array());
    expect_product(dtype, transposed(wide.array()), transposed(long_rows.array()));
    const auto row = random_tensor(dtype, {512}, 5), matrix = random_tensor(dtype, {512, 600}, 6);
    expect_product(dtype, row.array(), matrix.array());
    expect_product(dtype, transposed(matrix.array()), row.array());
  }
}

TEST(SingleCall, IntegersOfProductsWrap) {
  for (const Dtype dtype : {Dtype::i64, Dtype::u64, Dtype::i32, Dtype::u32}) {
    auto a = random_tensor(dtype, {40, 50}, 1), b = random_tensor(dtype, {50, 80}, 2);
    for (const HostTensor& one : {a, b})
      for (std::size_t i = 0; i < one.byte_size(); ++i)
        one.array().data[i] = static_cast<std::byte>(i * 7 + i / 3 * 31 + 1);
    expect_product(dtype, a.array(), b.array());
  }
}

TEST(SingleCall, ProductsOfNothingAreZero) {
  const auto a = random_tensor(Dtype::f64, {130, 0}, 1), b = random_tensor(Dtype::f64, {0, 130}, 2);
  const op::Array inputs[] = {a.array(), b.array()};
  const op::Card& card = *op::find_card("matmul");
  const op::ValueTypes types{{Dtype::f64, {130, 0}}, {Dtype::f64, {0, 130}}};
  const auto got = random_tensor(Dtype::f64, {130, 130}, 3);
  const op::Array results[] = {got.array()};
  ThreadPool threads(2);
  ASSERT_TRUE(value_or_throw(run_wide_matmul({card, types, op::Attributes{}}, inputs, results, threads)));
  for (const double value : got.values<double>()) ASSERT_EQ(value, 0);
}

TEST(SingleCall, EinsumAndAttentionAgreeWithTheReference) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    SCOPED_TRACE(cat(dtype));
    const auto q = random_tensor(dtype, {2, 4, 33, 16}, 1), k = random_tensor(dtype, {2, 4, 40, 16}, 2),
               v = random_tensor(dtype, {2, 4, 40, 24}, 3);
    const op::Array attended[] = {q.array(), k.array(), v.array()};
    const Outcome attention = run_both("attention", attended, {{"causal", true}});
    EXPECT_LE(difference(attention.got[0], attention.expected[0]), 4 * bound(dtype));
    const op::Array joined[] = {q.array(), transposed(k.array())};
    const Outcome einsum = run_both("einsum", joined, {{"equation", std::string("bhqd,bhdk->bqhk")}});
    EXPECT_LE(difference(einsum.got[0], einsum.expected[0]), bound(dtype));
  }
}

TEST(SingleCall, ConvolutionsOf16BitsAreComputedInF32) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    SCOPED_TRACE(cat(dtype));
    const auto x = random_tensor(dtype, {1, 8, 20, 21}, 1), w = random_tensor(dtype, {8, 8, 3, 3}, 2),
               b = random_tensor(dtype, {8}, 3);
    const op::Array inputs[] = {x.array(), w.array(), b.array()};
    for (const char* name : {"conv", "conv_transpose"}) {
      const Outcome out = run_both(name, inputs, {});
      EXPECT_LE(difference(out.got[0], out.expected[0]), bound(dtype)) << name;
    }
  }
}

/// Few large parts and many small ones, some empty, some read across.
TEST(SingleCall, ConcatOfManyPartsIsThatOfTheReference) {
  for (const std::int64_t axis : {0, 1})
    for (const std::size_t parts : {1, 3, 8, 9, 41}) {
      std::vector<HostTensor> tensors;
      std::vector<op::Array> inputs;
      for (std::size_t i = 0; i < parts; ++i) {
        const std::int64_t along = i == parts / 2 ? 131 : static_cast<std::int64_t>(i * 7 % 5);
        const op::Extents shape = axis == 0 ? op::Extents{along, 150} : op::Extents{150, along};
        const bool is_turned = i % 2 == 1;
        tensors.push_back(random_tensor(Dtype::f32, is_turned ? op::Extents{shape[1], shape[0]} : shape,
                                        static_cast<std::uint32_t>(i)));
        inputs.push_back(is_turned ? transposed(tensors.back().array()) : tensors.back().array());
      }
      const Outcome outcome = run_both("concat", inputs, {{"axis", axis}});
      EXPECT_TRUE(same_bytes(outcome.got[0], outcome.expected[0])) << parts << " parts along axis " << axis;
    }
}

TEST(SingleCall, OrdersAreThoseOfTheReference) {
  for (const Dtype dtype : tried(ir::all_dtypes())) {
    const auto x = random_tensor(dtype, {30, 41, 50}, 1, true);
    for (const op::Array& input : {x.array(), transposed(x.array())})
      for (const std::int64_t axis : {0, 1, 2})
        for (const bool flag : {false, true}) {
          SCOPED_TRACE(cat(dtype, " axis ", axis, flag ? " from the greatest" : ""));
          const Outcome sorted = run_both("sort", {&input, 1}, {{"axis", axis}, {"descending", flag}});
          EXPECT_TRUE(same_bytes(sorted.got[0], sorted.expected[0]));
          EXPECT_TRUE(same_bytes(sorted.got[1], sorted.expected[1]));
          const op::Attributes first{
              {"axis", axis}, {"k", op::Shape{7}}, {"largest", flag}, {"sorted", axis != 1}};
          const Outcome taken = run_both("topk", {&input, 1}, first);
          EXPECT_TRUE(same_bytes(taken.got[0], taken.expected[0]));
          EXPECT_TRUE(same_bytes(taken.got[1], taken.expected[1]));
        }
  }
}

TEST(SingleCall, PlacesOfExtremesAreThoseOfTheReference) {
  for (const Dtype dtype : tried(ir::all_dtypes()))
    for (const bool has_special : {false, true}) {
      const auto x = random_tensor(dtype, {30, 41, 50}, 1, has_special);
      for (const char* name : {"argmax", "argmin"})
        for (const op::Array& input : {x.array(), transposed(x.array())})
          for (const std::int64_t axis : {0, 1, 2})
            for (const bool flag : {false, true}) {
              SCOPED_TRACE(cat(name, " ", dtype, " axis ", axis, flag ? " the last" : ""));
              const Outcome out =
                  run_both(name, {&input, 1},
                           {{"axis", axis}, {"select_last", flag}, {"keepdims", axis == 1 ? flag : !flag}});
              EXPECT_TRUE(same_bytes(out.got[0], out.expected[0]));
            }
    }
}

TEST(SingleCall, RunningSumsAreThoseOfTheReference) {
  for (const Dtype dtype : tried(number_dtypes)) {
    const auto x = random_tensor(dtype, {20, 31, 300}, 1);
    for (const char* name : {"cumsum", "cumprod"})
      for (const op::Array& input : {x.array(), transposed(x.array())})
        for (const std::int64_t axis : {0, 1, 2})
          for (const bool flag : {false, true}) {
            SCOPED_TRACE(cat(name, " ", dtype, " axis ", axis));
            const Outcome out =
                run_both(name, {&input, 1},
                         {{"axis", axis}, {"exclusive", flag}, {"reverse", axis == 1 ? !flag : flag}});
            EXPECT_TRUE(same_bytes(out.got[0], out.expected[0]));
          }
  }
}

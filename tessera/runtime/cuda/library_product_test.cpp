#include "tessera/runtime/cuda/library_product.h"

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/interpreter.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/call_program.h"
#include "tessera/runtime/cuda/emulator/emulator.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using op::Dtype;
using op::Extents;
using op::HostTensor;

namespace {

HostTensor small_numbers(Dtype dtype, const Extents& shape, int seed) {
  HostTensor out = value_or_throw(HostTensor::allocate(dtype, shape));
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const double value = static_cast<double>((i * 7 + seed) % 5) - 2;
    op::storer<double>(dtype)(out.array().data, i, 1, 1, &value);
  }
  return out;
}

/// The elements of `shape` with its axes in memory in another order: axis order[0] is the slowest. The axes
/// in `backwards` run from their end.
op::Array ordered(const HostTensor& memory, const Extents& shape, const std::vector<std::size_t>& order,
                  const std::vector<std::size_t>& backwards = {}) {
  op::Layout layout{shape, Extents(shape.size(), 0), 0};
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0; stride *= shape[order[i]]) layout.strides[order[i]] = stride;
  for (const std::size_t axis : backwards) {
    layout.offset += (shape[axis] - 1) * layout.strides[axis];
    layout.strides[axis] = -layout.strides[axis];
  }
  return {memory.dtype(), layout, memory.array().data};
}

/// How many products and how many launches the program has; its result is what the reference says.
std::pair<std::size_t, std::size_t> check(const op::Array& a, const op::Array& b) {
  const op::Card& card = *op::find_card("matmul");
  const op::Attributes attributes = value_or_throw(op::complete_attributes(card, {}));
  op::ValueTypes types;
  for (const op::Array* array : {&a, &b})
    types.push_back({array->dtype, ir::shape_of(std::span<const std::int64_t>(array->shape()))});
  const op::CallInfo call(card, types, attributes);
  const auto type = value_or_throw(op::infer(card, types, attributes))[0];
  const HostTensor expected = value_or_throw(HostTensor::allocate(type.dtype, op::extents_of(type.shape)));
  const HostTensor got = value_or_throw(HostTensor::allocate(type.dtype, op::extents_of(type.shape)));
  const op::Array inputs[] = {a, b};
  value_or_throw(op::run_reference(call, inputs, {&expected.array(), 1}));
  const auto program = library_product(call, inputs, {&got.array(), 1});
  EXPECT_TRUE(program.has_value());
  if (!program) return {0, 0};
  Emulator emulator;
  value_or_throw(emulator.compile({&*program, 1}));
  value_or_throw(emulator.run(*program, inputs, {&got.array(), 1}));
  EXPECT_EQ(std::memcmp(got.array().data, expected.array().data, got.byte_size()), 0) << to_text(*program);
  std::size_t products = 0;
  for (const Launch& launch : program->launches) products += launch.kind == Launch::Kind::product;
  return {products, program->launches.size()};
}

using Counts = std::pair<std::size_t, std::size_t>;

}  // namespace

TEST(LibraryProduct, ThousandsOfShortSumsAreNotForIt) {
  const op::Card& card = *op::find_card("matmul");
  const op::Attributes attributes = value_or_throw(op::complete_attributes(card, {}));
  const auto launch_of = [&](std::int64_t rows, std::int64_t depth, std::int64_t columns) {
    const auto a = small_numbers(Dtype::f32, {rows, depth}, 1),
               b = small_numbers(Dtype::f32, {columns, depth}, 2);
    const op::Array inputs[] = {a.array(), ordered(b, {depth, columns}, {1, 0})};
    const op::ValueTypes types{{Dtype::f32, ir::Shape{rows, depth}}, {Dtype::f32, ir::Shape{depth, columns}}};
    const HostTensor got = value_or_throw(HostTensor::allocate(Dtype::f32, {rows, columns}));
    const HostTensor expected = value_or_throw(HostTensor::allocate(Dtype::f32, {rows, columns}));
    const op::CallInfo call(card, types, attributes);
    const StepProgram program =
        value_or_throw(call_program(call, inputs, {&got.array(), 1}, {Products::by_library}));
    Emulator emulator;
    value_or_throw(emulator.compile({&program, 1}));
    value_or_throw(emulator.run(program, inputs, {&got.array(), 1}));
    value_or_throw(op::run_reference(call, inputs, {&expected.array(), 1}));
    EXPECT_EQ(std::memcmp(got.array().data, expected.array().data, got.byte_size()), 0) << to_text(program);
    EXPECT_EQ(program.launches.size(), 1u);
    return program.launches.at(0).kind;
  };
  EXPECT_EQ(launch_of(64, 10, 100), Launch::Kind::kernel);
  EXPECT_EQ(launch_of(64, 17, 100), Launch::Kind::product);
  EXPECT_EQ(launch_of(8, 10, 100), Launch::Kind::product);
}

TEST(LibraryProduct, ReadsMatricesAsTheyLie) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    const auto a = small_numbers(dtype, {3, 5}, 1), b = small_numbers(dtype, {5, 4}, 2);
    for (const auto& left : {ordered(a, {3, 5}, {0, 1}), ordered(a, {3, 5}, {1, 0})})
      for (const auto& right : {ordered(b, {5, 4}, {0, 1}), ordered(b, {5, 4}, {1, 0})})
        EXPECT_EQ(check(left, right), Counts(1, 1));
  }
}

TEST(LibraryProduct, TakesVectorsAndSingleRows) {
  const auto m = small_numbers(Dtype::f32, {5, 4}, 1), v = small_numbers(Dtype::f32, {5}, 2);
  const auto w = small_numbers(Dtype::f32, {4}, 3);
  EXPECT_EQ(check(v.array(), m.array()), Counts(1, 1));
  EXPECT_EQ(check(m.array(), w.array()), Counts(1, 1));
  EXPECT_EQ(check(v.array(), v.array()), Counts(1, 1));
  EXPECT_EQ(check(ordered(m, {1, 20}, {0, 1}), ordered(m, {20, 1}, {1, 0})), Counts(1, 1));
  EXPECT_EQ(check(ordered(m, {20, 1}, {0, 1}), ordered(m, {1, 20}, {1, 0})), Counts(1, 1));
}

TEST(LibraryProduct, JoinsBatches) {
  const auto a = small_numbers(Dtype::f32, {2, 3, 4, 5}, 1), b = small_numbers(Dtype::f32, {2, 3, 5, 4}, 2);
  EXPECT_EQ(check(a.array(), b.array()), Counts(1, 1));
  const auto shared = small_numbers(Dtype::f32, {5, 4}, 3);
  EXPECT_EQ(check(a.array(), shared.array()), Counts(1, 1)) << "the batch becomes rows";
  const auto first = small_numbers(Dtype::f32, {4, 5}, 3);
  EXPECT_EQ(check(first.array(), b.array()), Counts(1, 1));
  // [2, 1] by [3]: a batch in which neither side follows the other.
  EXPECT_EQ(check(ordered(a, {2, 1, 12, 5}, {0, 1, 2, 3}), ordered(b, {6, 5, 4}, {0, 1, 2})), Counts(2, 2));
  EXPECT_EQ(check(ordered(a, {2, 3, 4, 5}, {1, 0, 2, 3}), b.array()), Counts(2, 2));
}

TEST(LibraryProduct, CopiesWhatNoLibraryReads) {
  const auto a = small_numbers(Dtype::f32, {6, 5}, 1), b = small_numbers(Dtype::f32, {5, 4}, 2);
  EXPECT_EQ(check(ordered(a, {6, 5}, {0, 1}, {1}), b.array()), Counts(1, 2));
  op::Array broadcast = b.array();
  broadcast.layout.strides = {0, 1};
  EXPECT_EQ(check(a.array(), broadcast), Counts(1, 2));
  const auto batched = small_numbers(Dtype::f32, {3, 2, 5}, 1);
  EXPECT_EQ(check(ordered(batched, {3, 2, 5}, {0, 1, 2}, {0}), ordered(b, {1, 5, 4}, {0, 1, 2})),
            Counts(1, 2));
}

TEST(LibraryProduct, OfNothingIsZeroOrNothing) {
  const auto none = small_numbers(Dtype::f32, {3, 0}, 1), other = small_numbers(Dtype::f32, {0, 4}, 1);
  EXPECT_EQ(check(none.array(), other.array()), Counts(0, 1));
  const auto wide = small_numbers(Dtype::f32, {4, 0}, 1), a = small_numbers(Dtype::f32, {3, 4}, 1);
  EXPECT_EQ(check(a.array(), wide.array()), Counts(0, 0));
}

TEST(LibraryProduct, LeavesIntegersToOthers) {
  const auto a = small_numbers(Dtype::i32, {3, 3}, 1);
  const op::Card& card = *op::find_card("matmul");
  const op::Attributes attributes = value_or_throw(op::complete_attributes(card, {}));
  const op::ValueTypes types(2, {Dtype::i32, {3, 3}});
  const op::Array inputs[] = {a.array(), a.array()};
  EXPECT_FALSE(library_product(op::CallInfo(card, types, attributes), inputs, {&a.array(), 1}));
}

TEST(LibraryChain, FinishesAProductWithABiasAnArrayAndAnActivation) {
  const auto function =
      value_or_throw(ir::parse_function(R"(func f(x: f32[3, 5], w: f32[4, 5], b: f32[1, 4], r: f32[3, 4]) {
  t: f32[5, 4] = transpose(w)
  p: f32[3, 4] = matmul(x, t)
  return p
})"));
  EXPECT_FALSE(library_chain(*function, {}, {})) << "a view is no part of a chain";
  const auto ops =
      value_or_throw(ir::parse_function(R"(func f(x: f32[3, 5], w: f32[5, 4], b: f32[1, 4], r: f32[3, 4]) {
  p: f32[3, 4] = matmul(x, w)
  q: f32[3, 4] = add(b, p)
  s: f32[3, 4] = add(q, r)
  y: f32[3, 4] = relu(s)
  return y
})"));
  const auto x = small_numbers(Dtype::f32, {3, 5}, 1), w = small_numbers(Dtype::f32, {5, 4}, 2);
  const auto b = small_numbers(Dtype::f32, {1, 4}, 3), r = small_numbers(Dtype::f32, {3, 4}, 4);
  const auto expected = value_or_throw(op::interpret(*ops, std::vector<HostTensor>{x, w, b, r}))[0];
  const HostTensor got = value_or_throw(HostTensor::allocate(Dtype::f32, {3, 4}));
  // As they lie; with a bias and an array that must be copied first: not aligned, and turned around.
  op::Array moved = b.array();
  const HostTensor room = small_numbers(Dtype::f32, {5}, 0);
  std::memcpy(room.array().data + 4, b.array().data, 16);
  moved.data = room.array().data + 4;
  const HostTensor turned = value_or_throw(HostTensor::allocate(Dtype::f32, {4, 3}));
  const op::Array other = ordered(turned, {3, 4}, {1, 0});
  op::copy_elements(r.array(), other);
  for (const bool is_odd : {false, true}) {
    const op::Array inputs[] = {x.array(), w.array(), is_odd ? moved : b.array(), is_odd ? other : r.array()};
    const auto program = library_chain(*ops, inputs, {&got.array(), 1});
    ASSERT_TRUE(program);
    EXPECT_EQ(program->launches.size(), is_odd ? 3u : 1u) << to_text(*program);
    Emulator emulator;
    value_or_throw(emulator.compile({&*program, 1}));
    value_or_throw(emulator.run(*program, inputs, {&got.array(), 1}));
    EXPECT_EQ(std::memcmp(got.array().data, expected.array().data, got.byte_size()), 0) << to_text(*program);
  }
}

TEST(LibraryChain, TakesAProductTimesANumberFromAnArray) {
  const auto ops = value_or_throw(ir::parse_function(R"(func f(x: f32[3, 5], w: f32[5, 4], r: f32[3, 4]) {
  p: f32[3, 4] = matmul(x, w)
  q: f32[3, 4] = mul(p, 0.5:f32)
  y: f32[3, 4] = sub(r, q)
  return y
})"));
  const auto x = small_numbers(Dtype::f32, {3, 5}, 1), w = small_numbers(Dtype::f32, {5, 4}, 2);
  const auto r = small_numbers(Dtype::f32, {3, 4}, 4);
  const auto expected = value_or_throw(op::interpret(*ops, std::vector<HostTensor>{x, w, r}))[0];
  const HostTensor got = value_or_throw(HostTensor::allocate(Dtype::f32, {3, 4}));
  const op::Array inputs[] = {x.array(), w.array(), r.array()};
  const auto program = library_chain(*ops, inputs, {&got.array(), 1});
  ASSERT_TRUE(program);
  ASSERT_EQ(program->launches.size(), 1u) << to_text(*program);
  EXPECT_EQ(program->launches[0].product->finish.scale, -0.5f);
  Emulator emulator;
  value_or_throw(emulator.compile({&*program, 1}));
  value_or_throw(emulator.run(*program, inputs, {&got.array(), 1}));
  EXPECT_EQ(std::memcmp(got.array().data, expected.array().data, got.byte_size()), 0) << to_text(*program);
}

TEST(LibraryChain, LeavesWhatItWouldComputeOtherwise) {
  const auto x = small_numbers(Dtype::f32, {4, 4}, 1);
  const op::Array inputs[] = {x.array(), x.array(), x.array()};
  for (const char* rest : {"mul(p, 0.0:f32)", "sub(p, r)", "mul(p, $0:f32)", "mul(p, r)", "sub(p, p)"}) {
    const auto ops = value_or_throw(ir::parse_function(
        std::string("func f(x: f32[4, 4], w: f32[4, 4], r: f32[4, 4]) {\n  p: f32[4, 4] = matmul(x, w)\n"
                    "  q: f32[4, 4] = ") +
        rest + "\n  return q\n}"));
    EXPECT_FALSE(library_chain(*ops, inputs, {&x.array(), 1})) << rest;
  }
}

// Ops of the program's own take part in everything: recording, plans, compiled functions, gradients, regions.
#include "tessera/tensor/custom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/engine.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/region.h"
#include "tessera/tensor/scope.h"
#include "tests/support/message.h"

using namespace tessera;
using fixture::message_of;

namespace {

using Arguments = std::span<const Elements>;

std::shared_ptr<Engine> planning_at_once() {
  return Engine::create({.plans = {.threshold = 1, .wait = true}});
}

void square_elements(Arguments xs, Arguments ys) {
  const auto from = xs[0].data<const float>();
  const auto to = ys[0].data<float>();
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] * from[i];
}

const Custom& square() {
  static const Custom op = custom({.name = "test_square",
                                   .run = square_elements,
                                   .gradient = [](const auto& xs, const Tensor&, const Tensor& dy) {
                                     return std::vector{xs[0] * dy * 2};
                                   }});
  return op;
}

/// Two results of other types than the arguments: each row's sum, and how many elements it has.
const Custom& row_sums() {
  static const Custom op =
      custom({.name = "test_row_sums",
              .types =
                  [](std::span<const TensorType> xs) {
                    if (xs[0].rank() != 2) throw std::invalid_argument(cat("expected a matrix, got ", xs[0]));
                    return std::vector<TensorType>{{xs[0].dtype, {xs[0].shape[0]}}, {i64, {xs[0].shape[0]}}};
                  },
              .run =
                  [](Arguments xs, Arguments ys) {
                    const auto from = xs[0].data<const float>();
                    const auto rows = ys[0].data<float>();
                    const auto counts = ys[1].data<std::int64_t>();
                    const auto width = static_cast<std::size_t>(xs[0].shape()[1]);
                    for (std::size_t i = 0; i < from.size(); ++i)
                      rows[i / width] += from[i], ++counts[i / width];
                  }});
  return op;
}

Tensor matrix(const std::shared_ptr<Engine>& engine, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows * columns; ++i) values.push_back(static_cast<float>(i));
  return from_vector(values, {rows, columns}, {.engine = engine});
}

}  // namespace

TEST(Custom, IsRecordedAndComputedWhenAsked) {
  const Tensor x = tensor({1, 2, 3}), y = square()(x) + 1;
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 5, 10}));
  EXPECT_EQ(square().name(), "test_square");
}

TEST(Custom, SeesViewsRowByRow) {
  const Tensor x = matrix(nullptr, 2, 3);
  EXPECT_EQ(square()(x.transpose()).to_vector<float>(), (std::vector<float>{0, 9, 1, 16, 4, 25}));
  EXPECT_EQ(square()(x.slice({{.start = 1}, {.start = 2, .stop = 0, .step = -1}})).to_vector<float>(),
            (std::vector<float>{25, 16}));
  EXPECT_EQ(square()(zeros({0, 3})).size(), 0);
}

TEST(Custom, HasSeveralResults) {
  const auto results = row_sums().all({matrix(nullptr, 2, 3)});
  EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{3, 12}));
  EXPECT_EQ(results[1].to_vector<std::int64_t>(), (std::vector<std::int64_t>{3, 3}));
  EXPECT_NE(message_of([] { (void)row_sums()(matrix(nullptr, 2, 3)); }).find("has 2 results"),
            std::string::npos);
}

TEST(Custom, NumbersTakeTheDtypeOfTheFirstTensor) {
  static const Custom scale = custom({.name = "test_scale", .run = [](Arguments xs, Arguments ys) {
                                        const double factor = xs[1].data<const double>()[0];
                                        const auto from = xs[0].data<const double>();
                                        std::transform(from.begin(), from.end(), ys[0].data<double>().begin(),
                                                       [&](double x) { return x * factor; });
                                      }});
  const Tensor x = from_vector<double>({1, 2}, {2});
  EXPECT_EQ(scale(x, 3).to_vector<double>(), (std::vector<double>{3, 6}));
  EXPECT_EQ(scale(x, 0.5).to_vector<double>(), (std::vector<double>{0.5, 1}));
  EXPECT_NE(message_of([] { (void)scale(1, 2); }).find("takes at least one tensor"), std::string::npos);
}

TEST(Custom, TakesPartInPlansOfEverySize) {
  const auto engine = planning_at_once();
  for (const std::int64_t rows : {4, 4, 4, 7, 3, 9, 5}) {
    const Tensor sums = row_sums().all({matrix(engine, rows, 2) * 2.0})[0] + 1.0;
    for (std::int64_t i = 0; i < rows; ++i)
      EXPECT_EQ(sums.item<float>({i}), static_cast<float>(2 * (4 * i + 1) + 1));
    EXPECT_NE(engine->report().components.at(0).tier, engine::Tier::streamed) << rows;
  }
  EXPECT_EQ(engine->statistics().plans_made, 2U);  // one for numbers, one for symbols
}

TEST(Custom, ARuleThatNeedsNumbersGetsAPlanPerSize) {
  static const Custom halves = custom({.name = "test_halves",
                                       .types =
                                           [](std::span<const TensorType> xs) {
                                             const std::int64_t size = xs[0].shape[0].value();
                                             if (size % 2 != 0 || size == 0) throw std::range_error("odd");
                                             return std::vector<TensorType>{{xs[0].dtype, {size / 2}}};
                                           },
                                       .run =
                                           [](Arguments xs, Arguments ys) {
                                             const auto from = xs[0].data<const float>();
                                             const auto to = ys[0].data<float>();
                                             std::copy_n(from.begin(), to.size(), to.begin());
                                           }});
  const auto engine = planning_at_once();
  for (const std::int64_t size : {4, 8, 6, 2, 10, 12})
    EXPECT_EQ(sum(halves(ones({size}, {.engine = engine}))).item<float>(), static_cast<float>(size) / 2);
  EXPECT_NE(message_of([&] { (void)halves(ones({3}, {.engine = engine})); }).find("test_halves: odd"),
            std::string::npos);
}

TEST(Custom, WorksInsideCompiledFunctionsAndRegions) {
  const auto f = compile([](const Tensor& x) { return sum(square()(x) * 2.0); });
  EXPECT_EQ(f(tensor({1, 2, 3})).item<float>(), 28);
  EXPECT_EQ(f(tensor({2, 2})).item<float>(), 16);
  const Tensor x = tensor({3});
  const auto loop = for_loop(2, [](const Tensor&, const Tensors& s) { return Tensors{square()(s[0])}; }, {x});
  EXPECT_EQ(loop[0].item<float>(), 81);
}

TEST(Custom, HasTheGradientItWasGiven) {
  const auto loss = [](const std::vector<Tensor>& xs) { return sum(square()(xs[0]) * 3.0); };
  EXPECT_EQ(grad(loss)({tensor({1, 2})})[0].to_vector<float>(), (std::vector<float>{6, 12}));
  const auto looped = [](const std::vector<Tensor>& xs) {
    return sum(for_loop(
        2, [](const Tensor&, const Tensors& s) { return Tensors{square()(s[0])}; }, xs)[0]);
  };
  EXPECT_EQ(grad(looped)({tensor({1, 2})})[0].to_vector<float>(), (std::vector<float>{4, 32}));
}

TEST(Custom, WithoutAGradientSaysSo) {
  static const Custom op = custom({.name = "test_no_gradient", .run = square_elements});
  const auto loss = [](const std::vector<Tensor>& xs) { return sum(op(xs[0])); };
  EXPECT_NE(message_of([&] { (void)grad(loss)({tensor({1})}); }).find("'test_no_gradient' has no gradient"),
            std::string::npos);
}

TEST(Custom, AWrongGradientRuleIsAnErrorOfTheOpAtItsCall) {
  static const Custom op = custom({.name = "test_wrong_gradient",
                                   .run = square_elements,
                                   .gradient = [](const auto& xs, const Tensor&, const Tensor& dy) {
                                     return std::vector{xs[0] * dy, dy};
                                   }});
  const int line = __LINE__ + 1;
  const auto loss = [](const std::vector<Tensor>& xs) { return sum(op(xs[0])); };
  const std::string message = message_of([&] { (void)grad(loss)({tensor({1})}); });
  EXPECT_NE(message.find(cat("custom_test.cpp:", line,
                             ": test_wrong_gradient: its gradient rule gave 2 "
                             "gradients for 1 arguments")),
            std::string::npos)
      << message;
}

TEST(Custom, WhatItThrowsIsAnErrorAtTheCallersLine) {
  static std::atomic<int> kind{0};
  static const Custom op = custom({.name = "test_throws", .run = [](Arguments xs, Arguments) {
                                     if (kind == 0) throw std::runtime_error("the valve is stuck");
                                     if (kind == 1) throw 42;
                                     if (kind == 2) (void)xs[0].data<double>();
                                     if (kind == 3) (void)ones({2}).item<float>({0});
                                   }});
  const auto engine = planning_at_once();
  const std::string expected[] = {"test_throws: the valve is stuck",
                                  "test_throws: threw something that is no std::exception",
                                  "test_throws: elements of f32 were asked for as f64",
                                  "test_throws: a value was asked for by the function of a custom op"};
  for (kind = 0; kind < 4; ++kind) {
    for (int i = 0; i < 3; ++i) {  // as a plan, too
      const Tensor y = op(ones({2}, {.engine = engine}) * 2.0);
      const int line = __LINE__ - 1;
      const std::string message = message_of([&] { y.eval(); });
      EXPECT_NE(message.find(expected[kind]), std::string::npos) << message;
      EXPECT_NE(message.find(cat("custom_test.cpp:", line)), std::string::npos) << message;
    }
  }
  kind = 9;
  EXPECT_EQ(op(ones({2}, {.engine = engine}) * 2.0).item<float>({1}), 0);
}

TEST(Custom, EqualCallsAreOneUnlessTheyAreNot) {
  static std::atomic<int> calls{0};
  const auto count = [](Arguments, Arguments) { ++calls; };
  static const Custom pure = custom({.name = "test_pure", .run = count});
  static const Custom impure = custom({.name = "test_impure", .run = count, .is_pure = false});
  const auto engine = planning_at_once();
  const auto calls_of = [&](const Custom& op) {
    calls = 0;
    const Tensor x = ones({2}, {.engine = engine}).eval();
    (op(x) + op(x)).eval();
    return calls.load();
  };
  EXPECT_EQ(calls_of(pure), 1);
  EXPECT_EQ(calls_of(impure), 2);
}

TEST(Custom, APlanWithOneCannotBeSaved) {
  op::IrBuilder builder;
  const op::Value x = builder.parameter("x", {f32, {2}});
  const op::Values results{builder.call(square().name(), {x})};
  const auto function = value_or_throw(builder.function("f", results));
  const auto planned = value_or_throw(compiler::plan_function(function, {}));
  const auto bytes =
      plan::to_bytes(compiler::package(*function, {plan::program_of(planned.plan)}, "reference"));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(
      bytes.error().message(),
      "the plan cannot be saved: 'test_square' is a function of this process and not an op of the catalogue");
}

TEST(Custom, NamesThatCannotBeAreSaid) {
  const auto of = [](std::string name) {
    return message_of([&] { (void)custom({.name = name, .run = square_elements}); });
  };
  (void)square();
  EXPECT_NE(of("").find("is no name"), std::string::npos);
  EXPECT_NE(of("two words").find("is no name"), std::string::npos);
  EXPECT_NE(of("2d").find("is no name"), std::string::npos);
  EXPECT_NE(of("matmul").find("the catalogue has one"), std::string::npos);
  EXPECT_NE(of("mm").find("that is how 'matmul' is spelled"), std::string::npos);
  EXPECT_NE(of("test_square").find("added before"), std::string::npos);
  EXPECT_NE(message_of([] { (void)custom({.name = "test_empty"}); }).find("is empty"), std::string::npos);
  EXPECT_EQ(op::find_card("test_empty"), nullptr);
  EXPECT_FALSE(op::is_in_catalogue(*op::find_card("test_square")));
}

TEST(Custom, WrongCallsAreSaidAtOnce) {
  EXPECT_NE(message_of([] { (void)row_sums().all({tensor({1})}); }).find("expected a matrix, got f32[1]"),
            std::string::npos);
  EXPECT_NE(message_of([] { (void)row_sums().all({}); }).find("at least one argument"), std::string::npos);
  EXPECT_NE(message_of([] { (void)square()(Tensor()); }).find("is empty"), std::string::npos);
  static const Custom wrong = custom({.name = "test_wrong_types",
                                      .types =
                                          [](std::span<const TensorType>) {
                                            return std::vector<TensorType>{{f32, {-1}}};
                                          },
                                      .run = square_elements});
  EXPECT_NE(message_of([] { (void)wrong(tensor({1})); }).find("would have shape"), std::string::npos);
}

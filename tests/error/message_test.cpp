// Messages of the C++ face name the function that was called and what of it is wrong.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tessera/engine/engine.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"

using namespace tessera;

namespace {

template <class F>
void expect_message(F&& f, const std::string& message) {
  const std::string got = fixture::message_of(f);
  EXPECT_TRUE(got.ends_with(": " + message)) << "got: " << got << "\nexpected: " << message;
  EXPECT_NE(got.find("message_test.cpp:"), std::string::npos) << got;
}

TEST(Messages, FunctionsThatMakeTensorsNameThemselves) {
  expect_message([] { zeros({2, -1}); }, "zeros: shape [2, -1] has the negative size -1");
  expect_message([] { ones({-3}); }, "ones: shape [-3] has the negative size -3");
  expect_message([] { full({-3}, 1); }, "full: shape [-3] has the negative size -3");
  expect_message([] { zeros(Shape(17, 1)); },
                 "zeros: a tensor of rank 17 was asked for, at most 16 is supported");
  expect_message(
      [] {
        zeros({std::int64_t{1} << 40, std::int64_t{1} << 40});
      },
      "zeros: a tensor of shape [1099511627776, 1099511627776] is too large");
  expect_message(
      [] {
        from_vector<float>({1, 2, 3}, {2, 2});
      },
      "from_vector: a tensor of shape [2, 2] has 4 elements, got 3");
  const std::vector<int> values{1, 2, 3};
  expect_message([&] { from_span(std::span<const int>(values), {2}); },
                 "from_span: a tensor of shape [2] has 2 elements, got 3");
  expect_message([&] { from_bytes(std::as_bytes(std::span(values)), {2}); },
                 "from_bytes: a f32 tensor of shape [2] has 8 bytes, got 12");
}

TEST(Messages, EmptyTensorsAreNamedByCallAndArgument) {
  Tensor x = ones({2});
  const Tensor empty;
  expect_message([&] { eval({x, empty}); }, "eval: argument 1 is an empty tensor");
  expect_message([&] { eval_async({x, x, empty}); }, "eval_async: argument 2 is an empty tensor");
  expect_message([&] { x.assign(empty); }, "assign: argument 0: the tensor is empty");
  expect_message([&] { x.update_slice({0}, empty); }, "update_slice: the update: the tensor is empty");
  expect_message([&] { (void)gradients(empty, {x}); }, "gradients: argument 0: the tensor is empty");
  expect_message([&] { (void)gradients(sum(x), {empty}); }, "gradients: tensor 0 of argument 1 is empty");
  expect_message([&] { (void)grad([](const Tensor& t) { return sum(t); })(empty); },
                 "the gradient of argument 0 was asked for: it is an empty tensor");
  expect_message([&] { (void)(x * empty); }, "mul: operand 1 is an empty tensor");
  expect_message([&] { (void)matmul(empty, x); }, "matmul: operand 0 is an empty tensor");
}

TEST(Messages, ADeviceBelongsToAnEngine) {
  const auto engine = engine::Engine::create({});
  const std::string own(engine->device().name());
  expect_message([&] { zeros({2}, {.device = "cuda", .engine = engine}); },
                 cat("device 'cuda': a device belongs to an engine, and that of this tensor computes on '",
                     own, "'; give an engine of the other device as `engine`"));
}

TEST(Messages, TheLogSaysWhatItDoesNotKnow) {
  ::setenv("TESSERA_LOG", "foo", 1);
  testing::internal::CaptureStderr();
  (void)engine::Engine::create({});
  (void)engine::Engine::create({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "tessera: TESSERA_LOG: 'foo' is nothing to log, expected 'plan'\n");
  ::unsetenv("TESSERA_LOG");
}

}  // namespace

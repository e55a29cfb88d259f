#include "tessera/tensor/region.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/engine/engine.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"

using namespace tessera;
using tessera::fixture::message_of;

namespace {

using Floats = std::vector<float>;

Tensor number(double value) { return full({}, value, {.dtype = f64}); }

TEST(Region, cond_takes_one_way) {
  for (const double value : {3.0, -3.0}) {
    const Tensor x = number(value);
    const Tensor y = cond(
        x > 0, [&] { return x * 2; }, [&] { return x - 1; });
    EXPECT_EQ(y.item<double>(), value > 0 ? 6 : -4);
  }
}

TEST(Region, only_the_way_taken_is_computed) {
  // An index out of range in the other body does no harm.
  const Tensor x = tensor({1, 2});
  const Tensor y = cond(
      number(1) > 0, [&] { return x; },
      [&] {
        return gather(x, from_vector<std::int64_t>({9, 9}, {2}));
      });
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, 2}));
}

TEST(Region, Trap_G4_if_that_does_not_run_gives_zeros) {
  const Tensor x = tensor({1, 2});
  EXPECT_EQ(if_(number(1), [&] { return x + 1; }).to_vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(if_(number(0), [&] { return x + 1; }).to_vector<float>(), (Floats{0, 0}));
}

TEST(Region, switch_runs_the_last_body_for_what_is_outside) {
  const Tensor x = number(10);
  const auto at = [&](std::int64_t i) {
    return switch_(from_vector<std::int64_t>({i}, {1}),
                   {[&] { return Tensors{x + 1}; }, [&] { return Tensors{x + 2}; },
                    [&] { return Tensors{x + 3}; }})[0]
        .item<double>();
  };
  EXPECT_EQ(at(0), 11);
  EXPECT_EQ(at(1), 12);
  EXPECT_EQ(at(7), 13);
  EXPECT_EQ(at(-1), 13);
}

Tensors count_down(double from, std::optional<std::int64_t> limit = std::nullopt) {
  return while_loop([](const Tensors& s) { return s[0] > 0; },
                    [](const Tensors& s) {
                      return Tensors{s[0] - 1, s[1] + s[0]};
                    },
                    {number(from), number(0)}, {.max_iterations = limit});
}

TEST(Region, while_loops) {
  const Tensors done = count_down(4);
  EXPECT_EQ(done[0].item<double>(), 0);
  EXPECT_EQ(done[1].item<double>(), 10);
}

TEST(Region, Trap_G12_a_loop_that_never_ends_stops_at_its_limit) {
  const auto positive = [](const Tensors& s) { return s[0] > 0; };
  const auto next = [](const Tensors& s) { return Tensors{s[0] + 1}; };
  const int line = __LINE__ + 1;
  const Tensors forever = while_loop(positive, next, {number(1)}, {.max_iterations = 5});
  const std::string message = message_of([&] { eval(forever[0]); });
  EXPECT_NE(message.find("while: goes on after its limit of 5"), std::string::npos) << message;
  EXPECT_NE(message.find("region_test.cpp:" + std::to_string(line)), std::string::npos) << message;
}

TEST(Region, Trap_G19_zero_iterations_change_nothing) {
  EXPECT_EQ(count_down(-1)[1].item<double>(), 0);
  EXPECT_EQ(for_loop(0, [](const Tensor&, const Tensors& s) { return Tensors{s[0] + 1}; }, {number(7)})[0]
                .item<double>(),
            7);
  EXPECT_EQ(for_loop(-3, [](const Tensor&, const Tensors& s) { return Tensors{s[0] + 1}; }, {number(7)})[0]
                .item<double>(),
            7);
}

TEST(Region, for_loops_count_from_the_host_or_from_a_tensor) {
  const auto fibonacci = [](const Operand& n) {
    return for_loop(n,
                    [](const Tensor&, const Tensors& s) {
                      return Tensors{s[1], s[0] + s[1]};
                    },
                    {number(0), number(1)})[0]
        .item<double>();
  };
  EXPECT_EQ(fibonacci(10), 55);
  const Tensor n = from_vector<std::int64_t>({20}, {1});
  EXPECT_EQ(fibonacci(n), 6765);
  const auto sum_of_indices = for_loop(
      5, [](const Tensor& i, const Tensors& s) { return Tensors{s[0] + i.cast(f64)}; }, {number(0)})[0];
  EXPECT_EQ(sum_of_indices.item<double>(), 10);
}

TEST(Region, nested) {
  const Tensor step = number(2);
  const Tensors out =
      for_loop(3,
               [&](const Tensor& i, const Tensors& s) {
                 const Tensor inner = for_loop(
                     2, [&](const Tensor&, const Tensors& t) { return Tensors{t[0] + step * i.cast(f64)}; },
                     {s[0]})[0];
                 return Tensors{cond(
                     i > 1, [&] { return inner * 10; }, [&] { return inner; })};
               },
               {number(1)});
  // 1 → 1 → 1+2·2=5 → (5+2·4)·10
  EXPECT_EQ(out[0].item<double>(), 130);
}

TEST(Region, a_value_cannot_be_asked_for_while_tracing) {
  int line = 0;
  const std::string message = message_of([&] {
    (void)for_loop(3,
                   [&](const Tensor&, const Tensors& s) {
                     line = __LINE__ + 1;
                     if (s[0].item<double>() > 2) return s;
                     return Tensors{s[0] + 1};
                   },
                   {number(1)});
  });
  EXPECT_NE(message.find("traced"), std::string::npos) << message;
  EXPECT_NE(message.find("region_test.cpp:" + std::to_string(line)), std::string::npos) << message;
  EXPECT_EQ((number(1) + 1).item<double>(), 2);  // tracing is over
}

TEST(Region, a_leaked_parameter_has_no_value) {
  Tensor leaked;
  (void)for_loop(1,
                 [&](const Tensor&, const Tensors& s) {
                   leaked = s[0];
                   return s;
                 },
                 {number(1)});
  EXPECT_NE(message_of([&] { eval(leaked); }).find("outside"), std::string::npos);
}

TEST(Region, wrong_calls) {
  const Tensor x = tensor({1, 2});
  EXPECT_NE(message_of([&] {
              (void)cond(
                  x, [&] { return x; }, [&] { return x; });
            }).find("one element"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)cond(
                  number(1), [&] { return x; }, [&] { return x.cast(f64); });
            }).find("f64"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)for_loop(2, [&](const Tensor&, const Tensors&) { return Tensors{}; }, {x});
            }).find("gives 0"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)for_loop(2,
                             [&](const Tensor&, const Tensors& s) {
                               return Tensors{concat({s[0], s[0]})};
                             },
                             {x});
            }).find("f32[4]"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)switch_(number(1), {}); }).find("no body"), std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)for_loop(1.5, [&](const Tensor&, const Tensors& s) { return s; }, {x});
            }).find("no integer"),
            std::string::npos);
}

// ---- gradients

TEST(Region, gradient_of_cond) {
  const auto f = [](const Tensor& x) {
    return cond(
        x > 0, [&] { return x * x; }, [&] { return x * 5; });
  };
  EXPECT_EQ(grad(f)(number(3)).item<double>(), 6);
  EXPECT_EQ(grad(f)(number(-3)).item<double>(), 5);
  EXPECT_EQ(grad(grad(f))(number(3)).item<double>(), 2);
}

TEST(Region, gradient_of_for) {
  // x^5 by a loop
  const auto f = [](const Tensor& x) {
    return for_loop(4, [&](const Tensor&, const Tensors& s) { return Tensors{s[0] * x}; }, {x})[0];
  };
  EXPECT_NEAR(f(number(2)).item<double>(), 32, 1e-12);
  EXPECT_NEAR(grad(f)(number(2)).item<double>(), 80, 1e-12);
  EXPECT_NEAR(grad(grad(f))(number(2)).item<double>(), 160, 1e-12);
}

TEST(Region, gradient_of_while) {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensors& s) { return s[0] < 100; },
                      [&](const Tensors& s) { return Tensors{s[0] * x}; }, {x}, {.max_iterations = 50})[0];
  };
  // 3, 9, 27, 81, 243 = x^5
  EXPECT_NEAR(f(number(3)).item<double>(), 243, 1e-9);
  EXPECT_NEAR(grad(f)(number(3)).item<double>(), 5 * 81, 1e-9);
}

// ---- gradients of the caller's own inside regions

TensorFunction clipped_product(const Tensor& scale) {
  return custom_gradient([=](const Tensors& xs) { return xs[0] * xs[0] * scale; },
                         [=](const Tensors& xs, const Tensor&, const Tensor& dy) {
                           return Tensors{clip(dy, -1, 1) * xs[0] * scale};
                         });
}

TEST(Region, custom_gradients_hold_inside) {
  const Tensor scale = number(3);
  const auto f = clipped_product(scale);
  const auto in_cond = [&](const Tensor& x) {
    return cond(
               x > 0, [&] { return f({x}); }, [&] { return x; }) *
           10;
  };
  const auto in_loop = [&](const Tensor& x) {
    return for_loop(3, [&](const Tensor&, const Tensors& s) { return Tensors{s[0] + f({x})}; },
                    {number(0)})[0] *
           10;
  };
  // dy is 10, clipped to 1; times x = 2, times scale = 3.
  EXPECT_EQ(in_cond(number(2)).item<double>(), 120);
  EXPECT_EQ(grad(in_cond)(number(2)).item<double>(), 6);
  EXPECT_EQ(grad(in_cond)(number(-2)).item<double>(), 10);
  EXPECT_EQ(grad(in_loop)(number(2)).item<double>(), 18);
  EXPECT_EQ(grad(grad(in_cond))(number(2)).item<double>(), 3);  // of the rule: d(x * scale)
}

TEST(Region, custom_gradients_capture_values_of_the_body) {
  const auto f = [&](const Tensor& x) {
    return for_loop(
        2,
        [&](const Tensor& i, const Tensors& s) {
          const Tensor weight = i.cast(f64) + 5;  // a value of this iteration that only the rule uses
          const auto g = custom_gradient(
              [](const Tensors& xs) { return xs[0] * 1; },
              [&](const Tensors&, const Tensor&, const Tensor& dy) { return Tensors{dy * weight}; });
          return Tensors{g({s[0]})};
        },
        {x})[0];
  };
  EXPECT_EQ(grad(f)(number(1)).item<double>(), 30);
}

TEST(Region, custom_gradients_that_are_wrong_are_said_at_once) {
  const auto wrong = custom_gradient([](const Tensors& xs) { return xs[0]; },
                                     [](const Tensors&, const Tensor&, const Tensor&) { return Tensors{}; });
  const Tensor x = number(1);
  const std::string message = message_of([&] {
    (void)cond(
        x > 0, [&] { return wrong({x}); }, [&] { return x; });
  });
  EXPECT_NE(message.find("0 gradients for 1"), std::string::npos) << message;
  EXPECT_NE(message.find("region_test.cpp"), std::string::npos) << message;
}

TEST(Region, checkpoints_hold_inside_and_let_gradients_into_captures) {
  const Tensor w = number(3);
  const auto f = [](const Tensors& a) {
    const Tensor &x = a[0], &scale = a[1];
    const auto step = checkpoint([&](const Tensors& s) { return sin(s[0]) * scale; });
    return for_loop(4, [&](const Tensor&, const Tensors& s) { return Tensors{step({s[0]})}; }, {x})[0];
  };
  const auto plain = [](const Tensors& a) {
    Tensor x = a[0];
    for (int i = 0; i < 4; ++i) x = sin(x) * a[1];
    return x;
  };
  const auto got = value_and_grad(f)({number(0.5), w}), expected = value_and_grad(plain)({number(0.5), w});
  EXPECT_NEAR(got.value.item<double>(), expected.value.item<double>(), 1e-12);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(got.gradients[i].item<double>(), expected.gradients[i].item<double>(), 1e-12) << i;
}

TEST(Region, no_grad_holds_inside) {
  const auto f = [](const Tensor& x) {
    return cond(
        x > 0,
        [&] {
          Tensor held;
          {
            const auto scope = no_grad();
            held = x * x;
          }
          return held * x;
        },
        [&] { return x; });
  };
  EXPECT_EQ(grad(f)(number(3)).item<double>(), 9);  // 27 if the square counted
}

TEST(Region, misuse_names_the_callers_line) {
  const auto here = [](const std::string& message, std::string_view part) {
    return message.find("region_test.cpp") != std::string::npos && message.find(part) != std::string::npos;
  };
  const Tensor x = number(1), other = ones({}, {.dtype = f64, .engine = engine::Engine::create()});
  const std::function<Tensor()> none;
  const std::function<Tensors()> nothing;
  std::string m = message_of([&] { (void)cond(x, none, [&] { return x; }); });
  EXPECT_TRUE(here(m, "cond: the first body is empty")) << m;
  m = message_of([&] { (void)switch_(arange(1), {nothing}); });
  EXPECT_TRUE(here(m, "switch: body 0 is empty")) << m;
  m = message_of([&] { (void)for_loop(3, nullptr, {x}); });
  EXPECT_TRUE(here(m, "for_loop: the body is empty")) << m;
  m = message_of([&] { (void)while_loop(nullptr, [](const Tensors& s) { return s; }, {x}); });
  EXPECT_TRUE(here(m, "while_loop: the condition is empty")) << m;
  m = message_of([&] {
    (void)cond(
        x > 0, [&] { return other; }, [&] { return x; });
  });
  EXPECT_TRUE(here(m, "cond: tensors of two engines")) << m;
  m = message_of([&] { (void)for_loop(2, [&](const Tensor&, const Tensors& s) { return s; }, {x, other}); });
  EXPECT_TRUE(here(m, "for_loop: tensors of two engines")) << m;
  m = message_of([&] {
    (void)while_loop([](const Tensors& s) { return s[0] < 3; },
                     [&](const Tensors&) { return Tensors{other}; }, {x});
  });
  EXPECT_TRUE(here(m, "while_loop: tensors of two engines")) << m;
}

}  // namespace

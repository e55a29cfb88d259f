#include "tessera/tensor/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tessera/tensor/create.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"
#include "tests/support/message.h"
#include "tests/support/repeats.h"

using namespace tessera;
using tessera::fixture::message_of;

namespace {

using Floats = std::vector<float>;
Floats floats(const Tensor& tensor) { return tensor.to_vector<float>(); }

TEST(Gradient, Trap_L11_backward_twice_accumulates_once_per_call) {
  Tensor x = tensor({1, 2, 3});
  x.requires_grad();
  const Tensor loss = sum(x * x);
  EXPECT_EQ(floats(x.grad()), (Floats{0, 0, 0}));
  loss.backward();
  EXPECT_EQ(floats(x.grad()), (Floats{2, 4, 6}));
  loss.backward();
  EXPECT_EQ(floats(x.grad()), (Floats{4, 8, 12}));
  x.zero_grad();
  EXPECT_EQ(floats(x.grad()), (Floats{0, 0, 0}));
}

TEST(Gradient, Trap_L12_broadcasts_are_summed) {
  Tensor x = ones({2, 1}), y = ones({2, 3});
  x.requires_grad();
  y.requires_grad();
  sum(x + y).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{2, 1}));
  EXPECT_EQ(floats(x.grad()), (Floats{3, 3}));
  EXPECT_EQ(floats(y.grad()), (Floats(6, 1)));
}

TEST(Gradient, of_products) {
  const auto g = grad([](const std::vector<Tensor>& xs) { return sum(matmul(xs[0], xs[1])); });
  const auto got = g({ones({1, 2, 3}), ones({2, 3, 2})});
  EXPECT_EQ(got[0].shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(floats(got[0]), Floats(6, 4));
  EXPECT_EQ(floats(got[1]), Floats(12, 2));
}

TEST(Gradient, of_gradients) {
  const auto cube = [](const Tensor& x) { return x * x * x; };
  const Tensor two = full({}, 2, {.dtype = f64});
  EXPECT_EQ(grad(cube)(two).item<double>(), 12);
  EXPECT_EQ(grad(grad(cube))(two).item<double>(), 12);
  EXPECT_EQ(grad(grad(grad(cube)))(two).item<double>(), 6);
}

TEST(Gradient, inner_and_outer_do_not_mix) {
  // d/dx (x * d/dy (x + y)) = d/dx x = 1
  const auto f = [](const Tensor& x) {
    return x * grad([&](const Tensor& y) { return x + y; })(full({}, 1));
  };
  EXPECT_EQ(grad(f)(full({}, 5)).item<float>(), 1);
}

TEST(Gradient, of_what_is_not_used_is_zero) {
  const auto got = grad([](const std::vector<Tensor>& xs) { return sum(xs[0]); })({ones({2}), ones({3})});
  EXPECT_EQ(floats(got[1]), (Floats{0, 0, 0}));
}

TEST(Gradient, through_views_and_updates) {
  const auto f = [](const Tensor& x) {
    Tensor y = x.transpose().reshape({6}).slice({{1, 5}});
    y.update_slice({0}, tensor({7}));
    return sum(y * y);
  };
  // x = [[0,1,2],[3,4,5]]: transposed 0 3 1 4 2 5; y = (3→7) 1 4 2
  const Tensor x = arange(6, {.dtype = f32}).reshape({2, 3});
  EXPECT_EQ(floats(grad(f)(x)), (Floats{0, 2, 4, 0, 8, 0}));
}

TEST(Gradient, of_parts_is_written_part_by_part) {
  const Tensor x = arange(6, {.dtype = f32}).reshape({3, 2});
  const Tensor gradient = grad([](const Tensor& v) { return sum(v[0] * v[1] * v[2]); })(x);
  const std::string recorded = gradient.graph().to_text();
  EXPECT_EQ(floats(gradient), (Floats{8, 15, 0, 5, 0, 3}));
  EXPECT_EQ(recorded.find("add("), std::string::npos) << recorded;
}

TEST(Gradient, through_gather_and_scatter) {
  const Tensor index = from_vector<std::int64_t>({2, 0, 2}, {3});
  EXPECT_EQ(floats(grad([&](const Tensor& x) { return sum(gather(x, index)); })(ones({3}))),
            (Floats{1, 0, 2}));
}

TEST(Gradient, stops_where_it_is_told_to) {
  EXPECT_EQ(grad([](const Tensor& x) { return x * stop_gradient(x); })(full({}, 3)).item<float>(), 3);
  Tensor x = full({}, 3);
  x.requires_grad();
  Tensor y;
  {
    const auto scope = no_grad();
    y = x * x;
  }
  EXPECT_FALSE(y.is_tracked());
  EXPECT_NE(message_of([&] { y.backward(); }).find("requires_grad"), std::string::npos);
}

TEST(Gradient, of_several_results) {
  const Tensor x = from_vector<float>({3, 9, 5, 1}, {4});
  const auto f = [](const Tensor& t) {
    const auto best = topk(t, {.k = 2});
    return sum(best.values * tensor({1, 10}));
  };
  EXPECT_EQ(floats(grad(f)(x)), (Floats{0, 1, 10, 0}));
  const auto parts = [](const Tensor& t) { return sum(split(t, {.sizes = {1, 3}})[1] * 2); };
  EXPECT_EQ(floats(grad(parts)(x)), (Floats{0, 2, 2, 2}));
}

TEST(Gradient, evaluation_in_between_changes_nothing) {
  const auto f = [](const Tensor& x) {
    const Tensor y = exp(x);
    eval(y);
    return sum(y * y);
  };
  EXPECT_NEAR(grad(f)(full({1}, 1, {.dtype = f64})).item<double>({0}), 2 * std::exp(2.0), 1e-12);
}

TEST(Gradient, vjp_and_jvp_agree) {
  const TensorFunction f = [](const std::vector<Tensor>& xs) { return sin(xs[0]) * xs[1]; };
  const std::vector<Tensor> xs{full({3}, 0.5, {.dtype = f64}), full({3}, 2, {.dtype = f64})};
  const std::vector<Tensor> dxs{full({3}, 0.25, {.dtype = f64}), full({3}, -1, {.dtype = f64})};
  const Tensor dy = arange(3, {.dtype = f64});
  const auto back = vjp(f, xs, dy);
  const auto forward = jvp(f, xs, dxs);
  const double there = sum(forward.tangent * dy).item<double>();
  const double and_back = (sum(back.gradients[0] * dxs[0]) + sum(back.gradients[1] * dxs[1])).item<double>();
  EXPECT_NEAR(there, and_back, 1e-12);
  EXPECT_NEAR(forward.tangent.item<double>({1}), std::cos(0.5) * 0.25 * 2 - std::sin(0.5), 1e-12);
}

TEST(Gradient, custom) {
  const auto clipped = custom_gradient([](const std::vector<Tensor>& xs) { return xs[0] * 1; },
                                       [](const std::vector<Tensor>&, const Tensor&, const Tensor& dy) {
                                         return std::vector{clip(dy, -1, 1)};
                                       });
  EXPECT_EQ(grad([&](const Tensor& x) { return clipped({x}) * 5; })(full({}, 3)).item<float>(), 1);
  const auto wrong = custom_gradient(
      [](const std::vector<Tensor>& xs) { return xs[0]; },
      [](const std::vector<Tensor>&, const Tensor&, const Tensor&) { return std::vector<Tensor>{}; });
  EXPECT_NE(message_of([&] {
              (void)grad([&](const Tensor& x) { return wrong({x}); })(full({}, 3));
            }).find("0 gradients for 1"),
            std::string::npos);
}

TEST(Gradient, checkpoints_compute_again) {
  const auto engine = Engine::create();
  const TensorFunction f = [](const std::vector<Tensor>& xs) {
    Tensor x = xs[0];
    for (int i = 0; i < 8; ++i) x = sin(x) * 1.5;
    return sum(x);
  };
  const Tensor x = full({1000}, 0.3, {.dtype = f64, .engine = engine}).eval();
  const auto run = [&](const TensorFunction& g) {
    const auto before = engine->statistics().kernels;
    const auto got = value_and_grad(g)({x});
    eval({got.value, got.gradients[0]});
    return std::pair{got.gradients[0].item<double>({7}), engine->statistics().kernels - before};
  };
  const auto plain = run(f), again = run(checkpoint(f));
  EXPECT_EQ(plain.first, again.first);
  EXPECT_GT(again.second, plain.second + 8);
}

TEST(Gradient, checkpoints_keep_their_random_numbers) {
  const auto engine = Engine::create({.seed = 3});
  const TensorFunction f = [&](const std::vector<Tensor>& xs) {
    return sum(xs[0] * rand({4}, {.engine = engine}));
  };
  const auto got = value_and_grad(checkpoint(f))({ones({4}, {.engine = engine})});
  EXPECT_NEAR(sum(got.gradients[0]).item<float>(), got.value.item<float>(), 1e-6);
}

TEST(Gradient, nested_checkpoints_keep_their_random_numbers) {
  const auto engine = Engine::create({.seed = 3});
  const CreateOptions options{.dtype = f64, .engine = engine};
  const auto inner = checkpoint([&](const std::vector<Tensor>& a) { return a[0] * rand({4}, options); });
  const auto outer = checkpoint([&](const std::vector<Tensor>& a) {
    const Tensor r = rand({4}, options);
    return inner({a[0] * r}) + inner({a[0]});
  });
  Tensor w = ones({4}, options);
  w.requires_grad();
  const Tensor y = outer({w});
  sum(y).backward();
  EXPECT_EQ(w.grad().to_vector<double>(), y.to_vector<double>());  // y is linear in w, which is 1
}

TEST(Gradient, flows_into_what_a_checkpoint_captures) {
  Tensor w = full({}, 3, {.dtype = f64});
  w.requires_grad();
  const Tensor twice = w * 2;  // captured too, and made from another capture
  const auto f = checkpoint([&](const std::vector<Tensor>& xs) {
    const Tensor h = sin(xs[0] * w);
    eval(h);  // what is stored on the way does not hide where it came from
    return h * twice + w;
  });
  const auto plain = [&](const std::vector<Tensor>& xs) { return sin(xs[0] * w) * twice + w; };
  const Tensor x = w * 0.5;  // an argument that a capture leads to
  plain({x}).backward();
  const double expected = w.grad().item<double>();
  w.zero_grad();
  f({x}).backward();
  EXPECT_NEAR(w.grad().item<double>(), expected, 1e-12);
  EXPECT_FALSE(w.grad().is_tracked());
}

TEST(Gradient, flows_through_checkpoints_in_checkpoints) {
  Tensor w = full({}, 0.7, {.dtype = f64});
  w.requires_grad();
  const auto inner = checkpoint([&](const std::vector<Tensor>& xs) { return exp(xs[0] * w); });
  const auto outer = checkpoint([&](const std::vector<Tensor>& xs) { return inner({xs[0] * w}) * xs[0]; });
  const Tensor x = full({}, 2, {.dtype = f64});
  outer({x}).backward();
  // d/dw of 2 exp(2 w^2)
  EXPECT_NEAR(w.grad().item<double>(), 8 * 0.7 * std::exp(2 * 0.49), 1e-12);
  const auto only = checkpoint([&](const std::vector<Tensor>&) { return w; });
  w.zero_grad();
  only({x}).backward();
  EXPECT_EQ(w.grad().item<double>(), 1);
}

TEST(Gradient, flows_into_what_a_gradient_inside_a_checkpoint_captures) {
  Tensor w = full({}, 3, {.dtype = f64});
  w.requires_grad();
  const auto f = checkpoint(
      [&](const std::vector<Tensor>& xs) { return grad([&](const Tensor& y) { return y * y * w; })(xs[0]); });
  f({full({}, 5, {.dtype = f64})}).backward();  // 2 x w
  EXPECT_EQ(w.grad().item<double>(), 10);
}

TEST(Gradient, of_gradients_through_a_checkpoint) {
  const auto f = [](const Tensor& x) {
    return checkpoint([&](const std::vector<Tensor>& xs) { return xs[0] * xs[0] * x; })({x * 2});
  };
  const Tensor two = full({}, 2, {.dtype = f64});  // 4 x^3
  EXPECT_EQ(grad(f)(two).item<double>(), 48);
  EXPECT_EQ(grad(grad(f))(two).item<double>(), 48);
}

TEST(Gradient, what_is_handed_out_is_let_go) {
  const Tensor x = ones({4}).eval();
  Tensor carried = zeros({4}).eval();
  for (int i = 0; i < 5; ++i) {
    Tensor seen;
    const auto loss = [&](const Tensor& a) {
      seen = a * 2 + carried;  // no part of the loss
      return sum(a * a);
    };
    eval(grad(loss)(x));
    EXPECT_FALSE(seen.is_tracked());
    carried = seen.eval();
  }
  EXPECT_EQ(carried.graph().size(), 1U);
  const auto fails = [&](const Tensor& a) {
    carried = a * 3;
    return a + tensor({1, 2, 3});
  };
  EXPECT_NE(message_of([&] { (void)grad(fails)(x); }), "");
  EXPECT_FALSE(carried.is_tracked());
}

TEST(Gradient, what_is_handed_out_still_leads_to_what_is_tracked_elsewhere) {
  Tensor w = full({}, 3);
  w.requires_grad();
  Tensor seen;
  (void)grad([&](const Tensor& a) {
    seen = a * w;
    return a * a;
  })(full({}, 2));
  EXPECT_TRUE(seen.is_tracked());
  seen.backward();
  EXPECT_EQ(w.grad().item<float>(), 2);
}

TEST(Gradient, in_no_grad_a_gradient_is_no_way_back) {
  Tensor w = full({}, 3);
  w.requires_grad();
  const NoGrad scope;
  const auto got =
      value_and_grad([&](const std::vector<Tensor>& a) { return a[0] * a[0] * w; })({full({}, 2)});
  EXPECT_FALSE(got.value.is_tracked());
  EXPECT_FALSE(got.gradients[0].is_tracked());
  EXPECT_EQ(got.gradients[0].item<float>(), 12);
}

TEST(Gradient, what_no_gradient_flows_through_is_let_go) {
  Tensor w = ones({4});
  w.requires_grad();
  Tensor state = zeros({4}).eval();
  for (int i = 0; i < 5; ++i) {
    state = state * 0.9 + stop_gradient(w * w);
    eval(state);
  }
  EXPECT_EQ(state.graph().size(), 1U);
}

TEST(Gradient, a_value_that_is_written_forgets_where_it_came_from) {
  Tensor x = ones({2});
  x.requires_grad();
  Tensor y = (x * 2).eval();
  y.fill(3);
  EXPECT_FALSE(y.is_tracked());
  x.fill(5);
  sum(x * x).backward();
  EXPECT_EQ(floats(x.grad()), (Floats{10, 10}));
}

TEST(Gradient, in_no_grad_nothing_is_tracked) {
  const auto f = [](const Tensor& a) {
    const NoGrad scope;
    return sum(a);
  };
  EXPECT_EQ(floats(grad(f)(ones({2}))), (Floats{0, 0}));
}

TEST(Gradient, threads_may_leave_gradients_at_one_tensor) {
  Tensor w = ones({2});
  w.requires_grad();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&w] {
      for (int k = 0; k < 100; ++k) sum(w * w).backward();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(floats(w.grad()), (Floats{800, 800}));
}

TEST(Gradient, Trap_L15_training_has_constant_memory) {
  const auto engine = Engine::create({.seed = 1});
  const CreateOptions options{.engine = engine};
  const Tensor x = rand({16, 4}, options).eval(),
               target = matmul(x, from_vector<float>({1, -2, 3, 0.5}, {4, 1}, options)).eval();
  Tensor w = zeros({4, 1}, options);
  const auto loss = [&](const std::vector<Tensor>& ws) {
    const Tensor error = matmul(x, ws[0]) - target;
    return mean(error * error);
  };
  std::uint64_t peak = 0;
  constexpr int steps = fixture::repeats(10'000);
  for (int i = 0; i < steps; ++i) {
    const auto [value, gradients] = value_and_grad(loss)({w});
    w = w - 0.3 * gradients[0];
    eval({w, value});
    if (i == 100) engine->wait_for_plans();  // a plan has buffers of its own
    if (i == steps / 2) peak = engine->memory().peak;
  }
  EXPECT_EQ(engine->memory().peak, peak);
  EXPECT_EQ(w.graph().size(), 1U);
  EXPECT_NEAR(w.item<float>({1, 0}), -2, 1e-3);
}

TEST(Gradient, backward_in_a_loop_has_constant_memory) {
  const auto engine = Engine::create();
  Tensor w = full({2}, 5, {.engine = engine});
  w.requires_grad();
  std::uint64_t used = 0;
  for (int i = 0; i < 2000; ++i) {
    w.zero_grad();
    const Tensor loss = sum(w * w);
    loss.backward();
    const auto scope = no_grad();
    w.assign(w - 0.1 * w.grad());
    eval(w);
    if (i == 100) engine->wait_for_plans();
    if (i == 110) used = engine->memory().used;
    if (i > 110) {
      ASSERT_LE(engine->memory().used, used);
    }
  }
  EXPECT_NEAR(w.item<float>({0}), 0, 1e-3);
}

TEST(Gradient, wrong_calls) {
  const Tensor x = ones({2});
  EXPECT_NE(message_of([&] { (void)gradients(x, {x}); }).find("not tracked"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)grad([](const Tensor& t) { return t * 2; })(x); }).find("of each element"),
            std::string::npos);
  EXPECT_NE(message_of([&] { (void)grad([](const Tensor& t) { return t; })(arange(1)); }).find("no float"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              (void)jvp([](const std::vector<Tensor>& xs) { return xs[0]; }, {x}, {});
            }).find("0 tangents"),
            std::string::npos);
  for (const std::string& message :
       {message_of([] { (void)grad(TensorFunction()); }), message_of([] { (void)checkpoint({}); }),
        message_of([] { (void)custom_gradient({}, {}); }),
        message_of([] { (void)checkpoint([](const std::vector<Tensor>&) { return Tensor(); })({}); }),
        message_of([] { (void)checkpoint([](const std::vector<Tensor>& a) { return a[0]; })({Tensor()}); }),
        message_of([] { (void)vjp(TensorFunction(), {}, {}); })})
    EXPECT_NE(message.find("gradient_test.cpp"), std::string::npos) << message;
  Tensor i = arange(3);
  EXPECT_NE(message_of([&] { i.requires_grad(); }).find("gradient_test.cpp"), std::string::npos);
}

}  // namespace

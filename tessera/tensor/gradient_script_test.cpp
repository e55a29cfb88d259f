#include "tessera/tensor/gradient_script.h"

#include <gtest/gtest.h>

#include <thread>

#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using detail::find_script;
using detail::GradientQuestion;

namespace {

using Floats = std::vector<float>;
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// Runs on a thread that has recorded nothing yet.
void on_new_thread(const std::function<void()>& run) {
  std::thread thread(run);
  thread.join();
}

std::string gradient_text(const Function& f, const std::vector<Tensor>& xs) {
  std::string out;
  for (const Tensor& gradient : grad(f)(xs)) out += gradient.graph().to_text() + "\n";
  return out;
}

/// The gradient that the sum gets is known as one of parts, and passed on as such.
Tensor parts_of_sum(const std::vector<Tensor>& v) {
  const Tensor both = v[0] + v[1];
  return sum(both[0] * both[1] * both[2]);
}

/// The sum of the products of two slices of ten numbers; its gradient, too, with a loop.
struct Slices {
  Slice a, b;

  [[nodiscard]] Tensor operator()(const Tensor& x) const { return sum(x.slice({a}) * x.slice({b}) * 2.0); }
  [[nodiscard]] Floats gradient(const Floats& x) const {
    Floats out(x.size());
    for (auto i = static_cast<std::size_t>(a.start), k = static_cast<std::size_t>(b.start);
         i < static_cast<std::size_t>(a.stop);
         i += static_cast<std::size_t>(a.step), k += static_cast<std::size_t>(b.step)) {
      out[i] += 2 * x[k];
      out[k] += 2 * x[i];
    }
    return out;
  }
};

struct Case {
  const char* name;
  Function f;
  std::vector<Tensor> xs;
};

std::vector<Case> cases() {
  const Tensor x = reshape(arange(12, {.dtype = f32}) + 0.5, {.shape = {3, 4}}), y = x * 0.25 + 1,
               row = ones({4});
  return {
      {"sum of products", [](const auto& v) { return sum(v[0] * v[1] / (v[0] + v[1])); }, {x, y}},
      {"broadcast", [](const auto& v) { return sum(v[0] * v[1] - v[1]); }, {x, row}},
      {"numbers", [](const auto& v) { return sum(pow(v[0] * 3.0 + 0.5, 2.5)); }, {x}},
      {"matmul", [](const auto& v) { return sum(matmul(v[0], transpose(v[1]))); }, {x, y}},
      {"softmax", [](const auto& v) { return sum(square(softmax(v[0], {.axis = -1}))); }, {x}},
      {"layer_norm", [](const auto& v) { return sum(square(layer_norm(v[0], v[1], v[1]))); }, {x, row}},
      {"gelu", [](const auto& v) { return mean(gelu(v[0])); }, {x}},
      {"parts", [](const auto& v) { return sum(v[0][0] * v[0][1] + v[0][2]); }, {x}},
      {"parts of a sum", parts_of_sum, {x, row}},
      {"parts that overlap",
       [](const auto& v) {
         return sum(v[0].slice({{0, 2}}) * v[0].slice({{1, 3}}));
       },
       {x}},
      {"parts of parts",
       [](const auto& v) {
         return sum(v[0].slice({{1, 3}})[0] * v[0][2]);
       },
       {x}},
      {"backwards",
       [](const auto& v) {
         return sum(v[0].slice({{2, 0, -1}, {0, 4, 2}}) * 3.0);
       },
       {x}},
      {"twice the same", [](const auto& v) { return sum(v[0] * v[0] * v[0]); }, {x}},
  };
}

TEST(GradientScript, records_what_the_rule_records) {
  for (const Case& c : cases()) {
    on_new_thread([&] {
      const std::string by_rules = gradient_text(c.f, c.xs);
      EXPECT_EQ(gradient_text(c.f, c.xs), by_rules) << c.name;
      EXPECT_EQ(gradient_text(c.f, c.xs), by_rules) << c.name;
    });
  }
}

TEST(GradientScript, is_remembered_for_calls_like_it) {
  on_new_thread([] {
    const Tensor x = tensor({1, 2, 3}), y = tensor({4, 5, 6}), dy = ones({3}), wide = ones({4});
    const auto known = [&](const Tensor& call, std::uint32_t wanted) {
      const auto question = GradientQuestion::of(*call.node(), dy.node(), wanted);
      return question && find_script(*question) != nullptr;
    };
    EXPECT_FALSE(known(x * y, 3));
    (void)grad([](const std::vector<Tensor>& v) { return sum(v[0] * v[1]); })({x, y});
    EXPECT_TRUE(known(y * x, 3));
    EXPECT_FALSE(known(x * y, 1));
    EXPECT_FALSE(known(x * x, 3));
    EXPECT_FALSE(known(x + y, 3));
    EXPECT_FALSE(known(wide * wide, 3));
  });
}

TEST(GradientScript, is_remembered_for_slices_like_it) {
  on_new_thread([] {
    const Tensor x = ones({6}), y = zeros({6}), wide = ones({7}), dy = ones({2});
    const auto known = [&](const Tensor& call) {
      const auto question = GradientQuestion::of(*call.node(), dy.node(), 1);
      return question && find_script(*question) != nullptr;
    };
    EXPECT_FALSE(known(x.slice({{1, 3}})));
    (void)grad([](const Tensor& v) { return sum(v.slice({{1, 3}})); })(x);
    EXPECT_TRUE(known(y.slice({{1, 3}})));
    EXPECT_FALSE(known(x.slice({{2, 4}})));
    EXPECT_FALSE(known(x.slice({{1, 4, 2}})));
    EXPECT_FALSE(known(wide.slice({{1, 3}})));
    EXPECT_FALSE(known(x.cast(f64).slice({{1, 3}})));
  });
}

TEST(GradientScript, slices_differ) {
  on_new_thread([] {
    const std::vector<Slices> all{{{0, 2}, {2, 4}}, {{2, 4}, {0, 2}}, {{0, 2}, {1, 3}},
                                  {{0, 2}, {0, 2}}, {{0, 3}, {3, 6}}, {{0, 5, 2}, {1, 6, 2}},
                                  {{4, 6}, {5, 7}}, {{0, 2}, {8, 10}}};
    Floats numbers;
    for (int i = 0; i < 10; ++i) numbers.push_back(static_cast<float>(i * i + 1));
    for (int i = 0; i < 3; ++i) {
      for (const Slices& slices : all) {
        EXPECT_EQ(grad(slices)(from_vector(numbers, {10})).to_vector<float>(), slices.gradient(numbers));
        const auto in_f64 = grad(slices)(from_vector(numbers, {10}).cast(f64));
        EXPECT_EQ(in_f64.dtype(), f64);
        const Floats wanted = slices.gradient(numbers);
        EXPECT_EQ(in_f64.to_vector<double>(), std::vector<double>(wanted.begin(), wanted.end()));
      }
    }
  });
}

TEST(GradientScript, what_is_passed_on_is_still_the_gradient_of_a_part) {
  const Tensor x = reshape(arange(12, {.dtype = f32}) + 0.5, {.shape = {3, 4}}), row = ones({4});
  std::string by_rules;
  on_new_thread([&] { by_rules = gradient_text(parts_of_sum, {x, row}); });
  on_new_thread([&] {
    (void)gradient_text([](const auto& v) { return sum((v[0] + v[1]) * 2.0); }, {x, row});
    EXPECT_EQ(gradient_text(parts_of_sum, {x, row}), by_rules);
    EXPECT_EQ(gradient_text(parts_of_sum, {x, row}), by_rules);
  });
}

/// What a rule recorded for neg(x) that adds the gradient of one half to the one it was given.
std::optional<detail::GradientScript> script_of_sum(bool given_is_of_other_half) {
  const Tensor x = ones({4}), y = neg(x), dy = ones({4}), first = ones({2});
  detail::NodeBuilder builder(x.engine());
  const auto import = [&](const Tensor& t) { return builder.import(engine::NodeRef::share(t.node())); };
  const op::Value given[] = {import(x), import(y), import(dy)};
  const auto half = [](std::int64_t begin) {
    using Numbers = std::vector<std::int64_t>;
    return op::ValuePart{{{"axes", Numbers{0}}, {"starts", ir::Shape{begin}}, {"steps", Numbers{1}}},
                         {{0, begin, begin + 2}}};
  };
  if (given_is_of_other_half)
    builder.add_part_gradient(given[2], {import(first), std::make_shared<const op::ValuePart>(half(0))});
  std::vector<detail::NodeBuilder::WrittenCall> calls;
  builder.list_calls(&calls);
  const op::Value last = builder.part_gradient(given[2].type(), op::slice(given[2], 0, 2, 4), half(2));
  const op::Value gradients[] = {builder.add_gradients(given[2], last)};
  const auto question = GradientQuestion::of(*y.node(), dy.node(), 1);
  return detail::GradientScript::of(*question, builder, given, calls, gradients);
}

TEST(GradientScript, is_none_of_a_part_that_was_written_over_what_was_given) {
  EXPECT_TRUE(script_of_sum(false));
  EXPECT_FALSE(script_of_sum(true));
}

TEST(GradientScript, zeros_are_of_the_engine_of_the_call) {
  on_new_thread([] {
    const auto f = [](const Tensor& v) { return sum(v.slice({{0, 1}}) * 3.0); };
    for (int i = 0; i < 2; ++i) {
      const auto engine = Engine::create({});
      const Tensor gradient = grad(f)(ones({2}, {.engine = engine}));
      EXPECT_EQ(gradient.engine(), engine);
      EXPECT_EQ(gradient.to_vector<float>(), (Floats{3, 0}));
    }
  });
}

TEST(GradientScript, zeros_outlive_the_gradient_they_were_recorded_beside) {
  on_new_thread([] {
    const auto f = [](const Tensor& v) { return sum(v.slice({{1, 2}}) * 3.0); };
    const Tensor x = ones({2});
    for (int i = 0; i < 3; ++i) {
      const Tensor gradient = grad(f)(x);
      gradient.eval();
      EXPECT_EQ((gradient + x).to_vector<float>(), (Floats{1, 4}));
    }
  });
}

TEST(GradientScript, numbers_are_those_of_the_call) {
  on_new_thread([] {
    const Tensor x = tensor({1, 2, 3});
    for (const double k : {3.0, 5.0, -1.0}) {
      const auto f = [&](const Tensor& v) { return sum(v * k); };
      EXPECT_EQ(grad(f)(x).to_vector<float>(), Floats(3, static_cast<float>(k)));
    }
  });
}

TEST(GradientScript, one_value_twice_is_not_two) {
  on_new_thread([] {
    const auto product = [](const std::vector<Tensor>& v) { return sum(v[0] * v[1]); };
    const auto square = [](const Tensor& v) { return sum(v * v); };
    const Tensor x = tensor({1, 2, 3}), y = tensor({4, 5, 6});
    for (int i = 0; i < 2; ++i) {
      const auto both = grad(product)({x, y});
      EXPECT_EQ(both[0].to_vector<float>(), (Floats{4, 5, 6}));
      EXPECT_EQ(both[1].to_vector<float>(), (Floats{1, 2, 3}));
      EXPECT_EQ(grad(square)(x).to_vector<float>(), (Floats{2, 4, 6}));
    }
  });
}

TEST(GradientScript, wanted_gradients_differ) {
  on_new_thread([] {
    const Tensor x = tensor({1, 2, 3}), y = tensor({4, 5, 6});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(grad([&](const Tensor& v) { return sum(v * y); })(x).to_vector<float>(), (Floats{4, 5, 6}));
      EXPECT_EQ(grad([&](const Tensor& v) { return sum(x * v); })(y).to_vector<float>(), (Floats{1, 2, 3}));
    }
  });
}

TEST(GradientScript, attributes_and_sizes_differ) {
  on_new_thread([] {
    for (int i = 0; i < 2; ++i) {
      for (const std::int64_t axis : {0, 1}) {
        for (const std::int64_t size : {2, 3}) {
          const Tensor x = ones({size, 2});
          const auto f = [&](const Tensor& v) { return sum(square(sum(v, {.axes = {axis}}))); };
          const float count = static_cast<float>(axis == 0 ? size : 2);
          EXPECT_EQ(grad(f)(x).to_vector<float>(), Floats(static_cast<std::size_t>(size * 2), 2 * count));
        }
      }
    }
  });
}

TEST(GradientScript, gradients_of_gradients_are_tracked_again) {
  on_new_thread([] {
    const auto cube = [](const Tensor& x) { return x * x * x; };
    const Tensor two = full({}, 2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(grad(cube)(two).item<float>(), 12);
      EXPECT_EQ(grad(grad(cube))(two).item<float>(), 12);
      EXPECT_EQ(grad(grad(grad(cube)))(two).item<float>(), 6);
    }
  });
}

}  // namespace

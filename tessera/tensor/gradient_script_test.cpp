#include "tessera/tensor/gradient_script.h"

#include <gtest/gtest.h>

#include <thread>

#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"

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

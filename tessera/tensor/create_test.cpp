#include "tessera/tensor/create.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tessera/engine/engine.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;

namespace {

TEST(Create, constants) {
  EXPECT_EQ(zeros({2}).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(ones({2}, {.dtype = i8}).to_vector<int>(), (std::vector<int>{1, 1}));
  EXPECT_EQ(full({1}, 0.1, {.dtype = f64}).item<double>({0}), 0.1);
  EXPECT_EQ(arange(4).to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(arange(3, {.start = 1, .step = 0.5, .dtype = f32}).to_vector<float>(),
            (std::vector<float>{1, 1.5, 2}));
  EXPECT_EQ(eye(2).to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(eye(2, {.columns = 3, .diagonal = 1}).to_vector<float>(), (std::vector<float>{0, 1, 0, 0, 0, 1}));
  EXPECT_TRUE(constant(3).is_evaluated());
}

TEST(Create, copies_are_copies) {
  std::vector<std::int32_t> values{1, 2, 3};
  const Tensor x = from_vector(values, {3});
  values[0] = 100;
  EXPECT_EQ(x.dtype(), i32);
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{1, 2, 3}));
}

/// Where the device has memory of its own, that of the caller is copied and no allocator is asked.
bool has_host_memory() { return engine::Engine::default_engine()->has_host_memory(); }
constexpr const char* no_host_memory = "the device has memory of its own";

TEST(Create, memory_of_the_caller_is_not_copied) {
  if (!has_host_memory()) GTEST_SKIP() << no_host_memory;
  std::vector<float> values{1, 2, 3};
  int released = 0;
  Tensor y;
  {
    const Tensor x = from_memory(values.data(), {3}, [&] { ++released; });
    EXPECT_EQ(x.data<float>().data(), values.data());
    y = x.slice({{1, 3}});
    eval(y);
  }
  EXPECT_EQ(released, 0);
  EXPECT_EQ(y.storage(), values.data() + 1);
  y = Tensor();
  EXPECT_EQ(released, 1);
}

TEST(Create, fill_leaves_memory_of_the_caller_alone) {
  std::vector<float> values{1, 2};
  Tensor x = from_memory(values.data(), {2}, [] {});
  x.fill(7);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(x.item<float>({0}), 7);
}

TEST(Create, a_deleter_that_throws_stops_nothing) {
  float value = 1;
  {
    const Tensor x = from_memory(&value, {1}, [] { throw std::runtime_error("no"); });
  }
  SUCCEED();
}

TEST(Create, random_numbers_depend_on_seed_and_count_alone) {
  const auto first = Engine::create({.seed = 7}), second = Engine::create({.seed = 7}),
             other = Engine::create({.seed = 8});
  const auto a = rand({100}, {.engine = first}).to_vector<double>();
  const auto b1 = rand({40}, {.engine = second}).to_vector<double>(),
             b2 = rand({60}, {.engine = second}).to_vector<double>();
  auto b = b1;
  b.insert(b.end(), b2.begin(), b2.end());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, rand({100}, {.engine = other}).to_vector<double>());
}

TEST(Create, random_numbers_have_the_right_moments) {
  const auto engine = Engine::create({.seed = 1});
  const Tensor u = rand({100'000}, {.engine = engine}), n = randn({100'000}, {.engine = engine});
  EXPECT_NEAR(mean(u).item<double>(), 0.5, 0.005);
  EXPECT_GE(min(u).item<double>(), 0);
  EXPECT_LT(max(u).item<double>(), 1);
  EXPECT_NEAR(mean(n).item<double>(), 0, 0.02);
  EXPECT_NEAR(mean(n * n).item<double>(), 1, 0.03);
}

TEST(Create, embedders_see_every_allocation) {
  if (!has_host_memory()) GTEST_SKIP() << no_host_memory;
  std::size_t live = 0;
  {
    const auto engine = Engine::create({.allocator = {.allocate = [&](std::size_t bytes) -> void* {
                                                        ++live;
                                                        return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                                                      },
                                                      .free =
                                                          [&](void* memory, std::size_t) {
                                                            --live;
                                                            std::free(memory);
                                                          }}});
    Tensor x = full({1000}, 1, {.engine = engine}) + 1;
    eval(x);
    EXPECT_GT(live, 0U);
  }
  EXPECT_EQ(live, 0U);
}

TEST(Create, an_allocator_that_fails_is_an_error) {
  if (!has_host_memory()) GTEST_SKIP() << no_host_memory;
  const auto engine = Engine::create({.allocator = {.allocate = [](std::size_t) -> void* { return nullptr; },
                                                    .free = [](void*, std::size_t) {}}});
  const Tensor x = full({10}, 1, {.engine = engine});
  EXPECT_THROW(eval(x), Exception);
  EXPECT_FALSE(x.is_evaluated());
}

TEST(Create, an_allocator_that_throws_is_an_error_and_may_recover) {
  if (!has_host_memory()) GTEST_SKIP() << no_host_memory;
  bool broken = true;
  const auto engine =
      Engine::create({.allocator = {.allocate = [&](std::size_t bytes) -> void* {
                                      if (broken) throw std::runtime_error("broken");
                                      return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
                                    },
                                    .free = [](void* memory, std::size_t) { std::free(memory); }}});
  const Tensor x = full({10}, 1, {.engine = engine});
  EXPECT_THROW(eval(x), Exception);
  EXPECT_EQ(engine->memory().used, 0U);
  broken = false;
  EXPECT_EQ(x.item<float>({9}), 1);
}

}  // namespace

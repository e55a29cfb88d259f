// L14: several threads on shared tensors. Meant to run under the thread sanitizer too.
#include <gtest/gtest.h>

#include <thread>

#include "tessera/tensor/create.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"

using namespace tessera;

namespace {

template <class F>
void on_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, Trap_L14_build_on_shared_tensors) {
  const Tensor shared = tensor({1, 2, 3}) * 2;
  std::vector<Tensor> sums(4);
  on_threads(4, [&](int i) {
    Tensor sum = shared;
    for (int k = 0; k < 500; ++k) sum = sum + shared;
    sums[static_cast<std::size_t>(i)] = sum;
  });
  for (const Tensor& sum : sums) EXPECT_EQ(sum.to_vector<int>(), (std::vector<int>{1002, 2004, 3006}));
}

/// Two chains, each step of which needs a step of the other.
TEST(Threads, Trap_L14_evaluate_what_needs_each_other) {
  for (int round = 0; round < 50; ++round) {
    Tensor a = tensor({1}), b = tensor({2});
    std::vector<Tensor> left, right;
    for (int i = 0; i < 20; ++i) {
      const Tensor next = a + b;
      b = b - a;
      a = next;
      left.push_back(a);
      right.push_back(b);
    }
    on_threads(4, [&](int thread) {
      for (std::size_t i = 0; i < left.size(); ++i) {
        eval(thread % 2 == 0 ? left[i] : right[right.size() - 1 - i]);
        (void)left.back().item<float>({0});
      }
    });
    double x = 1, y = 2;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double next = x + y;
      y = y - x;
      x = next;
      EXPECT_EQ(left[i].item<double>({0}), static_cast<float>(x));
      EXPECT_EQ(right[i].item<double>({0}), static_cast<float>(y));
    }
  }
}

TEST(Threads, look_while_others_evaluate) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = tensor({1, 2, 3, 4}) + 1, y = x.reshape({2, 2}).transpose() * 2;
    on_threads(4, [&](int i) {
      if (i == 0) (void)y.graph().to_text();
      if (i == 1) eval(y);
      if (i == 2) {
        const Tensor turned = y.transpose();
        (void)turned.data<float>();
      }
      if (i == 3) (void)x.to_text();
    });
    EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{4, 8, 6, 10}));
  }
}

TEST(Threads, separate_graphs_meet_at_the_end) {
  std::vector<Tensor> parts(4);
  on_threads(4, [&](int i) {
    Tensor x = tensor({static_cast<float>(i)});
    for (int k = 0; k < 1000; ++k) x = x + 1;
    parts[static_cast<std::size_t>(i)] = x;
  });
  const Tensor all = parts[0] + parts[1] + parts[2] + parts[3];
  EXPECT_EQ(all.item<int>({0}), 4006);
}

}  // namespace

// Threads: several build on the same tensors and evaluate at once; each value is computed one time.
#include <tessera/tessera.h>

#include <array>
#include <cstdio>
#include <thread>
#include <vector>

namespace ts = tessera;

int main() {
  const ts::Tensor x = ts::full({64, 64}, 0.5), shared = ts::matmul(x, x);  // not computed yet
  std::array<float, 4> found{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      const auto scope = ts::block("worker");
      const ts::Tensor mine = shared * static_cast<float>(i) + 1;
      found[i] = mine.item<float>({0, 0});
    });
  for (std::thread& thread : threads) thread.join();

  bool right = true;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::printf("thread %zu: %g\n", i, found[i]);
    right = right && found[i] == 16.0f * static_cast<float>(i) + 1;
  }
  ts::Pending pending = ts::eval_async({ts::sum(shared)});
  pending.wait();
  std::printf("evaluations: %llu\n", static_cast<unsigned long long>(ts::stats().evaluations));
  return right ? 0 : 1;
}

#include "tests/memory/patterns.h"

#include <condition_variable>
#include <deque>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tessera/tensor/compiled.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

constexpr std::int64_t length = 6;  ///< of a structure

Tensor next(std::uint64_t op, const Tensor& y, const Tensor& x) {
  switch (op) {
    case 0:
      return y + x;
    case 1:
      return y * x;
    case 2:
      return x - y;
    case 3:
      return maximum(y, x);
    case 4:
      return tanh(y);
    case 5:
      return sigmoid(y);
    case 6:
      return abs(y);
    case 7:
      return relu(y);
    case 8:
      return exp(-y);
    default:
      return minimum(y, x);
  }
}

/// Another one for each number below a million: its digits are its ops. Those above are wider.
Tensor structure(std::uint64_t number, const Tensor& x) {
  Tensor y = x;
  for (int digit = 0; digit < 6; ++digit, number /= 10) y = next(number % 10, y, x);
  for (; number > 0; number /= 10) y = next(number % 10, y, x);
  return y;
}

Tensor small_tensor() { return (ones({16}) * 0.5F).eval(); }

/// Structures that nobody has seen.
Round new_structures() {
  return [x = small_tensor(), number = std::uint64_t{0}]() mutable {
    for (int i = 0; i < 1000; ++i) structure(number++, x).eval();
    return std::int64_t{1000};
  };
}

/// Sizes that nobody remembers.
Round new_sizes() {
  return [size = std::int64_t{0}]() mutable {
    for (int i = 0; i < 1000; ++i, size += 12345) {
      const Tensor x = ones({1 + size % 32, 1 + size / 32 % 32, 1 + size / 1024 % 32});
      (tanh(x) + 1.0F).eval();
    }
    return std::int64_t{1000};
  };
}

/// Each of them hot: plans are made beside, more than there is time for.
Round hot_structures() {
  return [x = small_tensor(), number = std::uint64_t{0}]() mutable {
    for (int i = 0; i < 100; ++i, ++number)
      for (int again = 0; again < 4; ++again) structure(number, x).eval();
    return std::int64_t{400};
  };
}

/// The same with plans that are waited for, and launched.
Round new_plans() {
  return [x = small_tensor(), number = std::uint64_t{0}]() mutable {
    constexpr int count = 20;
    for (int again = 0; again < 6; ++again) {
      for (int i = 0; i < count; ++i) structure(number + static_cast<std::uint64_t>(i), x).eval();
      if (again == 3) Engine::default_engine()->wait_for_plans();
    }
    number += count;
    return std::int64_t{6 * count};
  };
}

/// Functions that are compiled, called and dropped.
Round compiled_functions() {
  return [x = small_tensor(), number = std::uint64_t{0}]() mutable {
    for (int i = 0; i < 10; ++i, ++number) {
      const auto function = compile([&](const Tensor& y) { return structure(number, y) * x; });
      function(x).eval();
      function(x * 2).eval();
    }
    return std::int64_t{20};
  };
}

/// Threads that live for one evaluation, four at a time; others drop the results.
Round short_threads() {
  return [x = small_tensor()] {
    constexpr int count = 4;
    for (int i = 0; i < 50; ++i) {
      Tensor results[count];
      std::vector<std::thread> threads;
      std::latch all_have_recorded(count);
      for (Tensor& result : results)
        threads.emplace_back([&] {
          const Tensor y = tanh(x) + x;
          all_have_recorded.arrive_and_wait();
          result = y.eval();
        });
      for (std::thread& thread : threads) thread.join();
    }
    return std::int64_t{50 * count};
  };
}

Round evaluations_beside() {
  return [x = small_tensor()] {
    std::vector<Pending> pending;
    for (int i = 0; i < 200; ++i) {
      pending.push_back(eval_async({tanh(x) + x}));
      if (pending.size() == 4) {
        for (Pending& one : pending) one.wait();
        pending.clear();
      }
    }
    return std::int64_t{200};
  };
}

/// Engines with plans of their own, that come and go.
Round engines() {
  return [number = std::uint64_t{0}]() mutable {
    for (int i = 0; i < 10; ++i, ++number) {
      const auto engine = Engine::create({.plans = {.threshold = 1, .wait = i % 2 == 0}});
      structure(number, ones({16}, {.engine = engine})).eval();
    }
    return std::int64_t{10};
  };
}

/// Tensors on their way from thread to thread; bounded.
class Mailbox {
 public:
  /// False when it is closed.
  bool put(Tensor tensor) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tensors_.size() < 256 || is_closed_; });
    if (is_closed_) return false;
    tensors_.push_back(std::move(tensor));
    changed_.notify_all();
    return true;
  }
  /// Empty when it is closed.
  Tensor take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !tensors_.empty() || is_closed_; });
    if (is_closed_) return {};
    Tensor out = std::move(tensors_.front());
    tensors_.pop_front();
    changed_.notify_all();
    return out;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tensor> tensors_;
  bool is_closed_ = false;
};

/// 16 threads: half of them record, the others evaluate what they get and drop it.
class Exchange {
 public:
  Exchange() {
    for (int i = 0; i < 8; ++i) {
      threads_.emplace_back([this, i] { record(static_cast<std::uint64_t>(i)); });
      threads_.emplace_back([this] { evaluate(); });
    }
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    mailbox_.close();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Until there were so many more.
  void wait_for(std::int64_t evaluations) {
    std::unique_lock lock(mutex_);
    const std::int64_t end = evaluations_ + evaluations;
    changed_.wait(lock, [&] { return evaluations_ >= end; });
  }

 private:
  void record(std::uint64_t seed) {
    const Tensor x = small_tensor();
    for (Tensor y = x; mailbox_.put(y);) {
      y = x;
      for (int i = 0; i < 8; ++i) y = structure(seed, y);
    }
  }
  void evaluate() {
    for (Tensor y = mailbox_.take(); !y.is_empty(); y = mailbox_.take()) {
      y.eval();
      const std::lock_guard lock(mutex_);
      ++evaluations_;
      changed_.notify_all();
    }
  }

  Mailbox mailbox_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t evaluations_ = 0;
  std::vector<std::thread> threads_;  ///< last: they use the above
};

Round exchange() {
  return [threads = std::make_shared<Exchange>()] {
    threads->wait_for(1000);
    return std::int64_t{1000};
  };
}

constexpr Pattern known_patterns[] = {
    {"new_structures", "structures that never repeat, evaluated once", new_structures},
    {"new_sizes", "more sizes than anybody remembers", new_sizes},
    {"hot_structures", "structures that never repeat, more than plans can be made for", hot_structures},
    {"new_plans", "plans of structures that never repeat, made beside the program", new_plans},
    {"compiled_functions", "functions that are compiled, called and dropped", compiled_functions},
    {"engines", "engines that come and go", engines},
    {"short_threads", "threads that live for one evaluation", short_threads},
    {"eval_async", "evaluations in the background", evaluations_beside},
    {"exchange", "16 threads: what some record, others evaluate and drop", exchange},
};

}  // namespace

std::span<const Pattern> tessera::fixture::patterns() { return known_patterns; }

Round tessera::fixture::begin_pattern(std::string_view name) {
  for (const Pattern& pattern : known_patterns)
    if (pattern.name == name) {
      new_plans()();
      return pattern.begin();
    }
  throw std::invalid_argument("there is no pattern '" + std::string(name) + "'");
}

// Plans for those who do not want to wait until their code is hot, and what the engine did with it.
//
//   auto step = ts::compile([&](const ts::Tensor& x, const ts::Tensor& rate) { return x - rate * 0.5; });
//   ts::Tensor y = step(x, 0.1);        // traced once per types of the arguments, then one plan
//
// Nothing of this is needed: code that is evaluated again and again gets a plan by itself.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/tensor/create.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

namespace detail {

/// A function that is traced once per types of its arguments. Thread-safe.
class CompiledBody {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  CompiledBody(Body body, Here here);
  ~CompiledBody();
  using Arguments = std::span<const Tensor* const>;
  [[nodiscard]] std::vector<Tensor> operator()(Arguments arguments) const;
  /// The same of a function of one result, without a list.
  [[nodiscard]] Tensor one(Arguments arguments) const;

  /// Writes its plan for arguments of these types into a file (saved_plan.h).
  void save(const std::string& path, const std::vector<Tensor>& arguments, Here here) const;

 private:
  struct State;
  void check(Arguments arguments) const;

  std::shared_ptr<State> state_;
};

/// A number among the arguments, as a tensor that takes the dtype and the engine of `like`: it may differ
/// from call to call.
[[nodiscard]] Tensor number_argument(Operand number, const Tensor& like);

inline const Tensor* first_tensor() { return nullptr; }
template <class... A>
const Tensor* first_tensor(const Tensor& tensor, const A&...) {
  return &tensor;
}
template <class T, class... A>
requires std::is_arithmetic_v<T>
const Tensor* first_tensor(T, const A&... rest) { return first_tensor(rest...); }

inline const Tensor& as_argument(const Tensor& tensor, const Tensor*) { return tensor; }
template <class T>
requires std::is_arithmetic_v<T> Tensor as_argument(T value, const Tensor* like) {
  return number_argument(value, like == nullptr ? Tensor() : *like);
}
inline std::vector<Tensor> as_list(Tensor tensor) { return {std::move(tensor)}; }
inline std::vector<Tensor> as_list(std::vector<Tensor> tensors) { return tensors; }

template <class F, std::size_t... i>
std::vector<Tensor> apply_list(const F& f, const std::vector<Tensor>& x, std::index_sequence<i...>) {
  return as_list(f(x[i]...));
}

/// Plans of evaluations on this thread are made at once while it lives.
struct PlanAtOnce {
  PlanAtOnce();
  ~PlanAtOnce();
  PlanAtOnce(const PlanAtOnce&) = delete;
  PlanAtOnce& operator=(const PlanAtOnce&) = delete;
};

}  // namespace detail

/// A function of tensors that is traced when it is first called, and then run as one plan. Numbers among the
/// arguments may differ from call to call and take the dtype of the first tensor; numbers and tensors inside
/// are what they were when it was traced. Other dtypes or shapes of the arguments are traced anew; the last
/// 64 are kept. Random ops inside are an error: they would give the same numbers at every call.
template <class F>
class Compiled {
 public:
  Compiled(F f, Here here) : f_(std::make_shared<F>(std::move(f))), here_(here) {}

  template <class... A>
  auto operator()(const A&... arguments) const {
    using Result = std::invoke_result_t<const F&, std::conditional_t<true, const Tensor&, A>...>;
    const Tensor* like = detail::first_tensor(arguments...);
    const detail::CompiledBody& called = body<sizeof...(A)>();
    // Tensors are not copied: numbers become some that live as long as the call.
    const auto call = [&called](const auto&... tensors) {
      const std::array<const Tensor*, sizeof...(A)> list{&tensors...};
      if constexpr (std::is_same_v<Result, Tensor>)
        return called.one(list);
      else
        return called(list);
    };
    return call(detail::as_argument(arguments, like)...);
  }

  /// What is called with n arguments; it lives as long as this.
  template <std::size_t n>
  [[nodiscard]] const detail::CompiledBody& body() const {
    const std::lock_guard lock(bodies_->mutex);
    if (const auto known = bodies_->by_count.find(n); known != bodies_->by_count.end()) return known->second;
    const auto run = [f = f_](const std::vector<Tensor>& x) {
      return detail::apply_list(*f, x, std::make_index_sequence<n>());
    };
    return bodies_->by_count.try_emplace(n, run, here_).first->second;
  }

 private:
  /// One per number of arguments: a callable may have several.
  struct Bodies {
    std::mutex mutex;
    std::map<std::size_t, detail::CompiledBody> by_count;
  };

  std::shared_ptr<F> f_;
  Here here_;
  std::shared_ptr<Bodies> bodies_ = std::make_shared<Bodies>();
};

template <class F>
[[nodiscard]] Compiled<F> compile(F f, Here here = {}) {
  return Compiled<F>(std::move(f), here);
}

/// Calls `f` with each size and evaluates what it returns, so that the plan for all these sizes is there when
/// the program needs it.
template <class F>
void warm_up(const F& f, std::span<const std::int64_t> sizes, Here here = {}) {
  const detail::PlanAtOnce at_once;
  for (const std::int64_t size : sizes) eval(detail::as_list(f(size)), here);
}
template <class F>
void warm_up(const F& f, std::initializer_list<std::int64_t> sizes, Here here = {}) {
  warm_up(f, std::span(sizes.begin(), sizes.size()), here);
}

/// What the last evaluation of the default engine did, and why: which parts ran as plans, what had to change,
/// why others did not.
[[nodiscard]] std::string explain();

}  // namespace tessera

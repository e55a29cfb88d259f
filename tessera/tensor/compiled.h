// Plans for those who do not want to wait until their code is hot, and what the engine did with it.
//
//   auto step = ts::compile([&](const ts::Tensor& x, const ts::Tensor& rate) { return x - rate * w; });
//   ts::Tensor y = step(x, 0.1);        // planned when y is first evaluated, and patched from then on
//   w.fill(5);                          // the next call sees it
//
// Arguments and results are trees of tensors (tree.h). Nothing of this is needed: code that is evaluated
// again and again gets a plan by itself.
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
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/forked_child.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/tensor.h"
#include "tessera/tensor/tree.h"

namespace tessera {

struct CompileOptions {
  /// What the function gives depends on nothing but its arguments and what it captured by value, and it has
  /// no effects. If it takes tensors and gives tensors, it is then traced once per types of its arguments,
  /// four times at most, and a call records one node instead of all of them. Its plain numbers are constants.
  /// Asking for values and drawing random numbers inside is an error.
  bool is_pure = false;
};

namespace detail {

/// A function that is traced once per types of its arguments. Thread-safe.
class TracedFunction {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  using Arguments = std::span<const Tensor* const>;

  TracedFunction(Body body, Here here);
  ~TracedFunction();
  /// The results; nothing if enough types were traced: then the function itself is to be called.
  [[nodiscard]] std::vector<Tensor> operator()(Arguments arguments) const;
  /// The same of a function of one result, without a list; empty instead of nothing.
  [[nodiscard]] Tensor one(Arguments arguments) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Writes the plan of a function for arguments of these types into a file (saved_plan.h).
void save_traced(const std::string& path, const TracedFunction::Body& body,
                 const std::vector<Tensor>& arguments, Here here);

/// A call of a compiled function: what was recorded since it was made can be planned at once.
class CompiledCall {
 public:
  CompiledCall();
  /// The plan of `tensor` is made when it is first evaluated, if this call recorded it.
  void plan(const Tensor& tensor) const;

 private:
  std::uint64_t first_;
};

/// Throws: there is an empty tensor in an argument or in the result of a compiled function.
[[noreturn]] void fail_empty(std::string_view what, std::size_t argument, const TreePath& path, Here here);

/// A number among the arguments, as a tensor that takes the dtype and the engine of `like`, which may be
/// null: it may differ from call to call.
[[nodiscard]] Tensor number_argument(Operand number, const Tensor* like);

template <class... A>
const Tensor* first_tensor(const A&... arguments) {
  const Tensor* first = nullptr;
  const auto take = [&](const Tensor& tensor) {
    if (first == nullptr) first = &tensor;
  };
  (walk_tree(arguments, take), ...);
  return first;
}

/// How numbers are given to a function that is compiled: as it takes them.
enum class NumbersAs : std::uint8_t { tensors, tensors_but_flags, numbers, nothing };

template <class A, NumbersAs as>
inline constexpr bool becomes_tensor = std::is_arithmetic_v<std::remove_cvref_t<A>> &&
                                       (as == NumbersAs::tensors ||
                                        (as == NumbersAs::tensors_but_flags &&
                                         !std::is_same_v<std::remove_cvref_t<A>, bool>));
template <class A, NumbersAs as>
using GivenAs = std::conditional_t<becomes_tensor<A, as>, const Tensor&, A&&>;

template <class F, class... A>
constexpr NumbersAs numbers_as() {
  if constexpr (std::is_invocable_v<const F&, GivenAs<A, NumbersAs::tensors>...>)
    return NumbersAs::tensors;
  else if constexpr (std::is_invocable_v<const F&, GivenAs<A, NumbersAs::tensors_but_flags>...>)
    return NumbersAs::tensors_but_flags;
  else if constexpr (std::is_invocable_v<const F&, A&&...>)
    return NumbersAs::numbers;
  else
    return NumbersAs::nothing;
}

template <NumbersAs as, class A>
decltype(auto) as_argument(A&& argument, const Tensor* like) {
  if constexpr (becomes_tensor<A, as>)
    return number_argument(argument, like);
  else
    return std::forward<A>(argument);
}

/// All tensors of a tree.
template <class T>
std::vector<Tensor> as_list(const T& tree) {
  std::vector<Tensor> out;
  walk_tree(tree, [&](const Tensor& tensor) { out.push_back(tensor); });
  return out;
}

/// Plans of evaluations on this thread are made at once while it lives.
struct PlanAtOnce {
  PlanAtOnce();
  ~PlanAtOnce();
  PlanAtOnce(const PlanAtOnce&) = delete;
  PlanAtOnce& operator=(const PlanAtOnce&) = delete;
};

}  // namespace detail

/// A function whose plan is made when its results are first evaluated, and kept. A call gives what the
/// function itself would give, and sees what changed since the last one: captured tensors, numbers, sizes are
/// inputs of the plan, which changes only if other ops are recorded. A call records what the function records
/// and computes nothing; it allocates nothing that the function does not. Threads may call it as they may
/// call the function.
///
/// Arguments and result are trees of tensors; what is no tensor in them is given as it is. Numbers among the
/// arguments become tensors of rank 0 with the dtype of the first tensor if the function takes tensors there.
template <class F>
class Compiled {
 public:
  Compiled(F f, CompileOptions options, Here here)
      : f_(std::make_shared<F>(std::move(f))), options_(options), here_(here) {}

  template <class... A>
  auto operator()(A&&... arguments) const {
    check(arguments...);
    constexpr detail::NumbersAs as = detail::numbers_as<F, A...>();
    static_assert(as != detail::NumbersAs::nothing,
                  "the compiled function, called as a const one, does not take these arguments");
    // Tensors are not copied: numbers become some that live as long as the call.
    if constexpr (as != detail::NumbersAs::nothing) {
      const Tensor* like = nullptr;
      if constexpr ((detail::becomes_tensor<A, as> || ...)) like = detail::first_tensor(arguments...);
      return call(detail::as_argument<as>(std::forward<A>(arguments), like)...);
    }
  }

  /// Writes the plan for arguments of these types into a file.
  template <class... A>
  void save(const std::string& path, Here here, const A&... arguments) const {
    check(arguments...);
    constexpr detail::NumbersAs as = detail::numbers_as<F, const A&...>();
    static_assert(as != detail::NumbersAs::nothing,
                  "the compiled function, called as a const one, does not take these arguments");
    const Tensor* like = detail::first_tensor(arguments...);
    const std::tuple<std::decay_t<decltype(detail::as_argument<as>(arguments, like))>...> given(
        detail::as_argument<as>(arguments, like)...);
    const auto body = [&](const std::vector<Tensor>& tensors) {
      auto inside = given;
      std::size_t next = 0;
      detail::walk_tree(inside, [&](Tensor& tensor) { tensor = tensors[next++]; });
      return detail::as_list(std::apply(*f_, inside));
    };
    detail::save_traced(path, body, detail::as_list(given), here);
  }

 private:
  /// What functions of n tensors are traced in: a callable may take several numbers of them.
  struct Traces {
    std::mutex mutex;
    std::map<std::size_t, detail::TracedFunction> by_count;
  };

  template <class... A>
  void check(const A&... arguments) const {
    std::size_t at = 0;
    const auto check_one = [&](const auto& argument) {
      detail::walk_tree(argument, {}, [&](const Tensor& tensor, const detail::TreePath& path) {
        if (tensor.is_empty()) detail::fail_empty("argument", at, path, here_);
      });
      ++at;
    };
    (check_one(arguments), ...);
  }

  template <class... A>
  auto call(A&&... arguments) const {
    using Result = std::decay_t<std::invoke_result_t<const F&, A&&...>>;
    constexpr bool takes_tensors =
        sizeof...(A) > 0 && (std::is_same_v<std::remove_cvref_t<A>, Tensor> && ...);
    if constexpr (takes_tensors && std::is_same_v<Result, Tensor>) {
      if (options_.is_pure)
        if (Tensor known = traced<sizeof...(A)>().one(std::array{&std::as_const(arguments)...});
            !known.is_empty())
          return known;
    } else if constexpr (takes_tensors && std::is_same_v<Result, std::vector<Tensor>>) {
      if (options_.is_pure)
        if (auto known = traced<sizeof...(A)>()(std::array{&std::as_const(arguments)...}); !known.empty())
          return known;
    }
    return call_itself<Result>(std::forward<A>(arguments)...);
  }

  template <class Result, class... A>
  Result call_itself(A&&... arguments) const {
    const detail::CompiledCall call;
    const auto plan = [&](const Tensor& tensor) { call.plan(tensor); };
    // A function may write to the arguments that it takes by reference.
    const auto plan_written = [&](auto& argument) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(argument)>>)
        detail::walk_tree(argument, plan);
    };
    if constexpr (std::is_void_v<Result>) {
      const F& f = *f_;
      f(std::forward<A>(arguments)...);
      (plan_written(arguments), ...);
    } else {
      Result result = std::as_const(*f_)(std::forward<A>(arguments)...);
      detail::walk_tree(std::as_const(result), {}, [&](const Tensor& tensor, const detail::TreePath& path) {
        if (tensor.is_empty()) detail::fail_empty("the result", 0, path, here_);
        call.plan(tensor);
      });
      (plan_written(arguments), ...);
      return result;
    }
  }

  template <std::size_t n>
  [[nodiscard]] const detail::TracedFunction& traced() const {
    check_no_forked_child();
    const std::lock_guard lock(traces_->mutex);
    if (const auto known = traces_->by_count.find(n); known != traces_->by_count.end()) return known->second;
    const auto body = [f = f_](const std::vector<Tensor>& x) {
      return [&]<std::size_t... i>(std::index_sequence<i...>) {
        return detail::as_list(std::as_const(*f)(x[i]...));
      }
      (std::make_index_sequence<n>());
    };
    return traces_->by_count.try_emplace(n, body, here_).first->second;
  }

  std::shared_ptr<F> f_;
  CompileOptions options_;
  Here here_;
  std::shared_ptr<Traces> traces_ = std::make_shared<Traces>();
};

template <class F>
[[nodiscard]] Compiled<F> compile(F f, CompileOptions options = {}, Here here = {}) {
  return Compiled<F>(std::move(f), options, here);
}

/// Calls `f` with each size and evaluates what it returns, so that the plan for all these sizes is there when
/// the program needs it.
template <class F>
void warm_up(const F& f, std::span<const std::int64_t> sizes, Here here = {}) {
  const detail::PlanAtOnce at_once;
  for (const std::int64_t size : sizes) eval(std::span<const Tensor>(detail::as_list(f(size))), here);
}
template <class F>
void warm_up(const F& f, std::initializer_list<std::int64_t> sizes, Here here = {}) {
  warm_up(f, std::span(sizes.begin(), sizes.size()), here);
}

/// What the last evaluation of the default engine did, and why: which parts ran as plans, what had to change,
/// why others did not.
[[nodiscard]] std::string explain();

}  // namespace tessera

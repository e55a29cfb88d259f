// What differentiation is told about functions that others call (`call @f`). A function is meant by identity:
// an equal one is another.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tessera/autodiff/activity.h"
#include "tessera/ir/function.h"

namespace tessera::autodiff {

class Rules {
 public:
  /// Calls of `function` are differentiated by `gradient`, which takes the parameters of `function` and then
  /// one gradient for each of its float results, and gives one for each of its float parameters.
  void set_gradient(const ir::FunctionRef& function, ir::FunctionRef gradient) {
    std::vector<std::size_t> wrt;
    for (std::size_t i = 0; i < function->params.size(); ++i)
      if (is_float_value(*function->params[i]->type)) wrt.push_back(i);
    set_gradient(function, std::move(gradient), std::move(wrt));
  }
  /// The same where the gradient gives only those of the parameters `wrt`; none flows into the others.
  void set_gradient(const ir::FunctionRef& function, ir::FunctionRef gradient, std::vector<std::size_t> wrt) {
    gradients_[function] = {std::move(gradient), std::move(wrt)};
  }
  /// Of calls of `function` only the arguments are kept; going backwards, what its gradient needs is computed
  /// again.
  void checkpoint(const ir::FunctionRef& function) { checkpoints_.insert(function); }
  /// Takes over everything `other` says.
  void add(const Rules& other) {
    gradients_.insert(other.gradients_.begin(), other.gradients_.end());
    checkpoints_.insert(other.checkpoints_.begin(), other.checkpoints_.end());
  }
  [[nodiscard]] bool empty() const { return gradients_.empty() && checkpoints_.empty(); }

  struct Gradient {
    ir::FunctionRef function;
    std::vector<std::size_t> wrt;  ///< the parameters whose gradients it gives
  };
  /// The gradient that was set, or null.
  [[nodiscard]] const Gradient* find_gradient(const ir::Function& function) const {
    const auto found = gradients_.find(ir::FunctionRef(&function));
    return found == gradients_.end() ? nullptr : &found->second;
  }
  /// Whether calls of the function are seen as a whole instead of being written out.
  [[nodiscard]] bool is_opaque(const ir::Function& function) const {
    const ir::FunctionRef key(&function);
    return gradients_.count(key) != 0 || checkpoints_.count(key) != 0;
  }

 private:
  struct Address {
    std::size_t operator()(const ir::FunctionRef& f) const { return std::hash<const void*>()(f.get()); }
  };
  std::unordered_map<ir::FunctionRef, Gradient, Address> gradients_;
  std::unordered_set<ir::FunctionRef, Address> checkpoints_;
};

}  // namespace tessera::autodiff

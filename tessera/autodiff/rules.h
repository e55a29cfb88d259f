// What differentiation is told about functions that others call (`call @f`). A function is meant by identity:
// an equal one is another.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "tessera/ir/function.h"

namespace tessera::autodiff {

class Rules {
 public:
  /// Calls of `function` are differentiated by `gradient`, which takes the parameters of `function` and then
  /// one gradient for each of its float results, and gives one for each of its float parameters.
  void set_gradient(const ir::FunctionRef& function, ir::FunctionRef gradient) {
    gradients_[function] = std::move(gradient);
  }
  /// Of calls of `function` only the arguments are kept; going backwards, what its gradient needs is computed
  /// again.
  void checkpoint(const ir::FunctionRef& function) { checkpoints_.insert(function); }

  /// The gradient that was set, or null.
  [[nodiscard]] const ir::FunctionRef* find_gradient(const ir::Function& function) const {
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
  std::unordered_map<ir::FunctionRef, ir::FunctionRef, Address> gradients_;
  std::unordered_set<ir::FunctionRef, Address> checkpoints_;
};

}  // namespace tessera::autodiff

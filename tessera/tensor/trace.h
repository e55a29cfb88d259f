// Tracing: a body runs once on tensors without values; what it recorded becomes a function of the IR, and the
// tensors from outside that it used become its captures.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/autodiff/rules.h"
#include "tessera/engine/record.h"
#include "tessera/ir/function.h"
#include "tessera/tensor/tensor.h"

namespace tessera::detail {

/// What the gradient of a traced function has to know of functions inside it.
struct RegionRules : engine::CustomGradient {
  autodiff::Rules rules;
};
/// Of a call of a traced function.
[[nodiscard]] const autodiff::Rules& rules_of(const engine::Node& call);

/// Writes the plan of a function whose last parameters are `constants` into a file.
void save_function(const std::string& path, const ir::FunctionRef& function,
                   const std::vector<Tensor>& constants, engine::Engine& engine, Here here);

class Trace {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

  /// Runs `body` on parameters of these types. What it throws goes through.
  Trace(const std::shared_ptr<engine::Engine>& engine, const op::ValueTypes& parameters, const Body& body,
        Here here);

  [[nodiscard]] const std::vector<Tensor>& results() const { return results_; }
  /// Adds what the results depend on and was recorded before, if it is not among them.
  void add_captures(std::vector<engine::NodeRef>& captures) const;
  /// The function of the parameters and then the captures. Adds what is known of gradients inside to `rules`.
  [[nodiscard]] ir::FunctionRef function(std::string name, std::span<const engine::NodeRef> captures,
                                         autodiff::Rules& rules) const;

 private:
  [[nodiscard]] bool is_inside(const engine::Node* node) const;
  /// Everything inside that the results depend on, inputs first.
  [[nodiscard]] std::vector<engine::Node*> order() const;

  std::uint64_t first_id_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> results_;
};

}  // namespace tessera::detail

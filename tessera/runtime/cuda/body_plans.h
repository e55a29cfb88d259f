// The bodies of regions as plans, each made once: their ops are tiled and their memory is planned as those of
// any plan.
#pragma once

#include <functional>
#include <unordered_map>

#include "tessera/pattern/target.h"
#include "tessera/plan/plan.h"

namespace tessera::runtime::cuda {

/// Makes the plan of a body: its inputs, outputs and parameters are those of the function.
using PlanBody = std::function<Result<plan::PlanRef>(const ir::FunctionRef& body, const pattern::Target&)>;

/// One thread at a time.
class BodyPlans {
 public:
  /// Both outlive this.
  BodyPlans(const PlanBody& make, const pattern::Target& target) : make_(make), target_(target) {}

  [[nodiscard]] Result<plan::PlanRef> get(const ir::FunctionRef& body);

 private:
  struct Made {
    ir::FunctionRef body;  ///< found by its address
    plan::PlanRef plan;
  };

  const PlanBody& make_;
  const pattern::Target& target_;
  std::unordered_map<const ir::Function*, Made> made_;
};

}  // namespace tessera::runtime::cuda

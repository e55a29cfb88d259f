#include "tessera/runtime/cuda/body_plans.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

Result<plan::PlanRef> BodyPlans::get(const ir::FunctionRef& body) {
  if (!make_) return Error(ErrorCode::unsupported, "the device has no compiler for regions");
  if (const auto known = made_.find(body.get()); known != made_.end()) return known->second.plan;
  plan::PlanRef plan = TESSERA_TRY(make_(body, target_));
  made_.emplace(body.get(), Made{body, plan});
  return plan;
}

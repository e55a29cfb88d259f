#include "tessera/compile/reuse_in_place.h"

#include "tessera/plan/in_place.h"

using namespace tessera;

std::size_t compiler::reuse_in_place(plan::Plan& plan) {
  auto allowed = plan::find_in_place(plan);
  std::size_t out = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (allowed[s] == plan.steps[s].in_place) continue;
    out += allowed[s].size();
    plan.steps[s].in_place = std::move(allowed[s]);
  }
  return out;
}

#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/plan_runner.h"
#include "tests/differential/runs.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

/// The program as another process would get it.
Result<plan::Package> saved_and_loaded(const plan::Package& package) {
  const std::string bytes = TESSERA_TRY(plan::to_bytes(package));
  return plan::from_bytes(Bytes::copy(std::as_bytes(std::span(bytes.data(), bytes.size()))), "saved");
}

}  // namespace

Result<Results> tessera::differential::run_planned(const Program& program,
                                                   const compiler::PlanOptions& options,
                                                   runtime::Device& device, const pattern::Target& target,
                                                   std::span<const double> parameters) {
  auto planned = TESSERA_TRY(compiler::plan_program(program.function, target, options));
  const auto package = compiler::package(*program.function, {std::move(planned.program)}, "any");
  auto run = TESSERA_TRY(engine::PlanRunner::create(package, device));
  const auto other_bits = fixture::slot_bits(*program.function, program.second_parameters);
  const auto bits = fixture::slot_bits(*program.function, parameters);
  (void)run.run(program.inputs, other_bits, program.sizes);
  auto fresh = run.run(program.inputs, bits, program.sizes);
  auto loaded = TESSERA_TRY(engine::PlanRunner::create(TESSERA_TRY(saved_and_loaded(package)), device));
  const auto again = loaded.run(program.inputs, bits, program.sizes);
  if (fresh.ok() != again.ok())
    return Error(ErrorCode::internal, "a loaded plan fails where the fresh one does not");
  if (fresh)
    if (const auto other = difference(*fresh, *again))
      return Error(ErrorCode::internal, cat("a loaded plan gives something else: ", *other));
  return fresh;
}

#include "tessera/runtime/reference/reference_executable.h"

#include "tessera/op/reference.h"

using namespace tessera;
using namespace tessera::runtime;

Result<void> ReferenceExecutable::run_work(std::size_t, HostWork& work) {
  if (step_of(work).kind != plan::StepKind::call) return run_by_ops(work);
  for (const op::Array& result : work.results) clear(result);
  return op::run_reference(call_of(work), work.inputs, work.results);
}

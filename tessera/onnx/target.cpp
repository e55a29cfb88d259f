#include "tessera/onnx/target.h"

using namespace tessera;
using namespace tessera::onnx;

Result<op::Values> Target::loop(const Dim& count, const op::Values&, const LoopBody&) {
  return Error(ErrorCode::unsupported, cat("the number of steps, ", count, ", must be known"));
}

Result<op::Values> Target::branch(Value, const BranchBody&, const BranchBody&) {
  return Error(ErrorCode::unsupported, "the condition must be known");
}

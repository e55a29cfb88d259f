#include "tessera/op/work.h"

using namespace tessera;
using namespace tessera::op;

double tessera::op::element_estimate(const Shape& shape) {
  double out = 1;
  for (const Dim& size : shape) out *= static_cast<double>(size.value());
  return out;
}

double tessera::op::work_of(const CallInfo& call, const ValueTypes& results) {
  if (call.card().work != nullptr) return call.card().work(call, results);
  double out = 0;
  for (const ValueType& input : call.inputs()) out += element_estimate(input.shape);
  for (const ValueType& result : results) out += element_estimate(result.shape);
  return out;
}

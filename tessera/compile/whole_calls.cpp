#include "tessera/compile/whole_calls.h"

#include <algorithm>

#include "tessera/kernel/build.h"

using namespace tessera;

bool tessera::compiler::stays_whole(const op::CallInfo& call) {
  const auto is_short = [](const op::ValueType& type) {
    return type.dtype == op::Dtype::f16 || type.dtype == op::Dtype::bf16;
  };
  return std::any_of(call.inputs().begin(), call.inputs().end(), is_short) ||
         kernel::can_fuse(call.card(), call.inputs(), call.attributes());
}

bool tessera::compiler::stays_whole_unless_costly(const op::CallInfo& call) {
  return !call.card().traits.costly || stays_whole(call);
}

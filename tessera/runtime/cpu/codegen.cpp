#include "tessera/runtime/cpu/codegen.h"

#include "tessera/runtime/cpu/kernel_code.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

Result<std::string> tessera::runtime::cpu::generate(const kernel::Kernel& kernel,
                                                    const kernel::Passes& passes, const CodeShape& shape) {
  return shape.row_axis.has_value() ? generate_columns(kernel, passes, shape)
                                    : generate_rows(kernel, passes, shape);
}

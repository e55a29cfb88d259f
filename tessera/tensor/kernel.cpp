#include "tessera/tensor/kernel.h"

#include "tessera/base/text.h"
#include "tessera/tensor/call.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

op::DeviceCall call_of(const KernelOptions& options, Here here) {
  if (options.file.empty() == options.source.empty())
    fail(here, cat("kernel '", options.name, "': needs a file or a source, and not both"));
  op::DeviceCall out;
  out.name = options.name;
  out.entry = options.entry.empty() ? options.name : options.entry;
  if (options.file.empty())
    out.code = op::KernelSource::from_text(options.source, options.form.value_or(CodeForm::cuda),
                                           cat(options.name, ".cu"));
  else
    out.code = op::KernelSource::from_file(options.file,
                                           options.form ? *options.form : op::form_of_file(options.file));
  return out;
}

}  // namespace

Kernel::Kernel(KernelOptions options, Here here)
    : DeviceOp(call_of(options, here),
               {.kind = "kernel",
                .parameters = std::move(options.parameters),
                .gradient = std::move(options.gradient),
                .grid = std::move(options.grid),
                .block = std::move(options.block),
                .shared_bytes = options.shared_bytes},
               here) {}

void Kernel::set_source(std::string text, CodeForm form) const {
  call().code->set_text(std::move(text), form);
}
std::string Kernel::error() const { return call().code->error(); }

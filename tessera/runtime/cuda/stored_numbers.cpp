#include "tessera/runtime/cuda/stored_numbers.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/kernel_signature.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

SourceRef tessera::runtime::cuda::source_with_stored_numbers(const Launch& launch) {
  const auto signature = signature_of(*launch.source);
  if (!signature || signature->parameters.size() != launch.arguments.size()) return nullptr;
  std::string parameters, reads;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const std::string_view parameter = signature->parameters[i];
    parameters += i == 0 ? "" : ", ";
    if (launch.arguments[i].kind != Argument::Kind::number) {
      parameters += parameter;
      continue;
    }
    const std::string_view type = KernelSignature::type_of(parameter);
    const std::string_view name = KernelSignature::name_of(parameter);
    parameters += cat("const ", type, "* ", name, "_at");
    reads += cat("const ", type, " ", name, " = *", name, "_at;\n");
  }
  const std::size_t inside = signature->body.find('{') + 1;
  Source out = *launch.source;
  out.text = cat(signature->before, signature->head, parameters, signature->body.substr(0, inside), "\n",
                 reads, signature->body.substr(inside));
  return std::make_shared<const Source>(std::move(out));
}

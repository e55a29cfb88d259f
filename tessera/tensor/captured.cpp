#include "tessera/tensor/captured.h"

#include "tessera/base/text.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/running_scope.h"

using namespace tessera;
using namespace tessera::detail;

Captured tessera::captured(CapturedOptions options, Here here) {
  if (!options.capture) fail(here, cat("captured '", options.name, "': its function is empty"));
  op::DeviceCall call;
  call.name = options.name;
  call.capture = [function = std::move(options.capture)](const StreamCall& given) {
    const RunningScope scope;
    function(given);
  };
  return Captured(std::move(call),
                  {.kind = "captured",
                   .parameters = std::move(options.parameters),
                   .gradient = std::move(options.gradient)},
                  here);
}

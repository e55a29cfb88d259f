#include "tessera/engine/devices.h"

#include <cstdio>
#include <cstdlib>

#include "tessera/base/text.h"
#include "tessera/compile/tiling.h"
#include "tessera/runtime/cpu/cpu_device.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::engine;

std::vector<std::string> tessera::engine::device_names() { return {"reference", "cpu"}; }

Result<std::shared_ptr<runtime::Device>> tessera::engine::find_device(std::string_view name) {
  // Never destroyed: tensors in static storage may outlive everything else.
  static const auto* reference =
      new std::shared_ptr<runtime::Device>(std::make_shared<runtime::ReferenceDevice>());
  if (name == "reference") return *reference;
  if (name == "cpu") {
    static const auto* cpu = new std::shared_ptr<runtime::Device>(std::make_shared<runtime::cpu::CpuDevice>(
        runtime::cpu::CpuOptions{.target = {.name = "cpu", .sources = {compiler::fused_regions()}}}));
    return *cpu;
  }
  return Error(ErrorCode::not_found,
               cat("there is no device '", printable(name), "', only ", join(device_names(), ", ")));
}

std::shared_ptr<runtime::Device> tessera::engine::default_device() {
  const char* name = std::getenv("TESSERA_DEVICE");
  if (name == nullptr) return *find_device("reference");
  auto found = find_device(name);
  if (found) return *std::move(found);
  std::fprintf(stderr, "tessera: TESSERA_DEVICE: %s; the reference is used\n",
               found.error().message().c_str());
  return *find_device("reference");
}

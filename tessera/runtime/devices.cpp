#include "tessera/runtime/devices.h"

#include "tessera/base/text.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Device> (*open)();
};
constexpr Entry entries[] = {
    {"reference", []() -> std::unique_ptr<Device> { return std::make_unique<ReferenceDevice>(); }},
};

}  // namespace

std::vector<std::string> tessera::runtime::device_names() {
  std::vector<std::string> out;
  for (const Entry& entry : entries) out.emplace_back(entry.name);
  return out;
}

Result<std::unique_ptr<Device>> tessera::runtime::open_device(std::string_view name) {
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.open();
  return Error(ErrorCode::unsupported,
               cat("there is no device '", printable(name), "' here; there is ", join(device_names(), ", ")));
}

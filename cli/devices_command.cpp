// tessera devices: where plans can run, and what was found there.
#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "tessera/base/json.h"
#include "tessera/base/text.h"
#include "tessera/engine/devices.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct DeviceLine {
  std::string name, found;
  std::vector<std::string> lacks;
};

std::vector<DeviceLine> device_lines() {
  std::vector<DeviceLine> out;
  for (const std::string& name : engine::device_names()) {
    const auto device = engine::find_device(name);
    if (device)
      out.push_back({name, (*device)->found(), (*device)->lacks()});
    else
      out.push_back({name, {}, {device.error().message()}});
  }
  return out;
}

void print_json(std::span<const DeviceLine> lines) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("devices").begin_array();
  for (const DeviceLine& line : lines)
    json.begin_object()
        .member("name", line.name)
        .member("found", line.found)
        .member("lacks", line.lacks)
        .end_object();
  json.end_array().end_object();
  std::printf("%s\n", json.text().c_str());
}

void print(std::span<const DeviceLine> lines) {
  std::size_t width = 0;
  for (const DeviceLine& line : lines) width = std::max(width, line.name.size());
  for (const DeviceLine& line : lines) {
    std::printf("%-*s  %s\n", static_cast<int>(width), line.name.c_str(), line.found.c_str());
    for (const std::string& lack : line.lacks)
      std::printf("%-*s  %s\n", static_cast<int>(width), "", lack.c_str());
  }
}

}  // namespace

void tessera::cli::add_devices(Commands& commands) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command =
      commands.add("devices", "list the devices and what they found on this machine",
                   "  tessera devices\n"
                   "  tessera run model.onnx --device cpu:precise      functions within 2 ulp\n"
                   "  tessera run model.onnx --device cpu:threads=1    on one thread",
                   [json] {
                     const auto lines = device_lines();
                     *json ? print_json(lines) : print(lines);
                     return Result<Answer>(Answer::yes);
                   });
  command.add_flag("--json", *json, "answer as JSON");
}

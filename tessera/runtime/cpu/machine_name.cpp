#include "tessera/runtime/cpu/machine_name.h"

#include <fstream>

#include "tessera/base/text.h"

using namespace tessera;

namespace {

/// " AMD EPYC 9R14": the processor as the system calls it.
std::string machine_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 1);
  return " unknown";
}

}  // namespace

std::string tessera::runtime::cpu::machine_key(unsigned threads) {
  return cat("Tessera ", TESSERA_VERSION, " with ", threads, " threads on", machine_name());
}

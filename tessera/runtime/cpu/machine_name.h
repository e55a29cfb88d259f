// What measurements are kept for.
#pragma once

#include <string>

namespace tessera::runtime::cpu {

/// "Tessera 0.1.0 with 2 threads on AMD EPYC 9R14": measurements of one are not those of another.
[[nodiscard]] std::string machine_key(unsigned threads);

}  // namespace tessera::runtime::cpu

// Named scopes, memory figures and logs.
#pragma once

#include <string_view>

#include "tessera/engine/engine.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

using Engine = engine::Engine;
using EngineOptions = engine::EngineOptions;
using EngineStatistics = engine::EngineStatistics;
using MemoryFigures = runtime::MemoryFigures;

/// While it lives, what this thread records belongs to the scope: `auto scope = ts::block("encoder");`.
/// Scopes nest.
class [[nodiscard]] Block {
 public:
  explicit Block(std::string_view name, const std::shared_ptr<Engine>& engine = nullptr);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  std::uint16_t outer_;
};
inline Block block(std::string_view name) { return Block(name); }

/// Of the default engine.
[[nodiscard]] MemoryFigures memory();
void set_memory_limit(std::uint64_t bytes);
[[nodiscard]] EngineStatistics stats();
void set_seed(std::uint64_t seed);

using Profile = engine::Profile;

/// Measures the evaluations of the default engine from now on, as far as the level says; what was measured
/// before is forgotten. `none` ends it.
void set_profiling(ProfilingLevel level);
/// What was measured since: to_text() for people, to_json() for chrome://tracing and Perfetto.
[[nodiscard]] Profile profile();

}  // namespace tessera

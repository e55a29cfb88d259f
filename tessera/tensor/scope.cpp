#include "tessera/tensor/scope.h"

#include "tessera/engine/record.h"

using namespace tessera;

Block::Block(std::string_view name, const std::shared_ptr<Engine>& engine)
    : outer_(engine::thread_state.block) {
  Engine& owner = engine != nullptr ? *engine : *Engine::default_engine();
  engine::thread_state.block = owner.block(outer_, name);
}
Block::~Block() { engine::thread_state.block = outer_; }

MemoryFigures tessera::memory() { return Engine::default_engine()->memory(); }
void tessera::set_memory_limit(std::uint64_t bytes) { Engine::default_engine()->set_memory_limit(bytes); }
EngineStatistics tessera::stats() { return Engine::default_engine()->statistics(); }
void tessera::set_seed(std::uint64_t seed) { Engine::default_engine()->set_seed(seed); }
void tessera::set_profiling(ProfilingLevel level) { Engine::default_engine()->set_profiling(level); }
Profile tessera::profile() { return Engine::default_engine()->profile(); }

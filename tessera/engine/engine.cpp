#include "tessera/engine/engine.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/engine/evaluation.h"
#include "tessera/engine/record.h"
#include "tessera/runtime/reference/reference_device.h"

using namespace tessera;
using namespace tessera::engine;

Engine::Engine(EngineOptions options)
    : options_(std::move(options)),
      pool_(runtime::MemoryPool::create(options_.allocator)),
      device_(std::make_unique<runtime::ReferenceDevice>()),
      random_{options_.seed, 0} {
  pool_->set_limit(options_.memory_limit);
}

std::shared_ptr<Engine> Engine::create(EngineOptions options) {
  return std::shared_ptr<Engine>(new Engine(std::move(options)));
}

const std::shared_ptr<Engine>& Engine::default_engine() {
  static const auto* engine =
      new std::shared_ptr<Engine>(create());  // never destroyed: static tensors may outlive it
  return *engine;
}

EngineStatistics Engine::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void Engine::log(LogLevel level, std::string_view message) const {
  if (!options_.log) return;
  const std::lock_guard lock(log_mutex_);
  options_.log(level, message);
}

Engine::RandomState Engine::take_random(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  RandomState& state = thread_state.replay != nullptr ? *thread_state.replay : random_;
  const RandomState out = state;
  state.offset += count;
  return out;
}

void Engine::set_seed(std::uint64_t seed) { set_random_state({seed, 0}); }

Engine::RandomState Engine::random_state() const {
  const std::lock_guard lock(mutex_);
  return random_;
}

void Engine::set_random_state(RandomState state) {
  const std::lock_guard lock(mutex_);
  random_ = state;
}

std::uint16_t Engine::block(std::uint16_t outer, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const std::string path = outer == 0 ? std::string(name) : cat(blocks_[outer], "/", name);
  const auto known = std::find(blocks_.begin(), blocks_.end(), path);
  if (known != blocks_.end()) return static_cast<std::uint16_t>(known - blocks_.begin());
  if (blocks_.size() > 0xffff) return outer;  // names are for people; nobody reads 65,536 of them
  blocks_.push_back(path);
  return static_cast<std::uint16_t>(blocks_.size() - 1);
}

std::string Engine::block_name(std::uint16_t block) const {
  const std::lock_guard lock(mutex_);
  return block < blocks_.size() ? blocks_[block] : "";
}

Result<void> Engine::evaluate(std::span<Node* const> nodes) {
  const bool all_stored =
      std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->is_stored(); });
  if (thread_state.trace_depth > 0 && !all_stored)
    return Error(ErrorCode::invalid_argument,
                 "a value was asked for while a region is traced: it has none yet");
  return Evaluation(*this).run(nodes);
}

GraphHandle::GraphHandle(NodeRef root) : root_(std::move(root)) {
  Engine& engine = *root_->component->engine();
  const std::lock_guard lock(engine.mutex_);
  root_->component->retain();
  engine.watched_.push_back(root_->component);
}

GraphHandle::~GraphHandle() {
  const std::shared_ptr<Engine> engine = root_->component->engine();
  {
    const std::lock_guard lock(engine->mutex_);
    auto& watched = engine->watched_;
    watched.erase(std::find(watched.begin(), watched.end(), root_->component));
  }
  root_->component->release();
}

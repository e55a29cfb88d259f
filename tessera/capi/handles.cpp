#include "tessera/capi/handles.h"

#include <bit>

using namespace tessera;
using namespace tessera::capi;

static_assert(sizeof(void*) == 8, "a handle needs the 64 bits of a pointer");

namespace {

using EngineRef = std::shared_ptr<engine::Engine>;

// Never destroyed: static objects of the program may hold handles.
HandleTable<TensorEntry>& tensors() {
  static auto* table = new HandleTable<TensorEntry>(1);
  return *table;
}
HandleTable<Graph>& graphs() {
  static auto* table = new HandleTable<Graph>(2);
  return *table;
}
HandleTable<EngineRef>& engines() {
  static auto* table = new HandleTable<EngineRef>(3);
  return *table;
}

template <class Handle>
std::uint64_t number_of(Handle handle) {
  return std::bit_cast<std::uint64_t>(handle);
}

/// What was found by a handle, if something was.
template <class T>
T found(std::optional<T> value, const void* handle, const char* name) {
  require(handle, name);
  if (!value) fail(TSR_ERROR_HANDLE, "'", name, "' is no handle of this type, or was freed");
  return *std::move(value);
}

}  // namespace

TensorEntry tessera::capi::entry_of(tsr_tensor handle, const char* name) {
  return found(tensors().find(number_of(handle)), handle, name);
}
Graph tessera::capi::graph_of(tsr_graph handle, const char* name) {
  return found(graphs().find(number_of(handle)), handle, name);
}
EngineRef tessera::capi::engine_of(tsr_engine handle) {
  if (handle == nullptr) return engine::Engine::default_engine();
  return found(engines().find(number_of(handle)), handle, "engine");
}

tsr_tensor tessera::capi::make_handle(TensorEntry entry) {
  return std::bit_cast<tsr_tensor>(tensors().add(std::move(entry)));
}
tsr_graph tessera::capi::make_handle(Graph graph) {
  return std::bit_cast<tsr_graph>(graphs().add(std::move(graph)));
}
tsr_engine tessera::capi::make_handle(EngineRef engine) {
  return std::bit_cast<tsr_engine>(engines().add(std::move(engine)));
}

void tessera::capi::set_input(tsr_tensor handle, Tensor tensor) {
  found(tensors().replace(number_of(handle), {std::move(tensor), true}), handle, "tensor");
}

void tessera::capi::free_handle(tsr_tensor handle) {
  found(tensors().remove(number_of(handle)), handle, "tensor");
}
void tessera::capi::free_handle(tsr_graph handle) {
  found(graphs().remove(number_of(handle)), handle, "graph");
}
void tessera::capi::free_handle(tsr_engine handle) {
  found(engines().remove(number_of(handle)), handle, "engine");
}

void tessera::capi::make_handles(std::vector<Tensor> made, tsr_tensor* out) {
  std::vector<tsr_tensor> handles;
  handles.reserve(made.size());
  try {
    for (Tensor& tensor : made) handles.push_back(make_handle({std::move(tensor)}));
  } catch (...) {
    for (tsr_tensor handle : handles) free_handle(handle);
    throw;
  }
  std::copy(handles.begin(), handles.end(), out);
}

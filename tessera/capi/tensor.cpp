// Engines and tensors: making, writing, reading, freeing.
#include <cstring>

#include "tessera/capi/arguments.h"
#include "tessera/engine/devices.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

/// The tensor of a handle that may be written to.
Tensor input_of(tsr_tensor handle) {
  TensorEntry out = entry_of(handle);
  if (!out.is_input)
    fail(TSR_ERROR_INVALID_OPERATION, "the tensor is computed by an op: only inputs can be written to");
  return std::move(out.tensor);
}

CreateOptions options_of(const Tensor& tensor) {
  return {.dtype = tensor.dtype(), .engine = tensor.engine()};
}

void create(tsr_tensor* out, const std::int64_t* shape, int ndim, const CreateOptions& options) {
  require(out, "out");
  *out = make_handle({zeros(shape_from(shape, ndim), options, here()).eval(here()), true});
}

void require_bytes(const Tensor& tensor, std::size_t given) {
  const std::size_t needed = static_cast<std::size_t>(tensor.size()) * ir::size_of(tensor.dtype());
  if (given != needed)
    fail(TSR_ERROR_SHAPE, "the elements of a ", tensor.dtype(), " tensor of shape [",
         join(tensor.shape(), ", "), "] have ", needed, " bytes, not ", given);
}

void create_engine(const char* device, std::uint64_t memory_limit, std::uint64_t seed, tsr_engine* out) {
  require(out, "out");
  engine::EngineOptions options{.seed = seed};
  if (memory_limit != 0) options.memory_limit = memory_limit;
  if (device != nullptr) {
    auto found = engine::find_device(device);
    if (!found) fail(TSR_ERROR_DEVICE, found.error().message());
    options.device = *std::move(found);
  }
  *out = make_handle(engine::Engine::create(std::move(options)));
}

/// Calls the deleter of the caller, but only once the tensor was made.
struct Release {
  void (*deleter)(void*);
  void* context;
  std::shared_ptr<bool> armed = std::make_shared<bool>(false);

  void operator()() const {
    if (*armed && deleter != nullptr) deleter(context);
  }
};

}  // namespace

int tsr_engine_create(std::uint64_t memory_limit, std::uint64_t seed, tsr_engine* out) noexcept {
  return guard("tsr_engine_create", [&] { create_engine(nullptr, memory_limit, seed, out); });
}

int tsr_engine_create_on(const char* device, std::uint64_t memory_limit, std::uint64_t seed,
                         tsr_engine* out) noexcept {
  return guard("tsr_engine_create_on", [&] { create_engine(device, memory_limit, seed, out); });
}

int tsr_engine_free(tsr_engine engine) noexcept {
  return guard("tsr_engine_free", [&] { free_handle(engine); });
}

// ---- making and freeing

int tsr_tensor_init(tsr_tensor* out, const std::int64_t* shape, int ndim, tsr_backend backend) noexcept {
  return guard("tsr_tensor_init", [&] { create(out, shape, ndim, create_options(backend)); });
}

int tsr_tensor_create(tsr_tensor* out, const std::int64_t* shape, int ndim,
                      const tsr_options* options) noexcept {
  return guard("tsr_tensor_create", [&] { create(out, shape, ndim, create_options(options)); });
}

int tsr_tensor_from_memory(tsr_tensor* out, void* data, const std::int64_t* shape, int ndim,
                           const tsr_options* options, void (*deleter)(void* context),
                           void* context) noexcept {
  return guard("tsr_tensor_from_memory", [&] {
    require(out, "out");
    const Shape sizes = shape_from(shape, ndim);
    if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) require(data, "data");
    const Release release{deleter, context};
    Tensor tensor = from_memory(data, sizes, release, create_options(options), here());
    *out = make_handle({std::move(tensor), true});
    *release.armed = true;
  });
}

int tsr_tensor_copy(tsr_tensor tensor, tsr_tensor* out) noexcept {
  return guard("tsr_tensor_copy", [&] {
    require(out, "out");
    *out = make_handle(entry_of(tensor));
  });
}

int tsr_tensor_free(tsr_tensor tensor) noexcept {
  return guard("tsr_tensor_free", [&] { free_handle(tensor); });
}

// ---- writing

int tsr_tensor_fill(tsr_tensor tensor, float value) noexcept {
  return guard("tsr_tensor_fill", [&] {
    Tensor filled = input_of(tensor);
    filled.fill(value, here());
    set_input(tensor, filled.eval(here()));
  });
}

int tsr_tensor_fill_rand(tsr_tensor tensor) noexcept {
  return guard("tsr_tensor_fill_rand", [&] {
    const Tensor input = input_of(tensor);
    if (!ir::is_float(input.dtype()))
      fail(TSR_ERROR_INVALID_OPERATION, "random numbers were asked for in a tensor of dtype ", input.dtype());
    set_input(tensor, rand(input.shape(), options_of(input), here()).eval(here()));
  });
}

int tsr_tensor_set_data(tsr_tensor tensor, const void* data, std::size_t bytes) noexcept {
  return guard("tsr_tensor_set_data", [&] {
    const Tensor input = input_of(tensor);
    if (bytes > 0) require(data, "data");
    require_bytes(input, bytes);
    const std::span all(static_cast<const std::byte*>(data), bytes);
    set_input(tensor, from_bytes(all, input.shape(), options_of(input), here()));
  });
}

// ---- reading

int tsr_tensor_get_data(tsr_tensor tensor, void* out, std::size_t bytes) noexcept {
  return guard("tsr_tensor_get_data", [&] {
    const Tensor read = tensor_of(tensor);
    if (bytes > 0) require(out, "out");
    require_bytes(read, bytes);
    execute({&read, 1});
    if (bytes > 0) std::memcpy(out, read.bytes(here()).data(), bytes);
  });
}

int tsr_tensor_data(tsr_tensor tensor, const void** out) noexcept {
  return guard("tsr_tensor_data", [&] {
    require(out, "out");
    const Tensor read = tensor_of(tensor);
    execute({&read, 1});
    *out = read.bytes(here()).data();
  });
}

int tsr_tensor_shape(tsr_tensor tensor, std::int64_t* shape, int max, int* out_ndim) noexcept {
  return guard("tsr_tensor_shape", [&] {
    require(out_ndim, "out_ndim");
    require_array(shape, max, "shape");
    const Shape all = tensor_of(tensor).shape();
    copy_out<std::int64_t>(all, shape, max, out_ndim);
  });
}

int tsr_tensor_dtype(tsr_tensor tensor, tsr_dtype* out) noexcept {
  return guard("tsr_tensor_dtype", [&] {
    require(out, "out");
    *out = dtype_to(tensor_of(tensor).dtype());
  });
}

int tsr_tensor_node_id(tsr_tensor tensor, tsr_node_id* out) noexcept {
  return guard("tsr_tensor_node_id", [&] {
    require(out, "out");
    const NodeId id = node_id(tensor_of(tensor));
    *out = {id.high, id.low};
  });
}

int tsr_tensor_graph(tsr_tensor tensor, tsr_graph* out) noexcept {
  return guard("tsr_tensor_graph", [&] {
    require(out, "out");
    *out = make_handle(tensor_of(tensor).graph());
  });
}

// ---- computing

int tsr_execute(tsr_tensor tensor) noexcept {
  return guard("tsr_execute", [&] {
    const Tensor asked = tensor_of(tensor);
    execute({&asked, 1});
  });
}

int tsr_execute_all(const tsr_tensor* tensors, int count) noexcept {
  return guard("tsr_execute_all", [&] {
    require_array(tensors, count, "tensors");
    std::vector<Tensor> asked;
    for (int i = 0; i < count; ++i) asked.push_back(tensor_of(tensors[i], cat("tensors[", i, "]").c_str()));
    require_one_engine(asked);
    execute(asked);
  });
}

#include "tessera/tensor/dlpack.h"

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/engine/record.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/dlpack_layout.h"

using namespace tessera;

namespace {

// Device types.
constexpr std::int32_t type_cpu = 1;
constexpr std::int32_t type_cuda = 2;
constexpr std::int32_t type_cuda_host = 3;  ///< page-locked: the host's
constexpr std::int32_t type_cuda_managed = 13;
constexpr int most_axes = 16;
enum Code : std::uint8_t { code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_bool = 6 };

std::optional<Dtype> dtype_of_code(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (Dtype dtype : ir::all_dtypes()) {
    const std::uint8_t code = dtype == Dtype::boolean  ? code_bool
                              : dtype == Dtype::bf16   ? code_bfloat
                              : ir::is_float(dtype)    ? code_float
                              : ir::is_unsigned(dtype) ? code_uint
                                                       : code_int;
    if (code == type.code && ir::size_of(dtype) * 8 == type.bits) return dtype;
  }
  return std::nullopt;
}

DLDataType dlpack_type(Dtype dtype) {
  const std::uint8_t code = dtype == Dtype::boolean  ? code_bool
                            : dtype == Dtype::bf16   ? code_bfloat
                            : ir::is_float(dtype)    ? code_float
                            : ir::is_unsigned(dtype) ? code_uint
                                                     : code_int;
  return {code, static_cast<std::uint8_t>(ir::size_of(dtype) * 8), 1};
}

/// What an exported tensor holds.
struct Export {
  DLManagedTensor managed{};
  Tensor tensor;
  Shape shape;
  Shape strides;
  std::shared_ptr<runtime::MemorySpace> space;  ///< of the tensor; null: the host's
  std::intptr_t stream = DlpackOptions::no_stream;
};

/// The receiver's work on the memory may be under way: what uses it next comes behind that.
void give_back(DLManagedTensor* managed) {
  const std::unique_ptr<Export> held(static_cast<Export*>(managed->manager_ctx));
  if (held->space == nullptr || held->stream == DlpackOptions::no_stream) return;
  if (!held->space->come_behind(held->stream)) static_cast<void>(held->space->finish().ok());
}

/// 0 could be either of the default streams, as the protocol says.
void check_stream(const char* what, std::intptr_t stream, Here here) {
  if (stream == 0 || stream < DlpackOptions::no_stream)
    detail::fail(here, cat(what, ": ", stream, " is no stream, expected a handle, 1, 2 or -1"));
}

using Owner = std::shared_ptr<DLManagedTensor>;

/// What another library says of its tensor. Refuses what makes no tensor here.
class Import {
 public:
  Import(const DLTensor& from, Here here) : from_(from), here_(here) {}

  [[nodiscard]] Dtype dtype() const {
    const auto found = dtype_of_code(from_.dtype);
    if (!found)
      refuse("dtype code ", static_cast<int>(from_.dtype.code), " of ", static_cast<int>(from_.dtype.bits),
             " bits is not supported");
    return *found;
  }

  [[nodiscard]] op::Layout layout() const {
    if (from_.ndim < 0 || from_.ndim > most_axes) refuse("rank ", from_.ndim, " is not supported");
    const auto rank = static_cast<std::size_t>(from_.ndim);
    if (rank > 0 && from_.shape == nullptr) refuse("the shape is null");
    for (std::size_t i = 0; i < rank; ++i)
      if (from_.shape[i] < 0) refuse("axis ", i, " has the negative size ", from_.shape[i]);
    if (!checked_product(std::span<const std::int64_t>(from_.shape, rank))) refuse("the tensor is too large");
    op::Layout out = op::contiguous(op::Extents(from_.shape, from_.shape + rank));
    for (std::size_t i = 0; i < rank; ++i)
      if (from_.strides != nullptr) out.strides[i] = from_.strides[i];
    return out;
  }

  /// The first element.
  [[nodiscard]] std::byte* data(Dtype dtype, const op::Layout& layout) const {
    auto* out = static_cast<std::byte*>(from_.data) + from_.byte_offset;
    if (from_.data == nullptr && op::element_count(layout.shape) > 0) refuse("the memory is null");
    if (reinterpret_cast<std::uintptr_t>(out) % ir::size_of(dtype) != 0)
      refuse("the memory is not aligned to its elements");
    return out;
  }

  [[nodiscard]] bool is_on_host() const {
    return from_.device.device_type == type_cpu || from_.device.device_type == type_cuda_host;
  }

  /// Fails unless the memory is that of the engine's device.
  void check_place(engine::Engine& engine) const {
    const auto space = engine.device().memory_space();
    const auto there = space == nullptr ? std::nullopt : space->location();
    const DLDevice& device = from_.device;
    const bool is_managed = device.device_type == type_cuda_managed && there && there->type == type_cuda;
    if (there == runtime::MemoryLocation{device.device_type, device.device_id} || is_managed) return;
    refuse("the tensor is on device type ", device.device_type, ", number ", device.device_id,
           ", the engine computes on ", engine.device().name());
  }

  template <class... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    detail::fail(here_, ErrorCode::unsupported, cat("from_dlpack: ", args...));
  }

 private:
  const DLTensor& from_;
  Here here_;
};

/// Nothing of it is copied. The owner may give the memory to others as soon as it is told.
engine::Storage shared_storage(engine::Engine& engine, const op::Array& array, const Owner& owner,
                               std::intptr_t stream, Here here) {
  const auto space = engine.device().memory_space();
  if (op::element_count(array.layout.shape) > 0) detail::value_at(here, space->check_address(array.data));
  if (stream != DlpackOptions::no_stream) detail::value_at(here, space->come_behind(stream));
  auto buffer = runtime::Buffer::wrap_in(space, array.data, 0, [owner, space] {
    static_cast<void>(space->finish().ok());  // the owner is told behind this, when it is given up
  });
  return {std::move(buffer), array.layout};
}

}  // namespace

Tensor tessera::from_dlpack(DLManagedTensor* managed, const DlpackOptions& options, Here here) {
  if (managed == nullptr) detail::fail(here, "from_dlpack: the tensor is null");
  const Owner owner(managed, [](DLManagedTensor* tensor) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
  check_stream("from_dlpack", options.stream, here);
  const Import import(managed->dl_tensor, here);
  const Dtype dtype = import.dtype();
  const op::Layout layout = import.layout();
  const op::Array array{dtype, layout, import.data(dtype, layout)};
  const auto engine = options.engine != nullptr ? options.engine : engine::Engine::default_engine();
  if (!import.is_on_host()) import.check_place(*engine);
  engine::Storage storage;
  if (!import.is_on_host())
    storage = shared_storage(*engine, array, owner, options.stream, here);
  else if (engine->has_host_memory())
    storage = {runtime::Buffer::wrap(array.data, 0, [owner] {}), layout};
  else
    storage = detail::value_at(here, engine->copy_in(array));
  const Shape shape(layout.shape.begin(), layout.shape.end());
  return Tensor::adopt(engine::make_leaf(engine, dtype, shape, std::move(storage), detail::caller_of(here)));
}

DLManagedTensor* tessera::to_dlpack(const Tensor& tensor, const DlpackOptions& options, Here here) {
  check_stream("to_dlpack", options.stream, here);
  engine::Engine& engine = *detail::node_of(tensor, "to_dlpack", here).component->engine();
  auto out = std::make_unique<Export>();
  runtime::MemoryLocation place{type_cpu, 0};
  if (!engine.has_host_memory()) {
    out->space = engine.device().memory_space();
    const auto there = out->space->location();
    if (!there)
      detail::fail(here, ErrorCode::unsupported,
                   cat("to_dlpack: no other library knows the memory of ", engine.device().name()));
    place = *there;
  }
  out->tensor = tensor;
  out->shape = tensor.shape();
  out->strides = tensor.strides(here);
  out->managed.dl_tensor = {.data = const_cast<void*>(tensor.storage(here)),
                            .device = {place.type, place.number},
                            .ndim = static_cast<std::int32_t>(out->shape.size()),
                            .dtype = dlpack_type(tensor.dtype()),
                            .shape = out->shape.data(),
                            .strides = out->strides.data(),
                            .byte_offset = 0};
  out->managed.manager_ctx = out.get();
  out->managed.deleter = &give_back;
  if (out->space != nullptr && options.stream != DlpackOptions::no_stream)
    detail::value_at(here, out->space->come_before(options.stream));
  out->stream = options.stream;
  return &out.release()->managed;
}

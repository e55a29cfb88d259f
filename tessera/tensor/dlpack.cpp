#include "tessera/tensor/dlpack.h"

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/engine/engine.h"
#include "tessera/engine/record.h"
#include "tessera/tensor/call.h"

// The layout of the standard (dlpack.h, version 0.8).
extern "C" {
struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
}

using namespace tessera;

namespace {

constexpr std::int32_t cpu = 1;
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
};

}  // namespace

Tensor tessera::from_dlpack(DLManagedTensor* managed, const CreateOptions& options, Here here) {
  if (managed == nullptr) detail::fail(here, "from_dlpack: the tensor is null");
  const std::shared_ptr<DLManagedTensor> owner(managed, [](DLManagedTensor* tensor) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
  const auto refuse = [&](std::string message) {
    detail::fail(here, ErrorCode::unsupported, std::move(message));
  };
  const DLTensor& from = managed->dl_tensor;
  if (from.device.device_type != cpu)
    refuse(cat("from_dlpack: the tensor is on device type ", from.device.device_type,
               ", only CPU memory is supported"));
  const auto dtype = dtype_of_code(from.dtype);
  if (!dtype)
    refuse(cat("from_dlpack: dtype code ", static_cast<int>(from.dtype.code), " of ",
               static_cast<int>(from.dtype.bits), " bits is not supported"));
  if (from.ndim < 0 || from.ndim > 16) refuse(cat("from_dlpack: rank ", from.ndim, " is not supported"));
  const auto rank = static_cast<std::size_t>(from.ndim);
  if (rank > 0 && from.shape == nullptr) refuse("from_dlpack: the shape is null");
  for (std::size_t i = 0; i < rank; ++i)
    if (from.shape[i] < 0) refuse(cat("from_dlpack: axis ", i, " has the negative size ", from.shape[i]));
  if (!checked_product(std::span<const std::int64_t>(from.shape, rank)))
    refuse("from_dlpack: the tensor is too large");
  op::Layout layout = op::contiguous(op::Extents(from.shape, from.shape + rank));
  for (std::size_t i = 0; i < rank; ++i) {
    if (from.strides != nullptr) layout.strides[i] = from.strides[i];
  }
  auto* data = static_cast<std::byte*>(from.data) + from.byte_offset;
  if (data == nullptr && op::element_count(layout.shape) > 0) refuse("from_dlpack: the memory is null");
  if (reinterpret_cast<std::uintptr_t>(data) % ir::size_of(*dtype) != 0)
    refuse("from_dlpack: the memory is not aligned to its elements");
  const Shape shape(layout.shape.begin(), layout.shape.end());
  const auto engine = options.engine != nullptr ? options.engine : engine::Engine::default_engine();
  engine::Storage storage;
  if (engine->has_host_memory())
    storage = {runtime::Buffer::wrap(data, 0, [owner] {}), std::move(layout)};
  else
    storage = detail::value_at(here, engine->copy_in({*dtype, std::move(layout), data}));
  return Tensor::adopt(engine::make_leaf(engine, *dtype, shape, std::move(storage), detail::caller_of(here)));
}

DLManagedTensor* tessera::to_dlpack(const Tensor& tensor, Here here) {
  if (!detail::node_of(tensor, "to_dlpack", here).component->engine()->has_host_memory())
    detail::fail(here, ErrorCode::unsupported,
                 "to_dlpack: the tensor is in the memory of a device, only host memory is exported");
  auto out = std::make_unique<Export>();
  out->tensor = tensor;
  out->shape = tensor.shape();
  out->strides = tensor.strides(here);
  out->managed.dl_tensor = {.data = const_cast<void*>(tensor.storage(here)),
                            .device = {cpu, 0},
                            .ndim = static_cast<std::int32_t>(out->shape.size()),
                            .dtype = dlpack_type(tensor.dtype()),
                            .shape = out->shape.data(),
                            .strides = out->strides.data(),
                            .byte_offset = 0};
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); };
  return &out.release()->managed;
}

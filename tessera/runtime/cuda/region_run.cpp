#include "tessera/runtime/cuda/region_run.h"

#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/op/interpreter.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/host_access.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cuda;
using op::HostTensor;

namespace {

/// Tensors of the interpreter whose elements lie on the device.
class DeviceTensors {
 public:
  DeviceTensors(CudaDevice& device, MemoryPool& pool) : device_(device), pool_(pool) {}

  /// One element comes to the host, where it may decide something.
  Result<HostTensor> import(const op::Array& array) {
    Ref<Buffer> copy;
    op::Array dense = array;
    if (!array.layout.is_contiguous()) {
      dense.layout = op::contiguous(array.shape());
      copy = TESSERA_TRY(pool_.allocate(bytes_of(dense)));
      dense.data = copy->data();
      TESSERA_TRY(device_.run_program(copy_program(array, dense), {&array, 1}, {&dense, 1}));
    }
    return tensor(dense, copy);
  }

  Result<std::vector<HostTensor>> call(const op::Card& card, std::span<const op::Array> inputs,
                                       const op::Attributes& attributes) {
    std::vector<Ref<Buffer>> held;
    std::vector<op::Array> from, to;
    op::ValueTypes types;
    for (const op::Array& input : inputs) {
      from.push_back(TESSERA_TRY(on_device(input, held)));
      types.push_back({input.dtype, ir::shape_of(std::span<const std::int64_t>(input.shape()))});
    }
    const auto made = TESSERA_TRY(op::infer(card, types, attributes));
    std::vector<Ref<Buffer>> buffers;
    for (const op::ValueType& type : made) {
      to.push_back({type.dtype, op::contiguous(op::extents_of(type.shape)), nullptr});
      buffers.push_back(TESSERA_TRY(pool_.allocate(bytes_of(to.back()))));
      TESSERA_TRY(runtime::clear(*buffers.back()));
      to.back().data = buffers.back()->data();
    }
    TESSERA_TRY(device_.run(op::CallInfo(card, types, attributes), from, to));
    std::vector<HostTensor> out;
    for (std::size_t i = 0; i < to.size(); ++i) out.push_back(TESSERA_TRY(tensor(to[i], buffers[i])));
    return out;
  }

  Result<void> export_to(const HostTensor& tensor, const op::Array& to) {
    if (tensor.shape() != to.shape() || tensor.dtype() != to.dtype)
      return Error(ErrorCode::shape, cat("a result of a region has shape [", join(tensor.shape(), ", "),
                                         "], expected [", join(to.shape(), ", "), "]"));
    const op::Array& from = tensor.array();
    if (known_->contains(from.data)) return device_.run_program(copy_program(from, to), {&from, 1}, {&to, 1});
    return device_.memory().copy_in(to.at(to.layout.offset), {from.data, bytes_of(from)});
  }

 private:
  using Addresses = std::unordered_set<const std::byte*>;

  static std::size_t bytes_of(const op::Array& array) {
    return static_cast<std::size_t>(array.size()) * ir::size_of(array.dtype);
  }

  /// Keeps `buffer`, if there is one, as long as the tensor lives.
  Result<HostTensor> tensor(const op::Array& dense, const Ref<Buffer>& buffer) {
    std::byte* first = dense.at(dense.layout.offset);
    if (dense.size() == 1) {
      auto out = TESSERA_TRY(HostTensor::allocate(dense.dtype, dense.shape()));
      TESSERA_TRY(device_.memory().copy_out(first, {out.array().data, bytes_of(dense)}));
      return out;
    }
    known_->insert(first);
    const auto forget = [known = known_, buffer](const std::byte* address) {
      if (buffer != nullptr) known->erase(address);
    };
    return HostTensor::wrap(dense.dtype, dense.shape(), first,
                            std::shared_ptr<const std::byte>(first, forget));
  }

  Result<op::Array> on_device(const op::Array& array, std::vector<Ref<Buffer>>& held) {
    if (known_->contains(array.data)) return array;
    held.push_back(TESSERA_TRY(pool_.allocate(bytes_of(array))));
    TESSERA_TRY(runtime::write_bytes(*held.back(), {array.at(array.layout.offset), bytes_of(array)}));
    return op::Array{array.dtype, op::contiguous(array.shape()), held.back()->data()};
  }

  CudaDevice& device_;
  MemoryPool& pool_;
  /// First elements of tensors on the device. Tensors may outlive this.
  std::shared_ptr<Addresses> known_ = std::make_shared<Addresses>();
};

}  // namespace

Result<void> tessera::runtime::cuda::run_region(const ir::Function& function, const RegionLaunch& launch,
                                                CudaDevice& device, MemoryPool& pool) {
  DeviceTensors tensors(device, pool);
  std::vector<HostTensor> inputs;
  for (const op::Array& input : launch.inputs) inputs.push_back(TESSERA_TRY(tensors.import(input)));
  op::InterpreterOptions options{.parameters = launch.parameters};
  options.run_call = [&](const op::Card& card, std::span<const op::Array> arrays,
                         const op::Attributes& attributes) { return tensors.call(card, arrays, attributes); };
  const auto results = TESSERA_TRY(op::interpret(function, inputs, options, launch.sizes));
  for (std::size_t i = 0; i < launch.results.size(); ++i)
    TESSERA_TRY(tensors.export_to(results[i], launch.results[i]));
  return {};
}

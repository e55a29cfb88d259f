#include "tessera/op/device_call.h"

#include <bit>
#include <new>

#include "tessera/base/text.h"
#include "tessera/op/call_info.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::op;

namespace {

[[noreturn]] void refuse(std::string message) {
  throw Exception(Error(ErrorCode::invalid_argument, std::move(message)));
}

std::uint64_t bits_of(const Array& number) {
  std::byte* at = number.at(number.layout.offset);
  if (ir::is_float(number.dtype)) {
    double value = 0;
    loader<double>(number.dtype)(at, 0, 1, 1, &value);
    return std::bit_cast<std::uint64_t>(value);
  }
  SignedWide value;
  loader<SignedWide>(number.dtype)(at, 0, 1, 1, &value);
  return static_cast<std::uint64_t>(value.v);
}

/// Inputs without gaps; what has some is copied.
Result<std::vector<Array>> dense(std::span<const Array> arrays, std::vector<HostTensor>& copies) {
  std::vector<Array> out(arrays.begin(), arrays.end());
  for (Array& array : out) {
    if (array.layout.is_contiguous()) continue;
    copies.push_back(TESSERA_TRY(HostTensor::allocate(array.dtype, array.shape())));
    copy_elements(array, copies.back().array());
    array = copies.back().array();
  }
  return out;
}

/// The reference of all cards for devices, by which they are told from others.
Result<void> run_device_card(const CallInfo& info, std::span<const Array> inputs,
                             std::span<const Array> results) {
  const DeviceCall& call = *static_cast<const DeviceCard&>(info.card()).device;
  if (call.capture) return run_on_host(call, inputs, results);
  return Error(ErrorCode::unsupported,
               cat("kernel '", call.name, "' is code for a GPU: it needs an engine on a CUDA device"));
}

}  // namespace

DeviceCard::DeviceCard() { reference = &run_device_card; }

DeviceCard::DeviceCard(const DeviceCall& call) : DeviceCard() {
  name = call.name;
  device = &call;
}

const DeviceCall* tessera::op::device_call_of(const Card& card) {
  return card.reference == &run_device_card ? static_cast<const DeviceCard&>(card).device : nullptr;
}

const StreamCall::Argument& StreamCall::argument(std::size_t i) const {
  if (i >= arguments_.size()) refuse(cat("there is no parameter ", i, ", there are ", arguments_.size()));
  return arguments_[i];
}

void* StreamCall::pointer(std::size_t i, std::size_t element_size) const {
  const Argument& array = argument(i);
  if (array.is_number) refuse(cat("parameter '", array.name, "' is a number, not an array"));
  if (ir::size_of(array.dtype) != element_size)
    refuse(cat("parameter '", array.name, "' has dtype ", array.dtype, ", read as elements of ", element_size,
               " bytes"));
  return array.pointer;
}

const StreamCall::Argument& StreamCall::number_at(std::size_t i) const {
  const Argument& number = argument(i);
  if (!number.is_number) refuse(cat("parameter '", number.name, "' is an array, not a number"));
  return number;
}

double StreamCall::number(std::size_t i) const {
  const Argument& number = number_at(i);
  return ir::is_float(number.dtype) ? std::bit_cast<double>(number.bits)
                                    : static_cast<double>(static_cast<std::int64_t>(number.bits));
}

std::int64_t StreamCall::integer(std::size_t i) const {
  const Argument& number = number_at(i);
  if (ir::is_float(number.dtype)) refuse(cat("parameter '", number.name, "' is not an integer"));
  return static_cast<std::int64_t>(number.bits);
}

Error tessera::op::error_of_exception(std::string_view name) {
  const auto failed = [&](ErrorCode code, std::string_view why) { return Error(code, cat(name, ": ", why)); };
  try {
    throw;
  } catch (const Exception& exception) {
    return failed(exception.error().code(), exception.error().message());
  } catch (const std::bad_alloc&) {
    return failed(ErrorCode::memory, "no memory");
  } catch (const std::exception& exception) {
    return failed(ErrorCode::device, exception.what());
  } catch (...) {
    return failed(ErrorCode::device, "threw something that is no std::exception");
  }
}

Result<void> tessera::op::run_on_host(const DeviceCall& call, std::span<const Array> inputs,
                                      std::span<const Array> results) {
  std::vector<HostTensor> copies;
  const std::vector<Array> from = TESSERA_TRY(dense(inputs, copies));
  for (const DeviceCall::Updated& pair : call.updated)
    copy_elements(inputs[pair.input], results[pair.result]);
  std::vector<StreamCall::Argument> arguments;
  for (const DeviceArgument& argument : call.arguments) {
    const Array& array =
        argument.kind == DeviceArgument::Kind::result ? results[argument.index] : from[argument.index];
    StreamCall::Argument next{.name = argument.name, .dtype = array.dtype, .shape = array.shape()};
    next.is_number = !argument.is_pointer();
    if (next.is_number)
      next.bits = bits_of(array);
    else
      next.pointer = array.at(array.layout.offset);
    arguments.push_back(next);
  }
  return guarded(call.name, [&] { call.capture(StreamCall(nullptr, arguments)); });
}

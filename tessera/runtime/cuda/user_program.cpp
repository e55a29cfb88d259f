#include "tessera/runtime/cuda/user_program.h"

#include <algorithm>
#include <bit>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/wide.h"
#include "tessera/runtime/cuda/number_value.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/program_draft.h"

using namespace tessera;
using namespace tessera::runtime::cuda;
using op::DeviceArgument;

namespace {

constexpr std::array<std::int64_t, 3> most_blocks = {2147483647, 65535, 65535};
constexpr std::array<std::int64_t, 3> most_threads = {1024, 1024, 64};
constexpr std::int64_t most_threads_of_block = 1024;

std::vector<op::Extents> shapes_of(std::span<const op::Array> arrays) {
  std::vector<op::Extents> out;
  for (const op::Array& array : arrays) out.push_back(array.shape());
  return out;
}

class UserProgram {
 public:
  UserProgram(const op::CallInfo& call, std::span<const op::Array> inputs, std::span<const op::Array> results,
              std::span<const InputNumber> numbers)
      : device_(*op::device_call_of(call.card())),
        inputs_(inputs),
        results_(results),
        numbers_(numbers),
        draft_(inputs, results) {}

  Result<StepProgram> run(SourceSpan at) {
    begin_results();
    Launch launch = TESSERA_TRY(device_.capture ? captured(std::move(at)) : kernel());
    for (const DeviceArgument& argument : device_.arguments)
      launch.arguments.push_back(TESSERA_TRY(argument_of(argument)));
    if (!is_empty(launch)) draft_.append(std::move(launch));
    return std::move(draft_).finish();
  }

 private:
  [[nodiscard]] Error error(ErrorCode code, std::string_view what) const {
    return Error(code, cat(device_.name, ": ", what));
  }

  static bool is_same_place(const op::Array& a, const op::Array& b) {
    return a.at(a.layout.offset) == b.at(b.layout.offset) && a.layout.is_contiguous();
  }

  void begin_results() {
    for (const auto& [result, input] : device_.updated) {
      if (is_same_place(inputs_[input], results_[result])) continue;
      const ProgramArray from = draft_.input(input), to = draft_.result(result);
      draft_.add(copy_program(from.array, to.array), {&from, 1}, {&to, 1});
    }
    for (const std::uint32_t result : device_.cleared) {
      Launch clear{.kind = Launch::Kind::clear, .to = first_of(draft_.result(result))};
      clear.bytes = results_[result].size() * static_cast<std::int64_t>(ir::size_of(results_[result].dtype));
      if (!is_empty(clear)) draft_.append(std::move(clear));
    }
  }

  Result<Launch> captured(SourceSpan at) {
    if (device_.launch) sizes_ = TESSERA_TRY(device_.launch(shapes_of(inputs_), shapes_of(results_))).sizes;
    auto call = std::make_shared<CapturedCall>();
    call->call = &device_;
    call->at = std::move(at);
    for (const DeviceArgument& argument : device_.arguments) {
      if (argument.kind == DeviceArgument::Kind::size) {
        call->arguments.push_back({argument.dtype, {}});
        continue;
      }
      const auto& arrays = argument.kind == DeviceArgument::Kind::result ? results_ : inputs_;
      call->arguments.push_back({arrays[argument.index].dtype, arrays[argument.index].shape()});
    }
    return Launch{.kind = Launch::Kind::captured, .captured = std::move(call)};
  }

  Result<Launch> kernel() {
    const op::LaunchShape shape = TESSERA_TRY(device_.launch(shapes_of(inputs_), shapes_of(results_)));
    sizes_ = shape.sizes;
    Launch out;
    out.source = source();
    out.grid = TESSERA_TRY(extent(shape.grid, most_blocks, "grid"));
    out.block = TESSERA_TRY(extent(shape.block, most_threads, "block"));
    const std::int64_t threads = shape.block[0] * shape.block[1] * shape.block[2];
    if (threads < 1 || threads > most_threads_of_block)
      return error(ErrorCode::invalid_argument,
                   cat("a block of ", threads, " threads; it has 1 to ", most_threads_of_block));
    if (shape.shared_bytes < 0 || shape.shared_bytes > std::int64_t{1} << 30)
      return error(ErrorCode::invalid_argument, cat(shape.shared_bytes, " bytes of shared memory"));
    out.shared_bytes = static_cast<std::uint32_t>(shape.shared_bytes);
    return out;
  }

  Result<Extent3> extent(const std::array<std::int64_t, 3>& given, const std::array<std::int64_t, 3>& most,
                         std::string_view what) const {
    for (std::size_t i = 0; i < 3; ++i)
      if (given[i] < 0 || given[i] > most[i])
        return error(ErrorCode::limit, cat("its ", what, " is [", join(given, ", "), "], at most [",
                                           join(most, ", "), "] is possible"));
    return Extent3{static_cast<std::uint32_t>(given[0]), static_cast<std::uint32_t>(given[1]),
                   static_cast<std::uint32_t>(given[2])};
  }

  [[nodiscard]] SourceRef source() const {
    auto user = std::make_shared<UserCode>();
    user->name = device_.name;
    user->code = device_.code;
    for (const DeviceArgument& argument : device_.arguments)
      user->parameter_bytes.push_back(
          static_cast<std::uint8_t>(argument.is_pointer() ? 8 : ir::size_of(argument.dtype)));
    auto out = std::make_shared<Source>();
    out->entry = device_.entry;
    out->user = std::move(user);
    return out;
  }

  static Memory first_of(const ProgramArray& array) {
    Memory out = array.memory;
    out.byte += array.array.layout.offset * static_cast<std::int64_t>(ir::size_of(array.array.dtype));
    return out;
  }

  Result<Argument> argument_of(const DeviceArgument& argument) {
    switch (argument.kind) {
      case DeviceArgument::Kind::result:
        return Argument{.kind = Argument::Kind::memory, .memory = first_of(draft_.result(argument.index))};
      case DeviceArgument::Kind::input:
        return Argument{.kind = Argument::Kind::memory, .memory = first_of(dense_input(argument.index))};
      case DeviceArgument::Kind::number:
        return number(argument);
      case DeviceArgument::Kind::size:
        break;
    }
    return Argument{.bits = size_value(sizes_[argument.index], argument.dtype, as_argument(argument.dtype))};
  }

  ProgramArray dense_input(std::size_t i) {
    ProgramArray out = draft_.input(i);
    if (out.array.layout.is_contiguous()) return out;
    const ProgramArray copy = draft_.scratch(out.array.dtype, out.array.shape());
    draft_.add(copy_program(out.array, copy.array), {&out, 1}, {&copy, 1});
    return copy;
  }

  /// What is captured reads numbers as doubles or i64.
  [[nodiscard]] ir::Dtype as_argument(ir::Dtype dtype) const {
    return device_.capture && ir::is_float(dtype) ? ir::Dtype::f64 : kernel_number(dtype);
  }

  Result<Argument> number(const DeviceArgument& argument) const {
    const InputNumber& known = numbers_[argument.index];
    const ir::Dtype as = as_argument(argument.dtype);
    if (known.kind == InputNumber::Kind::slot)
      return Argument{.kind = Argument::Kind::number, .slot = known.slot, .dtype = as};
    if (known.kind == InputNumber::Kind::value)
      return Argument{.bits = argument_value(known.bits, inputs_[argument.index].dtype, as)};
    return error(ErrorCode::unsupported,
                 cat("its number '", argument.name, "' is computed on the device: give it a tensor instead"));
  }

  const op::DeviceCall& device_;
  std::span<const op::Array> inputs_, results_;
  std::span<const InputNumber> numbers_;
  ProgramDraft draft_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

std::uint64_t tessera::runtime::cuda::size_value(std::int64_t bits, ir::Dtype dtype, ir::Dtype as) {
  const ir::Dtype from = ir::is_float(dtype) ? ir::Dtype::f64 : ir::Dtype::i64;
  return argument_value(static_cast<std::uint64_t>(bits), from, as);
}

ir::Dtype tessera::runtime::cuda::kernel_number(ir::Dtype dtype) {
  if (!ir::is_float(dtype)) return ir::Dtype::i64;
  return dtype == ir::Dtype::f64 ? ir::Dtype::f64 : ir::Dtype::f32;
}

bool tessera::runtime::cuda::runs_on_host(const op::Card& card) {
  return op::device_call_of(card) == nullptr && card.reference != nullptr && !op::is_in_catalogue(card);
}

InputNumber tessera::runtime::cuda::number_in(const std::byte* element, ir::Dtype dtype) {
  InputNumber out{.kind = InputNumber::Kind::value};
  if (ir::is_float(dtype)) {
    double value = 0;
    op::loader<double>(dtype)(element, 0, 1, 1, &value);
    out.bits = std::bit_cast<std::uint64_t>(value);
  } else {
    op::SignedWide value;
    op::loader<op::SignedWide>(dtype)(element, 0, 1, 1, &value);
    out.bits = static_cast<std::uint64_t>(value.v);
  }
  return out;
}

Result<StepProgram> tessera::runtime::cuda::user_program(const op::CallInfo& call,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         std::span<const InputNumber> numbers,
                                                         SourceSpan at) {
  const op::DeviceCall& device = *op::device_call_of(call.card());
  if (device.code == nullptr && !device.capture)
    return Error(ErrorCode::unsupported, cat(call.card().name, ": has no code for CUDA devices"));
  return UserProgram(call, inputs, results, numbers).run(std::move(at));
}

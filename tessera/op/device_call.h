// What a device runs for an op of the program's own: a kernel, or calls that a library makes on a stream.
// It says which pointers, numbers and sizes the code is given.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/op/array.h"
#include "tessera/op/card.h"
#include "tessera/op/kernel_code.h"

namespace tessera::op {

/// What the code is given for one of its parameters.
struct DeviceArgument {
  enum class Kind : std::uint8_t {
    input,   ///< a pointer to the elements of input `index`, row by row
    result,  ///< a pointer to those of result `index`
    number,  ///< input `index`, which is a number
    size,    ///< value `index` of the launch: a size, or the bits of a double
  };

  Kind kind = Kind::input;
  std::uint32_t index = 0;
  Dtype dtype = Dtype::f32;  ///< of a number or a size: f64, f32 or an integer
  std::string name;

  [[nodiscard]] bool is_pointer() const { return kind == Kind::input || kind == Kind::result; }
};

/// How a kernel is launched for arrays of some shapes.
struct LaunchShape {
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  std::array<std::int64_t, 3> block = {1, 1, 1};
  std::int64_t shared_bytes = 0;    ///< dynamic shared memory
  std::vector<std::int64_t> sizes;  ///< what arguments that are sizes are
};

/// A call as a function sees it that queues work on a stream. Wrong positions and types throw Exception.
class StreamCall {
 public:
  struct Argument {
    std::string_view name;
    Dtype dtype = Dtype::f32;
    std::span<const std::int64_t> shape;
    void* pointer = nullptr;  ///< of an array; null if it has no elements
    bool is_number = false;
    std::uint64_t bits = 0;  ///< of a number: of a double for floats, of an i64 for the others
  };

  StreamCall(void* stream, std::span<const Argument> arguments) : stream_(stream), arguments_(arguments) {}

  /// A CUstream; null on devices that compute on the host, where pointers are the host's.
  [[nodiscard]] void* stream() const { return stream_; }
  [[nodiscard]] std::size_t size() const { return arguments_.size(); }
  [[nodiscard]] const Argument& argument(std::size_t i) const;
  [[nodiscard]] std::span<const std::int64_t> shape(std::size_t i) const { return argument(i).shape; }
  /// The elements of an array, row by row. T has the size of the dtype.
  template <class T>
  [[nodiscard]] T* data(std::size_t i) const {
    return static_cast<T*>(pointer(i, sizeof(T)));
  }
  [[nodiscard]] double number(std::size_t i) const;
  [[nodiscard]] std::int64_t integer(std::size_t i) const;

 private:
  [[nodiscard]] void* pointer(std::size_t i, std::size_t element_size) const;
  [[nodiscard]] const Argument& number_at(std::size_t i) const;

  void* stream_;
  std::span<const Argument> arguments_;
};

/// Immutable, but for the code of the kernel.
struct DeviceCall {
  /// A result that begins as a copy of an input, which the code then updates.
  struct Updated {
    std::uint32_t result = 0;
    std::uint32_t input = 0;
  };
  using Launch =
      std::function<Result<LaunchShape>(std::span<const Extents> inputs, std::span<const Extents> results)>;
  using Capture = std::function<void(const StreamCall&)>;

  std::string name;
  std::vector<DeviceArgument> arguments;
  std::vector<Updated> updated;
  std::vector<std::uint32_t> cleared;  ///< results that are zero at first
  // Of a kernel:
  std::shared_ptr<KernelSource> code;
  std::string entry;
  Launch launch;
  // Of calls of a library:
  Capture capture;
};

/// The card of an op that is such a call, which outlives it.
struct DeviceCard : Card {
  DeviceCard();
  /// A card without rules: for calls whose types are known.
  explicit DeviceCard(const DeviceCall& call);

  const DeviceCall* device = nullptr;
};
/// The call of a card that is a DeviceCard; null of others.
[[nodiscard]] const DeviceCall* device_call_of(const Card& card);

/// What `f`, a function of the program, returns; what it throws as an error that begins with `name`.
template <class F>
auto guarded(std::string_view name, F&& f) -> Result<decltype(f())>;
/// The error of the exception that is being handled.
[[nodiscard]] Error error_of_exception(std::string_view name);

/// Runs captured calls on the host, on arrays that lie there: without a stream.
[[nodiscard]] Result<void> run_on_host(const DeviceCall& call, std::span<const Array> inputs,
                                       std::span<const Array> results);

template <class F>
auto guarded(std::string_view name, F&& f) -> Result<decltype(f())> {
  try {
    if constexpr (std::is_void_v<decltype(f())>)
      return f(), Result<void>();
    else
      return f();
  } catch (...) {
    return error_of_exception(name);
  }
}

}  // namespace tessera::op

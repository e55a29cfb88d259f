// What is behind kernel nodes and captured nodes, by name: functions of the host, or code of a device.
//
// A kernel runs at every launch on the arguments the plan holds. A capture runs when the plan is built or
// patched: it sees pointers and numbers once and records the calls that every launch then makes, as a library
// does on a stream.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/describe/description.h"
#include "tessera/op/device_call.h"

namespace tessera::description {

/// Rows of an append buffer that were given to an appender.
struct AppendedRows {
  std::uint64_t first = 0;
  std::uint64_t count = 0;  ///< less than asked for if the buffer is full
};

/// How many rows were asked for in an append buffer since its counter was reset. Any number of threads.
class AppendCounter {
 public:
  /// Asks for `rows` rows. Those that fit are the caller's to fill; the others are counted as lost.
  AppendedRows reserve(std::uint64_t rows, std::uint64_t capacity);
  void reset() { asked_ = 0; }
  /// What a device has counted.
  void set(std::uint64_t asked) { asked_ = asked; }
  [[nodiscard]] std::uint64_t asked() const { return asked_; }

 private:
  std::atomic<std::uint64_t> asked_ = 0;  ///< stays at the largest number instead of wrapping
};

/// A parameter as a host function sees it.
struct Argument {
  std::string name;
  Access access = Access::read;
  bool is_scalar = false;
  Dtype dtype = Dtype::f32;
  Extents shape;
  std::byte* data = nullptr;  ///< null for a scalar, and for a pin that is not required and has no buffer
  ScalarValue scalar;
  AppendCounter* counter = nullptr;     ///< of a buffer that is appended to
  std::byte* device_counter = nullptr;  ///< of one on a device: 64 bits in its memory
  double* device_value = nullptr;       ///< of a number in device memory: where it lies, on a device there
};

/// What kernels and captures can ask of their arguments. A wrong position or C++ type throws Exception, which
/// the launch reports with the node's name.
class Arguments {
 public:
  Arguments(std::span<const Argument> arguments, std::array<std::int64_t, 3> grid)
      : arguments_(arguments), grid_(grid) {}

  [[nodiscard]] std::size_t size() const { return arguments_.size(); }
  [[nodiscard]] const std::array<std::int64_t, 3>& grid() const { return grid_; }
  [[nodiscard]] const Argument& argument(std::size_t i) const;
  /// The position of a parameter.
  [[nodiscard]] std::size_t index_of(std::string_view name) const;
  /// The elements of a pin's buffer. T has the size of the dtype.
  template <class T>
  [[nodiscard]] std::span<T> values(std::size_t i) const {
    const Argument& pin = pin_of(i, sizeof(T));
    return {reinterpret_cast<T*>(pin.data), static_cast<std::size_t>(op::element_count(pin.shape))};
  }
  [[nodiscard]] double number(std::size_t i) const;
  [[nodiscard]] std::int64_t integer(std::size_t i) const;
  /// Where a number in device memory lies: what it is there, at every launch, is the number.
  [[nodiscard]] const double* device_number(std::size_t i) const;
  /// Rows of an append buffer that hold something.
  [[nodiscard]] std::uint64_t count(std::size_t i) const;
  /// Asks for rows of an append buffer. What does not fit is reported by the launch as an overflow.
  [[nodiscard]] AppendedRows reserve(std::size_t i, std::uint64_t rows) const;
  /// Appends one element to an append buffer of rank 1; false if it is full.
  template <class T>
  bool append(std::size_t i, const T& value) const {
    const std::span<T> all = values<T>(i);
    const AppendedRows row = reserve(i, 1);
    if (row.count != 0) all[row.first] = value;
    return row.count != 0;
  }

 private:
  [[nodiscard]] const Argument& pin_of(std::size_t i, std::size_t element_size) const;

  std::span<const Argument> arguments_;
  std::array<std::int64_t, 3> grid_;
};

class KernelCall : public Arguments {
 public:
  using Arguments::Arguments;
};

class CaptureCall : public Arguments {
 public:
  using Arguments::Arguments;
  /// Adds a call that every launch makes. `kernel` names it: a captured graph with the same names can be
  /// patched.
  void record(std::string kernel, std::function<void()> call) {
    calls_.push_back({std::move(kernel), std::move(call)});
  }
  /// The calls share nothing with other nodes but what the parameters say, so that they may run at the same
  /// time as nodes that they do not wait for.
  void allow_side_by_side() { is_side_by_side_ = true; }
  [[nodiscard]] bool is_side_by_side() const { return is_side_by_side_; }

  struct Call {
    std::string kernel;
    std::function<void()> run;
  };
  [[nodiscard]] std::vector<Call> take_calls() { return std::move(calls_); }

 private:
  std::vector<Call> calls_;
  bool is_side_by_side_ = false;
};

/// Kernels that do not wait for each other may run at the same time (HostOptions::threads): what they share
/// is what their parameters say.
using KernelFunction = std::function<void(KernelCall&)>;
using CaptureFunction = std::function<void(CaptureCall&)>;
/// Makes a kernel: compiles a source, opens a library. Its error is reported at the nodes that call the
/// kernel.
using KernelLoader = std::function<Result<KernelFunction>()>;

/// Code of a device, which is given addresses of its memory. What a node gives to it follows from the node's
/// parameters: the call has no arguments of its own.
struct DeviceCode {
  op::DeviceCall call;
  std::array<std::int64_t, 3> threads = {1, 1, 1};  ///< of a block of a kernel
};
using DeviceCodeRef = std::shared_ptr<const DeviceCode>;

/// The kernels and captures there are. A value: copies share the functions.
class KernelTable {
 public:
  /// Adds or replaces.
  KernelTable& add(std::string name, KernelFunction kernel);
  KernelTable& add_loader(std::string name, KernelLoader loader);
  KernelTable& add_device_kernel(std::string name, DeviceCode code);
  KernelTable& add_capture(std::string name, CaptureFunction capture);
  KernelTable& add_device_capture(std::string name, DeviceCode code);

  /// What a kernel, or a capture, takes: a node that gives it other parameters is an error. Compared are
  /// names, access, whether it is a number, and the dtype where one is given here.
  KernelTable& declare(NodeKind kind, std::string name, std::vector<Parameter> parameters);

  /// Null: it is for a device, or there is none.
  [[nodiscard]] const CaptureFunction* find_capture(std::string_view name) const;
  [[nodiscard]] bool has_kernel(std::string_view name) const { return entries_.contains(name); }
  [[nodiscard]] bool has_capture(std::string_view name) const { return captures_.contains(name); }
  /// The kernel of the host, loaded at most once per entry. Any number of threads.
  [[nodiscard]] Result<std::shared_ptr<const KernelFunction>> load(std::string_view name) const;
  /// Whether a kernel can be used: it loads, or its code can be read.
  [[nodiscard]] Result<void> check(std::string_view name) const;
  /// The code of a kernel or a capture for a device; null: it is for the host, or there is none.
  [[nodiscard]] DeviceCodeRef device_kernel(std::string_view name) const;
  [[nodiscard]] DeviceCodeRef device_capture(std::string_view name) const;
  /// Null: it was not said.
  [[nodiscard]] const std::vector<Parameter>* declared(NodeKind kind, const std::string& name) const;
  /// "'a', 'b'": for messages.
  [[nodiscard]] std::string names() const;
  [[nodiscard]] std::string capture_names() const;

 private:
  struct Entry;
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> entries_;
  struct Capture {
    std::shared_ptr<const CaptureFunction> function;
    DeviceCodeRef code;  ///< in place of a function
  };
  std::map<std::string, Capture, std::less<>> captures_;
  std::map<std::pair<NodeKind, std::string>, std::vector<Parameter>> declared_;
};

}  // namespace tessera::description

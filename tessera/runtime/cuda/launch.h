// What a step does on the device, as data: kernels with their sources and arguments, clears and copies. It
// knows no driver, so that it can be made and tested on machines without a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/ir/dtype.h"
#include "tessera/op/device_call.h"

namespace tessera::runtime::cuda {

/// Bytes. Wider accesses than this are not made.
inline constexpr std::uintptr_t widest_access = 16;

/// Code of the program's own: what it is may change, from launch to launch.
struct UserCode {
  std::string name;  ///< of the kernel, for messages
  std::shared_ptr<op::KernelSource> code;
  std::vector<std::uint8_t> parameter_bytes;  ///< of what a launch gives it
};

/// CUDA C++ without includes, for NVRTC. The text is the identity: equal text is equal code.
struct Source {
  std::string text;
  std::string entry;  ///< an extern "C" __global__ function in it
  /// It waits by itself for what it depends on, before it reads or writes anything: on devices that have it,
  /// `griddepcontrol.wait`. It may start while that still runs.
  bool waits = false;
  bool walks = false;                         ///< any number of threads and blocks along x does its work
  std::shared_ptr<const UserCode> user = {};  ///< the code is this, and there is no text
  std::string file = "kernel.cu";             ///< for messages
};
using SourceRef = std::shared_ptr<const Source>;

struct Extent3 {
  std::uint32_t x = 1, y = 1, z = 1;

  bool operator==(const Extent3&) const = default;
};

/// Memory that a launch uses: an array of the step, or some that lives as long as the step runs. A status is
/// the `Status` of one of the step's checks: zero when the step begins, read by the host when all is done.
struct Memory {
  enum class Kind : std::uint8_t { input, result, scratch, status };

  Kind kind = Kind::input;
  std::uint32_t index = 0;  ///< which one of its kind
  std::int64_t byte = 0;    ///< from the address that the executable knows for it

  bool operator==(const Memory&) const = default;
};

/// An argument of a kernel, in the order of its parameters.
struct Argument {
  enum class Kind : std::uint8_t {
    memory,  ///< a pointer
    number,  ///< scalar parameter `slot` of the plan, as `dtype`: the only one that changes between launches
    plain,   ///< `bits`, of which `bytes` are the parameter's
  };

  Kind kind = Kind::plain;
  Memory memory = {};
  std::uint32_t slot = 0;
  ir::Dtype dtype = ir::Dtype::f32;  ///< of a number: f64, f32, or i64 for integers
  std::uint64_t bits = 0;
  std::uint8_t bytes = 8;

  bool operator==(const Argument&) const = default;
};

/// A matrix product that a library computes: c[i, j] is the sum over k of a[i, k] * b[k, j], in each of a
/// batch, finished as `finish` says. Strides count elements.
struct Product {
  enum class Activation : std::uint8_t { none, relu, gelu };

  /// c = activation(scale * product + bias + array): a bias has one number per column, an array lies as c
  /// does.
  struct Finish {
    float scale = 1;
    bool adds_bias = false;
    bool adds_array = false;
    Activation activation = Activation::none;

    bool operator==(const Finish&) const = default;
  };
  struct Operand {
    std::int64_t leading = 0;     ///< from one row to the next; if transposed, from one column to the next
    bool is_transposed = false;   ///< neighbours in memory are neighbours in a column
    std::int64_t batch = 0;       ///< from one matrix to the next; 0: all use the same
    std::uint8_t alignment = 16;  ///< of its addresses, in bytes

    bool operator==(const Operand&) const = default;
  };

  ir::Dtype dtype = ir::Dtype::f32;
  std::int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  Operand a, b, c;
  Finish finish = {};

  bool operator==(const Product&) const = default;
};

/// All of it, for people and as a key: "1 f32 products ([64, 784] by 784, batch 0, 16) x ...".
[[nodiscard]] std::string to_text(const Product& product);

/// Work that a function of the program queues on a stream: it is captured.
struct CapturedCall {
  struct Argument {
    ir::Dtype dtype = ir::Dtype::f32;
    op::Extents shape;
  };

  const op::DeviceCall* call = nullptr;  ///< outlives the launches
  std::vector<Argument> arguments;       ///< as in the call
  SourceSpan at;                         ///< the caller's line
};

/// One node of the graph.
struct Launch {
  /// The arguments of a product are a, b, c and memory for the library (fit_workspaces()), and those
  /// of its finish: a bias, or 0, and an array. Those of what is captured are the call's, numbers as bits of
  /// a double or an i64.
  enum class Kind : std::uint8_t { kernel, clear, copy, product, captured };

  Kind kind = Kind::kernel;
  // Of a kernel:
  SourceRef source = {};
  Extent3 grid = {};
  Extent3 block = {};
  std::uint32_t shared_bytes = 0;  ///< dynamic
  std::vector<Argument> arguments = {};
  std::shared_ptr<const Product> product = {};
  std::shared_ptr<const CapturedCall> captured = {};
  // Of a clear (all bytes are 0) or a copy:
  Memory to = {};
  Memory from = {};
  std::int64_t bytes = 0;
};

/// Whether there is nothing to do: drivers refuse such launches.
[[nodiscard]] bool is_empty(const Launch& launch);

/// The most memory that an algorithm for a product may need beside its operands.
inline constexpr std::int64_t product_workspace = 32 << 20;

/// What kernels found wrong about the indices of a step, as it lies in the device's memory. A kernel that
/// finds an index outside neither reads nor writes with it.
struct Status {
  std::uint32_t lock = 0;  ///< taken by who writes the others
  std::uint32_t unused = 0;
  std::uint64_t first =
      0;  ///< 1 + the number of the first index that is outside, row-major; 0: all are inside
  std::int64_t index = 0;  ///< that index
};

/// What the indices of a status are about: number i is for `axes[i % axes.size()]`.
struct IndexCheck {
  struct Axis {
    std::size_t axis = 0;
    std::int64_t size = 0;

    bool operator==(const Axis&) const = default;
  };

  std::string op;
  std::vector<Axis> axes;
  std::int64_t limit =
      0;  ///< of a loop, which has no axes: `first` is not 0 if it was still to run after so many

  bool operator==(const IndexCheck&) const = default;
};

/// The error that the reference gives for what was found, if there is one.
[[nodiscard]] std::optional<Error> error_of(const IndexCheck& check, const Status& found);

/// A step: its launches run in their order.
struct StepProgram {
  std::vector<Launch> launches;
  std::vector<std::int64_t> scratch_bytes;  ///< of each scratch memory
  std::vector<IndexCheck> checks;           ///< one for each status
};

/// One line per launch, without the sources.
[[nodiscard]] std::string to_text(const StepProgram& program);

}  // namespace tessera::runtime::cuda

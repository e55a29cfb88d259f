// Runs step programs on the host: their sources are compiled by the system's C++ compiler behind
// device_side.h.
//
//   Emulator emulator;                          // for tests
//   TESSERA_TRY(emulator.compile(programs));    // all sources at once: one run of the compiler
//   TESSERA_TRY(emulator.run(program, inputs, results, numbers));
//
// A kernel that reads or writes outside its arrays is found if the arrays are guarded (GuardedArray).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "tessera/base/result.h"
#include "tessera/op/array.h"
#include "tessera/runtime/cuda/launch.h"

namespace tessera::runtime::cuda {

/// Where a product of a library lies in the host's memory.
struct HostProduct {
  const std::byte *a = nullptr, *b = nullptr, *bias = nullptr, *added = nullptr;
  std::byte* c = nullptr;
};
/// What a library does.
void compute_product(const Product& product, const HostProduct& at);

/// The order in which the threads of a block run: what is right is right in both.
enum class ThreadOrder : std::uint8_t { forward, backward };

class Emulator {
 public:
  /// Why nothing can be compiled here, or empty: for GTEST_SKIP.
  [[nodiscard]] static std::string why_unavailable();

  /// Compiles what is not compiled yet. Fails with the compiler's messages.
  [[nodiscard]] Result<void> compile(std::span<const StepProgram> programs);
  /// Runs the launches in their order; `numbers` are the scalar parameters by slot. Fails if a source was not
  /// compiled, an argument does not fit, threads wait for each other for ever, or a check found something.
  [[nodiscard]] Result<void> run(const StepProgram& program, std::span<const op::Array> inputs,
                                 std::span<const op::Array> results, std::span<const double> numbers = {},
                                 ThreadOrder order = ThreadOrder::forward);
  /// How a kernel is launched.
  struct Shape {
    Extent3 grid = {}, block = {};
    std::uint32_t shared_bytes = 0;  ///< dynamic; who touches what lies behind them ends the test
  };
  /// Runs one kernel that was compiled; each of `values` points to an argument.
  [[nodiscard]] Result<void> run_kernel(const Source& source, const Shape& shape, void** values,
                                        ThreadOrder order = ThreadOrder::forward);

 private:
  using Call = void (*)(void**);
  using LaunchAll = const char* (*)(Call, void**, const unsigned*, unsigned, bool, bool);
  struct Code {
    std::shared_ptr<void> library;
    Call call = nullptr;
    LaunchAll launch = nullptr;
    bool uses_barriers = true;
  };
  struct Run;

  [[nodiscard]] Result<void> launch(const Launch& step, Run& run);

  std::map<std::string, Code> codes_;  ///< by entry and text
};

/// A copy of an array behind and before memory that cannot be touched: what a kernel reads outside ends the
/// test, what it writes just around is found by `check`. The elements keep their layout.
class GuardedArray {
 public:
  /// The copy begins `misalignment` elements behind an address that is a multiple of 256.
  GuardedArray(const op::Array& array, std::int64_t misalignment = 0);
  GuardedArray(GuardedArray&& other) noexcept;
  GuardedArray& operator=(GuardedArray&&) = delete;
  ~GuardedArray();

  [[nodiscard]] const op::Array& array() const { return array_; }
  /// Fails if bytes around the elements were written to.
  [[nodiscard]] Result<void> check() const;

 private:
  op::Array array_;
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* begin_ = nullptr;  ///< of the copied bytes
  std::size_t bytes_ = 0;
};

}  // namespace tessera::runtime::cuda

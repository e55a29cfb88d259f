// Steps with their order that a device holds and launches as one: calls on its memory, clears, and regions
// whose bodies are steps too. They are changed in place; a launch that is under way is not touched by that.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/op/bound_call.h"
#include "tessera/runtime/executable.h"

namespace tessera::runtime {

/// What decides which bodies of a step run, and how often. The first element of an array decides as a number:
/// an integer is itself, a float 1 unless it is 0.
struct GraphRegion {
  enum class Kind : std::uint8_t {
    branch,   ///< body 0 if the number is not 0, else body 1 if there is one
    choice,   ///< the body of that number, if there is one
    repeat,   ///< body 0 as long as the number is not 0
    counted,  ///< body 0 as often as the number says, or `count` without an array
  };

  Kind kind = Kind::branch;
  op::Array decides;         ///< without data: there is none
  std::int64_t count = 0;    ///< of `counted`
  std::int64_t limit = 0;    ///< of a loop
  op::Array index;           ///< of `counted`: gets the number of the turn; without data: there is none
  std::uint32_t bodies = 1;  ///< how many
};

struct GraphStep {
  enum class Kind : std::uint8_t {
    call,
    clear,  ///< `bytes` at `at` become 0
    /// Of a counter at `at`, 64 bits without a sign: what lies behind it becomes the larger of both, the
    /// counter 0.
    reset,
    region,
  };

  Kind kind = Kind::call;
  std::uint32_t body = 0;            ///< that it stands in: 0, or that of a region, from its first_body on
  std::vector<std::uint32_t> after;  ///< steps of the same body that were listed before it, ascending
  op::BoundCallRef call = {};        ///< its results may lie where its inputs do
  std::byte* at = nullptr;
  std::size_t bytes = 0;
  GraphRegion region = {};
  std::uint32_t first_body = 0;  ///< of a region; those of a graph are numbered from 1
};

/// A number that a kernel of the program's own is given: an argument of its call that is a size.
struct StepNumber {
  std::uint32_t step = 0;
  std::uint32_t argument = 0;
  ir::Dtype dtype = ir::Dtype::f32;
  std::int64_t bits = 0;  ///< of a double for floats
};

/// What had to be done for a change.
struct StepGraphUpdate {
  std::uint32_t patched = 0;     ///< nodes of the device's graph
  std::uint32_t new_code = 0;    ///< those of them that run another function
  std::uint32_t recaptured = 0;  ///< those of them that were captured again
  bool is_remade = false;        ///< all of it was made anew
  std::string refusal = {};      ///< why, where a change in place was tried and refused
};

/// What a launch found wrong that went through.
struct StepFailure {
  std::uint32_t step = 0;
  std::optional<Error> error;  ///< of a call
  std::int64_t turns = 0;      ///< without an error: a loop would have had so many, or an unknown number (0)
};

/// The error of a step with whom it is about.
using StepBlame = std::function<Error(std::uint32_t step, Error error)>;

/// What of a launch is measured.
enum class LaunchTiming : std::uint8_t {
  none,
  total,  ///< the launch is done when launch() returns
  steps,  ///< of the outermost body, each
};

/// One thread at a time.
class StepGraph {
 public:
  virtual ~StepGraph() = default;

  /// Holds these steps, in an order in which they can run; a region is listed before the steps of its bodies,
  /// and those before what follows it. What it held is changed in place where that is possible. After an
  /// error it holds what it held. Fails with code `unsupported` if the device cannot hold such steps.
  [[nodiscard]] virtual Result<StepGraphUpdate> set(std::vector<GraphStep> steps) = 0;
  /// Other calls, addresses or numbers for some steps, whose kinds and orders stay.
  [[nodiscard]] virtual Result<StepGraphUpdate> replace(
      std::vector<std::pair<std::uint32_t, GraphStep>> steps) = 0;
  /// The same of numbers alone.
  [[nodiscard]] virtual Result<StepGraphUpdate> set_numbers(std::span<const StepNumber> numbers) = 0;

  /// Queues a launch. Waits for it if something may be found wrong, or for `timing`; `times` gets when steps
  /// ran. REQUIRES that it was set.
  [[nodiscard]] virtual Result<std::optional<StepFailure>> launch(LaunchTiming timing,
                                                                  std::vector<TimedStep>& times) = 0;
};

}  // namespace tessera::runtime

// A plan that is ready on a device: it is prepared for sizes, given addresses, launched, and asked for
// results. Evaluations, models and plans from files all launch through it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/engine/output_ring.h"
#include "tessera/runtime/device.h"
#include "tessera/runtime/launch_update.h"
#include "tessera/runtime/storage.h"

namespace tessera::engine {

/// How much of a plan had to change for an evaluation; the cheapest that is right.
enum class Tier : std::uint8_t {
  none,       ///< launched as it was
  hot,        ///< numbers changed
  warm,       ///< buffers or sizes changed
  recapture,  ///< a captured library call was captured again
  code,       ///< a kernel was built anew
  cold,       ///< the plan was made for this evaluation
  streamed,   ///< no plan: op by op
};
inline constexpr std::size_t tier_count = 7;
[[nodiscard]] std::string_view to_string(Tier tier);

/// What a launch had to change, and what it ran.
struct LaunchOutcome {
  Tier tier = Tier::none;
  std::string cause;
  std::string driven;  ///< regions that the host drives, with reasons
  std::uint64_t kernels = 0, views = 0;

  /// As it was made; the memory of its texts is used again.
  void clear();
};

struct LaunchOptions {
  std::vector<runtime::TimedStep>* times = nullptr;
  /// Whether the device may keep copies of inputs that stay as they are. With them it may round otherwise.
  bool keeps_copies = true;
};

/// Part of a stored tensor that begins elsewhere at each launch.
struct MovingPart {
  /// One position: `stride * position` elements, counted from the end of the axis if it is negative.
  struct Term {
    std::uint32_t position = 0;
    std::int64_t stride = 0, size = 0;
  };
  op::Layout layout;  ///< but for where it begins
  std::vector<Term> terms;

  /// Elements from the beginning of the tensor to that of the part.
  [[nodiscard]] std::int64_t offset(std::span<const std::int64_t> positions) const;
};

/// Whether a launch that failed says something about the data alone: the same instance may run others.
[[nodiscard]] bool is_of_data(const Error& error);

/// An executable with what its last launch was given, and the memory its outputs come from. One thread at a
/// time.
class PlanInstance {
 public:
  /// What an input reads: a stored tensor, or a part of it.
  struct Input {
    const runtime::Storage* storage = nullptr;
    std::int64_t offset = 0;  ///< of the part
    bool is_part = false;
  };
  /// By input; empty: all are whole tensors.
  using Parts = std::vector<std::optional<MovingPart>>;

  [[nodiscard]] static Result<std::unique_ptr<PlanInstance>> load(
      plan::PlanRef plan, runtime::Device& device, const std::shared_ptr<runtime::MemoryPool>& pool);

  /// Where the inputs are said before it is prepared and launched. Their storages are looked at until
  /// finish().
  [[nodiscard]] std::span<Input> inputs() { return given_; }

  /// `form` are words that say all sizes and the layouts of all inputs.
  [[nodiscard]] bool is_prepared_for(std::span<const std::int64_t> form) const;
  /// After an error it is prepared for what it was.
  [[nodiscard]] Result<void> prepare(std::span<const std::int64_t> form,
                                     std::span<const std::int64_t> symbols, Parts parts,
                                     LaunchOutcome& outcome);
  /// What it is prepared for.
  [[nodiscard]] const Parts& parts() const { return parts_; }
  /// REQUIRES that it is prepared for the layouts of the inputs, whose offsets may be others each time.
  /// `outcome` says in words what had to change since the last launch.
  [[nodiscard]] Result<void> launch(std::span<const std::uint64_t> parameters, runtime::MemoryPool& pool,
                                    const LaunchOptions& options, LaunchOutcome& outcome);
  /// An output of the launch, in memory of its own or in that of an input.
  [[nodiscard]] runtime::Storage output(std::size_t i) const;
  /// What the outputs lie in is theirs alone from now on.
  void finish() { used_.clear(); }

  /// What prepare() decided.
  [[nodiscard]] const plan::Binding& binding() const { return executable_->binding(); }
  [[nodiscard]] const plan::Plan& plan() const { return *plan_; }
  /// That worked.
  [[nodiscard]] std::uint64_t launches() const { return launches_; }
  /// Of the device's memory, that it keeps for the next launch.
  [[nodiscard]] std::size_t bytes() const;

 private:
  PlanInstance() = default;
  void note_executable();
  void set_inputs(bool keeps_copies, LaunchOutcome& outcome);
  void set_parameters(std::span<const std::uint64_t> parameters, LaunchOutcome& outcome);
  [[nodiscard]] Result<void> set_outputs(runtime::MemoryPool& pool);
  void note_update(LaunchOutcome& outcome);

  plan::PlanRef plan_;
  std::unique_ptr<runtime::Executable> executable_;
  bool is_prepared_ = false;  ///< for `form_`
  std::uint64_t launches_ = 0;
  bool is_prepared_anew_ = false;  ///< since the last launch
  std::vector<std::int64_t> form_;
  Parts parts_;
  std::vector<Input> given_;
  // What the last launch was given.
  std::vector<std::byte*> inputs_;
  std::vector<const runtime::Buffer*> buffers_;  ///< of the inputs
  std::vector<std::uint64_t> parameters_;
  std::vector<std::byte*> outputs_;
  OutputRing output_memory_;
  std::vector<Ref<runtime::Buffer>> used_;  ///< of it, by the last launch
  // Of the executable, for its sizes: a launch must not walk over the steps.
  std::uint64_t kernels_ = 0, views_ = 0;            ///< steps that compute, steps that do not
  const runtime::HoldsLaunches* updates_ = nullptr;  ///< null: it does not say what it had to change
  std::string driven_;                               ///< regions that the host drives, with reasons
};

}  // namespace tessera::engine

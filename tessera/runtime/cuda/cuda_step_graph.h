// Steps as one resident graph: a node for each launch of a call, conditional nodes for regions. A change is
// a patch of the nodes it is about; what the driver refuses to patch makes the graph anew.
#pragma once

#include <memory>
#include <vector>

#include "tessera/runtime/cuda/code_use.h"
#include "tessera/runtime/cuda/cuda_device.h"
#include "tessera/runtime/cuda/graph_twin.h"
#include "tessera/runtime/cuda/step_layout.h"

namespace tessera::runtime::cuda {

class CudaStepGraph final : public StepGraph {
 public:
  /// Nothing else uses `capturing`.
  CudaStepGraph(std::shared_ptr<CudaDevice> device, std::shared_ptr<const Stream> capturing, StepBlame blame);

  [[nodiscard]] Result<StepGraphUpdate> set(std::vector<GraphStep> steps) override;
  [[nodiscard]] Result<StepGraphUpdate> replace(
      std::vector<std::pair<std::uint32_t, GraphStep>> steps) override;
  [[nodiscard]] Result<StepGraphUpdate> set_numbers(std::span<const StepNumber> numbers) override;
  [[nodiscard]] Result<std::optional<StepFailure>> launch(LaunchTiming timing,
                                                          std::vector<TimedStep>& times) override;

 private:
  /// A step with what it launches and the memory that this uses.
  struct HeldStep {
    GraphStep step;
    std::vector<BoundLaunch> launches;
    std::vector<SourceRef> user_code;  ///< by launch; null where the code is not the program's own
    std::vector<std::shared_ptr<std::byte>> memory;
    std::vector<IndexCheck> checks;
    std::byte* status = nullptr;  ///< one per check
  };
  [[nodiscard]] Result<HeldStep> made(GraphStep step);
  [[nodiscard]] Result<void> make_call(HeldStep& to);
  [[nodiscard]] Result<void> make_region(HeldStep& to);
  [[nodiscard]] Result<BoundLaunch> kernel(const SourceRef& source, std::vector<std::uint64_t> values);
  [[nodiscard]] Result<std::byte*> take(HeldStep& to, std::size_t bytes);

  [[nodiscard]] Result<StepGraphUpdate> lay_out_anew();
  [[nodiscard]] Result<StepGraphUpdate> patch(std::span<const std::uint32_t> steps);
  [[nodiscard]] std::string words() const;
  void list_code();
  void list_checks();
  [[nodiscard]] Result<void> follow_code();
  [[nodiscard]] Result<void> launch_timed(std::vector<TimedStep>& times);
  [[nodiscard]] Result<std::optional<StepFailure>> read_statuses();
  [[nodiscard]] LaunchBlame launch_blame(const StepLayout& layout) const;

  std::shared_ptr<CudaDevice> device_;
  std::shared_ptr<const Stream> capturing_;
  StepBlame blame_;
  std::vector<HeldStep> steps_;
  StepLayout layout_;
  std::vector<CodeUse> code_;
  std::vector<std::uint32_t> checked_;         ///< steps that have checks
  std::shared_ptr<const PinnedMemory> found_;  ///< what their statuses said
  std::shared_ptr<const std::string> words_;   ///< what it is, for errors of the driver
  ResidentGraph graph_;
  std::unique_ptr<GraphTwin> twin_;  ///< of the launches as they are; null: to be made
};

}  // namespace tessera::runtime::cuda

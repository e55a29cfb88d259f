// Goes through passes with one program: disables, times, dumps and verifies any of them, and reports.
#pragma once

#include <vector>

#include "tessera/compile/pipeline.h"

namespace tessera::compiler {

class PassRunner {
 public:
  /// `target` and `tiling` are for the tiling alone. REQUIRES a valid function; all but it outlive the
  /// runner.
  PassRunner(ir::FunctionRef function, const PipelineOptions& options, const pattern::Target& target,
             const TilingOptions& tiling);

  /// REQUIRES the passes before it in the table have run, or were disabled.
  [[nodiscard]] Result<void> run(const Pass& pass);

  [[nodiscard]] Stage& stage() { return stage_; }
  [[nodiscard]] std::vector<PassReport> take_reports() { return std::move(reports_); }

 private:
  Result<void> apply(const Pass& pass, PassReport& report);
  Result<void> apply(PassFunction run, PassReport& report);
  Result<void> apply(TilePass run, PassReport& report);
  Result<void> apply(LowerPass run, PassReport& report);
  Result<void> apply(PlanPass run, PassReport& report);
  Result<void> apply(LivenessPass run, PassReport& report);
  Result<void> apply(BufferPass run, PassReport& report);
  [[nodiscard]] bool is_to_run(const Pass& pass) const;

  Stage stage_;
  const PipelineOptions& options_;
  const pattern::Target& target_;
  const TilingOptions& tiling_;
  std::size_t statements_;
  std::vector<PassReport> reports_;
};

}  // namespace tessera::compiler

// The chains that libraries compute, as tiles to choose from.
#pragma once

#include "tessera/kernel/kernel.h"
#include "tessera/pattern/step_cost.h"
#include "tessera/pattern/tile_source.h"

namespace tessera::runtime::cpu {

class LibraryTiles final : public pattern::TileSource {
 public:
  explicit LibraryTiles(pattern::StepCosts costs = {}, kernel::Accuracy accuracy = kernel::Accuracy::usual)
      : costs_(costs), accuracy_(accuracy) {}

  [[nodiscard]] std::string name() const override { return "libraries"; }
  [[nodiscard]] Result<void> list(const pattern::Graph& graph, pattern::CandidateList& out) const override;
  void describe(const pattern::Graph& graph, const pattern::CandidateList& list, std::size_t i,
                pattern::Tile& out) const override;
  [[nodiscard]] std::string name_of(const pattern::CandidateList& list, std::size_t i) const override;

 private:
  pattern::StepCosts costs_;
  kernel::Accuracy accuracy_;
};

}  // namespace tessera::runtime::cpu

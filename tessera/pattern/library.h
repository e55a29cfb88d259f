// A library of patterns as a source of tiles.
#pragma once

#include <vector>

#include "tessera/pattern/pattern.h"
#include "tessera/pattern/tile_source.h"

namespace tessera::pattern {

class PatternLibrary final : public TileSource {
 public:
  explicit PatternLibrary(std::vector<Pattern> patterns, std::string name = "library");

  [[nodiscard]] const std::vector<Pattern>& patterns() const { return patterns_; }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Result<void> list(const Graph& graph, CandidateList& out) const override;
  void describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const override;
  [[nodiscard]] std::string name_of(const CandidateList& list, std::size_t i) const override;

 private:
  /// Which pattern and variant the candidates of a kind are.
  struct KindRow {
    std::uint32_t pattern = 0;
    std::uint32_t variant = 0;
  };

  [[nodiscard]] Result<void> check_traits(const Traits& traits) const;

  std::string name_;
  std::vector<Pattern> patterns_;
  std::vector<KindRow> kinds_;
};

}  // namespace tessera::pattern

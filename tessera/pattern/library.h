// A library of patterns as a source of tiles.
#pragma once

#include <memory>
#include <vector>

#include "tessera/pattern/pattern.h"
#include "tessera/pattern/tile_source.h"

namespace tessera::pattern {

/// One variant of a pattern, and what its tiles share.
struct LibraryKind {
  std::uint32_t pattern = 0;
  std::uint32_t variant = 0;
  std::shared_ptr<const TileKind> tile = {};
  bool has_captures = false;
};

class PatternLibrary final : public TileSource {
 public:
  explicit PatternLibrary(std::vector<Pattern> patterns, std::string name = "library");

  [[nodiscard]] const std::vector<Pattern>& patterns() const { return patterns_; }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Result<void> list(const Graph& graph, CandidateList& out) const override;
  void describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const override;
  [[nodiscard]] std::string name_of(const CandidateList& list, std::size_t i) const override;

 private:
  [[nodiscard]] Result<void> check_traits(const ir::OpFacts& facts) const;

  std::string name_;
  std::vector<Pattern> patterns_;
  std::vector<LibraryKind> kinds_;
};

}  // namespace tessera::pattern

#include <algorithm>

#include "tessera/engine/autotune.h"

using namespace tessera;
using namespace tessera::engine;
using pattern::CandidateList;
using pattern::Graph;
using pattern::NodeId;

namespace {

/// The tiles of another source, without those that reach over a cut.
class CutTiles final : public pattern::TileSource {
 public:
  CutTiles(std::shared_ptr<const pattern::TileSource> inner, std::vector<TileCut> cuts)
      : inner_(std::move(inner)), cuts_(std::move(cuts)) {}

  [[nodiscard]] std::string name() const override { return inner_->name(); }

  [[nodiscard]] Result<void> list(const Graph& graph, CandidateList& out) const override {
    CandidateList all;
    TESSERA_TRY(inner_->list(graph, all));
    for (const std::string& gap : all.gaps()) out.set_incomplete(gap);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_cut(all.nodes(i))) continue;
      if (out.add(all.nodes(i), all.cost(i), all.kind(i), all.payload(i))) continue;
      out.set_full(name());
      break;
    }
    return {};
  }

  void describe(const Graph& graph, const CandidateList& list, std::size_t i,
                pattern::Tile& out) const override {
    inner_->describe(graph, list, i, out);
  }
  [[nodiscard]] std::string name_of(const CandidateList& list, std::size_t i) const override {
    return inner_->name_of(list, i);
  }

 private:
  static bool meet(std::span<const NodeId> nodes, const std::vector<std::uint32_t>& statements) {
    return std::any_of(statements.begin(), statements.end(), [&](std::uint32_t statement) {
      return std::binary_search(nodes.begin(), nodes.end(), statement);
    });
  }
  [[nodiscard]] bool is_cut(std::span<const NodeId> nodes) const {
    return std::any_of(cuts_.begin(), cuts_.end(), [&](const TileCut& cut) {
      return meet(nodes, cut.before) && meet(nodes, cut.behind);
    });
  }

  std::shared_ptr<const pattern::TileSource> inner_;
  std::vector<TileCut> cuts_;
};

}  // namespace

pattern::Target tessera::engine::with_cuts(const pattern::Target& target, const std::vector<TileCut>& cuts) {
  pattern::Target out = target;
  if (cuts.empty()) return out;
  for (auto& source : out.sources) source = std::make_shared<CutTiles>(source, cuts);
  return out;
}

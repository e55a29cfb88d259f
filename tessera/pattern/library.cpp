#include "tessera/pattern/library.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"
#include "tessera/pattern/matcher.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// What it takes to describe a match to who judges or prices it.
constexpr std::uint64_t described_work = 300;
constexpr std::uint64_t described_node_work = 60;

std::shared_ptr<const TileKind> tile_kind_of(const Pattern& pattern, const Variant& variant) {
  TileKind out{.name = pattern.name(), .kernel = pattern.kernel()};
  for (const PatternNode& node : variant.nodes) out.nodes.push_back({node.id, node.repeat.most != 1});
  return std::make_shared<const TileKind>(std::move(out));
}

bool has_captures(const Pattern& pattern) {
  const auto captures = [](const ValueCondition& condition) { return !condition.capture.empty(); };
  return std::ranges::any_of(pattern.parts().externals, captures, &PatternExternal::value) ||
         std::ranges::any_of(pattern.parts().nodes, [&](const PatternNode& node) {
           return std::ranges::any_of(node.attributes, captures, &AttributeCondition::value);
         });
}

/// Lists the matches of one variant. The payload of a candidate: for each node its image, or for a chain the
/// number of its ops and those; then the externals.
class VariantLister {
 public:
  VariantLister(const Graph& graph, const Pattern& pattern, const LibraryKind& kind, std::uint32_t number,
                CandidateList& out)
      : graph_(graph),
        pattern_(pattern),
        variant_(pattern.variants()[kind.variant]),
        kind_(kind),
        number_(number),
        out_(out) {}

  Result<void> run(MatchSpace& space) {
    const auto visit = [&](const Match& match) { return add(match); };
    const SearchEnd end = find_matches(graph_, pattern_, variant_, space, visit, out_.effort());
    if (error_) return *std::move(error_);
    const std::string name = quote(pattern_.name());
    if (end == SearchEnd::chains_missing)
      out_.set_incomplete(
          cat("pattern ", name, ": some chains of more than ", longest_full_chain(graph_), " ops"));
    else if (end == SearchEnd::gave_up)
      out_.set_incomplete(cat("pattern ", name, ": the search took too many steps"));
    else if (end == SearchEnd::stopped && out_.effort().is_over())
      out_.set_cut(cat("pattern ", name));
    else if (end == SearchEnd::stopped)
      out_.set_full(cat("pattern ", name));
    return {};
  }

 private:
  bool add(const Match& match) {
    write_payload(match);
    const PatternCost& cost = pattern_.parts().cost;
    double total = cost.base + cost.per_node * static_cast<double>(match.nodes.size());
    if (cost.compute != nullptr || pattern_.parts().where != nullptr) {
      Tile tile;
      read_tile(graph_, pattern_, kind_, match.nodes, payload_, tile);
      if (pattern_.parts().where != nullptr && !pattern_.parts().where(graph_, tile)) return true;
      if (cost.compute != nullptr) total = cost.compute(graph_, tile);
      out_.effort().spend(described_work + described_node_work * match.nodes.size());
    }
    if (!std::isfinite(total) || total < 0) {
      error_ = Error(ErrorCode::invalid_argument, cat("pattern ", quote(pattern_.name()), ": cost ", total,
                                                      " is not a finite number of at least 0"));
      return false;
    }
    return out_.add(match.nodes, total, number_, payload_);
  }

  void write_payload(const Match& match) {
    payload_.clear();
    for (std::uint32_t i = 0; i < variant_.nodes.size(); ++i) {
      if (variant_.nodes[i].repeat.most == 1) {
        payload_.push_back(match.images[i]);
        continue;
      }
      payload_.push_back(static_cast<std::uint32_t>(match.chains[i].size()));
      payload_.insert(payload_.end(), match.chains[i].begin(), match.chains[i].end());
    }
    payload_.insert(payload_.end(), match.externals.begin(), match.externals.end());
  }

 public:
  /// The inverse of write_payload.
  static void read_tile(const Graph& graph, const Pattern& pattern, const LibraryKind& kind,
                        std::span<const NodeId> nodes, std::span<const std::uint32_t> payload, Tile& tile) {
    tile.kind = kind.tile;
    for (NodeId node : nodes) tile.nodes.push_back(node);
    SmallVector<NodeId, 16> images;
    for (const PatternNodeName& name : kind.tile->nodes) {
      const std::size_t words = name.is_chain ? 1 + payload[0] : 1;
      for (std::uint32_t word : payload.first(words)) tile.node_images.push_back(word);
      images.push_back(payload[words - 1]);
      payload = payload.subspan(words);
    }
    const auto& externals = pattern.parts().externals;
    for (std::size_t i = 0; i < externals.size(); ++i)
      if (!externals[i].name.empty() && payload[i] != none)
        tile.externals.push_back({externals[i].name, payload[i]});
    if (kind.has_captures)
      tile.captures = captures_of(graph, pattern, pattern.variants()[kind.variant], images, payload);
    find_boundary(graph, tile);
  }

 private:
  const Graph& graph_;
  const Pattern& pattern_;
  const Variant& variant_;
  const LibraryKind& kind_;
  std::uint32_t number_;  ///< of the kind
  CandidateList& out_;
  std::vector<std::uint32_t> payload_;
  std::optional<Error> error_;
};

}  // namespace

PatternLibrary::PatternLibrary(std::vector<Pattern> patterns, std::string name)
    : name_(std::move(name)), patterns_(std::move(patterns)) {
  for (std::uint32_t p = 0; p < patterns_.size(); ++p)
    for (std::uint32_t v = 0; v < patterns_[p].variants().size(); ++v)
      kinds_.push_back(
          {p, v, tile_kind_of(patterns_[p], patterns_[p].variants()[v]), has_captures(patterns_[p])});
}

/// Readers of files have checked that, with a place; patterns built in C++ get here as they are.
Result<void> PatternLibrary::check_traits(const ir::OpFacts& facts) const {
  for (const Pattern& pattern : patterns_)
    for (const PatternNode& node : pattern.parts().nodes)
      for (const std::string& trait : node.op.traits)
        if (const auto message = find_unknown_trait(facts, trait))
          return Error(ErrorCode::invalid_argument,
                       cat("pattern ", quote(shortened(pattern.name(), 60)), ": node ",
                           quote(shortened(node.id, 60)), ": ", *message));
  return {};
}

Result<void> PatternLibrary::list(const Graph& graph, CandidateList& out) const {
  TESSERA_TRY(check_traits(*graph.facts()));
  MatchSpace space(graph);
  for (std::uint32_t kind = 0; kind < kinds_.size(); ++kind) {
    out.begin_part(kinds_.size() - kind);
    const Pattern& pattern = patterns_[kinds_[kind].pattern];
    TESSERA_TRY(VariantLister(graph, pattern, kinds_[kind], kind, out).run(space));
  }
  return {};
}

void PatternLibrary::describe(const Graph& graph, const CandidateList& list, std::size_t i, Tile& out) const {
  const LibraryKind& kind = kinds_[list.kind(i)];
  VariantLister::read_tile(graph, patterns_[kind.pattern], kind, list.nodes(i), list.payload(i), out);
}

std::string PatternLibrary::name_of(const CandidateList& list, std::size_t i) const {
  return patterns_[kinds_[list.kind(i)].pattern].name();
}

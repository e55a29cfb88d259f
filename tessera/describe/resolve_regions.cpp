#include "tessera/describe/resolve.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::uint32_t max_depth = 64;       // runtimes nest as deep on their stack
constexpr std::int64_t max_branches = 1'024;  // of a switch
constexpr std::int64_t max_all_branches = 1'000'000;

class RegionResolver {
 public:
  RegionResolver(Graph& graph, const Names& names, Report& report)
      : graph_(graph), d_(*graph.description), names_(names), report_(report) {}

  void run() {
    graph_.scopes.push_back({});
    make_branches();
    find_parents();
    measure_depth();
    for (std::uint32_t i = 0; i < d_.regions.size(); ++i) check(i);
    for (std::uint32_t i = 0; i < d_.nodes.size(); ++i)
      graph_.nodes[i].scope = scope_named(Item{false, i}, d_.nodes[i].within);
  }

 private:
  void make_branches() {
    std::int64_t total = 0;
    for (std::uint32_t i = 0; i < d_.regions.size(); ++i) {
      const std::int64_t wanted = d_.regions[i].branches;
      const std::int64_t most = d_.regions[i].kind == RegionKind::switch_ ? max_branches
                                : d_.regions[i].kind == RegionKind::if_   ? 2
                                                                          : 1;
      if ((wanted < 1 || wanted > most) && !d_.regions[i].incomplete)
        fail(i, cat("has ", wanted, " branches, expected 1 to ", most));
      const std::int64_t branches = std::clamp<std::int64_t>(wanted, 1, most);
      total += branches;
      if (total > max_all_branches)
        fail(i, cat("all regions together have more than ", max_all_branches, " branches"));
      graph_.first_branch.push_back(static_cast<std::uint32_t>(graph_.scopes.size()));
      for (std::int64_t k = 0; k < (total > max_all_branches ? 1 : branches); ++k)
        graph_.scopes.push_back({.region = i, .branch = static_cast<std::uint32_t>(k), .parent = 0});
    }
    graph_.first_branch.push_back(static_cast<std::uint32_t>(graph_.scopes.size()));
  }

  /// The scope that `within` names; the launch, with an error, if there is none.
  std::uint32_t scope_named(const Item& item, const Within& within) {
    if (within.region.empty()) return 0;
    const auto region = names_.region(within.region);
    if (!region) {
      report_.add(graph_.about(item, cat("there is no region ", shown(within.region))));
      return 0;
    }
    const std::uint32_t begin = graph_.first_branch[*region];
    const std::int64_t branches = graph_.first_branch[*region + 1] - begin;
    const bool is_outside = within.branch < 0 || within.branch >= branches;
    if (is_outside && !d_.regions[*region].incomplete) {
      report_.add(graph_.about(item, cat("stands in branch ", within.branch, " of region ",
                                         shown(within.region), ", which has ", branches)));
    }
    return is_outside ? begin : begin + static_cast<std::uint32_t>(within.branch);
  }

  void find_parents() {
    for (std::uint32_t i = 0; i < d_.regions.size(); ++i)
      graph_.region_scope.push_back(scope_named(Item{true, i}, d_.regions[i].within));
    set_parents();
  }
  void set_parents() {
    for (Scope& scope : graph_.scopes)
      if (scope.region != no_index) scope.parent = graph_.region_scope[scope.region];
  }

  /// Depths, without recursion: from each region up to one whose depth is known, and down again. A ring is
  /// cut.
  void measure_depth() {
    std::vector<std::uint32_t> depth(d_.regions.size(), no_index);
    std::vector<std::uint32_t> visit(d_.regions.size(), no_index);
    for (std::uint32_t first = 0; first < d_.regions.size(); ++first) {
      std::vector<std::uint32_t> path;
      std::uint32_t at = first;
      while (at != no_index && depth[at] == no_index && visit[at] != first) {
        visit[at] = first;
        path.push_back(at);
        at = graph_.scopes[graph_.region_scope[at]].region;
      }
      if (at != no_index && depth[at] == no_index) {
        fail(at, "the region stands in itself", ErrorCode::cycle);
        graph_.region_scope[at] = 0;
      }
      set_depths(path, at == no_index || depth[at] == no_index ? 0 : depth[at], depth);
    }
    set_parents();
    for (Scope& scope : graph_.scopes)
      if (scope.region != no_index) scope.depth = depth[scope.region];
  }

  void set_depths(const std::vector<std::uint32_t>& path, std::uint32_t above,
                  std::vector<std::uint32_t>& depth) {
    for (std::size_t k = path.size(); k-- > 0;) {
      const std::uint32_t region = path[k];
      if (graph_.region_scope[region] == 0) above = 0;
      if (++above > max_depth) {
        fail(region, cat("nested deeper than ", max_depth, " regions"), ErrorCode::limit);
        graph_.region_scope[region] = 0;
        above = 1;
      }
      depth[region] = above;
    }
  }

  void check(std::uint32_t i) {
    const Region& region = d_.regions[i];
    graph_.condition.push_back(named_buffer(i, region.condition, "condition"));
    graph_.index_buffer.push_back(named_buffer(i, region.index, "index"));
    if (!region.incomplete) check_kind(i);
  }

  void check_kind(std::uint32_t i) {
    const Region& region = d_.regions[i];
    if (region.kind == RegionKind::for_) {
      if (region.count.has_value() == !region.condition.empty())
        fail(i, "a for needs a count: a number, or a buffer, not both");
      if (region.count && *region.count < 0) fail(i, cat("count ", *region.count, " is negative"));
      if (region.count && *region.count > region.limit)
        fail(i, cat("count ", *region.count, " is beyond the limit of ", region.limit, " iterations"),
             ErrorCode::limit);
    } else {
      if (region.condition.empty()) fail(i, cat("needs a condition, as every ", to_string(region.kind)));
      if (region.count) fail(i, "has a count, which only a for has");
      if (!region.index.empty()) fail(i, "has an index, which only a for has");
    }
    if (is_loop(region.kind) && region.limit < 1) fail(i, cat("limit ", region.limit, " is not positive"));
    check_number(i, graph_.condition[i],
                 region.kind == RegionKind::for_ || region.kind == RegionKind::switch_);
    check_number(i, graph_.index_buffer[i], true);
  }

  std::uint32_t named_buffer(std::uint32_t region, const std::string& name, std::string_view what) {
    if (name.empty()) return no_index;
    const auto buffer = names_.buffer(name);
    if (!buffer) fail(region, cat("its ", what, " is buffer ", shown(name), ", which does not exist"));
    return buffer.value_or(no_index);
  }

  void check_number(std::uint32_t region, std::uint32_t index, bool must_be_integer) {
    if (index == no_index) return;
    const GraphBuffer& buffer = graph_.buffers[index];
    if (!buffer.has_type) return;
    if (buffer.bytes == 0)
      fail(region, cat("buffer ", shown(buffer.name), " has no element to look at"), ErrorCode::shape);
    if (must_be_integer && buffer.dtype != Dtype::i32 && buffer.dtype != Dtype::i64)
      fail(
          region,
          cat("buffer ", shown(buffer.name), " has dtype ", to_string(buffer.dtype), ", expected i32 or i64"),
          ErrorCode::shape);
  }

  void fail(std::uint32_t region, std::string message, ErrorCode code = ErrorCode::invalid_argument) {
    Diagnostic diagnostic = graph_.about(Item{true, region}, std::move(message));
    diagnostic.code = code;
    report_.add(std::move(diagnostic));
  }

  Graph& graph_;
  const Description& d_;
  const Names& names_;
  Report& report_;
};

}  // namespace

void tessera::description::resolve_regions(Graph& graph, const Names& names, Report& report) {
  RegionResolver(graph, names, report).run();
}

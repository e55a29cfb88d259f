#include "tessera/describe/scope_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::description;

namespace {

constexpr std::size_t longest_cycle_text = 12;

/// A link and why it is there.
struct Reason {
  Cause cause = Cause::edge;
  std::uint32_t what = no_index;
};

class ScopeOrderer {
 public:
  ScopeOrderer(const Graph& graph, const ScopeItems& in, const BufferScopes& scopes, Report& report)
      : graph_(graph), in_(in), scopes_(scopes), report_(report) {}

  OrderedScope run() {
    for (const Item& item : in_.items)
      steps_.push_back({.kind = item.is_region ? StepKind::region : StepKind::node, .index = item.index});
    add_stated_links();
    sort_stated();
    add_buffer_links();
    finish();
    return std::move(out_);
  }

 private:
  void add_stated_links() {
    std::map<Item, std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < in_.items.size(); ++i) numbers.emplace(in_.items[i], i);
    for (const Order* order : in_.orders) {
      const std::uint32_t before = numbers.at(graph_.lifted(order->before, in_.scope));
      const std::uint32_t after = numbers.at(graph_.lifted(order->after, in_.scope));
      const bool by_edge = order->edge != no_index;
      link(before, after,
           {by_edge ? Cause::edge : Cause::dependency, by_edge ? order->edge : order->dependency});
    }
  }

  /// Program order: the listing, as far as what was stated allows.
  void sort_stated() {
    std::vector<std::uint32_t> listing(steps_.size());
    for (std::uint32_t i = 0; i < listing.size(); ++i) listing[i] = i;
    const SortedScope sorted = sort_scope(listing, links_);
    has_stated_cycle_ = !sorted.cycles.empty();
    report_cycles(sorted);
    rank_.resize(steps_.size());
    for (std::uint32_t i = 0; i < sorted.order.size(); ++i) rank_[sorted.order[i]] = i;
  }

  void add_buffer_links() {
    std::vector<ItemUse> all;
    for (std::uint32_t i = 0; i < in_.items.size(); ++i)
      for (const Use& use : in_.uses[i]) all.push_back({i, use});
    std::sort(all.begin(), all.end(), [&](const ItemUse& a, const ItemUse& b) {
      return std::pair(a.use.buffer, rank_[a.item]) < std::pair(b.use.buffer, rank_[b.item]);
    });
    std::vector<Reach::Link> stated;
    for (const ScopeLink& one : links_) stated.emplace_back(one.before, one.after);
    Reach reach(in_.items.size(), stated);
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && all[end].use.buffer == all[begin].use.buffer) ++end;
      std::vector<ItemUse> uses(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                all.begin() + static_cast<std::ptrdiff_t>(end));
      if (!has_stated_cycle_)
        sort_uses(uses, reach, [&](std::uint32_t item) { warn_of_second_update(item, uses); });
      add_links_of(all[begin].use.buffer, uses);
    }
  }

  void add_links_of(std::uint32_t buffer, const std::vector<ItemUse>& uses) {
    WaitMaker waits([&](std::uint32_t before, std::uint32_t after, Cause cause) {
      link(before, after, {cause, buffer});
    });
    const GraphBuffer& b = graph_.buffers[buffer];
    const bool is_reset = b.is_appended && BufferScopes::reset_scope(graph_, buffer) == in_.scope;
    if (is_reset) waits.use(add_step(StepKind::reset_counter, buffer, rank_[uses[0].item]), {.writes = true});
    for (const ItemUse& one : uses) {
      Use use = one.use;
      if (use.may_skip) {
        waits.use(add_step(StepKind::zero, buffer, rank_[one.item]), {.writes = true});
        use.reads = true;
      }
      waits.use(one.item, use);
    }
    check_first_use(buffer, uses, is_reset);
    summarise(buffer, uses);
  }

  /// A region buffer lives where all its users meet; there somebody must define it before anybody looks at
  /// it.
  void check_first_use(std::uint32_t buffer, const std::vector<ItemUse>& uses, bool is_reset) {
    const GraphBuffer& b = graph_.buffers[buffer];
    if (b.lifetime != Lifetime::region || scopes_.common[buffer] != in_.scope || is_reset ||
        has_stated_cycle_)
      return;
    if (const auto early = find_early_look(uses))
      report_.add(graph_.about(in_.items[early->item],
                               cat("region buffer ", shown(b.name), " is read before anything writes it",
                                   early->may_be_written ? ": the loop that does may run zero times" : "")));
  }

  /// What the scope as a whole does with a buffer that is seen outside.
  void summarise(std::uint32_t buffer, const std::vector<ItemUse>& uses) {
    if (graph_.buffers[buffer].lifetime == Lifetime::region && scopes_.common[buffer] == in_.scope) return;
    out_.uses.push_back(whole_use(graph_, uses));
  }

  std::uint32_t add_step(StepKind kind, std::uint32_t buffer, std::uint32_t rank) {
    steps_.push_back({.kind = kind, .index = buffer});
    rank_.push_back(rank);
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }

  void link(std::uint32_t before, std::uint32_t after, Reason reason) {
    links_.push_back({before, after});
    reasons_.push_back(reason);
  }

  /// The sequence, with the waits by position in it.
  void finish() {
    const SortedScope sorted = sort_scope(rank_, links_);
    if (!has_stated_cycle_) report_cycles(sorted);
    std::vector<std::uint32_t> position(steps_.size());
    for (std::uint32_t i = 0; i < sorted.order.size(); ++i) position[sorted.order[i]] = i;
    for (std::uint32_t i = 0; i < links_.size(); ++i)
      steps_[links_[i].after].waits.push_back(
          {position[links_[i].before], reasons_[i].cause, reasons_[i].what});
    for (std::uint32_t step : sorted.order) {
      steps_[step].level = sorted.levels[step];
      out_.sequence.levels = std::max(out_.sequence.levels, sorted.levels[step] + 1);
      out_.sequence.steps.push_back(std::move(steps_[step]));
    }
  }

  void report_cycles(const SortedScope& sorted) {
    for (const auto& cycle : sorted.cycles) {
      std::set<std::string_view> blocks;
      for (std::uint32_t number : cycle) {
        const std::uint32_t at = links_[number].before;
        if (at >= in_.items.size()) continue;
        Diagnostic diagnostic = graph_.about(in_.items[at], "");
        const auto& block = in_.items[at].is_region ? graph_.description->regions[in_.items[at].index].block
                                                    : graph_.description->nodes[in_.items[at].index].block;
        if (!blocks.insert(block).second) continue;
        diagnostic.code = ErrorCode::cycle;
        diagnostic.message = cycle_text(cycle);
        report_.add(std::move(diagnostic));
      }
    }
  }

  [[nodiscard]] std::string cycle_text(const std::vector<std::uint32_t>& cycle) const {
    std::string text = cat("a cycle: ", name_of(links_[cycle[0]].before));
    bool is_stated = true;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      is_stated &= reasons_[cycle[i]].cause <= Cause::dependency;
      if (i < longest_cycle_text)
        text += cat(" before ", name_of(links_[cycle[i]].after), " (", reason_text(reasons_[cycle[i]]), ")");
    }
    if (cycle.size() > longest_cycle_text) text += cat(" and ", cycle.size() - longest_cycle_text, " more");
    if (!is_stated) text += "; a dependency would say who uses the buffer first";
    return text;
  }
  [[nodiscard]] std::string name_of(std::uint32_t step) const {
    if (step < in_.items.size()) return shown(graph_.id_of(in_.items[step]));
    return cat("the reset of ", shown(graph_.buffers[steps_[step].index].name));
  }
  [[nodiscard]] std::string reason_text(const Reason& reason) const {
    const Description& d = *graph_.description;
    const auto line = [&](const Place& at) {
      return at.line == 0 ? std::string() : cat(" of line ", at.line);
    };
    if (reason.cause == Cause::edge) return cat("edge", line(d.edges[reason.what].at));
    if (reason.cause == Cause::dependency) return cat("dependency", line(d.dependencies[reason.what].at));
    return cat(to_string(reason.cause), " of buffer ", shown(graph_.buffers[reason.what].name));
  }

  void warn_of_second_update(std::uint32_t item, const std::vector<ItemUse>& uses) {
    Diagnostic diagnostic =
        graph_.about(in_.items[item], cat("updates in place what another node has updated already: buffer ",
                                          shown(graph_.buffers[uses[0].use.buffer].name),
                                          "; a dependency would say who is first"));
    diagnostic.severity = Severity::warning;
    report_.add(std::move(diagnostic));
  }

  const Graph& graph_;
  const ScopeItems& in_;
  const BufferScopes& scopes_;
  Report& report_;
  std::vector<Step> steps_;  // the items, then resets and zeros
  std::vector<std::uint32_t> rank_;
  std::vector<ScopeLink> links_;
  std::vector<Reason> reasons_;
  bool has_stated_cycle_ = false;
  OrderedScope out_;
};

}  // namespace

OrderedScope tessera::description::order_scope(const Graph& graph, const ScopeItems& items,
                                               const BufferScopes& scopes, Report& report) {
  return ScopeOrderer(graph, items, scopes, report).run();
}

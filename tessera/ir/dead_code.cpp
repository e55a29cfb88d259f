#include "tessera/ir/dead_code.h"

#include <algorithm>

#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

using Flags = std::vector<bool>;

template <class T>
void keep_where(std::vector<T>& list, const Flags& keep) {
  std::size_t next = 0;
  const auto gone = [&](const T&) { return !keep[next++]; };
  list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
}

bool all(const Flags& flags) {
  return std::all_of(flags.begin(), flags.end(), [](bool b) { return b; });
}

/// Which variables of a function its results need.
class Liveness {
 public:
  void use_in(const Node& node) {
    for_each_use(node, [&](const Var& var) { live_[var] = true; });
  }
  void use(const Assign& statement) {
    use_in(*statement.value);
    for (const auto& target : statement.targets) use_in(*target->type);
  }
  bool is_live(const Var& var) { return live_.find(var) != nullptr; }
  bool is_live(const Assign& statement) {
    return std::any_of(statement.targets.begin(), statement.targets.end(),
                       [&](const auto& target) { return is_live(*target); });
  }
  Flags of(const std::vector<Ref<Var>>& vars) {
    Flags out;
    for (const auto& var : vars) out.push_back(is_live(*var));
    return out;
  }

 private:
  NodeTable<bool> live_;
};

/// Which parameters of a body these results need.
Flags needed_parameters(const Function& body, const Flags& results) {
  Liveness live;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i]) live.use_in(*body.results[i]);
  for (std::size_t i = body.body.size(); i-- > 0;)
    if (live.is_live(*body.body[i])) live.use(*body.body[i]);
  return live.of(body.params);
}

// ---- loops

/// A loop without the carried values for which `needed` is false, and without captures that this frees.
/// `lead` is the number of parameters of the body before the carried values.
template <class Region>
class Pruned {
 public:
  Pruned(const Region& region, std::size_t lead, const MayDrop& may_drop)
      : region_(region), lead_(lead), may_drop_(may_drop) {}

  /// Grows `needed`, from the results of the loop that are used, to all it has to carry.
  void close(Flags& needed) const {
    if constexpr (std::is_same_v<Region, WhileRegion>) add(needed, used_parameters(*region_.condition), 0);
    while (add(needed, needed_parameters(*region_.body, needed), lead_)) {
    }
  }

  /// The captures that are needed for what is carried.
  [[nodiscard]] Flags captured(const Flags& needed) const {
    Flags out = needed_parameters(*region_.body, needed);
    out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(lead_ + needed.size()));
    if constexpr (std::is_same_v<Region, WhileRegion>) {
      const Flags used = used_parameters(*region_.condition);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || used[needed.size() + i];
    }
    return out;
  }

  ExprRef run(const Flags& needed, const Flags& captured) const {
    auto draft = std::make_unique<Region>(region_);
    if constexpr (std::is_same_v<Region, WhileRegion>) {
      draft->condition = with_parameters(region_.condition, parameters(0, needed, captured));
    }
    auto body = std::make_unique<Function>(*region_.body);
    keep_where(body->params, parameters(lead_, needed, captured));
    keep_where(body->results, needed);
    draft->body = without_dead_code(seal(std::move(body)), may_drop_);
    keep_where(draft->inits, needed);
    keep_where(draft->captures, captured);
    return seal(std::move(draft));
  }

 private:
  static bool add(Flags& needed, const Flags& params, std::size_t lead) {
    bool grown = false;
    for (std::size_t i = 0; i < needed.size(); ++i) {
      grown = grown || (params[lead + i] && !needed[i]);
      needed[i] = needed[i] || params[lead + i];
    }
    return grown;
  }

  static Flags parameters(std::size_t lead, const Flags& carried, const Flags& captured) {
    Flags out(lead, true);
    out.insert(out.end(), carried.begin(), carried.end());
    out.insert(out.end(), captured.begin(), captured.end());
    return out;
  }

  const Region& region_;
  std::size_t lead_;
  const MayDrop& may_drop_;
};

Ref<Assign> without_dead_targets(const Ref<Assign>& statement, Liveness& live, const MayDrop& may_drop);

template <class Region>
Ref<Assign> pruned(const Ref<Assign>& statement, const Region& region, std::size_t lead, Liveness& live,
                   const MayDrop& may_drop) {
  Flags needed = live.of(statement->targets);
  const Pruned<Region> loop(region, lead, may_drop);
  loop.close(needed);
  const Flags captured = loop.captured(needed);
  if (all(needed) && all(captured)) return statement;
  std::vector<Ref<Var>> targets = statement->targets;
  keep_where(targets, needed);
  // The smaller body may need less itself.
  const auto smaller = assign(std::move(targets), loop.run(needed, captured), statement->span());
  return without_dead_targets(smaller, live, may_drop);
}

// ---- branches

void for_each_body(IfRegion& region, const std::function<void(FunctionRef&)>& f) {
  f(region.then_body);
  f(region.else_body);
}
void for_each_body(SwitchRegion& region, const std::function<void(FunctionRef&)>& f) {
  for (FunctionRef& body : region.bodies) f(body);
}

/// A branch without the results for which `needed` is false, and without captures that this frees.
template <class Region>
Ref<Assign> pruned_branch(const Ref<Assign>& statement, const Region& region, const Flags& needed,
                          const MayDrop& may_drop) {
  auto draft = std::make_unique<Region>(region);
  Flags captured(region.captures.size(), false);
  for_each_body(*draft, [&](FunctionRef& body) {
    if (!all(needed)) {
      auto smaller = std::make_unique<Function>(*body);
      keep_where(smaller->results, needed);
      body = without_dead_code(seal(std::move(smaller)), may_drop);
    }
    const Flags used = used_parameters(*body);
    for (std::size_t i = 0; i < captured.size(); ++i) captured[i] = captured[i] || used[i];
  });
  if (all(needed) && all(captured)) return statement;
  for_each_body(*draft, [&](FunctionRef& body) { body = with_parameters(body, captured); });
  keep_where(draft->captures, captured);
  std::vector<Ref<Var>> targets = statement->targets;
  keep_where(targets, needed);
  return assign(std::move(targets), seal(std::move(draft)), statement->span());
}

/// The statement without what only dead targets need.
Ref<Assign> without_dead_targets(const Ref<Assign>& statement, Liveness& live, const MayDrop& may_drop) {
  const Expr& value = *statement->value;
  if (const auto* region = as<ForRegion>(value)) return pruned(statement, *region, 1, live, may_drop);
  if (const auto* region = as<WhileRegion>(value)) return pruned(statement, *region, 0, live, may_drop);
  if (const auto* region = as<IfRegion>(value))
    return pruned_branch(statement, *region, live.of(statement->targets), may_drop);
  if (const auto* region = as<SwitchRegion>(value))
    return pruned_branch(statement, *region, live.of(statement->targets), may_drop);
  return statement;
}

}  // namespace

FunctionRef tessera::ir::without_dead_code(const FunctionRef& function, const MayDrop& may_drop) {
  Liveness live;
  for (const auto& result : function->results) live.use_in(*result);
  std::vector<Ref<Assign>> kept;
  bool changed = false;
  for (std::size_t i = function->body.size(); i-- > 0;) {
    const auto& statement = function->body[i];
    const bool may_go = !may_drop || may_drop(*statement->value);
    if (may_go && !live.is_live(*statement)) continue;
    kept.push_back(may_go ? without_dead_targets(statement, live, may_drop) : statement);
    changed = changed || kept.back() != statement;
    live.use(*kept.back());
  }
  if (!changed && kept.size() == function->body.size()) return function;
  auto draft = std::make_unique<Function>(*function);
  draft->body.assign(kept.rbegin(), kept.rend());
  return seal(std::move(draft));
}

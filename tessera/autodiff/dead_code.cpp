#include "tessera/autodiff/dead_code.h"

#include <algorithm>

#include "tessera/autodiff/uses.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/seal.h"

using namespace tessera;
using namespace tessera::autodiff;

namespace {

using Flags = std::vector<bool>;

template <class T>
void keep_where(std::vector<T>& list, const Flags& keep) {
  std::size_t next = 0;
  const auto gone = [&](const T&) { return !keep[next++]; };
  list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
}

/// Which variables of a function its results need.
class Liveness {
 public:
  void use_in(const ir::Node& node) {
    for_each_use(node, [&](const ir::Var& var) { live_[var] = true; });
  }
  void use(const ir::Assign& statement) {
    use_in(*statement.value);
    for (const auto& target : statement.targets) use_in(*target->type);
  }
  bool is_live(const ir::Var& var) { return live_.find(var) != nullptr; }
  bool is_live(const ir::Assign& statement) {
    return std::any_of(statement.targets.begin(), statement.targets.end(),
                       [&](const auto& target) { return is_live(*target); });
  }
  Flags of(const std::vector<Ref<ir::Var>>& vars) {
    Flags out;
    for (const auto& var : vars) out.push_back(is_live(*var));
    return out;
  }

 private:
  ir::NodeTable<bool> live_;
};

/// Which parameters of a body these results need.
Flags needed_parameters(const ir::Function& body, const Flags& results) {
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
  Pruned(const Region& region, std::size_t lead) : region_(region), lead_(lead) {}

  /// Grows `needed`, from the results of the loop that are used, to all it has to carry.
  void close(Flags& needed) const {
    if constexpr (std::is_same_v<Region, ir::WhileRegion>)
      add(needed, used_parameters(*region_.condition), 0);
    while (add(needed, needed_parameters(*region_.body, needed), lead_)) {
    }
  }

  ir::ExprRef run(const Flags& needed) const {
    auto draft = std::make_unique<Region>(region_);
    Flags captured = needed_parameters(*region_.body, needed);
    captured.erase(captured.begin(), captured.begin() + static_cast<std::ptrdiff_t>(lead_ + needed.size()));
    if constexpr (std::is_same_v<Region, ir::WhileRegion>) {
      const Flags used = used_parameters(*region_.condition);
      for (std::size_t i = 0; i < captured.size(); ++i) captured[i] = captured[i] || used[needed.size() + i];
      draft->condition = with_parameters(region_.condition, parameters(0, needed, captured));
    }
    auto body = std::make_unique<ir::Function>(*region_.body);
    keep_where(body->params, parameters(lead_, needed, captured));
    keep_where(body->results, needed);
    draft->body = without_dead_code(ir::seal(std::move(body)));
    keep_where(draft->inits, needed);
    keep_where(draft->captures, captured);
    return ir::seal(std::move(draft));
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
};

template <class Region>
Ref<ir::Assign> pruned(const Ref<ir::Assign>& statement, const Region& region, std::size_t lead,
                       Flags needed) {
  const Pruned<Region> loop(region, lead);
  loop.close(needed);
  if (std::all_of(needed.begin(), needed.end(), [](bool b) { return b; })) return statement;
  std::vector<Ref<ir::Var>> targets = statement->targets;
  keep_where(targets, needed);
  return ir::assign(std::move(targets), loop.run(needed), statement->span());
}

/// The statement without what only dead targets need.
Ref<ir::Assign> without_dead_targets(const Ref<ir::Assign>& statement, Liveness& live) {
  if (const auto* region = ir::as<ir::ForRegion>(statement->value))
    return pruned(statement, *region, 1, live.of(statement->targets));
  if (const auto* region = ir::as<ir::WhileRegion>(statement->value))
    return pruned(statement, *region, 0, live.of(statement->targets));
  return statement;
}

}  // namespace

ir::FunctionRef tessera::autodiff::without_dead_code(const ir::FunctionRef& function) {
  Liveness live;
  for (const auto& result : function->results) live.use_in(*result);
  std::vector<Ref<ir::Assign>> kept;
  bool changed = false;
  for (std::size_t i = function->body.size(); i-- > 0;) {
    const auto& statement = function->body[i];
    if (!live.is_live(*statement)) continue;
    kept.push_back(without_dead_targets(statement, live));
    changed = changed || kept.back() != statement;
    live.use(*kept.back());
  }
  if (!changed && kept.size() == function->body.size()) return function;
  auto draft = std::make_unique<ir::Function>(*function);
  draft->body.assign(kept.rbegin(), kept.rend());
  return ir::seal(std::move(draft));
}

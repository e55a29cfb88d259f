#include "tessera/autodiff/branch_gradient.h"

#include <algorithm>

#include "tessera/autodiff/activity.h"
#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::autodiff;
using op::Value;
using op::Values;
using op::ValueType;

namespace {

/// The type with size `from[i]` replaced by `to[i]`.
template <class To>
ValueType substituted(const ValueType& type, const std::vector<Ref<ir::Var>>& from, const To& to) {
  ValueType out{type.dtype, {}};
  for (const ir::Dim& dim : type.shape)
    out.shape.push_back(ir::substitute(dim, [&](const ir::Var& var) -> std::optional<ir::Dim> {
      for (std::size_t i = 0; i < from.size(); ++i)
        if (from[i].get() == &var) return ir::simplified(to[i]);
      return std::nullopt;
    }));
  return out;
}

/// Drops the parameters that no body uses, and what is handed to them.
void drop_unused(std::vector<ir::FunctionRef>& bodies, std::vector<ir::ExprRef>& captures) {
  std::vector<bool> used(captures.size(), false);
  for (const auto& body : bodies) {
    const auto here = used_parameters(*body);
    for (std::size_t i = 0; i < used.size(); ++i) used[i] = used[i] || here[i];
  }
  for (auto& body : bodies) body = with_parameters(body, used);
  std::vector<ir::ExprRef> kept;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) kept.push_back(captures[i]);
  captures = std::move(kept);
}

}  // namespace

BranchGradient::BranchGradient(op::IrBuilder& builder, const ir::Assign& statement, const Rules& rules)
    : builder_(builder), statement_(statement), rules_(rules) {
  if (const auto* region = ir::as<ir::IfRegion>(*statement.value)) {
    bodies_ = {region->then_body, region->else_body};
    captures_ = &region->captures;
    dims_ = &region->dims;
  } else {
    const auto& choice = static_cast<const ir::SwitchRegion&>(*statement.value);
    bodies_ = choice.bodies;
    captures_ = &choice.captures;
    dims_ = &choice.dims;
  }
}

// ---- forwards

Result<void> BranchGradient::forward(Activity& activity) {
  const auto active = activity.of_targets(statement_);
  for (std::size_t i = 0; i < active.size(); ++i)
    if (active[i]) seeds_.push_back(i);
  for (std::size_t i = 0; i < captures_->size(); ++i)
    if (activity.of(*(*captures_)[i])) wrt_.push_back(i);
  for (const auto& body : bodies_)
    halves_.push_back(TESSERA_TRY(reverse_in_halves(body, wrt_, seeds_, rules_)));
  share_places();
  std::vector<ir::FunctionRef> bodies;
  for (std::size_t k = 0; k < bodies_.size(); ++k) bodies.push_back(TESSERA_TRY(keeping_body(k)));
  std::vector<Ref<ir::Var>> targets = statement_.targets;
  for (const ValueType& place : places_) {
    const ValueType type = where_it_stands(place);
    targets.push_back(ir::variable(cat("kept", targets.size()), op::ir_type(type)));
    kept_.push_back(builder_.import(targets.back(), type));
  }
  builder_.adopt(ir::assign(std::move(targets), region(std::move(bodies), *captures_), statement_.span()));
  return builder_.status();
}

/// Gives each kept value of each body the first free place of its type.
void BranchGradient::share_places() {
  for (const Halves& halves : halves_) {
    std::vector<std::size_t> holds(places_.size(), unused);
    const std::size_t body = holds_.size();
    for (std::size_t i = 0; i < halves.kept.size(); ++i) {
      ValueType type = type_of(*halves.kept[i]);
      type = substituted(type, bodies_[body]->dims, bodies_[0]->dims);
      std::size_t place = 0;
      while (place < places_.size() && (holds[place] != unused || places_[place] != type)) ++place;
      if (place == places_.size()) {
        places_.push_back(type);
        holds.push_back(unused);
      }
      holds[place] = i;
    }
    holds_.push_back(std::move(holds));
  }
  for (auto& holds : holds_) holds.resize(places_.size(), unused);
}

ValueType BranchGradient::with_sizes_of(std::size_t body, const ValueType& type) const {
  return substituted(type, bodies_[0]->dims, bodies_[body]->dims);
}

ValueType BranchGradient::where_it_stands(const ValueType& type) const {
  return substituted(type, bodies_[0]->dims, *dims_);
}

/// The body, which also gives what is kept: zeros in places that only others fill.
Result<ir::FunctionRef> BranchGradient::keeping_body(std::size_t body) const {
  const ir::Function& forward = *halves_[body].forward;
  auto draft = std::make_unique<ir::Function>(forward);
  const std::size_t results = bodies_[body]->results.size();
  draft->results.resize(results);
  op::IrBuilder zeros;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    const std::size_t held = holds_[body][place];
    if (held != unused) {
      draft->results.push_back(forward.results[results + held]);
      continue;
    }
    const Value nothing = op::full(zeros, 0, with_sizes_of(body, places_[place]));
    TESSERA_TRY(zeros.status());
    draft->results.push_back(zeros.expr(nothing));
  }
  draft->body.insert(draft->body.end(), zeros.statements().begin(), zeros.statements().end());
  return ir::FunctionRef(ir::seal(std::move(draft)));
}

ir::ExprRef BranchGradient::region(std::vector<ir::FunctionRef> bodies,
                                   std::vector<ir::ExprRef> captures) const {
  if (const auto* given = ir::as<ir::IfRegion>(*statement_.value)) {
    auto draft = std::make_unique<ir::IfRegion>(*given);
    draft->then_body = bodies[0];
    draft->else_body = bodies[1];
    draft->captures = std::move(captures);
    return ir::seal(std::move(draft));
  }
  auto draft = std::make_unique<ir::SwitchRegion>(static_cast<const ir::SwitchRegion&>(*statement_.value));
  draft->bodies = std::move(bodies);
  draft->captures = std::move(captures);
  return ir::seal(std::move(draft));
}

// ---- backwards

Result<Values> BranchGradient::backward(std::span<const Value> target_gradients) {
  std::vector<ir::ExprRef> captures = *captures_;
  for (Value kept : kept_) captures.push_back(builder_.expr(kept));
  for (std::size_t i : seeds_) {
    const ValueType type = type_of(*statement_.targets[i]);
    captures.push_back(
        builder_.expr(target_gradients[i] ? target_gradients[i] : op::full(builder_, 0, type)));
  }
  std::vector<ir::FunctionRef> bodies;
  for (std::size_t k = 0; k < bodies_.size(); ++k) bodies.push_back(backward_body(k));
  drop_unused(bodies, captures);
  op::ValueTypes types;
  for (std::size_t i : wrt_) types.push_back(type_of(*(*captures_)[i]));
  TESSERA_TRY(builder_.status());
  const Values gradients = builder_.append(region(std::move(bodies), std::move(captures)), types);
  Values out(captures_->size());
  for (std::size_t k = 0; k < wrt_.size(); ++k) out[wrt_[k]] = gradients[k];
  return out;
}

/// (captures, places, gradients of the targets) to the gradients of the captures.
ir::FunctionRef BranchGradient::backward_body(std::size_t body) const {
  auto draft = std::make_unique<ir::Function>(*halves_[body].backward);
  const std::vector<Ref<ir::Var>> given = std::move(draft->params);
  const std::size_t captures = captures_->size(), kept = halves_[body].kept.size();
  draft->params.assign(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(captures));
  for (std::size_t place = 0; place < places_.size(); ++place) {
    const std::size_t held = holds_[body][place];
    draft->params.push_back(held == unused
                                ? ir::variable("unused", op::ir_type(with_sizes_of(body, places_[place])))
                                : given[captures + held]);
  }
  draft->params.insert(draft->params.end(), given.begin() + static_cast<std::ptrdiff_t>(captures + kept),
                       given.end());
  return ir::seal(std::move(draft));
}

#include "tessera/plan/size_conditions.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/ir_builder.h"
#include "tessera/plan/known_sizes.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

void add_condition(Plan& plan, const op::Dim& a, const op::Dim& b) {
  if (ir::provably_equal(a, b)) return;
  const bool is_known = std::any_of(plan.equal_sizes.begin(), plan.equal_sizes.end(),
                                    [&](const auto& pair) { return pair.first == a && pair.second == b; });
  if (!is_known) plan.equal_sizes.emplace_back(a, b);
}

/// A call with the types it has in a plan.
struct TypedCall {
  const op::Card* card = nullptr;
  op::ValueTypes inputs, results;
  op::Attributes attributes;

  bool operator==(const TypedCall& other) const {
    return card == other.card && inputs == other.inputs && results == other.results &&
           std::ranges::equal(attributes.entries(), other.attributes.entries());
  }
};

/// Layers of a network repeat the same calls on the same types: what holds for one of them holds for all.
class DistinctCalls {
 public:
  /// The call, if none like it was added before; else null.
  const TypedCall* add(TypedCall call) {
    auto& alike = by_card_[call.card];
    if (std::find(alike.begin(), alike.end(), call) != alike.end()) return nullptr;
    return &alike.emplace_back(std::move(call));
  }

 private:
  std::unordered_map<const op::Card*, std::deque<TypedCall>> by_card_;
};

TypedCall call_of_step(const Plan& plan, const Step& step) {
  TypedCall out{.card = step.card, .inputs = {}, .results = {}, .attributes = step.attributes};
  for (const ValueId input : step.inputs) out.inputs.push_back(plan.values[input].type);
  for (const ValueId result : step.results) out.results.push_back(plan.values[result].type);
  return out;
}

/// Of an op of a kernel or a library; without a card if it is no call.
Result<TypedCall> call_of_statement(const ir::Assign& statement) {
  TypedCall out;
  const auto* call = ir::as<ir::Call>(*statement.value);
  out.card = call == nullptr ? nullptr : op::find_card(call->op);
  if (out.card == nullptr) return out;
  for (const ir::ExprRef& argument : call->args)
    if (auto type = op::operand_type(*argument)) out.inputs.push_back(*std::move(type));
  for (const auto& target : statement.targets)
    if (auto type = op::value_type(*target->type)) out.results.push_back(*std::move(type));
  out.attributes = TESSERA_TRY(op::complete_attributes(*out.card, call->attrs));
  return out;
}

/// Calls `f` with each call of the plan whose types the plan relies on, with one of those that are alike:
/// those in regions are checked where they run. An error gets the line of the step.
template <class F>
Result<void> for_each_call(const Plan& plan, F&& f) {
  DistinctCalls seen;
  const auto visit_call = [&](TypedCall call) -> Result<void> {
    const TypedCall* const added = call.card == nullptr ? nullptr : seen.add(std::move(call));
    return added == nullptr ? Result<void>() : f(*added);
  };
  const auto visit = [&](const Step& step) -> Result<void> {
    if (step.kind == StepKind::call) return visit_call(call_of_step(plan, step));
    if (step.kind != StepKind::kernel && step.kind != StepKind::library) return {};
    for (const auto& statement : step.function->body)
      TESSERA_TRY(visit_call(TESSERA_TRY(call_of_statement(*statement))));
    return {};
  };
  for (const Step& step : plan.steps) {
    auto done = visit(step);
    if (!done) return std::move(done).error().at(step.span.resolve());
  }
  return {};
}

/// Its results are to have the types that the plan says.
Result<void> add_conditions_of(Plan& plan, const TypedCall& call) {
  const op::Card& card = *call.card;
  op::Assumptions assumed;
  const auto results = TESSERA_TRY(op::infer(card, call.inputs, call.attributes, &assumed));
  if (results.size() != call.results.size())
    return Error(ErrorCode::shape,
                 cat(card.name, ": gives ", results.size(), " results, the plan has ", call.results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const op::ValueType& type = call.results[i];
    bool fits = type.dtype == results[i].dtype && type.rank() == results[i].rank();
    for (std::size_t axis = 0; fits && axis < type.rank(); ++axis)
      fits = !ir::provably_different(type.shape[axis], results[i].shape[axis]);
    if (!fits)
      return Error(ErrorCode::shape, cat(card.name, ": its result is ", results[i], ", the plan has ", type));
    for (std::size_t axis = 0; axis < type.rank(); ++axis)
      add_condition(plan, type.shape[axis], results[i].shape[axis]);
  }
  for (const auto& [a, b] : assumed.equal) add_condition(plan, a, b);
  return {};
}

bool has_symbols(const op::Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const op::Dim& dim) { return !dim.is_constant(); });
}

/// Whether a number for a symbol can change what the rule of the call says.
bool depends_on_sizes(const TypedCall& call) {
  // Element-wise calls need equal sizes and nothing else.
  if (call.card->infer == nullptr) return false;
  const auto is_open = [](const op::ValueType& type) { return has_symbols(type.shape); };
  const auto has_open_shape = [](const auto& entry) {
    const auto* shape = std::get_if<op::Shape>(&entry.second);
    return shape != nullptr && has_symbols(*shape);
  };
  const auto& attributes = call.attributes.entries();
  return std::any_of(call.inputs.begin(), call.inputs.end(), is_open) ||
         std::any_of(call.results.begin(), call.results.end(), is_open) ||
         std::any_of(attributes.begin(), attributes.end(), has_open_shape);
}

Result<void> check_call(const TypedCall& call, const KnownSizes& known) {
  if (!depends_on_sizes(call)) return {};
  const auto inputs = TESSERA_TRY(known.of(call.inputs));
  const auto expected = TESSERA_TRY(known.of(call.results));
  const auto results = TESSERA_TRY(op::infer(*call.card, inputs, TESSERA_TRY(known.of(call.attributes))));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (results[i] != expected[i])
      return Error(ErrorCode::shape,
                   cat(call.card->name, ": its result is ", results[i], ", the plan has ", expected[i]));
  return {};
}

}  // namespace

Result<void> plan::add_size_conditions(Plan& plan) {
  return for_each_call(plan, [&](const TypedCall& call) { return add_conditions_of(plan, call); });
}

Result<std::optional<std::pair<op::Dim, op::Dim>>> plan::unequal_sizes(const Plan& plan,
                                                                       std::span<const std::int64_t> sizes) {
  const KnownSizes known{plan.dims, sizes};
  for (const auto& pair : plan.equal_sizes)
    if (TESSERA_TRY(known.of(pair.first)) != TESSERA_TRY(known.of(pair.second))) return std::optional(pair);
  return std::optional<std::pair<op::Dim, op::Dim>>();
}

Result<void> plan::check_sizes(const Plan& plan, std::span<const std::int64_t> sizes) {
  for (std::size_t d = 0; d < sizes.size(); ++d) TESSERA_TRY(check_range(*plan.dims[d], sizes[d]));
  const KnownSizes known{plan.dims, sizes};
  return for_each_call(plan, [&](const TypedCall& call) { return check_call(call, known); });
}

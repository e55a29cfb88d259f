#include "tests/differential/wide_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/compile/each_function.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/visit.h"
#include "tessera/ir/walk.h"
#include "tessera/op/interpreter.h"
#include "tests/support/compare.h"
#include "tests/support/slot_bits.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

/// Writes `choice_mark` before an operand that decides something; what stands for it.
ir::ExprRef marked(const ir::ExprRef& operand, std::vector<Ref<ir::Assign>>& body) {
  const auto* var = ir::as<ir::Var>(operand);
  constexpr const char* name = "choice";
  if (var == nullptr || !ir::is<ir::TensorType>(var->type) || var->name == name) return operand;
  const auto out = ir::variable(name, var->type);
  body.push_back(ir::assign({out}, ir::call(std::string(choice_mark), {operand})));
  return out;
}

ir::FunctionRef with_marked_result(const ir::FunctionRef& function) {
  auto draft = std::make_unique<ir::Function>(*function);
  draft->results[0] = marked(draft->results[0], draft->body);
  return draft->body.size() == function->body.size() ? function : ir::seal(std::move(draft));
}

/// A region whose condition, index or count goes through a mark.
ir::ExprRef with_marks(const ir::ExprRef& value, std::vector<Ref<ir::Assign>>& body) {
  return ir::visit_node(*value, [&]<class N>(const N& node) -> ir::ExprRef {
    if constexpr (N::node_kind == ir::NodeKind::if_region || N::node_kind == ir::NodeKind::switch_region ||
                  N::node_kind == ir::NodeKind::for_region || N::node_kind == ir::NodeKind::while_region) {
      auto draft = std::make_unique<N>(node);
      const auto mark = [](auto& choice, const auto& to) { return std::exchange(choice, to) != to; };
      bool changed = false;
      if constexpr (N::node_kind == ir::NodeKind::if_region)
        changed = mark(draft->condition, marked(draft->condition, body));
      if constexpr (N::node_kind == ir::NodeKind::switch_region)
        changed = mark(draft->index, marked(draft->index, body));
      if constexpr (N::node_kind == ir::NodeKind::for_region)
        changed = mark(draft->count, marked(draft->count, body));
      if constexpr (N::node_kind == ir::NodeKind::while_region)
        changed = mark(draft->condition, with_marked_result(draft->condition));
      return changed ? ir::ExprRef(ir::seal(std::move(draft))) : value;
    } else {
      return value;
    }
  });
}

/// The program with marks where its way is decided.
Result<ir::FunctionRef> with_marks(const ir::FunctionRef& function) {
  return compiler::rewrite_functions(function, [](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    auto draft = std::make_unique<ir::Function>(*one);
    draft->body.clear();
    bool changed = false;
    for (const auto& statement : one->body) {
      ir::ExprRef value = with_marks(statement->value, draft->body);
      changed = changed || value != statement->value;
      draft->body.push_back(ir::assign(statement->targets, std::move(value), statement->span()));
    }
    return changed ? ir::FunctionRef(ir::seal(std::move(draft))) : one;
  });
}

bool computes_sizes(const ir::Function& root) {
  for (const ir::Function* function : ir::functions_below(root))
    for (const auto& statement : function->body)
      if (ir::is<ir::ScalarType>(statement->targets.back()->type)) return true;
  return false;
}

/// What is wrong with an element, if something is.
std::optional<std::string> outside_of(const Interval& bound, const op::ScalarValue& value,
                                      const op::ScalarValue& wide) {
  if (ir::is_float(value.dtype)) {
    if (bound.contains(value.number)) return std::nullopt;
    return cat(value.number, ", in f64 ", wide.number, ", which roundings move from ", bound.low, " to ",
               bound.high);
  }
  const bool is_right =
      bound.is_exact() ? value.integer == wide.integer : bound.contains(static_cast<double>(value.integer));
  return is_right ? std::nullopt : std::optional(cat(value.integer, ", in f64 ", wide.integer));
}

bool is_loose(const Interval& bound, double largest) {
  if (!bound.has_numbers()) return false;
  return !(bound.high - bound.low <= 2 * std::max(largest, 0x1p-100)) && bound.low != bound.high;
}

}  // namespace

WideJudge::WideJudge(const Program& program, std::span<const double> parameters) {
  WideRun run;
  const auto bits = fixture::slot_bits(*program.function, parameters);
  const auto function = with_marks(program.function);
  if (!function) return;
  const auto results =
      op::interpret(**function, program.inputs,
                    {.parameters = bits,
                     .run_call = [&](const auto& card, auto inputs,
                                     const auto& attributes) { return run.run(card, inputs, attributes); }},
                    program.sizes);
  if (!results) return;
  for (const op::HostTensor& result : *results) results_.push_back(run.known(result.array()));
  is_decided_ =
      !run.may_choose_otherwise() && !(run.may_count_otherwise() && computes_sizes(*program.function));
}

std::optional<std::string> WideJudge::outside(const Results& got) const {
  if (!is_decided_) return std::nullopt;
  if (got.size() != results_.size()) return cat(got.size(), " results, expected ", results_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const Bounded& known = results_[i];
    if (got[i].shape() != known.value.shape())
      return cat("result ", i, " has sizes [", join(got[i].shape(), ", "), "], in f64 [",
                 join(known.value.shape(), ", "), "]");
    for (std::size_t k = 0; k < known.bounds.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      const auto value = fixture::element(got[i].array(), at);
      const auto text = outside_of(known.bounds[k], value, fixture::element(known.value.array(), at));
      if (text) return cat("element ", k, " of result ", i, " is ", *text);
    }
  }
  return std::nullopt;
}

bool WideJudge::is_vacuous() const {
  if (!is_decided_) return true;
  std::size_t elements = 0;
  for (const Bounded& known : results_) {
    double largest = 0;
    elements += known.bounds.size();
    for (const double value : fixture::doubles(known.value))
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (const Interval& bound : known.bounds)
      if (!is_loose(bound, largest)) return false;
  }
  return elements > 0;
}

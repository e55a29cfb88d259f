#include "tessera/compile/simplify_views.h"

#include <algorithm>

#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/compile/permutation.h"
#include "tessera/ir/seal.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// Passes over one function: a view that goes may let another one move.
constexpr int most_rounds = 8;

bool is_tensor(const ir::Expr& operand) {
  const auto* var = ir::as<ir::Var>(operand);
  return var != nullptr ? ir::is<ir::TensorType>(var->type) : ir::is<ir::Dense>(operand);
}

ir::ExprRef view_call(std::string_view op, const ir::ExprRef& operand, std::string attribute,
                      ir::AttributeValue value, const ir::Span& span) {
  ir::Attributes attributes;
  attributes.set(std::move(attribute), std::move(value));
  return ir::call(std::string(op), {operand}, std::move(attributes), span);
}

class SimplifyViews {
 public:
  SimplifyViews(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), uses_(*function), draft_(function) {}

  ir::FunctionRef run() {
    for (const auto& statement : function_->body) write(draft_.current(statement));
    return draft_.finish();
  }

 private:
  void write(const Ref<ir::Assign>& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    const auto type = call == nullptr || statement->targets.size() != 1
                          ? std::nullopt
                          : op::value_type(*statement->targets[0]->type);
    const ir::ExprRef simpler = type ? simplified(*call, *type) : nullptr;
    if (simpler == nullptr) return draft_.keep(statement);
    if (ir::is<ir::Call>(simpler))
      draft_.keep(ir::assign(statement->targets, simpler, statement->span()));
    else
      draft_.replace(*statement->targets[0], simpler);
  }

  /// An operand or a call that stands for a call, or null.
  ir::ExprRef simplified(const ir::Call& call, const op::ValueType& type) {
    if (call.op == "reshape") {
      const ir::ExprRef joined = parts_in_order(call, type);
      return joined != nullptr ? joined : reshape(call.args[0], call, type);
    }
    if (call.op == "transpose") return transpose(call, type);
    if (call.op == "broadcast_to") return broadcast(call, type);
    if (call.op == "slice") return slice(call, type);
    if (call.op == "flip") return flip(call, type);
    const op::Card* card = op::find_card(call.op);
    if (card == nullptr || !card->traits.elementwise) return nullptr;
    if (ir::ExprRef out = without_broadcasts(call, type)) return out;
    return below_transpose(call, type);
  }

  ir::ExprRef noted(ir::ExprRef value, std::string_view what, const ir::Call& call) {
    context_.note(what, call.span());
    return value;
  }

  /// The operand, if the view is no more than that.
  ir::ExprRef itself(const ir::ExprRef& operand, const op::ValueType& type, const ir::Call& call) {
    if (!is_tensor(*operand) || op::operand_type(*operand) != type) return nullptr;
    return noted(operand, cat(call.op, " of nothing"), call);
  }

  // ---- views of views

  ir::ExprRef reshape(const ir::ExprRef& operand, const ir::Call& call, const op::ValueType& type) {
    const ir::Call* inner = draft_.call_of(*operand, "reshape");
    const ir::ExprRef& from = inner == nullptr ? operand : inner->args[0];
    if (ir::ExprRef out = itself(from, type, call)) return out;
    if (inner == nullptr && &operand == &call.args[0] && call.op == "reshape") return nullptr;
    return noted(view_call("reshape", from, "shape", type.shape, call.span()),
                 inner == nullptr ? "a transpose of axes of size 1 as reshape" : "two reshapes as one", call);
  }

  /// Parts that are joined, transposed and reshaped are put in order as they are joined: a reshape of what is
  /// in another order would copy all of it again.
  ir::ExprRef parts_in_order(const ir::Call& call, const op::ValueType& type) {
    const ir::Call* transposed = only_use(call.args[0], "transpose");
    const ir::Call* concat = transposed == nullptr ? nullptr : only_use(transposed->args[0], "concat");
    if (concat == nullptr) return nullptr;
    const std::size_t rank = op::operand_type(*call.args[0])->rank();
    const auto permutation = permutation_of(*transposed, rank);
    const auto* given = concat->attrs.get<std::int64_t>("axis");
    const std::int64_t axis = given == nullptr ? 0 : *given;
    const std::int64_t from_front = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (!permutation) return nullptr;
    std::vector<op::Value> parts;
    for (const auto& part : concat->args) parts.push_back(op::transpose(draft_.value(part), *permutation));
    const auto at = std::find(permutation->begin(), permutation->end(), from_front) - permutation->begin();
    const op::Value joined =
        draft_.builder().call("concat", parts, {{"axis", static_cast<std::int64_t>(at)}});
    if (!joined) return nullptr;
    return noted(view_call("reshape", draft_.builder().expr(joined), "shape", type.shape, call.span()),
                 "a transpose moves above concat", call);
  }

  /// The call of this op that gives `operand`, if nothing else uses it.
  const ir::Call* only_use(const ir::ExprRef& operand, std::string_view op) {
    return uses_.of(*operand) == 1 ? draft_.call_of(*operand, op) : nullptr;
  }

  ir::ExprRef transpose(const ir::Call& call, const op::ValueType& type) {
    auto permutation = permutation_of(call, type.rank());
    if (!permutation) return nullptr;
    const ir::Call* inner = draft_.call_of(*call.args[0], "transpose");
    const auto first = inner == nullptr ? std::nullopt : permutation_of(*inner, type.rank());
    const ir::ExprRef& from = first ? inner->args[0] : call.args[0];
    if (first) permutation = composed(*first, *permutation);
    if (is_identity(*permutation) && is_tensor(*from)) return noted(from, "transposes that cancel", call);
    if (keeps_order(*permutation, type.shape)) return reshape(from, call, type);
    if (!first) return nullptr;
    return noted(view_call("transpose", from, "permutation", *permutation, call.span()),
                 "two transposes as one", call);
  }

  ir::ExprRef broadcast(const ir::Call& call, const op::ValueType& type) {
    const ir::Call* inner = draft_.call_of(*call.args[0], "broadcast_to");
    const ir::ExprRef& from = inner == nullptr ? call.args[0] : inner->args[0];
    if (ir::ExprRef out = itself(from, type, call)) return out;
    if (inner == nullptr) return nullptr;
    return noted(view_call("broadcast_to", from, "shape", type.shape, call.span()), "two broadcasts as one",
                 call);
  }

  /// A slice that has all elements in order.
  ir::ExprRef slice(const ir::Call& call, const op::ValueType& type) {
    const auto* steps = call.attrs.get<std::vector<std::int64_t>>("steps");
    const bool forward =
        steps == nullptr || std::all_of(steps->begin(), steps->end(), [](std::int64_t s) { return s == 1; });
    return forward ? itself(call.args[0], type, call) : nullptr;
  }

  ir::ExprRef flip(const ir::Call& call, const op::ValueType& type) {
    const ir::Call* inner = draft_.call_of(*call.args[0], "flip");
    const auto* axes = call.attrs.get<std::vector<std::int64_t>>("axes");
    const auto* first = inner == nullptr ? nullptr : inner->attrs.get<std::vector<std::int64_t>>("axes");
    return axes != nullptr && first != nullptr && *axes == *first ? itself(inner->args[0], type, call)
                                                                  : nullptr;
  }

  // ---- views before element-wise ops

  /// A broadcast is not needed if another operand has the shape of the result.
  ir::ExprRef without_broadcasts(const ir::Call& call, const op::ValueType& type) {
    std::unique_ptr<ir::Call> draft;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const ir::Call* inner = draft_.call_of(*call.args[i], "broadcast_to");
      if (inner == nullptr) continue;
      const auto& args = draft == nullptr ? call.args : draft->args;
      bool is_given = false;
      for (std::size_t k = 0; k < args.size(); ++k)
        is_given = is_given || (k != i && op::operand_type(*args[k])->shape == type.shape);
      if (!is_given) continue;
      if (draft == nullptr) draft = std::make_unique<ir::Call>(call);
      draft->args[i] = inner->args[0];
    }
    if (draft == nullptr) return nullptr;
    return noted(ir::seal(std::move(draft)), cat("a broadcast that ", call.op, " does anyway"), call);
  }

  /// The element-wise op on what its operands are transposes of, and one transpose below it.
  ir::ExprRef below_transpose(const ir::Call& call, const op::ValueType& type) {
    std::optional<Permutation> common;
    auto draft = std::make_unique<ir::Call>(call);
    for (ir::ExprRef& arg : draft->args) {
      const auto operand = op::operand_type(*arg);
      if (operand->rank() == 0) continue;
      const ir::Call* inner = draft_.call_of(*arg, "transpose");
      const auto permutation = inner == nullptr ? std::nullopt : permutation_of(*inner, type.rank());
      const auto here = static_cast<std::uint32_t>(std::count(call.args.begin(), call.args.end(), arg));
      if (!permutation || (common && *common != *permutation) || uses_.of(*arg) != here) return nullptr;
      common = permutation;
      arg = inner->args[0];
    }
    if (!common) return nullptr;
    std::vector<op::Value> inputs;
    for (const auto& arg : draft->args) inputs.push_back(draft_.value(arg));
    const op::Value value = draft_.builder().call(call.op, inputs, call.attrs);
    if (!value) return nullptr;
    return noted(view_call("transpose", draft_.builder().expr(value), "permutation", *common, call.span()),
                 cat("a transpose moves below ", call.op), call);
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  UseCounts uses_;
  FunctionDraft draft_;
};

bool has_views(const ir::Function& function) {
  return std::any_of(function.body.begin(), function.body.end(), [](const auto& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    return card != nullptr && card->traits.view;
  });
}

}  // namespace

Result<ir::FunctionRef> tessera::compiler::simplify_views(const ir::FunctionRef& function,
                                                          PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    ir::FunctionRef before, after = one;
    for (int round = 0; before != after && round < most_rounds && has_views(*after); ++round) {
      before = after;
      after = SimplifyViews(before, context).run();
    }
    return after;
  });
}

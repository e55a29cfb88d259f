#include "tessera/compile/canonicalise.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tessera/compile/constants.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/ir/seal.h"
#include "tessera/op/body.h"

using namespace tessera;
using namespace tessera::compile;

namespace {

/// Reductions by the positions of their axes, ascending; all of them as the empty list.
std::optional<std::vector<std::int64_t>> normal_axes(const std::vector<std::int64_t>& axes,
                                                     std::size_t rank) {
  std::vector<std::int64_t> out = axes;
  for (std::int64_t& axis : out) axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
  std::sort(out.begin(), out.end());
  if (out.size() == rank) out.clear();
  return out == axes ? std::nullopt : std::optional(std::move(out));
}

bool same_attributes(const ir::Attributes& a, const ir::Attributes& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a.entries()[i].first != b.entries()[i].first ||
        a.entries()[i].second.index() != b.entries()[i].second.index())
      return false;
  return true;
}

/// Whether the order of operands changes no bit: maximum(0, -0) is the first of its operands, though the op
/// is commutative. Asked of the formula itself.
bool is_symmetric(const op::Card& card, ir::Dtype dtype) {
  if (!ir::is_float(dtype) || card.pointwise == nullptr || card.pointwise->on_double == nullptr) return true;
  const double a = 0.0, b = -0.0;
  const double* in_order[] = {&a, &b};
  const double* swapped[] = {&b, &a};
  double first = 0, second = 0;  // booleans use one byte of it
  card.pointwise->on_double(in_order, 1, &first);
  card.pointwise->on_double(swapped, 1, &second);
  return std::bit_cast<std::uint64_t>(first) == std::bit_cast<std::uint64_t>(second);
}

class Canonicalise {
 public:
  Canonicalise(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), draft_(function) {}

  ir::FunctionRef run() {
    for (const auto& param : function_->params) number(*param);
    for (const auto& statement : function_->body) {
      const auto current = draft_.current(statement);
      if (!replace_alias(*current)) write(current);
      for (const auto& target : statement->targets) number(*target);
    }
    return draft_.finish();
  }

 private:
  // ---- what stands for something else

  bool replace_alias(const ir::Assign& statement) {
    const ir::ExprRef value = aliased(statement);
    if (value == nullptr) return false;
    draft_.replace(*statement.targets[0], value);
    context_.note("a name for another value", statement.span());
    return true;
  }

  ir::ExprRef aliased(const ir::Assign& statement) {
    if (statement.targets.size() != 1 || ir::is<ir::ScalarType>(statement.targets[0]->type)) return nullptr;
    if (ir::is<ir::Var>(statement.value) || ir::is<ir::Dense>(statement.value)) return statement.value;
    if (const auto* item = ir::as<ir::Item>(statement.value)) return element_of(*item);
    const auto* call = ir::as<ir::Call>(statement.value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    // An element-wise view is its operand: identity, stop_gradient.
    const bool is_operand = card != nullptr && card->traits.elementwise && card->traits.view;
    return is_operand && has_type(*call->args[0], *statement.targets[0]) ? call->args[0] : nullptr;
  }

  ir::ExprRef element_of(const ir::Item& item) {
    const ir::Assign* statement = draft_.definition(*item.tuple);
    const auto* tuple = statement == nullptr ? nullptr : ir::as<ir::Tuple>(statement->value);
    if (tuple == nullptr) return nullptr;
    const ir::ExprRef& element = tuple->elements[item.index];
    return ir::is<ir::Var>(element) || ir::is<ir::Dense>(element) ? element : nullptr;
  }

  static bool has_type(const ir::Expr& operand, const ir::Var& target) {
    // A scalar is no tensor of rank 0 where regions compare types.
    if (!ir::is<ir::Dense>(operand) &&
        !(ir::is<ir::Var>(operand) && ir::is<ir::TensorType>(static_cast<const ir::Var&>(operand).type)))
      return false;
    return op::operand_type(operand) == op::value_type(*target.type);
  }

  // ---- calls

  void write(const Ref<ir::Assign>& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    const op::Card* card = call == nullptr ? nullptr : op::find_card(call->op);
    if (card == nullptr) return draft_.keep(statement);
    if (write_as_reshape(*statement, *call)) return;
    auto draft = normal_form(*call, *card);
    if (draft == nullptr) return draft_.keep(statement);
    draft_.keep(ir::assign(statement->targets, ir::seal(std::move(draft)), statement->span()));
  }

  bool write_as_reshape(const ir::Assign& statement, const ir::Call& call) {
    if (call.op != "squeeze" && call.op != "unsqueeze") return false;
    const auto type = op::value_type(*statement.targets[0]->type);
    ir::Attributes attributes;
    attributes.set("shape", type->shape);
    draft_.keep(ir::assign(statement.targets,
                           ir::call("reshape", call.args, std::move(attributes), call.span()),
                           statement.span()));
    context_.note(cat(call.op, " as reshape"), statement.span());
    return true;
  }

  /// Null if the call is in normal form.
  std::unique_ptr<ir::Call> normal_form(const ir::Call& call, const op::Card& card) {
    std::unique_ptr<ir::Call> draft;
    const auto change = [&](std::string_view what) -> ir::Call& {
      if (draft == nullptr) draft = std::make_unique<ir::Call>(call);
      context_.note(what, call.span());
      return *draft;
    };
    if (!card.attributes.empty()) {
      auto complete = op::complete_attributes(card, call.attrs);
      if (complete && !same_attributes(*complete, call.attrs))
        change("attributes written out").attrs = *std::move(complete);
    }
    if (card.traits.reduction) {
      const auto& attributes = draft == nullptr ? call.attrs : draft->attrs;
      const auto* axes = attributes.get<std::vector<std::int64_t>>("axes");
      const auto type = op::operand_type(*call.args[0]);
      if (auto normal = axes == nullptr || !type ? std::nullopt : normal_axes(*axes, type->rank()))
        change("axes in order").attrs.set("axes", *std::move(normal));
    }
    if (may_swap(call, card)) {
      ir::Call& swapped = change("operands in order");
      std::swap(swapped.args[0], swapped.args[1]);
    }
    return draft;
  }

  // ---- the order of operands

  bool may_swap(const ir::Call& call, const op::Card& card) {
    if (!card.traits.commutative || call.args.size() != 2 || !goes_before(*call.args[1], *call.args[0]))
      return false;
    const auto type = op::operand_type(*call.args[0]);
    return type && (context_.options().floats == FloatRules::fast || is_symmetric(card, type->dtype));
  }

  void number(const ir::Var& var) { numbers_[var] = next_++; }

  /// Values by age, then parameters by slot, then everything else as it comes.
  std::pair<int, std::uint32_t> rank_of(const ir::Expr& operand) {
    if (ir::is<ir::Var>(operand)) {
      const std::uint32_t* known = numbers_.find(operand);
      return {0, known == nullptr ? next_ : *known};
    }
    if (const auto* param = ir::as<ir::Param>(operand)) return {1, param->slot};
    return {is_constant(operand) ? 3 : 2, 0};
  }
  bool goes_before(const ir::Expr& a, const ir::Expr& b) { return rank_of(a) < rank_of(b); }

  const ir::FunctionRef& function_;
  PassContext& context_;
  FunctionDraft draft_;
  ir::NodeTable<std::uint32_t> numbers_;
  std::uint32_t next_ = 0;
};

}  // namespace

Result<ir::FunctionRef> tessera::compile::canonicalise(const ir::FunctionRef& function,
                                                       PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    return Canonicalise(one, context).run();
  });
}

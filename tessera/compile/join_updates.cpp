#include "tessera/compile/join_updates.h"

#include <algorithm>

#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/ir/dim.h"
#include "tessera/op/families/parts.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

/// An update of whole slices: all of an array from `begin` up to `end` along one axis.
struct SlicesUpdate {
  ir::ExprRef update;
  std::size_t axis = 0;
  ir::Dim begin, end;
};

/// Whether a part is all of an axis, in order.
bool is_whole(const op::AxisPart& part, const ir::Dim& size) {
  return ir::provably_equal(part.count, size) && (part.step == 1 || size == ir::Dim(1)) &&
         ir::provably_equal(part.start, 0);
}

/// What a call of update_slice replaces, if it is whole slices along one axis.
std::optional<SlicesUpdate> slices_update(const ir::Call& call) {
  const op::Card& card = *op::find_card("update_slice");
  const op::ValueTypes types = operand_types(call);
  const auto attributes = op::complete_attributes(card, call.attrs);
  if (types.size() != 2 || !attributes) return std::nullopt;
  const auto parts = op::updated_axes(op::CallInfo(card, types, *attributes));
  if (!parts) return std::nullopt;
  const auto is_partial = [&](const op::AxisPart& part) {
    return !is_whole(part, types[0].shape[part.axis]);
  };
  const auto partial = std::find_if(parts->begin(), parts->end(), is_partial);
  if (partial == parts->end() || std::count_if(parts->begin(), parts->end(), is_partial) != 1)
    return std::nullopt;
  if (partial->step != 1 && partial->count != ir::Dim(1)) return std::nullopt;
  return SlicesUpdate{call.args[1], partial->axis, partial->start, partial->start + partial->count};
}

/// Puts the updates into the order in which they lie side by side. Whether they then are all of the axis.
bool put_in_order(std::vector<SlicesUpdate>& updates, const ir::Dim& size) {
  const bool has_numbers = std::all_of(updates.begin(), updates.end(),
                                       [](const SlicesUpdate& update) { return update.begin.is_constant(); });
  if (has_numbers)
    std::stable_sort(updates.begin(), updates.end(), [](const SlicesUpdate& a, const SlicesUpdate& b) {
      return a.begin.value() < b.begin.value();
    });
  ir::Dim reached = 0;
  for (auto next = updates.begin(); next != updates.end(); ++next) {
    const auto here = std::find_if(next, updates.end(), [&](const SlicesUpdate& update) {
      return ir::provably_equal(update.begin, reached);
    });
    if (here == updates.end()) return false;
    std::iter_swap(next, here);
    reached = next->end;
  }
  return ir::provably_equal(reached, size);
}

class JoinUpdates {
 public:
  JoinUpdates(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context), uses_(*function), draft_(function) {}

  ir::FunctionRef run() {
    find_inner_updates();
    for (const auto& statement : function_->body) {
      const auto current = draft_.current(statement);
      const op::Value joined = is_last_update(*statement) ? joined_updates(*current) : op::Value();
      if (!joined) {
        draft_.keep(current);
        continue;
      }
      context_.note("updates of all of an array as its parts joined", statement->span());
      draft_.replace(*statement->targets[0], draft_.builder().expr(joined));
    }
    return draft_.finish();
  }

 private:
  static const ir::Call* update_in(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(statement.value);
    return call != nullptr && call->op == "update_slice" ? call : nullptr;
  }

  /// What another update is written into and nothing else reads.
  void find_inner_updates() {
    for (const auto& statement : function_->body)
      if (const ir::Call* call = update_in(*statement); call != nullptr && uses_.of(*call->args[0]) == 1)
        is_inner_[*call->args[0]] = true;
  }

  bool is_last_update(const ir::Assign& statement) {
    return update_in(statement) != nullptr && is_inner_.find(*statement.targets[0]) == nullptr;
  }

  /// The parts that a chain of updates, of which this is the last, makes its result of; empty if something of
  /// what was there before is left.
  op::Value joined_updates(const ir::Assign& last) {
    std::vector<SlicesUpdate> updates;
    for (const ir::Call* call = update_in(last); call != nullptr; call = inner_update(*call->args[0])) {
      auto update = slices_update(*call);
      if (!update || (!updates.empty() && updates[0].axis != update->axis)) return {};
      updates.push_back(*std::move(update));
    }
    const auto type = op::value_type(*last.targets[0]->type);
    if (!put_in_order(updates, type->shape[updates[0].axis])) return {};
    op::Values parts;
    for (const SlicesUpdate& update : updates) parts.push_back(draft_.value(update.update));
    const auto axis = static_cast<std::int64_t>(updates[0].axis);
    return op::reshape(draft_.builder().call("concat", parts, {{"axis", axis}}), type->shape);
  }

  const ir::Call* inner_update(const ir::Expr& operand) {
    return is_inner_.find(operand) == nullptr ? nullptr : draft_.call_of(operand, "update_slice");
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  UseCounts uses_;
  FunctionDraft draft_;
  ir::NodeTable<bool> is_inner_;
};

}  // namespace

Result<ir::FunctionRef> tessera::compiler::join_updates(const ir::FunctionRef& function,
                                                        PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    return JoinUpdates(one, context).run();
  });
}

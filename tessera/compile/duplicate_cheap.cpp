#include "tessera/compile/duplicate_cheap.h"

#include <algorithm>

#include "tessera/compile/cheapness.h"
#include "tessera/compile/each_function.h"
#include "tessera/compile/function_draft.h"
#include "tessera/ir/seal.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::compiler;

namespace {

class DuplicateCheap {
 public:
  DuplicateCheap(const ir::FunctionRef& function, PassContext& context)
      : function_(function), context_(context) {}

  ir::FunctionRef run() {
    for (const auto& statement : function_->body) look_at(*statement);
    for (const auto& result : function_->results) take_by_other(*result);
    for (const auto& statement : function_->body) write(statement);
    if (!changed_) return function_;
    auto draft = std::make_unique<ir::Function>(*function_);
    draft->body = std::move(body_);
    return ir::seal(std::move(draft));
  }

 private:
  struct Value {
    const ir::Assign* statement = nullptr;
    std::uint32_t size = 0;       ///< of the tree of cheap values that it is
    std::uint32_t consumers = 0;  ///< calls that take copies
    bool other = false;           ///< used by something that takes no copies: stays as it is for that
    bool taken = false;           ///< a call has the original
    bool is_stored = false;       ///< for such a use, and to read it costs no more than to compute it
  };

  /// Whether it is cheap together with what it is made of. That depends on the tree, not on what is shared in
  /// it, so that copies change nothing.
  void look_at(const ir::Assign& statement) {
    const auto* call = ir::as<ir::Call>(statement.value);
    if (call == nullptr) {
      ir::for_each_child(*statement.value, [&](const ir::Node& child) { take_by_other(child); });
      return;
    }
    const bool takes = takes_copies(*call);
    for_each_argument(*call, [&](Value& value) {
      if (takes) {
        ++value.consumers;
      } else {
        value.other = true;
        value.is_stored = reads_as_much(*value.statement);
      }
    });
    if (!is_cheap(statement)) return;
    std::uint32_t size = 1;
    for (const auto& arg : call->args)
      if (const Value* value = values_.find(*arg)) size += value->size;
    if (size <= context_.options().most_cheap) values_[*statement.targets[0]] = {&statement, size};
  }

  /// An op that computes long, or that only sees its argument in another way, is in no kernel with what it
  /// reads: a copy for it would be stored beside the original.
  static bool takes_copies(const ir::Call& call) {
    const op::Card* card = op::find_card(call.op);
    return card == nullptr || (!card->traits.costly && card->view == nullptr);
  }

  /// Whether one of its arguments is as large as the result.
  static bool reads_as_much(const ir::Assign& statement) {
    const auto result = op::value_type(*statement.targets[0]->type);
    const auto& call = static_cast<const ir::Call&>(*statement.value);
    return std::any_of(call.args.begin(), call.args.end(), [&](const ir::ExprRef& arg) {
      const auto* var = ir::as<ir::Var>(*arg);
      const auto type = var == nullptr ? std::nullopt : op::value_type(*var->type);
      return type && result && type->shape == result->shape;
    });
  }

  void take_by_other(const ir::Node& node) {
    if (Value* value = values_.find(node)) value->other = true;
  }

  /// Each cheap argument once.
  template <class F>
  void for_each_argument(const ir::Call& call, F&& f) {
    for (auto at = call.args.begin(); at != call.args.end(); ++at) {
      Value* value = std::find(call.args.begin(), at, *at) == at ? values_.find(**at) : nullptr;
      if (value != nullptr) f(*value);
    }
  }

  void write(const Ref<ir::Assign>& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    std::unique_ptr<ir::Call> draft;
    if (call != nullptr && takes_copies(*call))
      for_each_argument(*call, [&](Value& value) {
        if (!is_shared(value) || value.is_stored) return;
        if (!value.other && !std::exchange(value.taken, true)) return;
        if (draft == nullptr) draft = std::make_unique<ir::Call>(*call);
        replace(*draft, value, copied(value));
        context_.note(cat("a copy of ", static_cast<const ir::Call&>(*value.statement->value).op),
                      statement->span());
      });
    changed_ = changed_ || draft != nullptr;
    body_.push_back(draft == nullptr
                        ? statement
                        : ir::assign(statement->targets, ir::seal(std::move(draft)), statement->span()));
  }

  [[nodiscard]] bool is_shared(const Value& value) const {
    return value.consumers + (value.other ? 1 : 0) > 1 && value.consumers <= context_.options().most_copies;
  }

  static void replace(ir::Call& call, const Value& value, const ir::ExprRef& by) {
    for (ir::ExprRef& arg : call.args)
      if (arg.get() == value.statement->targets[0].get()) arg = by;
  }

  /// The whole tree anew; it has at most PassOptions::most_cheap values.
  ir::ExprRef copied(const Value& value) {
    const auto& call = static_cast<const ir::Call&>(*value.statement->value);
    auto draft = std::make_unique<ir::Call>(call);
    for_each_argument(call, [&](Value& part) {
      if (part.consumers <= context_.options().most_copies) replace(*draft, part, copied(part));
    });
    const Ref<ir::Var>& target = value.statement->targets[0];
    Ref<ir::Var> copy = ir::variable(target->name, target->type, target->span());
    body_.push_back(ir::assign(copy, ir::seal(std::move(draft)), value.statement->span()));
    return copy;
  }

  const ir::FunctionRef& function_;
  PassContext& context_;
  ir::NodeTable<Value> values_;
  std::vector<Ref<ir::Assign>> body_;
  bool changed_ = false;
};

}  // namespace

Result<ir::FunctionRef> tessera::compiler::duplicate_cheap(const ir::FunctionRef& function,
                                                           PassContext& context) {
  return rewrite_functions(function, [&](const ir::FunctionRef& one) -> Result<ir::FunctionRef> {
    return DuplicateCheap(one, context).run();
  });
}

#include "tessera/ir/cse.h"

#include <unordered_map>

#include "tessera/ir/rewrite.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_set.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

/// One function whose nested bodies are done already.
class FunctionCse {
 public:
  FunctionCse(const Function& function, const MayMerge& may_merge)
      : function_(function), may_merge_(may_merge) {}

  NodeRef run() {
    for (const Ref<Assign>& statement : function_.body) {
      Ref<Assign> current = with_known_values(statement);
      if (!drop_if_known(*current)) kept_.push_back(std::move(current));
    }
    if (kept_.size() == function_.body.size()) return NodeRef(&function_);
    auto draft = std::make_unique<Function>(function_);
    draft->body = std::move(kept_);
    for (ExprRef& result : draft->results) result = replaced(result);
    return seal(std::move(draft));
  }

 private:
  ExprRef replaced(const ExprRef& value) {
    if (same_as_.empty() || !value->has_variables()) return value;
    const NodeRef out = replace_variables(value, [&](const Var& var) {
      const auto known = same_as_.find(&var);
      return known == same_as_.end() ? ExprRef() : known->second;
    });
    return ExprRef(static_cast<const Expr*>(out.get()));
  }

  Ref<Assign> with_known_values(const Ref<Assign>& statement) {
    ExprRef value = replaced(statement->value);
    return value == statement->value ? statement
                                     : assign(statement->targets, std::move(value), statement->span());
  }

  bool drop_if_known(const Assign& statement) {
    // A scalar may be a size in the type of a later target, where no value is replaced.
    if (is<ScalarType>(statement.targets[0]->type) || !may_merge_(*statement.value)) return false;
    const NodeRef known = values_.insert(statement.value);
    const auto [first, is_new] = targets_.try_emplace(known.get(), &statement.targets);
    if (is_new || !same_types(*first->second, statement.targets)) return false;
    for (std::size_t i = 0; i < statement.targets.size(); ++i)
      same_as_[statement.targets[i].get()] = (*first->second)[i];
    return true;
  }

  static bool same_types(const std::vector<Ref<Var>>& a, const std::vector<Ref<Var>>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!structural_equal(*a[i]->type, *b[i]->type, CompareMode::strict)) return false;
    return true;
  }

  const Function& function_;
  const MayMerge& may_merge_;
  std::vector<Ref<Assign>> kept_;
  StructuralSet values_{CompareMode::strict};
  std::unordered_map<const Node*, const std::vector<Ref<Var>>*> targets_;
  std::unordered_map<const Var*, ExprRef> same_as_;
};

}  // namespace

FunctionRef tessera::ir::eliminate_common_subexpressions(const FunctionRef& function,
                                                         const MayMerge& may_merge) {
  return rewrite(function, [&](const NodeRef& node) {
    const auto* one = as<Function>(node);
    return one == nullptr ? node : FunctionCse(*one, may_merge).run();
  });
}

FunctionRef tessera::ir::merge_equal_statements(const FunctionRef& function, const MayMerge& may_merge) {
  const NodeRef out = FunctionCse(*function, may_merge).run();
  return FunctionRef(static_cast<const Function*>(out.get()));
}

#include "tessera/ir/cse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "tessera/ir/rewrite.h"
#include "tessera/ir/seal.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_set.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

// ---- calls, which are nearly all statements: compared without walking

/// Its size and its ends.
std::uint64_t word_of(const Bytes& bytes) {
  if (bytes.size() == 0) return 0;
  std::uint64_t first = 0, last = 0;
  const std::size_t size = std::min<std::size_t>(bytes.size(), 8);
  std::memcpy(&first, bytes.data(), size);
  std::memcpy(&last, bytes.data() + bytes.size() - size, size);
  return (first ^ std::rotl(last, 31)) + bytes.size();
}

std::uint64_t word_of(const Expr& operand) {
  if (const auto* constant = as<IntConst>(operand)) return static_cast<std::uint64_t>(constant->value);
  if (const auto* constant = as<FloatConst>(operand)) return std::bit_cast<std::uint64_t>(constant->value);
  if (const auto* param = as<Param>(operand)) return param->slot;
  if (const auto* dense = as<Dense>(operand)) return word_of(dense->data);
  return is<Var>(operand) ? reinterpret_cast<std::uintptr_t>(&operand) : 0;
}

void add(Hasher& hash, const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) hash.add(static_cast<std::uint64_t>(*integer));
  if (const auto* flag = std::get_if<bool>(&value)) hash.add(*flag ? 1 : 0);
  if (const auto* shape = std::get_if<Shape>(&value))
    for (const Dim& dim : *shape) hash.add(dim.is_constant() ? static_cast<std::uint64_t>(dim.value()) : 0);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    for (std::int64_t item : *list) hash.add(static_cast<std::uint64_t>(item));
}

/// The same for equal calls; differs for most that are not.
Hash128 quick_hash(const Call& call) {
  Hasher hash(std::hash<std::string>()(call.op));
  for (const ExprRef& arg : call.args) hash.add(word_of(*arg));
  for (const auto& [name, value] : call.attrs.entries()) add(hash, value);
  return hash.finish();
}

bool same_call(const Call& a, const Call& b) {
  if (a.op != b.op || a.args.size() != b.args.size()) return false;
  bool same_args = true;
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    same_args = same_args && a.args[i] == b.args[i];
    if (a.args[i] != b.args[i] && (is<Var>(a.args[i]) || is<Var>(b.args[i]))) return false;
  }
  if (same_args && a.attrs.empty() && b.attrs.empty()) return true;
  return structural_equal(a, b, CompareMode::strict);
}

/// One function whose nested bodies are done already.
class FunctionCse {
 public:
  FunctionCse(const Function& function, const MayMerge& may_merge)
      : function_(function), may_merge_(may_merge) {}

  NodeRef run() {
    kept_.reserve(function_.body.size());
    calls_.reserve(function_.body.size());
    for (const Ref<Assign>& statement : function_.body) {
      kept_.push_back(with_known_values(statement));
      if (drop_if_known(*kept_.back())) kept_.pop_back();
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
    if (const auto* call = as<Call>(value)) return replaced_arguments(value, *call);
    if (const auto* var = as<Var>(value)) {
      const auto known = same_as_.find(var);
      return known == same_as_.end() ? value : known->second;
    }
    const NodeRef out = replace_variables(value, [&](const Var& var) {
      const auto known = same_as_.find(&var);
      return known == same_as_.end() ? ExprRef() : known->second;
    });
    return ExprRef(static_cast<const Expr*>(out.get()));
  }

  /// Attributes mention scalars alone, and those are never replaced.
  ExprRef replaced_arguments(const ExprRef& value, const Call& call) {
    std::unique_ptr<Call> draft;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      ExprRef arg = replaced(call.args[i]);
      if (arg == call.args[i]) continue;
      if (draft == nullptr) draft = std::make_unique<Call>(call);
      draft->args[i] = std::move(arg);
    }
    return draft == nullptr ? value : ExprRef(seal(std::move(draft)));
  }

  Ref<Assign> with_known_values(const Ref<Assign>& statement) {
    ExprRef value = replaced(statement->value);
    return value == statement->value ? statement
                                     : assign(statement->targets, std::move(value), statement->span());
  }

  bool drop_if_known(const Assign& statement) {
    if (has_scalars(statement) || !may_merge_(*statement.value)) return false;
    const Assign& first = first_like(statement);
    if (&first == &statement || !same_types(first.targets, statement.targets)) return false;
    for (std::size_t i = 0; i < statement.targets.size(); ++i)
      same_as_[statement.targets[i].get()] = first.targets[i];
    return true;
  }

  /// A scalar may be a size in the type of a later target, where no value is replaced.
  static bool has_scalars(const Assign& statement) {
    return std::any_of(statement.targets.begin(), statement.targets.end(),
                       [](const Ref<Var>& target) { return is<ScalarType>(target->type); });
  }

  /// The first statement with the same value; this one if there is none before.
  const Assign& first_like(const Assign& statement) {
    const auto* call = as<Call>(statement.value);
    if (call == nullptr)
      return *others_.try_emplace(values_.insert(statement.value).get(), &statement).first->second;
    const Hash128 hash = quick_hash(*call);
    const auto [first, last] = calls_.equal_range(hash);
    for (auto at = first; at != last; ++at)
      if (same_call(static_cast<const Call&>(*at->second->value), *call)) return *at->second;
    calls_.emplace(hash, &statement);
    return statement;
  }

  static bool same_types(const std::vector<Ref<Var>>& a, const std::vector<Ref<Var>>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!same_type(*a[i]->type, *b[i]->type)) return false;
    return true;
  }

  static bool same_type(const Type& a, const Type& b) {
    const auto *x = as<TensorType>(a), *y = as<TensorType>(b);
    if (x != nullptr && y != nullptr) return x->dtype == y->dtype && x->shape == y->shape;
    return structural_equal(a, b, CompareMode::strict);
  }

  const Function& function_;
  const MayMerge& may_merge_;
  std::vector<Ref<Assign>> kept_;
  StructuralSet values_{CompareMode::strict};
  std::unordered_map<const Node*, const Assign*> others_;
  std::unordered_multimap<Hash128, const Assign*> calls_;
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

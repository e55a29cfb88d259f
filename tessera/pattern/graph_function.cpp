#include "tessera/pattern/graph_function.h"

#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/structural_set.h"
#include "tessera/ir/visit.h"
#include "tessera/ir/walk.h"
#include "tessera/pattern/graph_builder.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// The value of a constant scalar, or nothing.
std::optional<AttributeValue> constant_of(const ir::Expr& expr) {
  if (const auto* integer = ir::as<ir::IntConst>(expr)) return AttributeValue(integer->value);
  if (const auto* number = ir::as<ir::FloatConst>(expr)) return AttributeValue(number->value);
  if (const auto* flag = ir::as<ir::BoolConst>(expr)) return AttributeValue(flag->value);
  return std::nullopt;
}

External::Kind kind_of(const ir::Expr& expr) {
  if (ir::is<ir::Param>(expr)) return External::Kind::parameter;
  return ir::is<ir::Dense>(expr) || constant_of(expr) ? External::Kind::constant : External::Kind::input;
}

/// Of a large constant a few bytes are enough to find those that are like it; whether they are equal is asked
/// then.
Hash128 hash_of_operand(const ir::Node& node, ir::CompareMode mode) {
  constexpr std::size_t few = 256;
  const auto* dense = ir::as<ir::Dense>(node);
  if (dense == nullptr || dense->data.size() <= 2 * few) return ir::structural_hash(node, mode);
  const auto bytes = dense->data.span();
  return Hasher(static_cast<std::uint64_t>(dense->type->dtype))
      .add(bytes.size())
      .add_bytes(bytes.first(few))
      .add_bytes(bytes.last(few))
      .finish();
}

class FunctionReader {
 public:
  FunctionReader(const ir::Function& function, ir::OpFactsRef facts, const StatementOperations& operations_of)
      : function_(function), operations_of_(operations_of), builder_(std::move(facts)) {}

  Result<Graph> run() {
    for (const Ref<ir::Assign>& statement : function_.body) TESSERA_TRY(add_statement(*statement));
    for (NodeId node = 0; node < function_.body.size(); ++node) connect(node, *function_.body[node]);
    for (const ir::ExprRef& result : function_.results)
      for_each_result_in(*result, [&](ValueId value) { builder_.set_output(value); });
    return std::move(builder_).build();
  }

 private:
  Result<void> add_statement(const ir::Assign& statement) {
    NodeParts parts{.id = statement.targets.empty() ? "" : statement.targets[0]->name};
    const auto* call = ir::as<ir::Call>(statement.value);
    parts.is_opaque = call == nullptr;
    parts.op = call != nullptr ? call->op : cat("<", ir::to_string(statement.value->kind()), ">");
    if (call != nullptr) parts.attributes = call->attrs;
    if (call != nullptr && operations_of_) parts.operations = operations_of_(statement);
    parts.results.clear();
    for (const Ref<ir::Var>& target : statement.targets) parts.results.push_back(type_of(*target->type));
    const NodeId node = builder_.add_node(std::move(parts));
    for (std::uint32_t k = 0; k < statement.targets.size(); ++k) {
      const ir::Var& target = *statement.targets[k];
      if (!values_.try_emplace(&target, builder_.result(node, k)).second)
        return Error(ErrorCode::invalid_argument,
                     cat("variable '", ir::describe(target), "' is assigned twice"), target.span().resolve());
    }
    return {};
  }
  ValueType type_of(const ir::Type& type) {
    if (const auto* tensor = ir::as<ir::TensorType>(type))
      return {tensor->dtype, builder_.shape(tensor->shape)};
    if (const auto* scalar = ir::as<ir::ScalarType>(type)) return {scalar->dtype, builder_.shape({})};
    return {};
  }

  void connect(NodeId node, const ir::Assign& statement) {
    const auto read = [&](ValueId value) { builder_.add_read(node, value); };
    for (const Ref<ir::Var>& target : statement.targets) for_each_result_in(*target->type, read);
    const auto* call = ir::as<ir::Call>(statement.value);
    if (call == nullptr) return connect_opaque(node, *statement.value);
    std::vector<ValueId> inputs;
    for (const ir::ExprRef& arg : call->args) {
      inputs.push_back(value_of(arg));
      if (!ir::is<ir::Var>(arg)) for_each_result_in(*arg, read);
    }
    builder_.set_inputs(node, std::move(inputs));
    for (const auto& [name, attribute] : call->attrs.entries())
      if (const auto* shape = std::get_if<ir::Shape>(&attribute))
        for (const ir::Dim& dim : *shape)
          if (!dim.is_constant()) for_each_result_in(*dim.expr(), read);
  }
  /// Everything an opaque statement mentions is an input of it. Bodies are closed: they mention nothing of
  /// here.
  void connect_opaque(NodeId node, const ir::Expr& value) {
    std::vector<ValueId> inputs;
    if (ir::is<ir::Var>(value)) inputs.push_back(value_of(ir::ExprRef(&value)));
    ir::for_each_child(value, [&](const ir::Node& child) {
      if (child.kind() == ir::NodeKind::function) return;
      if (const auto* var = ir::as<ir::Var>(child))
        inputs.push_back(value_of(ir::ExprRef(var)));
      else
        for_each_result_in(child, [&](ValueId result) { builder_.add_read(node, result); });
    });
    builder_.set_inputs(node, std::move(inputs));
  }

  ValueId value_of(const ir::ExprRef& expr) {
    if (const auto* var = ir::as<ir::Var>(expr)) {
      const auto [at, is_new] = values_.try_emplace(var, none);
      if (is_new) at->second = add_external(expr, type_of(*var->type));
      return at->second;
    }
    const ir::NodeRef known = expressions_.insert(expr);
    const auto [at, is_new] = values_.try_emplace(known.get(), none);
    if (is_new) {
      const auto* dense = ir::as<ir::Dense>(expr);
      const ValueType scalar{ir::scalar_dtype(*expr), builder_.shape({})};
      at->second = add_external(expr, dense != nullptr ? type_of(*dense->type) : scalar);
    }
    return at->second;
  }
  ValueId add_external(const ir::ExprRef& expr, ValueType type) {
    return builder_.add_external(
        {.name = ir::describe(*expr), .kind = kind_of(*expr), .constant = constant_of(*expr), .expr = expr},
        type);
  }

  /// Calls `visit` for each result of a statement that occurs in `node`.
  template <class Visit>
  void for_each_result_in(const ir::Node& node, Visit visit) {
    if (!node.has_variables() && !ir::is<ir::Var>(node)) return;
    if (const auto* var = ir::as<ir::Var>(node)) return visit_result(*var, visit);
    for (const ir::Node* inner : ir::post_order(node))
      if (const auto* var = ir::as<ir::Var>(*inner)) visit_result(*var, visit);
  }
  template <class Visit>
  void visit_result(const ir::Var& var, Visit visit) {
    const auto at = values_.find(&var);
    if (at != values_.end() && at->second != none && builder_.is_result(at->second)) visit(at->second);
  }

  const ir::Function& function_;
  const StatementOperations& operations_of_;
  GraphBuilder builder_;
  std::unordered_map<const ir::Node*, ValueId> values_;  ///< of variables, and of expressions in expressions_
  ir::StructuralSet expressions_{ir::CompareMode::strict, &hash_of_operand};
};

}  // namespace

Result<Graph> tessera::pattern::graph_of(const ir::Function& function, ir::OpFactsRef facts,
                                         const StatementOperations& operations_of) {
  return FunctionReader(function, std::move(facts), operations_of).run();
}

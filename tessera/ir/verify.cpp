#include "tessera/ir/verify.h"

#include <functional>
#include <unordered_map>

#include "tessera/base/checked.h"
#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/print.h"
#include "tessera/ir/rewrite.h"
#include "tessera/ir/scalar_fold.h"
#include "tessera/ir/size_algebra.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/visit.h"
#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

using Types = std::vector<TypeRef>;

/// What may stand as an argument: flat code names every tensor.
bool is_operand(const Expr& expr) {
  switch (expr.kind()) {
    case NodeKind::var:
    case NodeKind::int_const:
    case NodeKind::float_const:
    case NodeKind::bool_const:
    case NodeKind::dense:
    case NodeKind::param:
    case NodeKind::scalar_op:
      return true;
    default:
      return false;
  }
}

bool is_single_boolean(const Type& type) {
  if (const auto* scalar = as<ScalarType>(type)) return scalar->dtype == Dtype::boolean;
  const auto* tensor = as<TensorType>(type);
  return tensor != nullptr && tensor->dtype == Dtype::boolean && element_count(tensor->shape) == 1;
}

bool is_single_integer(const Type& type) {
  if (const auto* scalar = as<ScalarType>(type)) return is_integer(scalar->dtype);
  const auto* tensor = as<TensorType>(type);
  return tensor != nullptr && is_integer(tensor->dtype) && element_count(tensor->shape) == 1;
}

/// The dtype of each parameter slot that was met so far, in a function and those below it.
using SlotDtypes = std::unordered_map<std::uint32_t, Dtype>;

std::string type_text(const TypeRef& type) { return type == nullptr ? "nothing" : print_line(*type); }

/// Checks one function, or one expression or statement that stands alone. Functions below are checked on
/// their own: they are closed.
class ScopeVerifier {
 public:
  ScopeVerifier(std::vector<Error>& errors, SlotDtypes& slots) : errors_(errors), slots_(slots) {}

  void function(const Function& function) {
    where_ = function.name.empty() ? "" : cat("in function '", printable(function.name), "'");
    for (const Ref<Var>& dim : function.dims) {
      if (scalar_dtype(*dim) != Dtype::i64)
        fail(*dim, cat("size '", describe(*dim), "' must be an i64 scalar, not ", type_text(dim->type)));
      define(*dim);
    }
    for (const Ref<Var>& param : function.params) define(*param);
    for (const Ref<Assign>& one : function.body) statement(*one);
    for (const ExprRef& result : function.results) operand(*result, function, "a result");
  }

  void statement(const Assign& statement) {
    if (statement.targets.empty()) fail(statement, "an assignment needs at least one target");
    const std::optional<Types> types = value(*statement.value, statement);
    if (types) check_types(statement, *types, statement.targets, "target");
    for (const Ref<Var>& target : statement.targets) define(*target);
  }

  /// The types of a value's results, if they are known without knowing the ops.
  std::optional<Types> value(const Expr& expr, const Node& at) {
    switch (expr.kind()) {
      case NodeKind::call: {
        for (const ExprRef& arg : static_cast<const Call&>(expr).args) operand(*arg, at, "an argument");
        for (const auto& [name, attribute] : static_cast<const Call&>(expr).attrs.entries())
          if (const auto* shape = std::get_if<Shape>(&attribute)) symbols(*shape, at);
        return std::nullopt;
      }
      case NodeKind::tuple:
        return tuple_types(static_cast<const Tuple&>(expr), at);
      case NodeKind::item:
        return item_types(static_cast<const Item&>(expr), at);
      case NodeKind::invoke:
        return invoke(static_cast<const Invoke&>(expr), at);
      case NodeKind::if_region:
        return if_region(static_cast<const IfRegion&>(expr), at);
      case NodeKind::switch_region:
        return switch_region(static_cast<const SwitchRegion&>(expr), at);
      case NodeKind::while_region:
        return while_region(static_cast<const WhileRegion&>(expr), at);
      case NodeKind::for_region:
        return for_region(static_cast<const ForRegion&>(expr), at);
      default: {
        const TypeRef type = operand(expr, at, "a value");
        return type == nullptr ? std::nullopt : std::optional(Types{type});
      }
    }
  }

  void type(const Type& type, const Node& at) {
    if (!is<TupleType>(type)) return element_type(type, at);
    for (const Node* node : post_order(type))  // also the types of size symbols, which are checked elsewhere
      if (const auto* tuple = as<TupleType>(*node))
        for (const TypeRef& element : tuple->elements) element_type(*element, at);
  }

 private:
  void fail(const Node& node, std::string message) {
    Error error(ErrorCode::invalid_argument, std::move(message), node.span().resolve());
    errors_.push_back(where_.empty() ? std::move(error) : std::move(error).note(where_));
  }

  // ---- variables and scalars

  void define(const Var& var) {
    type(*var.type, var);
    if (bool& known = defined_[var]; std::exchange(known, true))
      fail(var, cat("'", describe(var), "' is assigned twice"));
  }

  void element_type(const Node& type, const Node& at) {
    if (const auto* tensor = as<TensorType>(type)) dims(tensor->shape, at);
    if (const auto* scalar = as<ScalarType>(type); scalar != nullptr && is_impossible(scalar->range))
      fail(at, cat("no number is in the range ", *scalar->range.lower, "..", *scalar->range.upper));
  }

  static bool is_impossible(const Range& range) {
    return range.lower && range.upper && *range.lower > *range.upper;
  }

  void dims(const Shape& shape, const Node& at) {
    for (const Dim& dim : shape)
      if (dim.is_constant() && dim.value() < 0) fail(at, cat("dimension ", dim.value(), " is negative"));
    symbols(shape, at);
  }

  /// An attribute may hold positions, which count from the end if negative, or -1 for a size to be found.
  void symbols(const Shape& shape, const Node& at) {
    for (const Dim& dim : shape) {
      if (dim.is_constant()) continue;
      scalars(*dim.expr(), at);
      if (scalar_dtype(*dim.expr()) != Dtype::i64)
        fail(at, cat("dimension ", to_text(dim), " is not an i64 expression"));
      else if (const auto why = why_no_size(dim))
        fail(at, cat("dimension ", to_text(dim), " ", *why));
      else if (const auto upper = bounds(dim).upper; upper && *upper < 0)
        fail(at, cat("dimension ", to_text(dim), " is at most ", *upper, ", which is negative"));
    }
  }

  /// Why an expression has no value as a size: it was simplified, and what is left can tell.
  static std::optional<std::string_view> why_no_size(const Dim& dim) {
    if (dim.is_constant()) return std::nullopt;
    bool is_known = true;
    for (const Node* node : post_order(*dim.expr())) {
      const auto* expr = node->kind() >= NodeKind::var ? static_cast<const Expr*>(node) : nullptr;
      if (expr != nullptr && divides_by_zero(*expr)) return "divides by zero";
      const bool is_size = expr != nullptr && (is<IntConst>(*expr) || is_size_operation(*expr));
      is_known = is_known && is_size;
    }
    return is_known ? std::optional<std::string_view>("does not fit 64 bits") : std::nullopt;
  }

  TypeRef operand(const Expr& expr, const Node& at, std::string_view what) {
    if (!is_operand(expr)) {
      fail(at, cat(what, " must be a variable, a constant or a scalar expression, not '", describe(expr),
                   "': tensor code is flat"));
      return nullptr;
    }
    scalars(expr, at);
    if (const auto* var = as<Var>(expr)) return var->type;
    if (const auto* constant = as<Dense>(expr)) {
      check_dense(*constant, at);
      return constant->type;
    }
    return scalar_type(scalar_dtype(expr).value_or(Dtype::i64));
  }

  void check_dense(const Dense& constant, const Node& at) {
    const auto count = element_count(constant.type->shape);
    const auto bytes =
        count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(size_of(constant.type->dtype)))
              : std::nullopt;
    if (!bytes || *bytes != static_cast<std::int64_t>(constant.data.size()))
      fail(at,
           cat("dense constant of type ", type_text(constant.type), " has ", constant.data.size(), " bytes"));
  }

  /// Every variable of an expression is defined, every scalar operation fits its operands.
  void scalars(const Expr& root, const Node& at) {
    if (const auto* var = as<Var>(root)) return use(*var, at);
    if (const auto* param = as<Param>(root)) return slot(*param, at);
    if (root.kind() != NodeKind::scalar_op) return;
    std::vector<const Expr*> stack{&root};
    while (!stack.empty()) {
      const Expr& expr = *stack.back();
      stack.pop_back();
      if (const auto* var = as<Var>(expr)) use(*var, at);
      if (const auto* param = as<Param>(expr)) slot(*param, at);
      const auto* op = as<ScalarOp>(expr);
      if (op == nullptr) continue;
      if (bool& known = checked_[*op]; std::exchange(known, true)) continue;
      check_scalar_op(*op, op->span().line != 0 ? *op : at);
      for (std::size_t i = op->operands.size(); i-- > 0;) stack.push_back(op->operands[i].get());
    }
  }

  void check_scalar_op(const ScalarOp& op, const Node& at) {
    const auto name = to_string(op.opcode);
    std::optional<Dtype> common;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const auto dtype = scalar_dtype(*op.operands[i]);
      if (!dtype) {
        fail(at, cat("operand ", i, " of scalar '", name, "' is not a scalar: '", describe(*op.operands[i]),
                     "'"));
        return;
      }
      if (op.opcode == ScalarOpcode::select && i == 0) {
        if (*dtype != Dtype::boolean)
          fail(at, cat("the condition of 'select' is ", to_string(*dtype), ", not bool"));
        continue;
      }
      if (common && *common != *dtype)
        fail(at, cat("operands of scalar '", name, "' have different dtypes: ", to_string(*common), " and ",
                     to_string(*dtype)));
      common = dtype;
    }
  }

  /// A launch gives one number for a slot, as bits that mean something in one dtype only.
  void slot(const Param& param, const Node& at) {
    const auto [known, is_new] = slots_.emplace(param.slot, param.dtype);
    if (!is_new && known->second != param.dtype)
      fail(at, cat("parameter $", param.slot, " is ", to_string(param.dtype), " here and ",
                   to_string(known->second), " elsewhere: a slot has one dtype"));
  }

  void use(const Var& var, const Node& at) {
    if (defined_.find(var) != nullptr) return;
    if (var.declared) return declared_free(var);
    fail(at, cat("'", describe(var), "' is used but not defined before"));
    defined_[var] = true;  // say it once
  }

  /// A free variable brings its type with it: checked where it is met first.
  void declared_free(const Var& var) {
    if (bool& known = free_[var]; !std::exchange(known, true)) type(*var.type, var);
  }

  // ---- types of results

  void check_types(const Node& at, const Types& types, const std::vector<Ref<Var>>& vars,
                   std::string_view what) {
    if (types.size() != vars.size()) {
      fail(at,
           cat("expected ", types.size(), " ", what, types.size() == 1 ? "" : "s", ", got ", vars.size()));
      return;
    }
    for (std::size_t i = 0; i < types.size(); ++i)
      if (types[i] != nullptr && !structural_equal(*types[i], *vars[i]->type, CompareMode::strict))
        fail(at, cat(what, " '", describe(*vars[i]), "' has type ", type_text(vars[i]->type),
                     ", but its value has type ", type_text(types[i])));
  }

  std::optional<Types> tuple_types(const Tuple& tuple, const Node& at) {
    Types elements;
    for (const ExprRef& element : tuple.elements) elements.push_back(operand(*element, at, "an element"));
    for (const TypeRef& element : elements)
      if (element == nullptr) return std::nullopt;
    return Types{tuple_type(std::move(elements))};
  }

  std::optional<Types> item_types(const Item& item, const Node& at) {
    const TypeRef type = operand(*item.tuple, at, "a tuple");
    const auto* tuple = as<TupleType>(type);
    if (type != nullptr && tuple == nullptr) fail(at, cat("'item' needs a tuple, not ", type_text(type)));
    if (tuple == nullptr) return std::nullopt;
    if (item.index >= tuple->elements.size()) {
      fail(at, cat("index ", item.index, " is outside a tuple of ", tuple->elements.size()));
      return std::nullopt;
    }
    return Types{tuple->elements[item.index]};
  }

  // ---- regions

  Types operands(const std::vector<ExprRef>& list, const Node& at, std::string_view what) {
    Types out;
    for (const ExprRef& one : list) out.push_back(operand(*one, at, what));
    return out;
  }

  /// What the symbols of a body are where it is called.
  static std::function<std::optional<Dim>(const Var&)> sizes(const Function& body,
                                                             const std::vector<ExprRef>& given) {
    return [&body, &given](const Var& var) -> std::optional<Dim> {
      for (std::size_t i = 0; i < body.dims.size() && i < given.size(); ++i)
        if (body.dims[i].get() == &var) return simplified(given[i]);
      return std::nullopt;
    };
  }

  /// A size that is outside of what the body says of its symbol, for all values.
  void check_sizes(const Function& body, const std::vector<ExprRef>& given, const Node& at,
                   std::string_view what) {
    for (std::size_t i = 0; i < body.dims.size() && i < given.size(); ++i) {
      const auto* type = as<ScalarType>(body.dims[i]->type);
      if (type == nullptr || scalar_dtype(*given[i]) != Dtype::i64) continue;
      const Dim size = simplified(given[i]);
      const Range has = bounds(size);
      const std::int64_t lower = type->range.lower.value_or(0);
      if (has.upper && *has.upper < lower)
        fail(at, cat("size '", describe(*body.dims[i]), "' of ", what, " is at least ", lower, ", but ",
                     to_text(size), " is given"));
      if (has.lower && type->range.upper && *has.lower > *type->range.upper)
        fail(at, cat("size '", describe(*body.dims[i]), "' of ", what, " is at most ", *type->range.upper,
                     ", but ", to_text(size), " is given"));
    }
  }

  /// Checks the arguments of a body and gives the types of its results, as seen from outside.
  std::optional<Types> enter(const FunctionRef& body, const std::vector<ExprRef>& given_dims,
                             const Types& args, const Node& at, std::string_view what) {
    if (body == nullptr) {
      fail(at, cat(what, " is missing"));
      return std::nullopt;
    }
    if (body->dims.size() != given_dims.size())
      fail(at, cat(what, " takes ", body->dims.size(), " sizes, got ", given_dims.size()));
    check_sizes(*body, given_dims, at, what);
    const auto size_of_symbol = sizes(*body, given_dims);
    if (body->params.size() != args.size()) {
      fail(at, cat(what, " takes ", body->params.size(), " values, got ", args.size()));
    } else {
      for (std::size_t i = 0; i < args.size(); ++i) {
        const TypeRef expected = substitute(body->params[i]->type, size_of_symbol);
        if (args[i] != nullptr && !structural_equal(*expected, *args[i], CompareMode::strict))
          fail(at, cat("parameter '", describe(*body->params[i]), "' of ", what, " has type ",
                       type_text(expected), ", but the value has type ", type_text(args[i])));
      }
    }
    Types out;
    for (const ExprRef& result : body->results) {
      TypeRef type;
      if (const auto* var = as<Var>(result)) type = var->type;
      if (const auto* constant = as<Dense>(result)) type = constant->type;
      if (type == nullptr)
        if (const auto dtype = scalar_dtype(*result)) type = scalar_type(*dtype);
      out.push_back(type == nullptr ? nullptr : substitute(type, size_of_symbol));
    }
    return out;
  }

  void same_results(const Node& at, const Types& a, const Types& b, std::string_view what) {
    if (a.size() != b.size()) {
      fail(at, cat(what, " give ", a.size(), " and ", b.size(), " results"));
      return;
    }
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] != nullptr && b[i] != nullptr && !structural_equal(*a[i], *b[i], CompareMode::strict))
        fail(at, cat(what, " disagree in result ", i, ": ", type_text(a[i]), " and ", type_text(b[i])));
  }

  void size_arguments(const std::vector<ExprRef>& list, const Node& at) {
    for (const ExprRef& one : list) {
      scalars(*one, at);
      if (scalar_dtype(*one) != Dtype::i64)
        fail(at, cat("a size must be an i64 expression, not '", describe(*one), "'"));
      else if (const auto why = why_no_size(simplified(one)))
        fail(at, cat("size ", to_text(Dim(one)), " ", *why));
    }
  }

  std::optional<Types> invoke(const Invoke& invoke, const Node& at) {
    size_arguments(invoke.dims, at);
    return enter(invoke.callee, invoke.dims, operands(invoke.args, at, "an argument"), at, "the callee");
  }

  std::optional<Types> if_region(const IfRegion& region, const Node& at) {
    const TypeRef condition = operand(*region.condition, at, "the condition");
    if (condition != nullptr && !is_single_boolean(*condition))
      fail(at, cat("the condition of 'if' must be one boolean, not ", type_text(condition)));
    size_arguments(region.dims, at);
    const Types args = operands(region.captures, at, "a capture");
    const auto then_types = enter(region.then_body, region.dims, args, at, "the 'then' body");
    const auto else_types = enter(region.else_body, region.dims, args, at, "the 'else' body");
    if (then_types && else_types) same_results(at, *then_types, *else_types, "the two bodies of 'if'");
    return then_types;
  }

  std::optional<Types> switch_region(const SwitchRegion& region, const Node& at) {
    const TypeRef index = operand(*region.index, at, "the index");
    if (index != nullptr && !is_single_integer(*index))
      fail(at, cat("the index of 'switch' must be one integer, not ", type_text(index)));
    size_arguments(region.dims, at);
    const Types args = operands(region.captures, at, "a capture");
    if (region.bodies.empty()) fail(at, "'switch' needs at least one body");
    std::optional<Types> first;
    for (const FunctionRef& body : region.bodies) {
      const auto types = enter(body, region.dims, args, at, "a body of 'switch'");
      if (first && types) same_results(at, *first, *types, "two bodies of 'switch'");
      if (!first) first = types;
    }
    return first;
  }

  std::optional<Types> while_region(const WhileRegion& region, const Node& at) {
    size_arguments(region.dims, at);
    const Types carried = operands(region.inits, at, "an initial value");
    Types args = carried;
    for (TypeRef& type : operands(region.captures, at, "a capture")) args.push_back(std::move(type));
    if (region.limit && *region.limit < 0) fail(at, cat("the limit of 'while' is negative: ", *region.limit));
    const auto condition = enter(region.condition, region.dims, args, at, "the condition of 'while'");
    if (condition &&
        (condition->size() != 1 || ((*condition)[0] != nullptr && !is_single_boolean(*(*condition)[0]))))
      fail(at, "the condition of 'while' must give one boolean");
    const auto body = enter(region.body, region.dims, args, at, "the body of 'while'");
    if (body) same_results(at, *body, carried, "the body and the initial values of 'while'");
    return carried;
  }

  std::optional<Types> for_region(const ForRegion& region, const Node& at) {
    const TypeRef count = operand(*region.count, at, "the count");
    if (count != nullptr && !is_single_integer(*count))
      fail(at, cat("the count of 'for' must be one integer, not ", type_text(count)));
    size_arguments(region.dims, at);
    const Types carried = operands(region.inits, at, "an initial value");
    Types args{tensor_type(Dtype::i64, {})};
    args.insert(args.end(), carried.begin(), carried.end());
    for (TypeRef& type : operands(region.captures, at, "a capture")) args.push_back(std::move(type));
    const auto body = enter(region.body, region.dims, args, at, "the body of 'for'");
    if (body) same_results(at, *body, carried, "the body and the initial values of 'for'");
    return carried;
  }

  std::vector<Error>& errors_;
  SlotDtypes& slots_;
  std::string where_;
  NodeTable<bool> defined_;
  NodeTable<bool> free_;
  NodeTable<bool> checked_;
};

}  // namespace

std::vector<Error> tessera::ir::verify_all(const Node& root) {
  std::vector<Error> errors;
  SlotDtypes slots;
  for (const Node* node : post_order(root)) {
    const auto* function = as<Function>(*node);
    if (function == nullptr) continue;
    if (is<Module>(root)) slots.clear();  // its functions are programs of their own
    ScopeVerifier(errors, slots).function(*function);
  }
  if (const auto* statement = as<Assign>(root)) {
    ScopeVerifier(errors, slots).statement(*statement);
  } else if (root.kind() <= NodeKind::tuple_type) {
    ScopeVerifier(errors, slots).type(static_cast<const Type&>(root), root);
  } else if (root.kind() >= NodeKind::var && root.kind() <= NodeKind::for_region) {
    (void)ScopeVerifier(errors, slots).value(static_cast<const Expr&>(root), root);
  }
  return errors;
}

Result<void> tessera::ir::verify(const Node& root) {
  std::vector<Error> errors = verify_all(root);
  if (errors.empty()) return {};
  return std::move(errors.front());
}

#include "tests/support/random_ir.h"

#include <cmath>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/seal.h"

using namespace tessera;
using namespace tessera::ir;
using tessera::fixture::RandomIr;

namespace {

const TypeRef bool_tensor = tensor_type(Dtype::boolean, {});
const TypeRef index_tensor = tensor_type(Dtype::i64, {});

}  // namespace

RandomIr::RandomIr(std::uint64_t seed, RandomIrOptions options) : random_(seed), options_(options) {
  if (!options_.free_variables) return;
  // Not the letter of bound sizes: names that clash are numbered, and that may change the order of a free and
  // a bound size of one name in a sum.
  free_.sizes = {size_symbol("F"), size_symbol("G", {1, 64})};
  free_.scalars = {variable(name("s"), scalar_type(Dtype::f32)),
                   variable(name("t"), scalar_type(Dtype::f32))};
  for (auto& list : {&free_.sizes, &free_.scalars})
    for (auto& var : *list) {  // free variables are declared, as the parser makes them
      auto draft = std::make_unique<Var>(*var);
      draft->declared = true;
      var = seal(std::move(draft));
    }
}

std::string RandomIr::name(const char* base) {
  static const char* odd[] = {"if", "f32", "a b", "x\ny", "`", "\xff", "N_1", "", "return", "0"};
  if (chance(5)) return odd[below(std::size(odd))];
  return chance(50) ? base : cat(base, below(4));
}

Dtype RandomIr::dtype() { return all_dtypes()[below(all_dtypes().size())]; }

Dim RandomIr::dim(const Scope& scope) {
  if (scope.sizes.empty() || chance(40)) return static_cast<std::int64_t>(below(6));
  const auto symbol = [&] { return Dim(scope.sizes[below(scope.sizes.size())]); };
  Dim out = symbol();
  for (std::uint64_t i = below(4); i > 0; --i) {
    const Dim other = chance(50) ? symbol() : Dim(static_cast<std::int64_t>(below(5)) + 1);
    switch (below(6)) {
      case 0:
        out = out * other;
        break;
      case 1:
        out = floor_div(out, Dim(static_cast<std::int64_t>(below(4)) + 1));
        break;
      case 2:
        out = max(out, other);
        break;
      case 3:
        out = floor_mod(out, other);
        break;
      default:
        out = out + other;
    }
  }
  return out;
}

TypeRef RandomIr::tensor_type(const Scope& scope) {
  Shape shape;
  for (std::uint64_t rank = below(4); rank > 0; --rank) shape.push_back(dim(scope));
  return ir::tensor_type(dtype(), std::move(shape));
}

ExprRef RandomIr::scalar(const Scope& scope, Dtype dtype, int depth) {
  if (depth == 0 || chance(20)) {
    if (dtype == Dtype::i64 && !scope.sizes.empty() && chance(60))
      return scope.sizes[below(scope.sizes.size())];
    if (dtype == Dtype::f32 && !scope.scalars.empty() && chance(60))
      return scope.scalars[below(scope.scalars.size())];
    if (is_float(dtype) && chance(20)) return param(static_cast<std::uint32_t>(below(3)), dtype, 0.5);
    if (dtype == Dtype::boolean) return bool_const(chance(50));
    if (is_float(dtype)) {
      const double values[] = {
          0.0, -0.0, 0.5, 1e-3, 3.14159274, std::nan(""), std::numeric_limits<double>::infinity()};
      return float_const(values[below(std::size(values))], dtype);
    }
    return int_const(static_cast<std::int64_t>(below(100)), dtype);
  }
  const auto sub = [&](Dtype of) { return scalar(scope, of, depth - 1); };
  if (dtype == Dtype::boolean)
    return scalar_op(chance(50) ? ScalarOpcode::lt : ScalarOpcode::eq, {sub(Dtype::f32), sub(Dtype::f32)});
  switch (below(7)) {
    case 0:
      return scalar_op(ScalarOpcode::select, {sub(Dtype::boolean), sub(dtype), sub(dtype)});
    case 1:
      return scalar_cast(dtype, sub(Dtype::i32));
    case 2:
      return scalar_op(is_float(dtype) ? ScalarOpcode::exp : ScalarOpcode::neg, {sub(dtype)});
    case 3: {
      const ExprRef shared = sub(dtype);
      return scalar_op(ScalarOpcode::mul, {shared, scalar_op(ScalarOpcode::sub, {shared, sub(dtype)})});
    }
    default: {
      static constexpr ScalarOpcode binary[] = {
          ScalarOpcode::add,       ScalarOpcode::sub,       ScalarOpcode::mul, ScalarOpcode::div,
          ScalarOpcode::floor_div, ScalarOpcode::floor_mod, ScalarOpcode::min, ScalarOpcode::max};
      return scalar_op(binary[below(std::size(binary))], {sub(dtype), sub(dtype)});
    }
  }
}

ExprRef RandomIr::scalar_expression(Dtype dtype) { return scalar(free_, dtype, 5); }

ExprRef RandomIr::dense() {
  const Dtype type = dtype();
  const auto count = static_cast<std::int64_t>(below(4));
  std::vector<std::byte> data;
  for (std::int64_t i = 0; i < count; ++i)
    append_element_bytes(data, type, static_cast<double>(i) / 2, type == Dtype::boolean ? i % 2 : i);
  return ir::dense(ir::tensor_type(type, {count}), Bytes::own(std::move(data)));
}

ExprRef RandomIr::operand(const Scope& scope) {
  if (!scope.tensors.empty() && chance(75)) return scope.tensors[below(scope.tensors.size())];
  if (chance(30)) return dense();
  return scalar(scope, chance(50) ? Dtype::f32 : Dtype::i64, 2);
}

AttributeValue RandomIr::attribute(const Scope& scope) {
  switch (below(9)) {
    case 0:
      return chance(50);
    case 1:
      return static_cast<std::int64_t>(below(10)) - 3;
    case 2:
      return std::ldexp(static_cast<double>(below(1000)), -5);
    case 3:
      return name("mode");
    case 4:
      return dtype();
    case 5:
      return std::vector<std::int64_t>(below(3), 7);
    case 6:
      return std::vector<double>(below(3), 0.25);
    case 7:
      return std::vector<std::string>(below(3), "s");
    default:
      return Shape{dim(scope), 3};
  }
}

Attributes RandomIr::attributes(const Scope& scope) {
  Attributes out;
  for (std::uint64_t i = below(4); i > 0; --i) out.set(cat("a", below(5)), attribute(scope));
  return out;
}

FunctionRef RandomIr::body(const std::vector<TypeRef>& params, std::size_t own_params, bool condition,
                           int depth) {
  FunctionParts parts;
  Scope scope;
  for (const TypeRef& type : params) {
    parts.params.push_back(variable(name("p"), type));
    scope.tensors.push_back(parts.params.back());
  }
  fill(scope, parts.body, depth);
  if (condition) {
    const auto more = variable(name("more"), bool_tensor);
    parts.body.push_back(assign(more, call("less", {operand(scope)})));
    parts.results = {more};
  } else {
    for (std::size_t i = 0; i < own_params; ++i)
      parts.results.push_back(parts.params[params.size() - own_params + i]);
  }
  return ir::function(std::move(parts));
}

Ref<Assign> RandomIr::region(Scope& scope, int depth) {
  // Captures and carried values have constant shapes, so that the bodies need no sizes of their own.
  std::vector<ExprRef> values;
  std::vector<TypeRef> types;
  for (std::uint64_t i = 1 + below(2); i > 0; --i) {
    const auto constant = dense();
    values.push_back(constant);
    types.push_back(static_cast<const Dense&>(*constant).type);
  }
  std::vector<Ref<Var>> targets;
  for (const TypeRef& type : types) targets.push_back(variable(name("r"), type));
  ExprRef value;
  const auto condition = variable(name("c"), bool_tensor);
  switch (below(4)) {
    case 0: {
      auto draft = std::make_unique<IfRegion>();
      draft->condition = bool_const(chance(50));
      draft->captures = values;
      draft->then_body = body(types, types.size(), false, depth - 1);
      draft->else_body = chance(30) ? draft->then_body : body(types, types.size(), false, depth - 1);
      value = seal(std::move(draft));
      break;
    }
    case 1: {
      auto draft = std::make_unique<SwitchRegion>();
      draft->index = scalar(scope, Dtype::i64, 1);
      draft->captures = values;
      for (std::uint64_t i = 1 + below(2); i > 0; --i)
        draft->bodies.push_back(body(types, types.size(), false, depth - 1));
      value = seal(std::move(draft));
      break;
    }
    case 2: {
      auto draft = std::make_unique<WhileRegion>();
      draft->inits = values;
      if (chance(50)) draft->limit = static_cast<std::int64_t>(below(100));
      draft->condition = body(types, 0, true, depth - 1);
      draft->body = body(types, types.size(), false, depth - 1);
      value = seal(std::move(draft));
      break;
    }
    default: {
      auto draft = std::make_unique<ForRegion>();
      draft->count = scalar(scope, Dtype::i64, 1);
      draft->inits = values;
      std::vector<TypeRef> params{index_tensor};
      params.insert(params.end(), types.begin(), types.end());
      draft->body = body(params, types.size(), false, depth - 1);
      value = seal(std::move(draft));
    }
  }
  for (const auto& target : targets) scope.tensors.push_back(target);
  return assign(targets, value);
}

Ref<Assign> RandomIr::invocation(Scope& scope, int depth) {
  const Ref<Var> size = size_symbol(name("K"));
  const auto param_type = ir::tensor_type(Dtype::f32, {Dim(size), 2});
  const auto param = variable(name("q"), param_type);
  FunctionParts parts{.name = name("callee"), .dims = {size}, .params = {param}, .results = {param}};
  Scope inner{{size}, {param}, {}, {}};
  fill(inner, parts.body, depth - 1);
  auto draft = std::make_unique<Invoke>();
  draft->callee = ir::function(std::move(parts));
  const Dim given = dim(scope);
  draft->dims = {given.is_constant() ? ExprRef(int_const(given.value())) : given.expr()};
  const auto type = ir::tensor_type(Dtype::f32, {given, 2});
  const auto argument = variable(name("arg"), type), target = variable(name("res"), type);
  scope.tensors.push_back(argument);
  draft->args = {argument};
  return assign(target, seal(std::move(draft)));
}

Ref<Assign> RandomIr::statement(Scope& scope, int depth) {
  if (depth > 0 && chance(25)) return region(scope, depth);
  if (chance(8)) {
    std::vector<ExprRef> elements;
    std::vector<TypeRef> types;
    for (const auto& var : scope.tensors)
      if (elements.size() < 3) {
        elements.push_back(var);
        types.push_back(var->type);
      }
    const auto target = variable(name("u"), tuple_type(std::move(types)));
    scope.tuples.push_back(target);
    return assign(target, tuple(std::move(elements)));
  }
  if (!scope.tuples.empty() && chance(20)) {
    const auto& from = scope.tuples[below(scope.tuples.size())];
    const auto& elements = static_cast<const TupleType&>(*from->type).elements;
    if (!elements.empty()) {
      const auto index = static_cast<std::uint32_t>(below(elements.size()));
      const auto target = variable(name("v"), elements[index]);
      scope.tensors.push_back(target);
      return assign(target, item(from, index));
    }
  }
  if (chance(15)) {
    const auto target = variable(name("s"), scalar_type(Dtype::f32));
    const auto value = scalar(scope, Dtype::f32, 3);
    scope.scalars.push_back(target);
    return assign(target, value);
  }
  std::vector<ExprRef> args;
  for (std::uint64_t i = below(4); i > 0; --i) args.push_back(operand(scope));
  static const char* ops[] = {"matmul", "relu", "add", "custom/op.1", "while", "softmax"};
  const auto value = call(ops[below(std::size(ops))], std::move(args), attributes(scope));
  std::vector<Ref<Var>> targets;
  for (std::uint64_t i = 1 + below(2); i > 0; --i) targets.push_back(variable(name("v"), tensor_type(scope)));
  for (const auto& target : targets) scope.tensors.push_back(target);
  return assign(targets, value);
}

void RandomIr::fill(Scope& scope, std::vector<Ref<Assign>>& out, int depth) {
  for (auto i = 1 + below(static_cast<std::uint64_t>(options_.statements)); i > 0; --i) {
    if (depth > 0 && chance(8)) {
      const std::size_t before = scope.tensors.size();
      auto call_of_function = invocation(scope, depth);
      const auto& argument = scope.tensors[before];
      out.push_back(assign(argument, call("make", {})));
      scope.tensors.push_back(call_of_function->targets[0]);
      out.push_back(std::move(call_of_function));
    } else {
      out.push_back(statement(scope, depth));
    }
  }
}

FunctionRef RandomIr::function() {
  FunctionParts parts{.name = name("main")};
  Scope scope;
  for (std::uint64_t i = below(3); i > 0; --i)
    parts.dims.push_back(size_symbol(name("N"), chance(30) ? Range{1, 1024} : Range{}));
  scope.sizes = parts.dims;
  for (std::uint64_t i = below(4); i > 0; --i)
    parts.params.push_back(variable(name("x"), tensor_type(scope)));
  scope.tensors = parts.params;
  if (options_.free_variables && chance(30)) {
    scope.scalars = free_.scalars;
    scope.sizes.insert(scope.sizes.end(), free_.sizes.begin(), free_.sizes.end());
  }
  fill(scope, parts.body, options_.region_depth);
  for (std::uint64_t i = below(3); i > 0; --i) parts.results.push_back(operand(scope));
  return ir::function(std::move(parts));
}

NodeRef RandomIr::node() {
  switch (below(8)) {
    case 0:
      return scalar_expression(chance(50) ? Dtype::f32 : Dtype::i64);
    case 1:
      return tensor_type(free_);
    case 2: {
      std::vector<FunctionRef> functions;
      for (std::uint64_t i = 1 + below(3); i > 0; --i) functions.push_back(function());
      return module(std::move(functions));
    }
    case 3:
      return assign(variable(name("a"), scalar_type(Dtype::f32)), scalar_expression(Dtype::f32));
    default:
      return function();
  }
}

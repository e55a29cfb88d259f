// Assignments, functions, regions and modules.
//
// A function is closed: it sees its own sizes, its own parameters and what it assigned itself, nothing of the
// code around it. A region hands what its bodies need as `dims` (sizes) and `captures` (values); this is why
// a body can be compared, hashed, cached and compiled without its surroundings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/ir/expr.h"

namespace tessera::ir {

struct Function;

/// Binds the results of `value`. The value is compared before the targets are bound, so that `x = x + 1`
/// reads the old x.
struct Assign final : Concrete<Node, NodeKind::assign> {
  using Concrete::Concrete;
  ExprRef value;
  std::vector<Ref<Var>> targets;

  static constexpr std::string_view syntax = "$targets = $value";
  static constexpr auto fields() {
    return std::tuple{usual("value", &Assign::value), def("targets", &Assign::targets)};
  }
};

struct Function final : Concrete<Node, NodeKind::function> {
  using Concrete::Concrete;
  std::string name;
  std::vector<Ref<Var>> dims;  ///< size symbols that the types of the parameters mention
  std::vector<Ref<Var>> params;
  std::vector<Ref<Assign>> body;
  std::vector<ExprRef> results;

  static constexpr std::string_view syntax = "?([$dims])($params) {\t$body\nreturn $results\b\n}";
  static constexpr auto fields() {
    return std::tuple{ignore("name", &Function::name), def("dims", &Function::dims),
                      def("params", &Function::params), usual("body", &Function::body),
                      usual("results", &Function::results)};
  }
};

/// A call of another function of the module.
struct Invoke final : Concrete<Expr, NodeKind::invoke> {
  using Concrete::Concrete;
  Ref<Function> callee;
  std::vector<ExprRef> dims;
  std::vector<ExprRef> args;

  static constexpr std::string_view syntax = "call $callee?([$dims])($args)";
  static constexpr auto fields() {
    return std::tuple{usual("callee", &Invoke::callee), usual("dims", &Invoke::dims),
                      usual("args", &Invoke::args)};
  }
};

/// `condition` is a boolean tensor of one element. Both bodies take (captures) and give the results.
struct IfRegion final : Concrete<Expr, NodeKind::if_region> {
  using Concrete::Concrete;
  ExprRef condition;
  std::vector<ExprRef> dims;
  std::vector<ExprRef> captures;
  Ref<Function> then_body;
  Ref<Function> else_body;

  static constexpr std::string_view syntax =
      "if $condition with ?([$dims])($captures) $then_body else $else_body";
  static constexpr auto fields() {
    return std::tuple{usual("condition", &IfRegion::condition), usual("dims", &IfRegion::dims),
                      usual("captures", &IfRegion::captures), usual("then_body", &IfRegion::then_body),
                      usual("else_body", &IfRegion::else_body)};
  }
};

/// Runs bodies[index]; an index outside runs the last one.
struct SwitchRegion final : Concrete<Expr, NodeKind::switch_region> {
  using Concrete::Concrete;
  ExprRef index;
  std::vector<ExprRef> dims;
  std::vector<ExprRef> captures;
  std::vector<Ref<Function>> bodies;

  static constexpr std::string_view syntax = "switch $index with ?([$dims])($captures) [$bodies]";
  static constexpr auto fields() {
    return std::tuple{usual("index", &SwitchRegion::index), usual("dims", &SwitchRegion::dims),
                      usual("captures", &SwitchRegion::captures), usual("bodies", &SwitchRegion::bodies)};
  }
};

/// While `condition(carried…, captures…)` holds, carried = body(carried…, captures…). More than `limit`
/// iterations are an error that names the loop.
struct WhileRegion final : Concrete<Expr, NodeKind::while_region> {
  using Concrete::Concrete;
  std::vector<ExprRef> inits;
  std::vector<ExprRef> dims;
  std::vector<ExprRef> captures;
  std::optional<std::int64_t> limit;
  Ref<Function> condition;
  Ref<Function> body;

  static constexpr std::string_view syntax =
      "while ($inits) with ?([$dims])($captures) ?(limit $limit )$condition do $body";
  static constexpr auto fields() {
    return std::tuple{usual("inits", &WhileRegion::inits),         usual("dims", &WhileRegion::dims),
                      usual("captures", &WhileRegion::captures),   usual("limit", &WhileRegion::limit),
                      usual("condition", &WhileRegion::condition), usual("body", &WhileRegion::body)};
  }
};

/// For i in 0 … count-1, carried = body(i, carried…, captures…). A count of 0 or less runs nothing.
struct ForRegion final : Concrete<Expr, NodeKind::for_region> {
  using Concrete::Concrete;
  ExprRef count;
  std::vector<ExprRef> inits;
  std::vector<ExprRef> dims;
  std::vector<ExprRef> captures;
  Ref<Function> body;

  static constexpr std::string_view syntax = "for $count ($inits) with ?([$dims])($captures) $body";
  static constexpr auto fields() {
    return std::tuple{usual("count", &ForRegion::count), usual("inits", &ForRegion::inits),
                      usual("dims", &ForRegion::dims), usual("captures", &ForRegion::captures),
                      usual("body", &ForRegion::body)};
  }
};

struct Module final : Concrete<Node, NodeKind::module> {
  using Concrete::Concrete;
  std::vector<Ref<Function>> functions;

  static constexpr auto fields() { return std::tuple{usual("functions", &Module::functions)}; }
};

using FunctionRef = Ref<Function>;

[[nodiscard]] Ref<Assign> assign(std::vector<Ref<Var>> targets, ExprRef value, Span span = {});
[[nodiscard]] Ref<Assign> assign(Ref<Var> target, ExprRef value, Span span = {});

/// The parts of a function, for building one: `function({.name = "main", .params = {x}, …})`.
struct FunctionParts {
  std::string name = {};
  std::vector<Ref<Var>> dims = {};
  std::vector<Ref<Var>> params = {};
  std::vector<Ref<Assign>> body = {};
  std::vector<ExprRef> results = {};
};
[[nodiscard]] FunctionRef function(FunctionParts parts, Span span = {});
[[nodiscard]] Ref<Module> module(std::vector<FunctionRef> functions);

}  // namespace tessera::ir

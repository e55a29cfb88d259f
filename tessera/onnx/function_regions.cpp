// Loops and branches of an imported function. A body is written like everything else; then its statements are
// cut out and closed: what they use from around is handed in.
#include <algorithm>
#include <unordered_set>

#include "tessera/ir/seal.h"
#include "tessera/ir/visit.h"
#include "tessera/ir/walk.h"
#include "tessera/onnx/function_target.h"

using namespace tessera;
using namespace tessera::onnx;

struct FunctionTarget::Body {
  std::vector<Ref<ir::Assign>> statements;
  std::vector<ir::ExprRef> results;
};

FunctionTarget::Body FunctionTarget::cut_body(std::size_t begin, op::Values results) {
  Body out{cut(begin), {}};
  for (Value result : results) out.results.push_back(expr(result));
  return out;
}

/// The tensors that bodies use and do not make, in the order of their first use.
std::vector<Ref<ir::Var>> FunctionTarget::captures_of(std::span<const Body* const> bodies,
                                                      std::span<const Ref<ir::Var>> parameters) const {
  std::unordered_set<const ir::Node*> known;
  for (const Ref<ir::Var>& parameter : parameters) known.insert(parameter.get());
  for (const Ref<ir::Var>& size : visible_sizes()) known.insert(size.get());
  std::vector<Ref<ir::Var>> out;
  const auto use_all = [&](const ir::Node& root) {
    for (const ir::Node* node : ir::post_order(root))
      if (const auto* var = ir::as<ir::Var>(*node); var != nullptr && known.insert(var).second)
        out.push_back(Ref<ir::Var>(var));
  };
  // What a region mentions is among its operands: its bodies are closed.
  const auto use = [&](const ir::ExprRef& root) {
    if (ir::is<ir::Var>(*root)) return use_all(*root);
    ir::for_each_child(*root, [&](const ir::Node& child) {
      if (child.kind() != ir::NodeKind::function) use_all(child);
    });
  };
  for (const Body* body : bodies) {
    for (const Ref<ir::Assign>& statement : body->statements) {
      use(statement->value);
      for (const Ref<ir::Var>& target : statement->targets) known.insert(target.get());
    }
    for (const ir::ExprRef& result : body->results) use(result);
  }
  return out;
}

/// A function of these parameters, the captures behind them.
ir::FunctionRef FunctionTarget::closed(const Body& body, std::string name,
                                       std::vector<Ref<ir::Var>> parameters,
                                       std::span<const Ref<ir::Var>> captures) const {
  parameters.insert(parameters.end(), captures.begin(), captures.end());
  return ir::function({.name = std::move(name),
                       .dims = visible_sizes(),
                       .params = std::move(parameters),
                       .body = body.statements,
                       .results = body.results});
}

template <class Region>
Result<op::Values> FunctionTarget::append_region(std::unique_ptr<Region> region,
                                                 std::span<const Ref<ir::Var>> captures,
                                                 const op::ValueTypes& types) {
  const auto sizes = visible_sizes();
  region->dims.assign(sizes.begin(), sizes.end());
  region->captures.assign(captures.begin(), captures.end());
  return append(ir::seal(std::move(region)), types);
}

namespace {

op::ValueTypes types_of(const op::Values& values) {
  op::ValueTypes out;
  for (Value value : values) out.push_back(value.type());
  return out;
}

Result<void> check_types(const op::ValueTypes& expected, const op::Values& got, std::string_view what) {
  if (got.size() != expected.size())
    return Error(ErrorCode::invalid_argument,
                 cat(what, " gives ", got.size(), " values, expected ", expected.size()));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(got[i].type() == expected[i]))
      return Error(ErrorCode::unsupported,
                   cat("value ", i, " of ", what, " is ", got[i].type(), ", expected ", expected[i]));
  return {};
}

}  // namespace

Result<op::Values> FunctionTarget::loop(const Dim& count, const op::Values& carried, const LoopBody& body) {
  const op::ValueTypes types = types_of(carried);
  std::vector<Ref<ir::Var>> parameters{ir::variable("i", op::ir_type({Dtype::i64, {}}))};
  for (const op::ValueType& type : types)
    parameters.push_back(ir::variable(cat("s", parameters.size()), op::ir_type(type)));
  const Value index = import(parameters[0], {Dtype::i64, {}});
  op::Values inside;
  for (std::size_t i = 0; i < types.size(); ++i) inside.push_back(import(parameters[1 + i], types[i]));
  const std::size_t begin = statements().size();
  ++body_depth_;
  auto written = body(index, inside);
  --body_depth_;
  const op::Values next = TESSERA_TRY(std::move(written));
  TESSERA_TRY(status());
  TESSERA_TRY(check_types(types, next, "the body of a loop"));
  const Body cut = cut_body(begin, next);
  const Body* const bodies[] = {&cut};
  const auto captures = captures_of(bodies, parameters);
  auto region = std::make_unique<ir::ForRegion>();
  region->count = expr(extent(count));
  for (Value value : carried) region->inits.push_back(expr(value));
  region->body = closed(cut, "body", std::move(parameters), captures);
  return append_region(std::move(region), captures, types);
}

bool FunctionTarget::is_assumed(Value condition, std::size_t begin) const {
  const auto known = equalities_.find(condition.id);
  if (known == equalities_.end()) return false;
  const auto& [a, b] = known->second;
  const auto& all = assumed().equal;
  return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(begin), all.end(), [&](const SizePair& pair) {
    return (pair.first == a && pair.second == b) || (pair.first == b && pair.second == a);
  });
}

Result<op::Values> FunctionTarget::branch(Value condition, const BranchBody& then,
                                          const BranchBody& otherwise) {
  const std::size_t begin = statements().size();
  const auto inside = [&](const BranchBody& body) {
    ++body_depth_;
    auto out = body();
    --body_depth_;
    return out;
  };
  const std::size_t assumed_before = assumed().equal.size();
  const op::Values first = TESSERA_TRY(inside(then));
  TESSERA_TRY(status());
  const bool runs_if_true = is_assumed(condition, assumed_before);
  const op::ValueTypes types = types_of(first);
  const Body then_body = cut_body(begin, first);
  const op::Values second = TESSERA_TRY(inside(otherwise));
  TESSERA_TRY(status());
  const Body else_body = cut_body(begin, second);
  auto agree = check_types(types, second, "the second body of a branch");
  if (!agree && runs_if_true) {
    for (const Ref<ir::Assign>& statement : then_body.statements) adopt(statement);
    return first;
  }
  TESSERA_TRY(std::move(agree));
  const Body* const bodies[] = {&then_body, &else_body};
  const auto captures = captures_of(bodies, {});
  auto region = std::make_unique<ir::IfRegion>();
  region->condition = expr(condition);
  region->then_body = closed(then_body, "then", {}, captures);
  region->else_body = closed(else_body, "else", {}, captures);
  return append_region(std::move(region), captures, types);
}

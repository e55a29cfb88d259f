#include "tessera/describe/function_writer.h"

#include <algorithm>
#include <set>

#include "tessera/base/text.h"
#include "tessera/describe/check_types.h"
#include "tessera/ir/seal.h"

using namespace tessera;
using namespace tessera::description;
using op::Value;

namespace {

using Buffers = std::vector<std::uint32_t>;

/// The first element.
Value first(Value x) {
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (x.shape()[axis] != op::Dim(1)) x = op::slice(x, static_cast<std::int64_t>(axis), 0, 1);
  return x.rank() == 0 ? x : op::reshape(x, {});
}

Value is_not_zero(op::Builder& b, Value x) {
  const Value element = first(x);
  if (element.dtype() == Dtype::boolean) return element;
  return b.call("ne", {element, b.constant(0, element.dtype())});
}

/// What a function is made of besides its statements, which are in `from`.
struct Signature {
  std::vector<Value> params;
  std::vector<Value> results;
};

/// A function whose parameters are those given, and then `captures`.
Result<ir::FunctionRef> function_of(Statements& from, std::string name, const Signature& signature,
                                    const std::set<Taken>& captures) {
  TESSERA_TRY(from.builder.status());
  ir::FunctionParts parts{.name = std::move(name)};
  const auto add = [&](Value param) {
    parts.params.emplace_back(static_cast<const ir::Var*>(from.builder.expr(param).get()));
  };
  for (const Value param : signature.params) add(param);
  for (const Taken& capture : captures) add(from.taken.at(capture));
  parts.body = from.builder.statements();
  for (const Value result : signature.results) parts.results.push_back(from.builder.expr(result));
  return ir::function(std::move(parts));
}

void collect(const Statements& from, std::set<Taken>& into) {
  for (const auto& [what, value] : from.taken) into.insert(what);
}

/// Whether all steps below a region are statements; else why not.
std::optional<std::string> why_not_inside(const Program& program, std::uint32_t region) {
  const Graph& graph = program.graph;
  for (std::uint32_t scope = graph.first_branch[region]; scope < graph.first_branch[region + 1]; ++scope)
    for (const Step& step : program.schedule.sequences[scope].steps)
      if (auto why = why_no_statement(program, step)) return why;
  return std::nullopt;
}

}  // namespace

// Regions nest at most as deep as validation allows, so that this may recurse.
std::optional<std::string> tessera::description::why_no_statement(const Program& program, const Step& step) {
  const Description& d = *program.description;
  const Graph& graph = program.graph;
  if (step.kind == StepKind::zero) return std::nullopt;
  if (step.kind == StepKind::reset_counter)
    return cat("append buffer ", shown(graph.buffers[step.index].name));
  if (step.kind == StepKind::region) {
    const std::uint32_t index = graph.index_buffer[step.index];
    if (index != no_index && op::element_count(graph.buffers[index].shape) != 1)
      return cat("region ", shown(d.regions[step.index].id), ", whose index is more than one number");
    return why_not_inside(program, step.index);
  }
  const Node& node = d.nodes[step.index];
  if (node.kind != NodeKind::op)
    return cat(to_string(node.kind), " node ", shown(node.id), ", a host function");
  const GraphNode& resolved = graph.nodes[step.index];
  const bool is_whole = std::all_of(resolved.pins.begin(), resolved.pins.end(),
                                    [](const Pin& pin) { return pin.is_scalar() || pin.buffer != no_index; });
  if (!is_whole) return cat("node ", shown(node.id), ", which has parameters without buffers");
  if (resolved.card->traits.random)
    return cat("node ", shown(node.id), ", whose results differ from launch to launch");
  return std::nullopt;
}

op::ValueType FunctionWriter::type_of(const Taken& what) const {
  const Graph& graph = program_.graph;
  if (!what.is_number)
    return {graph.buffers[what.index].dtype, ir::shape_of(graph.buffers[what.index].shape)};
  const GraphNode& node = graph.nodes[what.index];
  return {scalar_dtype(graph, node, node.pins[what.pin]), {}};
}

ir::Span FunctionWriter::span_of(const Place& place) {
  if (place.line == 0) return {};
  const SourceSpan span = program_.description->span_of(place);
  const auto [file, is_new] = files_.try_emplace(place.file);
  if (is_new) file->second = ir::SourceFile::create(span.file);
  return {file->second, place.line, place.column};
}

// ---- what buffers hold

Value FunctionWriter::value(Statements& at, const Taken& what) {
  const auto [known, is_new] = at.taken.try_emplace(what);
  if (!is_new) return known->second;
  if (&at == &outer_) return known->second = take(outer_, what);
  const op::ValueType type = type_of(what);
  if (!what.is_number)
    return known->second = at.builder.parameter(program_.graph.buffers[what.index].name, type);
  const std::string& name = program_.graph.nodes[what.index].pins[what.pin].declared.name;
  return known->second = at.builder.adopt_parameter(ir::variable(name, ir::scalar_type(type.dtype)), type);
}

Value FunctionWriter::content(Statements& at, std::uint32_t buffer) {
  const auto known = at.contents.find(buffer);
  if (known != at.contents.end()) return known->second;
  return at.contents[buffer] = value(at, Taken::content(buffer));
}

void FunctionWriter::write(Statements& at, std::uint32_t buffer, Value value) {
  if (std::find(at.written.begin(), at.written.end(), buffer) == at.written.end())
    at.written.push_back(buffer);
  at.contents[buffer] = value;
}

// ---- steps

Result<void> FunctionWriter::add(Statements& at, const Step& step) {
  if (step.kind == StepKind::region) return add_region(at, step.index);
  if (step.kind == StepKind::node) {
    add_node(at, step.index);
  } else {
    write(at, step.index, op::full(at.builder, 0, type_of(Taken::content(step.index))));
  }
  return {};
}

Result<void> FunctionWriter::add_scope(Statements& at, std::uint32_t scope) {
  for (const Step& step : program_.schedule.sequences[scope].steps) TESSERA_TRY(add(at, step));
  return {};
}

void FunctionWriter::add_node(Statements& at, std::uint32_t index) {
  const GraphNode& node = program_.graph.nodes[index];
  at.builder.at(span_of(program_.description->nodes[index].at));
  std::vector<Value> inputs;
  for (std::uint32_t i = 0; i < node.pins.size(); ++i) {
    const Pin& pin = node.pins[i];
    if (writes(pin.declared.access)) continue;
    inputs.push_back(pin.is_scalar() ? value(at, Taken::number(index, i)) : content(at, pin.buffer));
  }
  const op::Values results = at.builder.call_all(node.card->name, inputs, node.attributes);
  std::size_t next = 0;
  for (const Pin& pin : node.pins)
    if (writes(pin.declared.access) && next < results.size()) write(at, pin.buffer, results[next++]);
}

// ---- regions

bool FunctionWriter::is_inside(std::uint32_t scope, std::uint32_t region) const {
  const auto& scopes = program_.graph.scopes;
  for (; scope != no_index; scope = scopes[scope].parent)
    if (scopes[scope].region == region) return true;
  return false;
}

Buffers FunctionWriter::written_by(std::uint32_t region) const {
  const Graph& graph = program_.graph;
  std::set<std::uint32_t> out;
  const auto add = [&](std::uint32_t buffer) {
    if (buffer == no_index) return;
    const bool is_local =
        graph.buffers[buffer].lifetime == Lifetime::region && is_inside(scopes_.common[buffer], region);
    if (!is_local) out.insert(buffer);
  };
  add(graph.index_buffer[region]);
  for (std::uint32_t scope = graph.first_branch[region]; scope < graph.first_branch[region + 1]; ++scope)
    for (const Step& step : program_.schedule.sequences[scope].steps) {
      if (step.kind == StepKind::region)
        for (const std::uint32_t buffer : written_by(step.index)) add(buffer);
      if (step.kind == StepKind::node)
        for (const Pin& pin : graph.nodes[step.index].pins)
          if (writes(pin.declared.access)) add(pin.buffer);
    }
  return {out.begin(), out.end()};
}

Result<void> FunctionWriter::add_region(Statements& at, std::uint32_t region) {
  const Region& described = program_.description->regions[region];
  const Buffers written = written_by(region);
  if (written.empty()) return {};
  at.builder.at(span_of(described.at));
  const bool is_counted = described.kind == RegionKind::for_ && described.count;
  ir::ExprRef expr;
  if (!is_loop(described.kind))
    expr = TESSERA_TRY(branches(at, region, written));
  else
    expr = TESSERA_TRY(is_counted ? for_loop(at, region, written) : while_loop(at, region, written));
  at.builder.at(span_of(described.at));
  op::ValueTypes types;
  for (const std::uint32_t buffer : written) types.push_back(type_of(Taken::content(buffer)));
  if (described.kind == RegionKind::for_ && !is_counted) types.insert(types.end(), 2, {Dtype::i64, {}});
  const op::Values values = at.builder.append(std::move(expr), types);
  for (std::size_t i = 0; i < written.size(); ++i) write(at, written[i], values[i]);
  return {};
}

/// The branches, and one that leaves everything as it was if none of them may run.
Result<ir::ExprRef> FunctionWriter::branches(Statements& at, std::uint32_t region, const Buffers& written) {
  const Region& described = program_.description->regions[region];
  const bool is_if = described.kind == RegionKind::if_;
  const auto count = static_cast<std::size_t>(described.branches);
  std::vector<Statements> bodies(is_if ? 2 : count + 1);
  std::vector<Signature> signatures(bodies.size());
  std::set<Taken> captures;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const auto scope = program_.graph.first_branch[region] + static_cast<std::uint32_t>(b);
    if (b < count) TESSERA_TRY(add_scope(bodies[b], scope));
    for (const std::uint32_t buffer : written) signatures[b].results.push_back(content(bodies[b], buffer));
    collect(bodies[b], captures);
  }
  std::vector<ir::FunctionRef> functions;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    for (const Taken& capture : captures) value(bodies[b], capture);
    functions.push_back(TESSERA_TRY(function_of(bodies[b], cat("branch", b), signatures[b], captures)));
  }
  std::vector<ir::ExprRef> values = exprs(at, captures);
  const Value condition = content(at, program_.graph.condition[region]);
  if (is_if) {
    auto out = std::make_unique<ir::IfRegion>();
    out->condition = at.builder.expr(is_not_zero(at.builder, condition));
    out->captures = std::move(values);
    out->then_body = functions[0];
    out->else_body = functions[1];
    return ir::ExprRef(ir::seal(std::move(out)));
  }
  auto out = std::make_unique<ir::SwitchRegion>();
  out->index = at.builder.expr(op::cast(first(condition), Dtype::i64));
  out->captures = std::move(values);
  out->bodies = std::move(functions);
  return ir::ExprRef(ir::seal(std::move(out)));
}

std::vector<ir::ExprRef> FunctionWriter::exprs(Statements& at, const std::set<Taken>& captures) {
  std::vector<ir::ExprRef> out;
  for (const Taken& capture : captures)
    out.push_back(at.builder.expr(capture.is_number ? value(at, capture) : content(at, capture.index)));
  return out;
}

std::vector<Value> FunctionWriter::carry(Statements& body, const Buffers& written) const {
  std::vector<Value> out;
  for (const std::uint32_t buffer : written) {
    out.push_back(
        body.builder.parameter(program_.graph.buffers[buffer].name, type_of(Taken::content(buffer))));
    body.contents[buffer] = out.back();
  }
  return out;
}

Result<std::vector<Value>> FunctionWriter::iterate(Statements& body, std::uint32_t region,
                                                   const Buffers& written, Value number) {
  if (const std::uint32_t index = program_.graph.index_buffer[region]; index != no_index) {
    const op::ValueType type = type_of(Taken::content(index));
    write(body, index, op::reshape(op::cast(number, type.dtype), type.shape));
  }
  TESSERA_TRY(add_scope(body, program_.graph.first_branch[region]));
  std::vector<Value> out;
  for (const std::uint32_t buffer : written) out.push_back(content(body, buffer));
  return out;
}

Result<ir::ExprRef> FunctionWriter::for_loop(Statements& at, std::uint32_t region, const Buffers& written) {
  Statements body;
  Signature signature;
  const Value number = body.builder.parameter("i", {Dtype::i64, {}});
  signature.params = carry(body, written);
  signature.params.insert(signature.params.begin(), number);
  signature.results = TESSERA_TRY(iterate(body, region, written, number));
  std::set<Taken> captures;
  collect(body, captures);
  auto out = std::make_unique<ir::ForRegion>();
  out->count = ir::int_const(*program_.description->regions[region].count);
  for (const std::uint32_t buffer : written) out->inits.push_back(at.builder.expr(content(at, buffer)));
  out->captures = exprs(at, captures);
  out->body = TESSERA_TRY(function_of(body, "body", signature, captures));
  return ir::ExprRef(ir::seal(std::move(out)));
}

/// Also of a `for` whose count is in a buffer: it carries the number of the iteration and the count.
Result<ir::ExprRef> FunctionWriter::while_loop(Statements& at, std::uint32_t region, const Buffers& written) {
  const Region& described = program_.description->regions[region];
  const bool has_count = described.kind == RegionKind::for_;
  const op::ValueType integer{Dtype::i64, {}};
  Statements test, body;
  Signature of_test{carry(test, written), {}}, of_body{carry(body, written), {}};
  if (has_count)
    for (const char* name : {"i", "count"}) {
      of_test.params.push_back(test.builder.parameter(name, integer));
      of_body.params.push_back(body.builder.parameter(name, integer));
    }
  const Value number = has_count ? of_body.params[written.size()] : Value();
  of_test.results = {has_count ? test.builder.call("lt", std::span(of_test.params).last(2))
                               : is_not_zero(test.builder, content(test, program_.graph.condition[region]))};
  of_body.results = TESSERA_TRY(iterate(body, region, written, number));
  if (has_count) {
    of_body.results.push_back(number + 1.0);
    of_body.results.push_back(of_body.params.back());
  }
  std::set<Taken> captures;
  collect(test, captures);
  collect(body, captures);
  for (const Taken& capture : captures) value(test, capture), value(body, capture);
  auto out = std::make_unique<ir::WhileRegion>();
  for (const std::uint32_t buffer : written) out->inits.push_back(at.builder.expr(content(at, buffer)));
  if (has_count) {
    const Value count = first(content(at, program_.graph.condition[region]));
    out->inits.push_back(at.builder.expr(op::full(at.builder, 0, integer)));
    out->inits.push_back(at.builder.expr(op::cast(count, Dtype::i64)));
  }
  out->captures = exprs(at, captures);
  out->limit = described.limit;
  out->condition = TESSERA_TRY(function_of(test, "condition", of_test, captures));
  out->body = TESSERA_TRY(function_of(body, described.id, of_body, captures));  // errors name it
  return ir::ExprRef(ir::seal(std::move(out)));
}

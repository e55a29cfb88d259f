#include "tessera/tensor/region.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/seal.h"
#include "tessera/op/ir_builder.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/trace.h"

using namespace tessera;
using detail::fail;
using detail::RegionRules;
using detail::Trace;
using engine::Node;
using engine::NodeRef;
using op::Value;
using op::Values;

namespace {

op::ValueTypes types_of(const Tensors& tensors, std::string_view region, Here here) {
  op::ValueTypes out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_empty()) fail(here, cat(region, ": tensor ", i, " is empty"));
    out.push_back(tensors[i].node()->type());
  }
  return out;
}

void expect_same_types(std::string_view region, std::string_view what, const op::ValueTypes& expected,
                       const Tensors& got, Here here) {
  if (expected.size() != got.size())
    fail(here, cat(region, ": ", what, " gives ", got.size(), " tensors, expected ", expected.size()));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (expected[i] != got[i].node()->type())
      fail(here, cat(region, ": result ", i, " of ", what, " is ", got[i].node()->type(), ", expected ",
                     expected[i]));
}

/// The call of a region: a function whose parameters are `inputs` and then the captures, and whose body is
/// the region.
class RegionCall {
 public:
  RegionCall(std::string_view region, const Tensors& inputs, std::span<const NodeRef> captures, Here here)
      : region_(region), here_(here) {
    builder_.at({ir::SourceFile::create(here.file), here.line, 0});
    for (const Tensor& input : inputs) inputs_.push_back(add(NodeRef::share(input.node())));
    for (const NodeRef& capture : captures) captures_.push_back(add(capture));
    for (const NodeRef& node : nodes_)
      if (node->component->engine() != nodes_[0]->component->engine())
        fail(here,
             cat(region, ": tensors of two engines cannot be combined, and one used here is of another"));
  }

  [[nodiscard]] const std::vector<ir::ExprRef>& inputs() const { return inputs_; }
  /// What the bodies know of gradients.
  [[nodiscard]] autodiff::Rules& rules() { return rules_->rules; }

  template <class Region>
  Tensors record(std::unique_ptr<Region> draft, const op::ValueTypes& results) {
    draft->captures = captures_;
    const Values values = builder_.append(ir::seal(std::move(draft)), results);
    ir::FunctionRef function = value_or_throw(builder_.function(std::string(region_), values));
    std::vector<Node*> nodes;
    for (const NodeRef& node : nodes_) nodes.push_back(node.get());
    Tensors out;
    for (Node* node : engine::record_function(std::move(function), nodes, results,
                                              rules().empty() ? nullptr : rules_, detail::caller_of(here_)))
      out.push_back(Tensor::adopt(node));
    return out;
  }

 private:
  ir::ExprRef add(NodeRef node) {
    const Value value = builder_.parameter(cat("p", nodes_.size()), node->type());
    nodes_.push_back(std::move(node));
    return builder_.expr(value);
  }

  std::string_view region_;
  Here here_;
  op::IrBuilder builder_;
  std::vector<NodeRef> nodes_;
  std::vector<ir::ExprRef> inputs_, captures_;
  std::shared_ptr<RegionRules> rules_ = std::make_shared<RegionRules>();
};

template <class Body>
void expect_body(const Body& body, std::string_view region, std::string_view what, Here here) {
  if (!body) fail(here, cat(region, ": ", what, " is empty"));
}

Tensor one_element(const Tensor& tensor, std::string_view region, std::string_view what, Here here) {
  if (tensor.is_empty()) fail(here, cat(region, ": the ", what, " is empty"));
  if (tensor.size() != 1)
    fail(here, cat(region, ": the ", what, " is ", tensor.node()->type(), ", expected one element"));
  return tensor.rank() == 0 ? tensor : tensor.reshape({}, here);
}

Tensor predicate_of(const Tensor& tensor, std::string_view region, Here here) {
  const Tensor one = one_element(tensor, region, "predicate", here);
  return one.dtype() == Dtype::boolean ? one : one.cast(Dtype::boolean, here);
}

std::function<Tensors(const Tensors&)> without_parameters(const std::function<Tensors()>& body) {
  return [&body](const Tensors&) { return body(); };
}

std::function<Tensors()> in_a_list(const std::function<Tensor()>& body) {
  return [&body] { return Tensors{body()}; };
}

Tensors zeros_like(const Tensors& tensors, Here here) {
  Tensors out;
  for (const Tensor& t : tensors)
    out.push_back(zeros(t.shape(), {.dtype = t.dtype(), .engine = t.engine()}, here));
  return out;
}

}  // namespace

Tensors tessera::cond(const Tensor& predicate, const std::function<Tensors()>& then,
                      const std::function<Tensors()>& otherwise, Here here) {
  expect_body(then, "cond", "the first body", here);
  expect_body(otherwise, "cond", "the second body", here);
  const Tensor which = predicate_of(predicate, "cond", here);
  const Trace yes(which.engine(), {}, without_parameters(then), here),
      no(which.engine(), {}, without_parameters(otherwise), here);
  const op::ValueTypes types = types_of(yes.results(), "cond", here);
  if (types.empty()) return {};
  expect_same_types("cond", "the second body", types, no.results(), here);
  std::vector<NodeRef> captures;
  yes.add_captures(captures);
  no.add_captures(captures);
  RegionCall call("cond", {which}, captures, here);
  auto draft = std::make_unique<ir::IfRegion>();
  draft->condition = call.inputs()[0];
  draft->then_body = yes.function("then", captures, call.rules());
  draft->else_body = no.function("else", captures, call.rules());
  return call.record(std::move(draft), types);
}

Tensor tessera::cond(const Tensor& predicate, const std::function<Tensor()>& then,
                     const std::function<Tensor()>& otherwise, Here here) {
  expect_body(then, "cond", "the first body", here);
  expect_body(otherwise, "cond", "the second body", here);
  return cond(predicate, in_a_list(then), in_a_list(otherwise), here)[0];
}

Tensors tessera::if_(const Tensor& predicate, const std::function<Tensors()>& body, Here here) {
  expect_body(body, "if_", "the body", here);
  // What the body gives is known only after it ran; the other body runs second.
  Tensors results;
  const std::function<Tensors()> then = [&] { return results = body(); };
  const std::function<Tensors()> otherwise = [&] { return zeros_like(results, here); };
  return cond(predicate, then, otherwise, here);
}

Tensor tessera::if_(const Tensor& predicate, const std::function<Tensor()>& body, Here here) {
  expect_body(body, "if_", "the body", here);
  return if_(predicate, in_a_list(body), here)[0];
}

Tensors tessera::switch_(const Tensor& index, const std::vector<std::function<Tensors()>>& bodies,
                         Here here) {
  if (bodies.empty()) fail(here, "switch: there is no body");
  for (std::size_t i = 0; i < bodies.size(); ++i) expect_body(bodies[i], "switch", cat("body ", i), here);
  Tensor which = one_element(index, "switch", "index", here);
  if (ir::is_float(which.dtype()))
    fail(here, cat("switch: the index is ", which.node()->type(), ", expected an integer"));
  which = which.cast(Dtype::i64, here);
  std::vector<Trace> traces;
  std::vector<NodeRef> captures;
  for (const auto& body : bodies)
    traces.emplace_back(which.engine(), op::ValueTypes{}, without_parameters(body), here)
        .add_captures(captures);
  const op::ValueTypes types = types_of(traces[0].results(), "switch", here);
  if (types.empty()) return {};
  RegionCall call("switch", {which}, captures, here);
  auto draft = std::make_unique<ir::SwitchRegion>();
  draft->index = call.inputs()[0];
  for (std::size_t i = 0; i < traces.size(); ++i) {
    expect_same_types("switch", cat("body ", i), types, traces[i].results(), here);
    draft->bodies.push_back(traces[i].function(cat("body", i), captures, call.rules()));
  }
  return call.record(std::move(draft), types);
}

Tensors tessera::while_loop(const std::function<Tensor(const Tensors&)>& condition,
                            const std::function<Tensors(const Tensors&)>& body, const Tensors& state,
                            const WhileOptions& options, Here here) {
  if (state.empty()) fail(here, "while_loop: there is no state");
  expect_body(condition, "while_loop", "the condition", here);
  expect_body(body, "while_loop", "the body", here);
  if (options.max_iterations && *options.max_iterations < 0)
    fail(here, cat("while_loop: max_iterations is ", *options.max_iterations, ", expected 0 or more"));
  const op::ValueTypes types = types_of(state, "while_loop", here);
  const auto& engine = state[0].engine();
  const Trace more(
      engine, types,
      [&](const Tensors& s) { return Tensors{predicate_of(condition(s), "while_loop", here)}; }, here);
  const Trace next(engine, types, body, here);
  expect_same_types("while_loop", "the body", types, next.results(), here);
  std::vector<NodeRef> captures;
  more.add_captures(captures);
  next.add_captures(captures);
  RegionCall call("while_loop", state, captures, here);
  auto draft = std::make_unique<ir::WhileRegion>();
  draft->inits = call.inputs();
  draft->limit = options.max_iterations;
  draft->condition = more.function("condition", captures, call.rules());
  draft->body = next.function("body", captures, call.rules());
  return call.record(std::move(draft), types);
}

Tensors tessera::for_loop(const Operand& count,
                          const std::function<Tensors(const Tensor& i, const Tensors&)>& body,
                          const Tensors& state) {
  const Here here = count.here();
  if (state.empty()) fail(here, "for_loop: there is no state");
  expect_body(body, "for_loop", "the body", here);
  if (count.kind() != Operand::Kind::integer && count.kind() != Operand::Kind::tensor)
    fail(here, "for_loop: the count is no integer");
  const op::ValueTypes types = types_of(state, "for_loop", here);
  op::ValueTypes parameters{{Dtype::i64, {}}};
  parameters.insert(parameters.end(), types.begin(), types.end());
  const Trace next(
      state[0].engine(), parameters,
      [&](const Tensors& all) { return body(all[0], Tensors(all.begin() + 1, all.end())); }, here);
  expect_same_types("for_loop", "the body", types, next.results(), here);
  std::vector<NodeRef> captures;
  next.add_captures(captures);
  Tensors inputs = state;
  if (count.kind() == Operand::Kind::tensor) {
    const Tensor n = one_element(count.tensor(), "for_loop", "count", here);
    if (ir::is_float(n.dtype()))
      fail(here, cat("for_loop: the count is ", n.node()->type(), ", expected an integer"));
    inputs.push_back(n.cast(Dtype::i64, here));
  }
  RegionCall call("for_loop", inputs, captures, here);
  auto draft = std::make_unique<ir::ForRegion>();
  draft->count = count.kind() == Operand::Kind::tensor ? call.inputs().back()
                                                       : ir::ExprRef(ir::int_const(count.integer()));
  draft->inits.assign(call.inputs().begin(),
                      call.inputs().begin() + static_cast<std::ptrdiff_t>(state.size()));
  draft->body = next.function("body", captures, call.rules());
  return call.record(std::move(draft), types);
}

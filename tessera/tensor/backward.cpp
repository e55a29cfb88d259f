#include "tessera/tensor/backward.h"

#include <algorithm>

#include "tessera/autodiff/gradient.h"
#include "tessera/base/text.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/trace.h"

using namespace tessera;
using namespace tessera::detail;
using engine::Node;
using engine::NodeRef;
using op::Value;
using op::Values;

namespace {

/// The call a node is a result of, and which result: the node itself, or the call it looks into.
std::pair<Node*, std::size_t> call_of(Node* node) {
  return node->is(Node::is_result) ? std::pair{node->inputs[0], std::size_t{node->extra->result}}
                                   : std::pair{node, std::size_t{0}};
}

void accumulate(Value& sum, Value gradient) {
  sum = sum ? gradient.builder->add_gradients(sum, gradient) : gradient;
}

}  // namespace

Tensor tessera::detail::tensor_of(NodeRef node) { return Tensor::adopt(node.detach()); }

std::vector<Tensor> tessera::detail::apply_rule(const CustomRule& custom, const std::vector<Tensor>& xs,
                                                const Tensor& y, const Tensor& dy, Here here) {
  std::vector<Tensor> out = custom.rule(xs, y, dy);
  const std::string subject = cat(custom.name, ": its gradient rule gave ");
  if (out.size() != xs.size())
    fail(here, cat(subject, out.size(), " gradients for ", xs.size(), " arguments"));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (out[i].is_empty()) continue;
    if (out[i].shape() != xs[i].shape() || out[i].dtype() != xs[i].dtype())
      fail(here,
           cat(subject, out[i].node()->type(), " for argument ", i, ", which is ", xs[i].node()->type()));
    if (!ir::is_float(xs[i].dtype()))
      fail(here, cat(subject, "a gradient for argument ", i, ", but ", xs[i].node()->type(),
                     " is no float: give an empty tensor"));
  }
  return out;
}

// ---- finding the way

void Backward::find(Node* y, std::span<Node* const> targets) {
  for (Node* target : targets) of_[target].is_target = true;
  any_leaf_ = targets.empty();
  if (!is_fixed(y)) visit(y);
}

bool Backward::is_leaf(const Node* node) const { return any_leaf_ && node->is(Node::needs_gradient); }

bool Backward::is_fixed(Node* node) const {
  if (!cut_) return false;
  const auto known = of_.find(node);
  return known != of_.end() && known->second.is_target;
}

/// Whether a gradient that arrives at this input is wanted.
bool Backward::leads_back(Node* input) const {
  Node* const call = call_of(input).first;
  const auto below = of_.find(call);
  if (below != of_.end() && below->second.leads) return true;
  const auto itself = call == input ? below : of_.find(input);
  return itself != of_.end() && itself->second.is_target;
}

/// Depth first without recursion: inputs before what uses them.
void Backward::visit(Node* root) {
  std::vector<Visited> stack{{call_of(root).first, nullptr}};  // with what is known: all below it was visited
  while (!stack.empty()) {
    const Visited at = stack.back();
    stack.pop_back();
    if (at.known != nullptr) {
      leave(at);
      continue;
    }
    Node* const node = at.node;
    Known& known = of_[node];
    if (known.visited) continue;
    known.visited = true;
    stack.push_back({node, &known});
    if (is_leaf(node)) continue;
    for (std::size_t i = node->input_count; i-- > 0;)
      if (Node* input = node->input(i);
          input != nullptr && input->is(Node::tracks_gradient) && !is_fixed(input))
        stack.push_back({call_of(input).first, nullptr});
  }
}

void Backward::leave(Visited at) {
  Node* const node = at.node;
  Known& known = *at.known;
  known.leads = known.is_target || is_leaf(node);
  if (is_leaf(node)) leaves_.push_back(node);
  for (std::size_t i = 0; !is_leaf(node) && i < node->input_count; ++i)
    if (Node* input = node->input(i)) known.passes_on = known.passes_on || leads_back(input);
  known.leads = known.leads || known.passes_on;
  order_.push_back(at);
}

// ---- going back

Value Backward::seed_of(const Tensor& y, const Tensor& dy) {
  const op::ValueType type = y.node()->type();
  if (!ir::is_float(type.dtype))
    fail(here_, cat("the gradient of a ", type, " was asked for: it is no float"));
  if (!dy.is_empty()) {
    if (dy.node()->type() != type)
      fail(here_, cat("the gradient of a ", type, " cannot be a ", dy.node()->type()));
    return builder_.import(NodeRef::share(dy.node()));
  }
  if (y.size() != 1)
    fail(here_, cat("the gradient of a ", type,
                    " needs to know the gradient of each element: only one of one element does not"));
  return op::full(builder_, 1, type);
}

void Backward::run(Node* y, Value seed) {
  add(y, seed);
  for (std::size_t i = order_.size(); i-- > 0;) {
    const Known& known = *order_[i].known;
    const bool has_gradient =
        std::any_of(known.gradients.begin(), known.gradients.end(), [](Value v) { return bool(v); });
    if (has_gradient && known.passes_on) through(order_[i].node, known.gradients);
  }
}

Value Backward::gradient(Node* node) {
  if (is_fixed(node)) return of_[node].at_target;
  const auto [call, result] = call_of(node);
  const auto known = of_.find(call);
  return known == of_.end() || known->second.gradients.size() <= result ? Value()
                                                                        : known->second.gradients[result];
}

void Backward::add(Node* node, Value gradient) {
  if (!gradient) return;
  if (is_fixed(node)) return accumulate(of_[node].at_target, gradient);
  if (!leads_back(node)) return;
  const auto [call, result] = call_of(node);
  ResultGradients& all = of_[call].gradients;
  if (all.size() <= result) all.resize(result + 1);
  accumulate(all[result], gradient);
}

void Backward::through(Node* node, const ResultGradients& gradients) {
  if (node->extra != nullptr && node->extra->function) return through_function(node, gradients);
  if (node->extra != nullptr && node->extra->custom) return through_custom(node, gradients[0]);
  through_call(node, gradients);
}

void Backward::through_call(Node* node, const ResultGradients& gradients) {
  const op::Card& card = *node->card;
  if (card.gradient == nullptr) {
    if (!card.no_gradient.empty()) return;
    fail(here_, ErrorCode::unsupported, cat("op '", card.name, "' has no gradient"));
  }
  const auto question = question_of(node, gradients);
  if (question && record_again(node, *question, gradients[0])) return;
  const Values of_inputs = apply_card(node, gradients, question ? &*question : nullptr);
  for (std::size_t i = 0; i < of_inputs.size() && i < node->input_count; ++i)
    if (node->input(i) != nullptr) add(node->input(i), of_inputs[i]);
}

std::optional<GradientQuestion> Backward::question_of(Node* node, const ResultGradients& gradients) {
  if (!gradients[0]) return std::nullopt;
  std::uint32_t wanted = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(node->input_count, GradientQuestion::max_inputs); ++i)
    if (Node* input = node->input(i); input != nullptr && (is_fixed(input) || leads_back(input)))
      wanted |= 1U << i;
  return GradientQuestion::of(*node, builder_.operand(gradients[0].id).node, wanted);
}

/// As it was recorded the last time; false if it never was.
bool Backward::record_again(Node* node, const GradientQuestion& question, Value dy) {
  const GradientScript* const script = find_script(question);
  GradientScript::Gradients made;
  if (script == nullptr || !script->record(question, caller_of(here_), made)) return false;
  for (std::size_t i = 0; i < node->input_count; ++i) {
    if (!made[i]) continue;
    // What is passed on stays the value it is: the builder may know that it is the gradient of a part.
    const Value gradient = made[i].get() == question.dy() ? dy : builder_.import(std::move(made[i]));
    if (const auto& part = script->part(i)) builder_.add_part_gradient(gradient, {dy, part});
    add(node->input(i), gradient);
  }
  return true;
}

/// By the card's rule. What it records is remembered, if there is a question that it answers.
Values Backward::apply_card(Node* node, ResultGradients gradients, const GradientQuestion* question) {
  Values given;
  op::ValueTypes types;
  std::size_t scalars = 0;
  for (std::size_t i = 0; i < node->input_count; ++i) {
    Node* input = node->input(i);
    given.push_back(input != nullptr ? value_of(input)
                                     : builder_.import_scalar(node->scalar_at(scalars++),
                                                              engine::scalar_dtype_of(*node, i)));
    types.push_back(given.back().type());
  }
  const op::CallInfo info(*node->card, types, node->attributes());
  const Values results = results_of(node);
  gradients.resize(results.size());
  op::GradientCall call(builder_, info, given, results, gradients);
  written_.clear();
  builder_.list_calls(question != nullptr ? &written_ : nullptr);
  Values out = node->card->gradient(call);
  builder_.list_calls(nullptr);
  value_at(here_, builder_.status());
  if (question == nullptr) return out;
  given.push_back(results[0]);
  given.push_back(gradients[0]);
  if (auto script = GradientScript::of(*question, builder_, given, written_, out))
    add_script(*question, *std::move(script));
  return out;
}

void Backward::through_custom(Node* node, Value gradient) {
  const auto& custom = static_cast<const CustomRule&>(*node->extra->custom);
  std::vector<Tensor> xs;
  for (std::size_t i = 0; i < custom.arguments; ++i)
    xs.push_back(tensor_of(NodeRef::share(node->input(1 + i))));
  const Here called = node->file == nullptr ? here_ : Here(node->file, static_cast<int>(node->line));
  const auto of_xs = apply_rule(custom, xs, tensor_of(NodeRef::share(node->input(0))),
                                tensor_of(builder_.node(gradient)), called);
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!of_xs[i].is_empty()) add(xs[i].node(), builder_.import(NodeRef::share(of_xs[i].node())));
}

/// The gradient of a traced function is a traced function.
void Backward::through_function(Node* node, ResultGradients gradients) {
  const ir::FunctionRef& function = node->extra->function;
  std::vector<std::size_t> wrt;
  for (std::size_t i : autodiff::float_parameters(*function))
    if (leads_back(node->input(i))) wrt.push_back(i);
  if (wrt.empty()) return;
  const ir::FunctionRef derived = value_at(here_, autodiff::vjp(function, wrt, rules_of(*node)));
  std::vector<NodeRef> kept;
  std::vector<Node*> inputs;
  for (std::size_t i = 0; i < node->input_count; ++i) inputs.push_back(node->input(i));
  const Values results = results_of(node);
  gradients.resize(results.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!ir::is_float(results[k].dtype())) continue;
    kept.push_back(builder_.node(gradients[k] ? gradients[k] : op::zeros_like(results[k])));
    inputs.push_back(kept.back().get());
  }
  op::ValueTypes types;
  for (std::size_t i : wrt) types.push_back(node->input(i)->type());
  const auto made = engine::record_function(derived, inputs, types, node->extra->custom, caller_of(here_));
  for (std::size_t k = 0; k < made.size(); ++k)
    add(node->input(wrt[k]), builder_.import(NodeRef::adopt(made[k])));
}

Value Backward::value_of(Node* node) {
  const auto [at, is_new] = values_.try_emplace(node);
  if (is_new) at->second = builder_.import(NodeRef::share(node));
  return at->second;
}

/// All results of a call; those nobody holds are made again.
Values Backward::results_of(Node* call) {
  Values out{value_of(call)};
  if (call->extra == nullptr) return out;
  for (std::size_t k = 1; k < call->extra->results.size(); ++k)
    out.push_back(builder_.import(NodeRef::adopt(engine::record_result(call, k, caller_of(here_)))));
  return out;
}

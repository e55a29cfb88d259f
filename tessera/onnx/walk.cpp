#include "tessera/onnx/walk.h"

using namespace tessera;
using namespace tessera::onnx;

Result<Item> Walk::find(std::string_view name) const {
  const auto& scopes = frames_.back().scopes;
  for (std::size_t i = scopes.size(); i-- > 0;)
    if (const auto at = scopes[i].find(name); at != scopes[i].end()) return at->second;
  return Error(ErrorCode::invalid_argument, cat(shown(name), " has no value"));
}

// ---- names and what they stand for

namespace {

template <class F>
void for_each_value(const Item& item, F&& f) {
  if (item.kind == Item::Kind::tensor) f(item.value);
  if (item.sequence != nullptr)
    for (Value value : *item.sequence) f(value);
}

}  // namespace

void Walk::bind(std::string_view name, Item item) {
  for_each_value(item, [&](Value value) { target_.hold(value); });
  unbind(name);
  scope().insert_or_assign(name, std::move(item));
}

void Walk::unbind(std::string_view name) {
  const auto at = scope().find(name);
  if (at == scope().end()) return;
  for_each_value(at->second, [&](Value value) {
    target_.release(value);
    target_.forget_unheld(value);
  });
  scope().erase(at);
}

/// Ends the innermost scope; its results stay until somebody holds them.
void Walk::close_scope(const Items& results) {
  const auto for_each_result = [&](auto&& f) {
    for (const Item& item : results) for_each_value(item, f);
  };
  for_each_result([&](Value value) { target_.hold(value); });
  while (!scope().empty()) unbind(scope().begin()->first);
  for_each_result([&](Value value) { target_.release(value); });
  frames_.back().scopes.pop_back();
}

const LastUses& Walk::last_uses(std::span<const Node> nodes, std::span<const std::string_view> outputs) {
  const auto at = last_uses_.find(nodes.data());
  if (at != last_uses_.end()) return at->second;
  return last_uses_.emplace(nodes.data(), find_last_uses(nodes, outputs)).first->second;
}

Result<void> Walk::bind_initializers(const Graph& graph) {
  for (const Tensor& tensor : graph.initializers) {
    if (!tensor.unusable.empty())
      return Error(ErrorCode::unsupported, cat("initializer ", shown(tensor.name), ": ", tensor.unusable));
    if (scope().count(tensor.name) == 0) bind(tensor.name, target_.tensor(tensor.value));
  }
  return {};
}

// ---- graphs

Result<Items> Walk::run_model(Items inputs) {
  const SourceSpan file{model_.file, 0, 0};
  frames_.push_back({model_.opsets, {}, {}});
  auto out = run_body(model_.graph, std::move(inputs));
  frames_.pop_back();
  if (!out) return std::move(out).error().at(file);
  return out;
}

Result<Items> Walk::run_body(const Graph& body, Items inputs) {
  if (inputs.size() > body.inputs.size())
    return Error(ErrorCode::invalid_argument, cat("graph ", shown(body.name), " takes ", body.inputs.size(),
                                                  " inputs, got ", inputs.size()));
  TESSERA_TRY(RunMeter::check());  // a loop may repeat a body without nodes
  frames_.back().scopes.emplace_back();
  for (std::size_t i = 0; i < inputs.size(); ++i) bind(body.inputs[i].name, std::move(inputs[i]));
  TESSERA_TRY(bind_initializers(body));
  std::vector<std::string_view> names;
  for (const ValueInfo& output : body.outputs) names.push_back(output.name);
  TESSERA_TRY(walk_nodes(body.nodes, names));
  Items out;
  for (const std::string_view name : names) out.push_back(TESSERA_TRY(find(name)));
  close_scope(out);
  return out;
}

Result<void> Walk::walk_nodes(std::span<const Node> nodes, std::span<const std::string_view> outputs) {
  const bool is_top = frames_.size() == 1 && frames_[0].scopes.size() == 1;
  const LastUses& done_after = last_uses(nodes, outputs);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (is_top) target_.at_node(++line_);
    if (observer_) observer_(nodes[i], line_);
    auto done = walk_node(nodes[i]);
    if (!done) return std::move(done).error().note(describe(nodes[i]));
    for (const std::string_view name : done_after[i]) unbind(name);
  }
  return {};
}

namespace {

/// Fails unless what a mapping calls a tensor or a sequence of them is there.
Result<void> check_item(const Item& item, std::size_t output) {
  bool is_whole = item.kind != Item::Kind::tensor || item.value;
  if (item.sequence != nullptr)
    for (Value value : *item.sequence) is_whole = is_whole && value;
  if (is_whole) return {};
  return Error(ErrorCode::invalid_argument, cat("output ", output, " would be no tensor"));
}

}  // namespace

Result<void> Walk::walk_node(const Node& node) {
  TESSERA_TRY(budget_.take_step());
  Items inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? Item() : TESSERA_TRY(find(name)));
  const std::size_t mark = target_.mark();
  const Items results = TESSERA_TRY(results_of(node, inputs));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size())
      return Error(ErrorCode::unsupported,
                   cat("output ", i, " (", shown(node.outputs[i]), ") is not supported"));
    TESSERA_TRY(check_item(results[i], i));
    bind(node.outputs[i], results[i]);
  }
  target_.forget_unheld_since(mark);
  return {};
}

Result<Items> Walk::results_of(const Node& node, std::span<const Item> inputs) {
  if (const LocalFunction* function = model_.find_function(node.domain, node.op))
    return call_function(*function, node, inputs);
  const Frame& frame = frames_.back();
  const std::int64_t opset = find_opset(frame.opsets, node.domain).value_or(1);
  const MappingFunction map = find_mapping(node.domain, node.op, opset);
  if (map == nullptr)
    return Error(ErrorCode::unsupported, cat("there is no operator ", shown(node.op), " here"));
  NodeCall call(node, opset, target_, *this, inputs, &frame.attributes);
  auto results = map(call);
  TESSERA_TRY(call.status());
  return results;
}

Result<Items> Walk::call_function(const LocalFunction& function, const Node& node,
                                  std::span<const Item> inputs) {
  if (inputs.size() > function.inputs.size())
    return Error(ErrorCode::invalid_argument, cat("function ", shown(function.name), " takes ",
                                                  function.inputs.size(), " inputs, got ", inputs.size()));
  Frame frame{function.opsets, std::vector<Scope>(1), {}};
  for (const std::string& name : function.attributes) {
    const Attribute* given = node.find(name);
    if (given != nullptr && !given->reference.empty()) {
      const Attribute* outer = nullptr;
      for (const auto& [known, attribute] : frames_.back().attributes)
        if (known == given->reference) outer = attribute;
      given = outer;
    }
    if (given != nullptr) frame.attributes.emplace_back(name, given);
  }
  frames_.push_back(std::move(frame));
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    bind(function.inputs[i], i < inputs.size() ? inputs[i] : Item());
  const std::vector<std::string_view> names(function.outputs.begin(), function.outputs.end());
  TESSERA_TRY(walk_nodes(function.nodes, names));
  Items out;
  for (const std::string_view name : names) out.push_back(TESSERA_TRY(find(name)));
  close_scope(out);
  frames_.pop_back();
  return out;
}

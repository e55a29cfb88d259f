#include "tessera/onnx/walk.h"

using namespace tessera;
using namespace tessera::onnx;

Result<Item> Walk::find(std::string_view name) const {
  const auto& scopes = frames_.back().scopes;
  for (std::size_t i = scopes.size(); i-- > 0;)
    if (const auto at = scopes[i].find(name); at != scopes[i].end()) return at->second;
  return Error(ErrorCode::invalid_argument, cat(shown(name), " has no value"));
}

Result<void> Walk::bind_initializers(const Graph& graph) {
  for (const Tensor& tensor : graph.initializers) {
    if (!tensor.unusable.empty())
      return Error(ErrorCode::unsupported, cat("initializer ", shown(tensor.name), ": ", tensor.unusable));
    frames_.back().scopes.back().try_emplace(tensor.name, target_.tensor(tensor.value));
  }
  return {};
}

Result<Items> Walk::outputs_of(const Graph& graph) const {
  Items out;
  for (const ValueInfo& output : graph.outputs) out.push_back(TESSERA_TRY(find(output.name)));
  return out;
}

Result<Items> Walk::run_model(Items inputs) {
  const SourceSpan file{model_.file, 0, 0};
  frames_.push_back({model_.opsets, {}, {}});
  auto out = run_body(model_.graph, std::move(inputs));
  frames_.pop_back();
  if (!out) return std::move(out).error().at(file);
  return out;
}

Result<Items> Walk::run_body(const Graph& body, Items inputs) {
  auto& scopes = frames_.back().scopes;
  scopes.emplace_back();
  if (inputs.size() > body.inputs.size())
    return Error(ErrorCode::invalid_argument, cat("graph ", shown(body.name), " takes ", body.inputs.size(),
                                                  " inputs, got ", inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    scopes.back().emplace(body.inputs[i].name, std::move(inputs[i]));
  TESSERA_TRY(bind_initializers(body));
  TESSERA_TRY(walk_nodes(body.nodes));
  auto out = outputs_of(body);
  frames_.back().scopes.pop_back();
  return out;
}

Result<void> Walk::walk_nodes(std::span<const Node> nodes) {
  const bool is_top = frames_.size() == 1 && frames_[0].scopes.size() == 1;
  for (const Node& node : nodes) {
    if (is_top) target_.at_node(++line_);
    auto done = walk_node(node);
    if (!done) return std::move(done).error().note(describe(node));
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
  if (++steps_ > limits_.steps)
    return Error(ErrorCode::limit, cat("more than ", limits_.steps, " nodes would be run"));
  Items inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? Item() : TESSERA_TRY(find(name)));
  const std::size_t mark = target_.mark();
  const Items results = TESSERA_TRY(results_of(node, inputs));
  Values kept;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= results.size())
      return Error(ErrorCode::unsupported,
                   cat("output ", i, " (", shown(node.outputs[i]), ") is not supported"));
    TESSERA_TRY(check_item(results[i], i));
    frames_.back().scopes.back().insert_or_assign(node.outputs[i], results[i]);
    kept.push_back(results[i].value);
    if (results[i].sequence != nullptr)
      kept.insert(kept.end(), results[i].sequence->begin(), results[i].sequence->end());
  }
  target_.forget_since(mark, kept);
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
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    frame.scopes[0].emplace(function.inputs[i], i < inputs.size() ? inputs[i] : Item());
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
  TESSERA_TRY(walk_nodes(function.nodes));
  Items out;
  for (const std::string& name : function.outputs) out.push_back(TESSERA_TRY(find(name)));
  frames_.pop_back();
  return out;
}

#include "tessera/onnx/import.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "tessera/ir/walk.h"
#include "tessera/onnx/function_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

/// Adds the nodes without an operator, and those of the graphs in their attributes.
void add_unsupported(const Model& model, std::span<const Node> nodes, const Opsets& opsets,
                     std::vector<Unsupported>& out) {
  for (const Node& node : nodes) {
    const std::int64_t opset = find_opset(opsets, node.domain).value_or(1);
    if (model.find_function(node.domain, node.op) == nullptr &&
        find_mapping(node.domain, node.op, opset) == nullptr)
      out.push_back(
          {describe(node), printable(node.domain.empty() ? node.op : cat(node.domain, ".", node.op)), opset});
    for (const Attribute& attribute : node.attributes)
      if (const auto* graphs = std::get_if<std::vector<Graph>>(&attribute.value))
        for (const Graph& graph : *graphs) add_unsupported(model, graph.nodes, opsets, out);
  }
}

Item item_of(Target& target, const DataValue& value) {
  if (value.kind == DataValue::Kind::none) return {};
  if (value.kind == DataValue::Kind::tensor) return target.tensor(value.tensors[0]);
  Values values;
  for (const HostTensor& tensor : value.tensors) values.push_back(target.tensor(tensor));
  return Item::of_sequence(std::move(values));
}

DataValue value_of(Target& target, const Item& item) {
  DataValue out;
  if (item.kind == Item::Kind::tensor) out = {DataValue::Kind::tensor, {*target.elements(item.value)}};
  if (item.kind == Item::Kind::sequence) {
    out.kind = DataValue::Kind::sequence;
    for (Value value : *item.sequence) out.tensors.push_back(*target.elements(value));
  }
  return out;
}

/// Declared types with a size symbol per name, and one per dimension without a name.
class SizeSymbols {
 public:
  explicit SizeSymbols(FunctionTarget& target) : target_(target) {}

  Result<op::ValueType> type_of(const ValueInfo& input) {
    const DeclaredType& type = input.type;
    if (type.kind != DeclaredType::Kind::tensor || !type.dtype || !type.shape)
      return Error(ErrorCode::unsupported, cat("input ", shown(input.name),
                                               " is not declared as a tensor of a known dtype and rank"));
    op::ValueType out{*type.dtype, {}};
    for (const DeclaredDim& dim : *type.shape) {
      if (const auto* size = std::get_if<std::int64_t>(&dim))
        out.shape.emplace_back(*size);
      else if (const auto* name = std::get_if<std::string>(&dim))
        out.shape.push_back(symbol(*name));
      else
        out.shape.push_back(target_.size(cat("d", ++unnamed_)));
    }
    return out;
  }

 private:
  const Dim& symbol(const std::string& name) {
    const auto at = named_.find(name);
    if (at != named_.end()) return at->second;
    return named_.emplace(name, target_.size(printable(name))).first->second;
  }

  FunctionTarget& target_;
  std::map<std::string, Dim> named_;
  int unnamed_ = 0;
};

/// The function without statements that nothing uses: what is left of the arithmetic on shapes.
ir::FunctionRef without_unused(const ir::Function& function) {
  std::unordered_set<const ir::Node*> used;
  const auto use = [&](const ir::Node& root) {
    for (const ir::Node* node : ir::post_order(root)) used.insert(node);
  };
  for (const ir::ExprRef& result : function.results) use(*result);
  std::vector<Ref<ir::Assign>> kept;
  for (std::size_t i = function.body.size(); i-- > 0;) {
    const auto& statement = function.body[i];
    const auto is_used = [&](const Ref<ir::Var>& target) { return used.count(target.get()) != 0; };
    if (std::none_of(statement->targets.begin(), statement->targets.end(), is_used)) continue;
    kept.push_back(statement);
    use(*statement->value);
    for (const Ref<ir::Var>& target : statement->targets) use(*target->type);
  }
  std::reverse(kept.begin(), kept.end());
  return ir::function({.name = function.name,
                       .dims = function.dims,
                       .params = function.params,
                       .body = std::move(kept),
                       .results = function.results});
}

}  // namespace

std::vector<Unsupported> tessera::onnx::unsupported_nodes(const Model& model) {
  std::vector<Unsupported> out;
  add_unsupported(model, model.graph.nodes, model.opsets, out);
  for (const LocalFunction& function : model.functions)
    add_unsupported(model, function.nodes, function.opsets, out);
  return out;
}

Result<void> tessera::onnx::check_operators(const Model& model) {
  const auto missing = unsupported_nodes(model);
  if (missing.empty()) return {};
  Error error(ErrorCode::unsupported,
              cat(missing.size(), missing.size() == 1 ? " node uses an operator" : " nodes use operators",
                  " that cannot be imported"),
              {model.file, 0, 0});
  for (const Unsupported& one : missing)
    std::ignore = std::move(error).note(cat(one.node, ": ", one.op, " of opset ", one.opset));
  return error;
}

std::vector<const ValueInfo*> tessera::onnx::required_inputs(const Model& model) {
  std::vector<const ValueInfo*> out;
  const Initializers initializers(model.graph);
  for (const ValueInfo& input : model.graph.inputs)
    if (initializers.find(input.name) == nullptr) out.push_back(&input);
  return out;
}

Result<void> tessera::onnx::check_input(const ValueInfo& input, Dtype dtype,
                                        std::span<const std::int64_t> shape) {
  if (input.type.kind != DeclaredType::Kind::tensor) return {};
  bool is_right = !input.type.dtype || *input.type.dtype == dtype;
  if (input.type.shape) {
    is_right = is_right && input.type.shape->size() == shape.size();
    for (std::size_t i = 0; is_right && i < shape.size(); ++i)
      if (const auto* size = std::get_if<std::int64_t>(&(*input.type.shape)[i])) is_right = *size == shape[i];
  }
  if (is_right) return {};
  return Error(ErrorCode::shape, cat("input ", shown(input.name), " is ", dtype, "[", join(shape, ", "),
                                     "], which is not what the model declares: ", to_text(input.type)));
}

Result<std::vector<DataValue>> tessera::onnx::run(const Model& model, std::span<const DataValue> inputs,
                                                  const RunOptions& options) {
  TESSERA_TRY(check_operators(model));
  const std::size_t required = required_inputs(model).size();
  const bool has_all = inputs.size() == model.graph.inputs.size();
  if (inputs.size() != required && !has_all)
    return Error(ErrorCode::invalid_argument,
                 cat("the model takes ", required, " inputs, got ", inputs.size()), {model.file, 0, 0});
  Budget budget(options.limits);
  ValueTarget target(budget, options.call);
  Items items;
  std::size_t next = 0;
  const Initializers initializers(model.graph);
  for (const ValueInfo& input : model.graph.inputs) {
    const Tensor* constant = has_all ? nullptr : initializers.find(input.name);
    if (constant != nullptr) {
      items.push_back(target.tensor(constant->value));
      continue;
    }
    if (inputs[next].kind == DataValue::Kind::tensor) {
      const HostTensor& given = inputs[next].tensors[0];
      auto checked = check_input(input, given.dtype(), {given.shape().begin(), given.shape().end()});
      if (!checked) return std::move(checked).error().at({model.file, 0, 0});
    }
    items.push_back(item_of(target, inputs[next++]));
  }
  const Items results =
      TESSERA_TRY(Walk(model, target, budget, options.observer).run_model(std::move(items)));
  std::vector<DataValue> out;
  for (const Item& item : results) out.push_back(value_of(target, item));
  return out;
}

Result<ir::FunctionRef> tessera::onnx::import_function(const Model& model, const Limits& limits) {
  TESSERA_TRY(check_operators(model));
  std::vector<std::string> labels;
  for (const Node& node : model.graph.nodes) labels.push_back(describe(node));
  Budget budget(limits);
  FunctionTarget target(ir::SourceFile::create(model.file, std::move(labels)), budget);
  SizeSymbols symbols(target);
  Items items;
  const Initializers initializers(model.graph);
  for (const ValueInfo& input : model.graph.inputs) {
    if (const Tensor* constant = initializers.find(input.name)) {
      items.push_back(target.tensor(constant->value));
      continue;
    }
    auto type = symbols.type_of(input);
    if (!type) return std::move(type).error().at({model.file, 0, 0});
    items.push_back(target.parameter(printable(input.name), *std::move(type)));
  }
  const Items results = TESSERA_TRY(Walk(model, target, budget).run_model(std::move(items)));
  Values values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind != Item::Kind::tensor)
      return Error(ErrorCode::unsupported,
                   cat("output ", shown(model.graph.outputs[i].name), " is no tensor"), {model.file, 0, 0});
    values.push_back(results[i].value);
  }
  return without_unused(*TESSERA_TRY(target.function("main", values)));
}

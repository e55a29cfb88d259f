#include "tessera/model/onnx_model.h"

#include <algorithm>

#include "tessera/engine/engine.h"
#include "tessera/model/node_label.h"
#include "tessera/model/tensor_target.h"
#include "tessera/onnx/import.h"
#include "tessera/tensor/call.h"

using namespace tessera;

struct OnnxModel::State {
  onnx::Model model;
  onnx::Limits limits;
  std::shared_ptr<engine::Engine> engine;
  WeightTensors weights;
  std::vector<const char*> labels;
  std::vector<OnnxValue> inputs, outputs;
};

namespace {

OnnxValue described(const onnx::ValueInfo& info) {
  OnnxValue out{info.name, info.type.dtype, {}};
  if (!info.type.shape) return out;
  out.shape.emplace();
  for (const onnx::DeclaredDim& dim : *info.type.shape) out.shape->push_back(onnx::to_text(dim));
  return out;
}

/// Adds the tensors of a file that are there for all calls.
void add_weights(const onnx::Model& model, const std::shared_ptr<engine::Engine>& engine,
                 WeightTensors& weights) {
  const auto add = [&](const onnx::Tensor& tensor) {
    if (tensor.unusable.empty())
      weights.try_emplace(tensor.value.array().data, tensor_of(tensor.value, engine));
  };
  std::vector<std::span<const onnx::Node>> todo{model.graph.nodes};
  const auto add_graph = [&](const onnx::Graph& graph) {
    for (const onnx::Tensor& tensor : graph.initializers) add(tensor);
    todo.push_back(graph.nodes);
  };
  for (const onnx::Tensor& tensor : model.graph.initializers) add(tensor);
  for (const onnx::LocalFunction& function : model.functions) todo.push_back(function.nodes);
  while (!todo.empty()) {
    const auto nodes = todo.back();
    todo.pop_back();
    for (const onnx::Node& node : nodes)
      for (const onnx::Attribute& attribute : node.attributes) {
        if (const auto* tensor = std::get_if<onnx::Tensor>(&attribute.value)) add(*tensor);
        if (const auto* graphs = std::get_if<std::vector<onnx::Graph>>(&attribute.value))
          for (const onnx::Graph& graph : *graphs) add_graph(graph);
      }
  }
}

Result<std::vector<Tensor>> outputs_of(TensorTarget& target, const onnx::Model& model,
                                       const onnx::Items& results) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind != onnx::Item::Kind::tensor)
      return Error(ErrorCode::unsupported,
                   cat("output ", onnx::shown(model.graph.outputs[i].name), " is no tensor"),
                   {model.file, 0, 0});
    out.push_back(target.output(results[i].value));
  }
  return out;
}

/// What goes wrong is said with the line of the caller as well.
template <class F>
auto from_caller(Here here, F&& f) {
  try {
    return value_or_throw(f());
  } catch (const Exception& exception) {
    Error error = exception.error();
    if (here.file == nullptr || *here.file == 0) throw;
    throw Exception(std::move(error).note(cat("called at ", here.file, ":", here.line)));
  }
}

}  // namespace

const std::vector<OnnxValue>& OnnxModel::inputs() const { return state_->inputs; }
const std::vector<OnnxValue>& OnnxModel::outputs() const { return state_->outputs; }

std::vector<Tensor> OnnxModel::operator()(std::span<const Tensor> inputs, Here here) const {
  return from_caller(here, [&]() -> Result<std::vector<Tensor>> {
    const onnx::Model& model = state_->model;
    const auto required = onnx::required_inputs(model);
    const SourceSpan file{model.file, 0, 0};
    if (inputs.size() != required.size())
      return Error(ErrorCode::invalid_argument,
                   cat("the model takes ", required.size(), " inputs, got ", inputs.size()), file);
    onnx::Budget budget(state_->limits);
    TensorTarget target(state_->engine, state_->labels, state_->weights, budget);
    onnx::Items items;
    std::size_t next = 0;
    const onnx::Initializers initializers(model.graph);
    for (const onnx::ValueInfo& input : model.graph.inputs) {
      if (const onnx::Tensor* constant = initializers.find(input.name)) {
        items.emplace_back(target.tensor(constant->value));
        continue;
      }
      const Tensor& given = inputs[next++];
      if (given.is_empty())
        return Error(ErrorCode::invalid_argument, cat("input ", onnx::shown(input.name), " is no tensor"),
                     file);
      auto checked = onnx::check_input(input, given.dtype(), given.shape());
      if (!checked) return std::move(checked).error().at(file);
      items.emplace_back(target.input(given));
    }
    const onnx::Items results = TESSERA_TRY(onnx::Walk(model, target, budget).run_model(std::move(items)));
    return outputs_of(target, model, results);
  });
}

NamedTensors OnnxModel::operator()(const NamedTensors& inputs, Here here) const {
  std::vector<Tensor> ordered;
  for (const OnnxValue& input : state_->inputs)
    if (const auto at = inputs.find(input.name); at != inputs.end()) ordered.push_back(at->second);
  if (ordered.size() != inputs.size() || inputs.size() != state_->inputs.size()) {
    std::vector<std::string> given, expected;
    for (const auto& [name, tensor] : inputs) given.push_back(onnx::shown(name));
    for (const OnnxValue& input : state_->inputs) expected.push_back(onnx::shown(input.name));
    throw Exception(
        Error(ErrorCode::invalid_argument,
              cat("the model takes the inputs ", join(expected, ", "), ", got ", join(given, ", ")),
              {state_->model.file, 0, 0}));
  }
  const auto results = (*this)(ordered, here);
  NamedTensors out;
  for (std::size_t i = 0; i < results.size(); ++i) out.emplace(state_->outputs[i].name, results[i]);
  return out;
}

OnnxModel tessera::load_onnx(const std::string& path, const OnnxOptions& options, Here here) {
  return from_caller(here, [&]() -> Result<OnnxModel> {
    auto state = std::make_shared<OnnxModel::State>();
    state->model = TESSERA_TRY(onnx::read_model(path, options.limits));
    TESSERA_TRY(onnx::check_operators(state->model));
    state->limits = options.limits;
    state->engine = options.engine != nullptr ? options.engine : engine::Engine::default_engine();
    add_weights(state->model, state->engine, state->weights);
    state->labels = node_labels(state->model);
    for (const onnx::ValueInfo* input : onnx::required_inputs(state->model))
      state->inputs.push_back(described(*input));
    for (const onnx::ValueInfo& output : state->model.graph.outputs)
      state->outputs.push_back(described(output));
    OnnxModel out;
    out.state_ = std::move(state);
    return out;
  });
}

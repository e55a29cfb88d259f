#include "tessera/model/onnx_model.h"

#include <algorithm>
#include <mutex>

#include "tessera/base/forked_child.h"
#include "tessera/engine/engine.h"
#include "tessera/model/model_plan.h"
#include "tessera/model/node_label.h"
#include "tessera/model/tensor_target.h"
#include "tessera/onnx/import.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/run_program.h"

using namespace tessera;
using engine::Node;
using engine::thread_state;

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

/// What recording needs.
struct ModelRecorder {
  WeightTensors weights;
  std::vector<const char*> labels;
};

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

/// Inputs that only recording knows what to do with: what is tracked, has no value yet, or is on another
/// engine, which is an error there.
bool are_for_recording(std::span<const Tensor> inputs, const std::shared_ptr<engine::Engine>& engine) {
  if (thread_state.trace_depth > 0 || thread_state.custom_depth > 0) return true;
  return std::ranges::any_of(inputs, [&](const Tensor& input) {
    const Node& node = *input.node();
    return (thread_state.gradient_enabled && node.is(Node::tracks_gradient)) || node.is(Node::placeholder) ||
           node.component->engine() != engine;
  });
}

/// Whether a launch was refused for sizes or dtypes that the functions of the model do not take: recording,
/// which knows them, may, or says which node does not.
bool is_for_recording(const Error& error) {
  return error.code() == ErrorCode::shape || error.code() == ErrorCode::unsupported;
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

struct OnnxModel::State {
  onnx::Model model;
  onnx::Limits limits;
  std::shared_ptr<engine::Engine> engine;
  std::vector<const onnx::ValueInfo*> required;
  std::vector<OnnxValue> inputs, outputs;

  [[nodiscard]] Error error(ErrorCode code, std::string message) const {
    return Error(code, std::move(message), {model.file, 0, 0});
  }
  [[nodiscard]] Result<void> check(std::span<const Tensor> given) const;
  /// Made by the first that asks; null if there can be none.
  [[nodiscard]] engine::PlanRunner* plans();
  [[nodiscard]] const ModelRecorder& recorder();
  [[nodiscard]] Result<std::vector<Tensor>> record(std::span<const Tensor> given);
  [[nodiscard]] Result<std::vector<Tensor>> call(std::span<const Tensor> given, Here here);

  std::string why_recorded;  ///< of a model without plans

 private:
  std::once_flag plans_begun_, recorder_begun_;
  std::optional<engine::PlanRunner> plans_;
  ModelRecorder recorder_;
};

Result<void> OnnxModel::State::check(std::span<const Tensor> given) const {
  if (given.size() != required.size())
    return error(ErrorCode::invalid_argument,
                 cat("the model takes ", required.size(), " inputs, got ", given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].is_empty())
      return error(ErrorCode::invalid_argument,
                   cat("input ", onnx::shown(required[i]->name), " is no tensor"));
    const Node& node = *given[i].node();
    auto checked = onnx::check_input(*required[i], node.dtype, node.shape());
    if (!checked) return std::move(checked).error().at({model.file, 0, 0});
  }
  return {};
}

/// Without memory for them there may be some the next time.
engine::PlanRunner* OnnxModel::State::plans() {
  std::call_once(plans_begun_, [&] {
    auto made = engine->uses_plans() ? plan_model(model, *engine, limits)
                                     : Error(ErrorCode::unsupported, "plans are off");
    if (made)
      plans_.emplace(*std::move(made));
    else if (made.error().code() == ErrorCode::memory)
      throw Exception(std::move(made).error());
    else
      why_recorded = made.error().message();
  });
  return plans_ ? &*plans_ : nullptr;
}

const ModelRecorder& OnnxModel::State::recorder() {
  std::call_once(recorder_begun_, [&] {
    add_weights(model, engine, recorder_.weights);
    recorder_.labels = node_labels(model);
  });
  return recorder_;
}

Result<std::vector<Tensor>> OnnxModel::State::record(std::span<const Tensor> given) {
  const auto& [weights, labels] = recorder();
  onnx::Budget budget(limits);
  TensorTarget target(engine, labels, weights, budget);
  onnx::Items items;
  std::size_t next = 0;
  const onnx::Initializers initializers(model.graph);
  for (const onnx::ValueInfo& input : model.graph.inputs)
    if (const onnx::Tensor* constant = initializers.find(input.name))
      items.emplace_back(target.tensor(constant->value));
    else
      items.emplace_back(target.input(given[next++]));
  const onnx::Items results = TESSERA_TRY(onnx::Walk(model, target, budget).run_model(std::move(items)));
  return outputs_of(target, model, results);
}

Result<std::vector<Tensor>> OnnxModel::State::call(std::span<const Tensor> given, Here here) {
  if (is_forked_child()) return forked_child_error();
  TESSERA_TRY(check(given));
  engine::PlanRunner* const runner = are_for_recording(given, engine) ? nullptr : plans();
  if (runner == nullptr) return record(given);
  auto out = detail::run_program(*runner, engine, given, {}, here);
  return out || !is_for_recording(out.error()) ? std::move(out) : record(given);
}

const std::vector<OnnxValue>& OnnxModel::inputs() const& { return state_->inputs; }
const std::vector<OnnxValue>& OnnxModel::outputs() const& { return state_->outputs; }
const onnx::Model& OnnxModel::source() const { return state_->model; }

std::string OnnxModel::why_recorded() const {
  return state_->plans() != nullptr ? std::string() : state_->why_recorded;
}

std::vector<Tensor> OnnxModel::operator()(std::span<const Tensor> inputs, Here here) const {
  return from_caller(here, [&] { return state_->call(inputs, here); });
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

OnnxModel tessera::onnx_model(onnx::Model model, const OnnxOptions& options) {
  OnnxModel out;
  out.state_ = std::make_shared<OnnxModel::State>();
  OnnxModel::State& state = *out.state_;
  state.model = std::move(model);
  state.limits = options.limits;
  state.engine = options.engine != nullptr ? options.engine : engine::Engine::default_engine();
  state.required = onnx::required_inputs(state.model);
  for (const onnx::ValueInfo* input : state.required) state.inputs.push_back(described(*input));
  for (const onnx::ValueInfo& output : state.model.graph.outputs) state.outputs.push_back(described(output));
  return out;
}

OnnxModel tessera::load_onnx(const std::string& path, const OnnxOptions& options, Here here) {
  return from_caller(here, [&]() -> Result<OnnxModel> {
    if (is_forked_child()) return forked_child_error();
    auto model = TESSERA_TRY(onnx::read_model(path, options.limits));
    TESSERA_TRY(onnx::check_operators(model));
    return onnx_model(std::move(model), options);
  });
}

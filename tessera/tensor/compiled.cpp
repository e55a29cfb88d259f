#include "tessera/tensor/compiled.h"

#include <algorithm>
#include <mutex>

#include "tessera/base/text.h"
#include "tessera/engine/record.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/trace.h"

using namespace tessera;
using namespace tessera::detail;
using engine::Node;
using engine::NodeRef;

namespace {

/// What a body is for one set of types.
struct Traced {
  op::ValueTypes arguments;
  ir::FunctionRef function;
  std::vector<NodeRef> captures;
  op::ValueTypes results;
};

constexpr std::size_t max_traced = 64;

[[noreturn]] void fail(Here here, std::string message) {
  throw Exception(Error(ErrorCode::invalid_argument, cat("compile: ", message), span_of(here)));
}

}  // namespace

struct CompiledBody::State {
  Body body;
  Here here;
  std::mutex mutex;
  std::vector<Traced> traced;  ///< the last used comes last

  Traced& find(const std::vector<Tensor>& arguments) {
    op::ValueTypes types;
    for (const Tensor& argument : arguments) types.push_back(argument.node()->type());
    const auto known =
        std::find_if(traced.begin(), traced.end(), [&](const Traced& one) { return one.arguments == types; });
    if (known != traced.end()) {
      std::rotate(known, known + 1, traced.end());
      return traced.back();
    }
    if (traced.size() == max_traced) traced.erase(traced.begin());
    traced.push_back(trace(arguments[0].engine(), std::move(types)));
    return traced.back();
  }

  Traced trace(const std::shared_ptr<engine::Engine>& engine, op::ValueTypes types) {
    const Trace trace(engine, types, body, here);
    if (trace.results().empty()) fail(here, "the function returns nothing");
    Traced out{.arguments = std::move(types)};
    trace.add_captures(out.captures);
    out.function = trace.function("compiled", out.captures);
    for (const Tensor& result : trace.results()) out.results.push_back(result.node()->type());
    return out;
  }
};

CompiledBody::CompiledBody(Body body, Here here) : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->here = here;
}
CompiledBody::~CompiledBody() = default;

std::vector<Tensor> CompiledBody::operator()(const std::vector<Tensor>& arguments) const {
  if (arguments.empty()) fail(state_->here, "the function takes no tensors");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].is_empty()) fail(state_->here, cat("argument ", i, " is an empty tensor"));
  const std::lock_guard lock(state_->mutex);
  const Traced& traced = state_->find(arguments);
  std::vector<Node*> inputs;
  for (const Tensor& argument : arguments) inputs.push_back(argument.node());
  for (const NodeRef& capture : traced.captures) inputs.push_back(capture.get());
  const auto nodes =
      engine::record_function(traced.function, inputs, traced.results, caller_of(state_->here));
  nodes[0]->more().plan_at_once = true;
  std::vector<Tensor> out;
  for (Node* node : nodes) out.push_back(Tensor::adopt(node));
  return out;
}

PlanAtOnce::PlanAtOnce() { ++engine::thread_state.plan_at_once; }
PlanAtOnce::~PlanAtOnce() { --engine::thread_state.plan_at_once; }

std::string tessera::explain() { return engine::Engine::default_engine()->explain(); }

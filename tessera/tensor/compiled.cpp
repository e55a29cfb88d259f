#include "tessera/tensor/compiled.h"

#include <algorithm>
#include <mutex>

#include "tessera/base/small_vector.h"
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
  std::shared_ptr<RegionRules> rules = std::make_shared<RegionRules>();
};

struct TracingFlag {
  explicit TracingFlag(bool& flag) : is_set(flag) { is_set = true; }
  ~TracingFlag() { is_set = false; }
  TracingFlag(const TracingFlag&) = delete;
  TracingFlag& operator=(const TracingFlag&) = delete;
  bool& is_set;
};

/// While it lives, random numbers of this thread are drawn from a copy of the engine's state.
struct RandomProbe {
  explicit RandomProbe(const engine::Engine& engine)
      : before(engine.random_state()), now(before), outer(engine::thread_state.replay) {
    engine::thread_state.replay = &now;
  }
  ~RandomProbe() { engine::thread_state.replay = outer; }
  RandomProbe(const RandomProbe&) = delete;
  RandomProbe& operator=(const RandomProbe&) = delete;
  [[nodiscard]] bool was_used() const { return now.offset != before.offset; }

  engine::Engine::RandomState before, now;
  engine::Engine::RandomState* outer;
};

constexpr std::size_t max_traced = 64;

/// Whether the tensors are of these types, which are not made for them: this is asked at every call.
bool are_of(CompiledBody::Arguments arguments, const op::ValueTypes& types) {
  const auto is_size = [](std::int64_t size, const ir::Dim& dim) {
    return dim.is_constant() && dim.value() == size;
  };
  return std::equal(arguments.begin(), arguments.end(), types.begin(), types.end(),
                    [&](const Tensor* argument, const op::ValueType& type) {
                      const Node& node = *argument->node();
                      return node.dtype == type.dtype &&
                             std::equal(node.shape().begin(), node.shape().end(), type.shape.begin(),
                                        type.shape.end(), is_size);
                    });
}

}  // namespace

struct CompiledBody::State {
  Body body;
  Here here;
  std::recursive_mutex mutex;
  bool is_tracing = false;
  std::vector<Traced> traced;  ///< the last used comes last

  Traced& find(Arguments arguments) {
    const auto known = std::find_if(traced.begin(), traced.end(),
                                    [&](const Traced& one) { return are_of(arguments, one.arguments); });
    if (known != traced.end()) {
      if (known + 1 != traced.end()) std::rotate(known, known + 1, traced.end());
      return traced.back();
    }
    op::ValueTypes types;
    for (const Tensor* argument : arguments) types.push_back(argument->node()->type());
    if (traced.size() == max_traced) traced.erase(traced.begin());
    traced.push_back(trace(arguments[0]->engine(), std::move(types)));
    return traced.back();
  }

  /// One node per result.
  SmallVector<Node*, 2> record(Arguments arguments) {
    const std::lock_guard lock(mutex);
    const Traced& found = find(arguments);
    SmallVector<Node*, 16> inputs;
    for (const Tensor* argument : arguments) inputs.push_back(argument->node());
    for (const NodeRef& capture : found.captures) inputs.push_back(capture.get());
    auto out = engine::record_function(found.function, inputs, found.results,
                                       found.rules->rules.empty() ? nullptr : found.rules, caller_of(here));
    out[0]->more().plan_at_once = true;
    return out;
  }

  Traced trace(const std::shared_ptr<engine::Engine>& engine, op::ValueTypes types) {
    if (is_tracing) fail(here, "the function calls itself");
    const TracingFlag flag(is_tracing);
    const RandomProbe random(*engine);
    const Trace trace(engine, types, body, here);
    if (random.was_used())
      fail(here, "random numbers drawn inside would be the same at every call; give them as an argument");
    if (trace.results().empty()) fail(here, "compile: the function returns nothing");
    Traced out{.arguments = std::move(types)};
    trace.add_captures(out.captures);
    out.function = trace.function("compiled", out.captures, out.rules->rules);
    for (const Tensor& result : trace.results()) out.results.push_back(result.node()->type());
    return out;
  }
};

CompiledBody::CompiledBody(Body body, Here here) : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->here = here;
}
CompiledBody::~CompiledBody() = default;

void CompiledBody::check(Arguments arguments) const {
  if (arguments.empty()) fail(state_->here, "compile: the function takes no tensors");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i]->is_empty()) fail(state_->here, cat("compile: argument ", i, " is an empty tensor"));
}

void CompiledBody::save(const std::string& path, const std::vector<Tensor>& arguments, Here here) const {
  std::vector<const Tensor*> list;
  for (const Tensor& argument : arguments) list.push_back(&argument);
  check(list);
  const std::lock_guard lock(state_->mutex);
  const Traced& traced = state_->find(list);
  std::vector<Tensor> captures;
  for (const NodeRef& capture : traced.captures) captures.push_back(Tensor::adopt(NodeRef(capture).detach()));
  save_function(path, traced.function, captures, *arguments[0].engine(), here);
}

Tensor CompiledBody::one(Arguments arguments) const {
  check(arguments);
  return Tensor::adopt(state_->record(arguments)[0]);
}

std::vector<Tensor> CompiledBody::operator()(Arguments arguments) const {
  check(arguments);
  const auto nodes = state_->record(arguments);
  std::vector<Tensor> out;
  out.reserve(nodes.size());
  for (Node* node : nodes) out.push_back(Tensor::adopt(node));
  return out;
}

Tensor tessera::detail::number_argument(Operand number, const Tensor& like) {
  const CreateOptions options{.engine = like.is_empty() ? nullptr : like.engine()};
  const bool is_real = number.kind() == Operand::Kind::real;
  Dtype dtype = like.is_empty() ? (is_real ? f32 : i64) : like.dtype();
  if (is_real && !ir::is_float(dtype)) dtype = f32;
  const Tensor exact = is_real ? from_vector<double>({number.real()}, {}, options)
                               : from_vector<std::int64_t>({number.integer()}, {}, options);
  return exact.dtype() == dtype ? exact : exact.cast(dtype);
}

PlanAtOnce::PlanAtOnce() { ++engine::thread_state.plan_at_once; }
PlanAtOnce::~PlanAtOnce() { --engine::thread_state.plan_at_once; }

std::string tessera::explain() { return engine::Engine::default_engine()->explain(); }

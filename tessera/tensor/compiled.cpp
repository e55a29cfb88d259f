#include "tessera/tensor/compiled.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

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

/// A function that comes with more types than these is called: its plans take in sizes, traces do not.
constexpr std::size_t max_traced = 4;

/// Whether the tensors are of these types, which are not made for them: this is asked at every call.
bool are_of(TracedFunction::Arguments arguments, const op::ValueTypes& types) {
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

/// Runs the body once; throws if it draws random numbers.
Traced traced(const std::shared_ptr<engine::Engine>& engine, op::ValueTypes types,
              const TracedFunction::Body& body, Here here) {
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

op::ValueTypes types_of(TracedFunction::Arguments arguments) {
  op::ValueTypes out;
  for (const Tensor* argument : arguments) out.push_back(argument->node()->type());
  return out;
}

}  // namespace

struct TracedFunction::State {
  Body body;
  Here here;
  std::recursive_mutex mutex;
  bool is_tracing = false;
  std::vector<Traced> known;

  /// Null if there are too many already.
  const Traced* find(Arguments arguments) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Traced& one) { return are_of(arguments, one.arguments); });
    if (found != known.end()) return &*found;
    if (is_tracing) fail(here, "the function calls itself");
    if (known.size() == max_traced) return nullptr;
    const TracingFlag flag(is_tracing);
    known.push_back(traced(arguments[0]->engine(), types_of(arguments), body, here));
    return &known.back();
  }

  /// One node per result; none if it is not to be traced.
  SmallVector<Node*, 2> record(Arguments arguments) {
    check_no_forked_child();
    const std::lock_guard lock(mutex);
    const Traced* found = find(arguments);
    if (found == nullptr) return {};
    SmallVector<Node*, 16> inputs;
    for (const Tensor* argument : arguments) inputs.push_back(argument->node());
    for (const NodeRef& capture : found->captures) inputs.push_back(capture.get());
    auto out = engine::record_function(found->function, inputs, found->results,
                                       found->rules->rules.empty() ? nullptr : found->rules, caller_of(here));
    out[0]->set(Node::plan_at_once);
    return out;
  }
};

TracedFunction::TracedFunction(Body body, Here here) : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->here = here;
}
TracedFunction::~TracedFunction() = default;

Tensor TracedFunction::one(Arguments arguments) const {
  const auto nodes = state_->record(arguments);
  return nodes.empty() ? Tensor() : Tensor::adopt(nodes[0]);
}

std::vector<Tensor> TracedFunction::operator()(Arguments arguments) const {
  const auto nodes = state_->record(arguments);
  std::vector<Tensor> out;
  out.reserve(nodes.size());
  for (Node* node : nodes) out.push_back(Tensor::adopt(node));
  return out;
}

void tessera::detail::save_traced(const std::string& path, const TracedFunction::Body& body,
                                  const std::vector<Tensor>& arguments, Here here) {
  if (arguments.empty()) fail(here, "save_plan: the function takes no tensors");
  const auto engine = arguments[0].engine();
  std::vector<const Tensor*> list;
  for (const Tensor& argument : arguments) list.push_back(&argument);
  const Traced found = traced(engine, types_of(list), body, here);
  std::vector<Tensor> captures;
  for (const NodeRef& capture : found.captures) captures.push_back(Tensor::adopt(NodeRef(capture).detach()));
  save_function(path, found.function, captures, *engine, here);
}

CompiledCall::CompiledCall() : first_(engine::node_numbers.next()) {}

/// What was there before the call is not its affair; nothing has a plan while a region is traced.
void CompiledCall::plan(const Tensor& tensor) const {
  if (tensor.is_empty() || engine::thread_state.trace_depth > 0) return;
  Node& node = *tensor.node();
  if (node.id >= first_ && !node.is_stored()) node.set(Node::plan_at_once);
}

void tessera::detail::fail_empty(std::string_view what, std::size_t argument, const TreePath& path,
                                 Here here) {
  const std::string where = path.text();
  fail(here, cat("compile: ", what, what == "argument" ? cat(" ", argument) : "", where.empty() ? "" : ": ",
                 where, " is an empty tensor"));
}

namespace {

/// Of numbers of rank 0, by dtype; the first recording of each finds it out.
Tensor recorded_number(double value, Dtype dtype, const Tensor& like, Here here) {
  thread_local std::array<std::optional<engine::CallForm>, 32> forms;
  auto& form = forms[static_cast<std::size_t>(dtype) % forms.size()];
  if (form && form->result.dtype == dtype) {
    const engine::Operand number[] = {engine::Operand::of(value)};
    return Tensor::adopt(engine::record_again(*form, number, *like.node(), caller_of(here)));
  }
  Tensor out = full({}, value, {.dtype = dtype, .engine = like.engine()}, here);
  form = engine::form_of(*out.node());
  return out;
}

}  // namespace

Tensor tessera::detail::number_argument(Operand number, const Tensor* like) {
  const bool is_real = number.kind() == Operand::Kind::real;
  Dtype dtype = like == nullptr ? (is_real ? f32 : i64) : like->dtype();
  if (is_real && !ir::is_float(dtype)) dtype = f32;
  const double value = is_real ? number.real() : static_cast<double>(number.integer());
  if (like != nullptr && ir::is_float(dtype)) return recorded_number(value, dtype, *like, number.here());
  const auto written = is_real ? engine::Operand::of(number.real()) : engine::Operand::of(number.integer());
  if (!engine::fits(written, dtype)) fail(number.here(), cat("compile: ", engine::misfit(written, dtype)));
  const CreateOptions options{.engine = like == nullptr ? nullptr : like->engine()};
  const Tensor exact = is_real ? from_vector<double>({number.real()}, {}, options)
                               : from_vector<std::int64_t>({number.integer()}, {}, options);
  return exact.dtype() == dtype ? exact : exact.cast(dtype);
}

PlanAtOnce::PlanAtOnce() { ++engine::thread_state.plan_at_once; }
PlanAtOnce::~PlanAtOnce() { --engine::thread_state.plan_at_once; }

std::string tessera::explain() { return engine::Engine::default_engine()->explain(); }

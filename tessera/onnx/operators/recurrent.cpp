// RNN, GRU and LSTM, step by step: the number of steps must be known.
#include <algorithm>
#include <functional>

#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

Value number(Value like, double value) {
  return like ? like.builder->constant(value, like.dtype()) : Value();
}

// ---- activations

struct Activation {
  std::string name;
  std::optional<double> alpha, beta;
};

Result<Value> activate(NodeCall& node, const Activation& by, Value x) {
  const auto scalars = [&](std::string_view op, std::initializer_list<double> values) {
    Values inputs{x};
    for (double value : values) inputs.push_back(number(x, value));
    return node.b.call(op, inputs);
  };
  if (by.name == "Tanh") return unary("tanh", x);
  if (by.name == "Sigmoid") return unary("sigmoid", x);
  if (by.name == "Relu") return unary("relu", x);
  if (by.name == "Softsign") return unary("softsign", x);
  if (by.name == "Softplus") return unary("softplus", x);
  if (by.name == "Affine") return x * by.alpha.value_or(1) + by.beta.value_or(0);
  if (by.name == "ScaledTanh") return unary("tanh", x * by.beta.value_or(1)) * by.alpha.value_or(1);
  if (by.name == "HardSigmoid")
    return scalars("hard_sigmoid", {by.alpha.value_or(0.2), by.beta.value_or(0.5)});
  if (by.name == "LeakyRelu") return scalars("leaky_relu", {by.alpha.value_or(0.01)});
  if (by.name == "Elu") return scalars("elu", {by.alpha.value_or(1)});
  if (by.name == "ThresholdedRelu")
    return where(node.b.call("gt", {x, number(x, by.alpha.value_or(1))}), x, number(x, 0));
  return node.error("attribute 'activations' has ", shown(by.name));
}

/// The activations of all directions, `per_direction` each.
Result<std::vector<Activation>> activations(NodeCall& node, std::initializer_list<std::string_view> defaults,
                                            std::size_t directions) {
  auto names = node.texts("activations");
  const auto alphas = node.numbers("activation_alpha"), betas = node.numbers("activation_beta");
  TESSERA_TRY(node.status());
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != directions * defaults.size())
    return node.error("attribute 'activations' has ", names.size(), " entries, expected ",
                      directions * defaults.size());
  std::vector<Activation> out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out.push_back({names[i], i < alphas.size() ? std::optional(alphas[i]) : std::nullopt,
                   i < betas.size() ? std::optional(betas[i]) : std::nullopt});
  return out;
}

// ---- one direction

/// Weights of one direction; absent values are empty.
struct Weights {
  Value w, r, input_bias, recurrent_bias, peepholes;
  std::int64_t hidden = 0;

  [[nodiscard]] Value gate(Value all, std::int64_t axis, std::int64_t k) const {
    return all ? slice(all, axis, k * hidden, (k + 1) * hidden) : Value();
  }
};

Value plus(Value a, Value b) { return b ? a + b : a; }

/// x W_k^T + its bias.
Value from_input(const Weights& weights, Value x, std::int64_t k) {
  return plus(matmul(x, transpose_matrix(weights.gate(weights.w, 0, k))),
              weights.gate(weights.input_bias, 0, k));
}
/// h R_k^T + its bias.
Value from_state(const Weights& weights, Value h, std::int64_t k) {
  return plus(matmul(h, transpose_matrix(weights.gate(weights.r, 0, k))),
              weights.gate(weights.recurrent_bias, 0, k));
}

using State = Values;  ///< h, and c for an LSTM
using Step = std::function<Result<State>(const Weights&, std::span<const Activation>, Value x, const State&)>;

struct Recurrence {
  std::size_t gates = 1, states = 1;
  std::initializer_list<std::string_view> activations;
  Step step;
};

/// The inputs of a node with the time first: x [T, B, I].
struct Sequences {
  Value x, lengths;
  std::int64_t steps = 0, hidden = 0;
  std::size_t directions = 1;
  bool is_batch_first = false;
  std::string direction;
};

Result<Sequences> sequences(NodeCall& node) {
  Sequences out;
  out.is_batch_first = node.integer("layout", 0) != 0;
  out.direction = node.text("direction", "forward");
  out.directions = out.direction == "bidirectional" ? 2 : 1;
  out.x = node.in(0);
  const Value w = node.in(1), r = node.in(2);
  TESSERA_TRY(node.status());
  for (const Value one : {out.x, w, r})
    if (one.rank() != 3) return node.error("an input is ", one.type(), ", expected rank 3");
  if (out.is_batch_first) out.x = transpose(out.x, std::vector<std::int64_t>{1, 0, 2});
  if (node.has(4)) out.lengths = cast(node.in(4), Dtype::i64);
  if (!out.x.shape()[0].is_constant() || !r.shape()[2].is_constant())
    return node.unsupported("the number of steps of ", out.x.type(), " must be known");
  out.steps = out.x.shape()[0].value();
  out.hidden = r.shape()[2].value();
  if (out.steps > node.bodies.limits().iterations)
    return Error(ErrorCode::limit, cat("there are ", out.steps, " steps"));
  if (!(r.shape()[0] == Dim(static_cast<std::int64_t>(out.directions))))
    return node.error("input 2 is ", r.type(), ", expected ", out.directions, " directions");
  return out;
}

/// Entry d of the first axis.
Value at_first(NodeCall& node, Value v, std::size_t d) {
  const auto at = static_cast<std::int64_t>(d);
  return v ? node.b.call("squeeze", {slice(v, 0, at, at + 1)}, {{"axes", std::vector<std::int64_t>{0}}}) : v;
}

Weights weights_of(NodeCall& node, const Recurrence& kind, std::int64_t hidden, std::size_t d) {
  Weights out{at_first(node, node.in(1), d), at_first(node, node.in(2), d), {}, {}, {}, hidden};
  const std::int64_t rows = static_cast<std::int64_t>(kind.gates) * hidden;
  if (node.has(3)) {
    const Value bias = at_first(node, node.in(3), d);
    out.input_bias = slice(bias, 0, 0, rows);
    out.recurrent_bias = slice(bias, 0, rows, 2 * rows);
  }
  if (kind.states == 2 && node.has(7)) out.peepholes = at_first(node, node.in(7), d);
  return out;
}

State initial_state(NodeCall& node, const Recurrence& kind, const Sequences& seq, std::size_t d) {
  State out;
  for (std::size_t s = 0; s < kind.states; ++s) {
    Value given = node.has(5 + s) ? node.in(5 + s) : Value();
    if (given && seq.is_batch_first) given = transpose(given, std::vector<std::int64_t>{1, 0, 2});
    out.push_back(given ? at_first(node, given, d)
                        : op::full(node.b, 0, {seq.x.dtype(), {seq.x.shape()[1], Dim(seq.hidden)}}));
  }
  return out;
}

/// The outputs of all steps of one direction, in the order of time, and the last state.
Result<std::pair<Values, State>> run_direction(NodeCall& node, const Recurrence& kind, const Sequences& seq,
                                               std::span<const Activation> by, std::size_t d) {
  const Weights weights = weights_of(node, kind, seq.hidden, d);
  State state = initial_state(node, kind, seq, d);
  TESSERA_TRY(node.status());
  const bool is_reverse = seq.direction == "reverse" || d == 1;
  Values outputs(static_cast<std::size_t>(seq.steps));
  for (std::int64_t i = 0; i < seq.steps; ++i) {
    const std::int64_t t = is_reverse ? seq.steps - 1 - i : i;
    State next =
        TESSERA_TRY(kind.step(weights, by, at_first(node, seq.x, static_cast<std::size_t>(t)), state));
    Value output = next[0];
    if (seq.lengths) {  // behind its end a sequence keeps its state and gives zeros
      const Value inside = node.b.call("unsqueeze", {node.b.call("gt", {seq.lengths, node.b.extent(t)})},
                                       {{"axes", std::vector<std::int64_t>{1}}});
      for (std::size_t s = 0; s < next.size(); ++s) next[s] = where(inside, next[s], state[s]);
      output = where(inside, output, number(output, 0));
    }
    TESSERA_TRY(node.status());
    outputs[static_cast<std::size_t>(t)] = output;
    state = std::move(next);
  }
  return std::pair(std::move(outputs), std::move(state));
}

Value stacked(NodeCall& node, const Values& parts, std::int64_t axis) {
  Values all;
  for (Value part : parts) all.push_back(node.b.call("unsqueeze", {part}, {{"axes", std::vector{axis}}}));
  return node.b.call("concat", all, {{"axis", axis}});
}

Result<Items> run_recurrence(NodeCall& node, const Recurrence& kind) {
  const Sequences seq = TESSERA_TRY(sequences(node));
  const auto by = TESSERA_TRY(activations(node, kind.activations, seq.directions));
  if (seq.steps == 0) return node.unsupported("there are no steps");
  std::vector<Values> outputs;  // per direction
  std::vector<Values> last(kind.states);
  for (std::size_t d = 0; d < seq.directions; ++d) {
    const auto own = std::span(by).subspan(d * kind.activations.size(), kind.activations.size());
    auto [rows, state] = TESSERA_TRY(run_direction(node, kind, seq, own, d));
    outputs.push_back(std::move(rows));
    for (std::size_t s = 0; s < kind.states; ++s) last[s].push_back(state[s]);
  }
  Values steps;  // each [D, B, H]
  for (std::size_t t = 0; t < static_cast<std::size_t>(seq.steps); ++t) {
    Values directions;
    for (const Values& one : outputs) directions.push_back(one[t]);
    steps.push_back(stacked(node, directions, 0));
  }
  Value y = stacked(node, steps, 0);
  if (seq.is_batch_first) y = transpose(y, std::vector<std::int64_t>{2, 0, 1, 3});
  Items out{y};
  for (const Values& one : last) out.emplace_back(stacked(node, one, seq.is_batch_first ? 1 : 0));
  return out;
}

// ---- the three

/// The limit on what goes into activations, if there is one.
Value clipped(NodeCall& node, Value x) {
  if (node.attribute("clip") == nullptr) return x;
  const double limit = node.number("clip", 0);
  return node.b.call("clip", {x, number(x, -limit), number(x, limit)});
}

Result<Items> map_rnn(NodeCall& node) {
  const Step step = [&](const Weights& w, std::span<const Activation> by, Value x,
                        const State& s) -> Result<State> {
    const Value sum = from_input(w, x, 0) + from_state(w, s[0], 0);
    return State{TESSERA_TRY(activate(node, by[0], clipped(node, sum)))};
  };
  return run_recurrence(node, {1, 1, {"Tanh"}, step});
}

Result<Items> map_gru(NodeCall& node) {
  const bool is_linear_first = node.flag("linear_before_reset", false);
  const Step step = [&](const Weights& w, std::span<const Activation> by, Value x,
                        const State& s) -> Result<State> {
    const Value h = s[0];
    const Value z =
        TESSERA_TRY(activate(node, by[0], clipped(node, from_input(w, x, 0) + from_state(w, h, 0))));
    const Value r =
        TESSERA_TRY(activate(node, by[0], clipped(node, from_input(w, x, 1) + from_state(w, h, 1))));
    const Value memory = is_linear_first ? r * from_state(w, h, 2) : from_state(w, r * h, 2);
    const Value fresh = TESSERA_TRY(activate(node, by[1], clipped(node, from_input(w, x, 2) + memory)));
    return State{(1.0 - z) * fresh + z * h};
  };
  return run_recurrence(node, {3, 1, {"Sigmoid", "Tanh"}, step});
}

Result<Items> map_lstm(NodeCall& node) {
  const bool couples = node.flag("input_forget", false);
  const Step step = [&](const Weights& w, std::span<const Activation> by, Value x,
                        const State& s) -> Result<State> {
    const auto [h, c] = std::pair(s[0], s[1]);
    // Gates stand in the order input, output, forget, cell; peepholes in the order input, output, forget.
    const auto before = [&](std::int64_t k, Value cell) {
      const Value sum = from_input(w, x, k) + from_state(w, h, k);
      const Value peephole = cell ? w.gate(w.peepholes, 0, k) : Value();
      return clipped(node, peephole ? sum + peephole * cell : sum);
    };
    const Value i = TESSERA_TRY(activate(node, by[0], before(0, c)));
    const Value f = couples ? 1.0 - i : TESSERA_TRY(activate(node, by[0], before(2, c)));
    const Value fresh = TESSERA_TRY(activate(node, by[1], before(3, {})));
    const Value cell = f * c + i * fresh;
    const Value o = TESSERA_TRY(activate(node, by[0], before(1, cell)));
    return State{o * TESSERA_TRY(activate(node, by[2], cell)), cell};
  };
  return run_recurrence(node, {4, 2, {"Sigmoid", "Tanh", "Tanh"}, step});
}

constexpr Mapping table[] = {{"GRU", map_gru}, {"LSTM", map_lstm}, {"RNN", map_rnn}};

}  // namespace

std::span<const Mapping> tessera::onnx::recurrent_mappings() { return table; }

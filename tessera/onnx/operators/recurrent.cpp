// RNN, GRU and LSTM. What the inputs contribute is one product for all steps; the states go step by step:
// written out where the number of steps is known, as a loop where it is a symbol.
#include <algorithm>
#include <functional>

#include "tessera/onnx/operators/quantised.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

// ---- activations

struct Activation {
  std::string name;
  std::optional<double> alpha, beta;
};

Result<Value> activate(NodeCall& node, const Activation& by, Value x) {
  const auto scalars = [&](std::string_view op, std::initializer_list<double> values) {
    Values inputs{x};
    for (double value : values) inputs.push_back(number_like(x, value));
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
    return where(node.b.call("gt", {x, number_like(x, by.alpha.value_or(1))}), x, number_like(x, 0));
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

// ---- weights

/// A matrix that rows are multiplied with: of floats, or of integers with a scale and a zero point.
struct Matrix {
  Value elements, scale, zero;

  [[nodiscard]] Matrix columns(std::int64_t begin, std::int64_t end) const {
    const auto part = [&](Value v) { return v && v.rank() > 0 ? slice(v, -1, begin, end) : v; };
    return {slice(elements, 1, begin, end), part(scale), part(zero)};
  }
};

/// v M. With integers v is quantised by what it holds.
Value times(Value v, const Matrix& matrix) {
  if (!matrix.scale || !v) return matmul(v, matrix.elements);
  const DynamicallyQuantised q = dynamically_quantised(v);
  Value integers = cast(matrix.elements, Dtype::i32);
  if (matrix.zero) integers = integers - cast(matrix.zero, Dtype::i32);
  const Value sums = matmul(cast(q.steps, Dtype::i32) - cast(q.zero, Dtype::i32), integers);
  return cast(sums, v.dtype()) * q.scale * matrix.scale;
}

Value plus(Value a, Value b) { return b ? a + b : a; }

/// Weights of one direction; absent values are empty. Gates stand side by side.
struct Weights {
  /// Gates that see the same state: one product.
  struct Product {
    Matrix matrix;
    Value bias;
  };

  Matrix w;
  std::vector<Product> r;  ///< made once, not in every step: the steps read the same memory
  Value input_bias, peepholes;
  std::int64_t hidden = 0;

  /// What a state contributes to the gates of a product.
  [[nodiscard]] Value from_state(Value state, std::size_t product) const {
    return plus(times(state, r[product].matrix), r[product].bias);
  }
  [[nodiscard]] Value gate(Value all, std::int64_t k) const {
    return all ? slice(all, -1, k * hidden, (k + 1) * hidden) : Value();
  }
};

using State = Values;  ///< h, and c for an LSTM
/// One step: `x` is what the input of the step contributes to all gates.
using Step = std::function<Result<State>(const Weights&, std::span<const Activation>, Value x, const State&)>;

struct Recurrence {
  std::size_t gates = 1, states = 1;
  std::initializer_list<std::string_view> activations;
  Step step;
  bool is_quantised = false;  ///< weights are turned, [in, gates], and have scales behind the other inputs
  std::vector<std::int64_t> together = {};  ///< how many gates each product with a state has; none: all
};

// ---- inputs

/// The inputs of a node with the time first: x [T, B, I].
struct Sequences {
  Value x, lengths;
  Dim steps;
  std::int64_t hidden = 0;
  std::size_t directions = 1;
  bool is_batch_first = false;
  std::string direction;
};

Result<Sequences> sequences(NodeCall& node, const Recurrence& kind) {
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
  const Dim hidden = r.shape()[kind.is_quantised ? 1 : 2];
  if (!hidden.is_constant()) return node.unsupported("the size of the state of ", r.type(), " must be known");
  out.steps = out.x.shape()[0];
  out.hidden = hidden.value();
  if (out.steps.is_constant() && out.steps.value() > node.bodies.limits().iterations)
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

/// The matrix in input `i`, for direction d; its scale and zero point are inputs `scale` and `scale` + 1.
Matrix matrix_of(NodeCall& node, const Recurrence& kind, std::size_t i, std::size_t scale, std::size_t d) {
  const Value own = at_first(node, node.in(i), d);
  if (!kind.is_quantised) return {transpose_matrix(own), {}, {}};
  return {own, at_first(node, node.in(scale), d), at_first(node, node.in_or_none(scale + 1), d)};
}

Weights weights_of(NodeCall& node, const Recurrence& kind, std::int64_t hidden, std::size_t d) {
  Weights out{matrix_of(node, kind, 1, 8, d), {}, {}, {}, hidden};
  const Matrix r = matrix_of(node, kind, 2, 10, d);
  const std::int64_t columns = static_cast<std::int64_t>(kind.gates) * hidden;
  const Value bias = node.has(3) ? at_first(node, node.in(3), d) : Value();
  if (bias) out.input_bias = slice(bias, 0, 0, columns);
  std::int64_t begin = 0;
  for (const std::int64_t gates : kind.together) {
    const std::int64_t end = begin + gates * hidden;
    out.r.push_back({r.columns(begin, end), bias ? slice(bias, 0, columns + begin, columns + end) : Value()});
    begin = end;
  }
  if (kind.together.empty()) out.r.push_back({r, bias ? slice(bias, 0, columns, 2 * columns) : Value()});
  if (kind.states == 2 && node.has(7)) out.peepholes = at_first(node, node.in(7), d);
  return out;
}

/// Whether a state can have this shape; where sizes are numbers nothing else may, and nothing is repeated.
bool is_state(const Shape& shape, const Shape& expected) {
  return std::equal(shape.begin(), shape.end(), expected.begin(), expected.end(),
                    [](const Dim& a, const Dim& b) { return !ir::provably_different(a, b); });
}

Result<State> initial_state(NodeCall& node, const Recurrence& kind, const Sequences& seq, std::size_t d) {
  State out;
  Shape expected{Dim(static_cast<std::int64_t>(seq.directions)), seq.x.shape()[1], Dim(seq.hidden)};
  if (seq.is_batch_first) std::swap(expected[0], expected[1]);
  for (std::size_t s = 0; s < kind.states; ++s) {
    Value given = node.in_or_none(5 + s);
    TESSERA_TRY(node.status());
    if (given && !is_state(given.shape(), expected))
      return node.error("input ", 5 + s, " is ", given.type(), ", expected the shape ", expected);
    if (given && seq.is_batch_first) given = transpose(given, std::vector<std::int64_t>{1, 0, 2});
    out.push_back(given ? at_first(node, given, d)
                        : op::full(node.b, 0, {seq.x.dtype(), {seq.x.shape()[1], Dim(seq.hidden)}}));
  }
  return out;
}

// ---- one direction

struct Direction {
  NodeCall& node;
  const Recurrence& kind;
  const Sequences& seq;
  std::span<const Activation> by;
  Weights weights;
  Value projected;  ///< [T, B, gates]: what the inputs contribute
  bool is_reverse = false;

  /// The state after time `t`, and what is put out for it. `t` is an i64 of rank 0.
  [[nodiscard]] Result<std::pair<State, Value>> run(Value x, Value t, const State& state) const {
    State next = TESSERA_TRY(kind.step(weights, by, x, state));
    Value output = next[0];
    if (seq.lengths) {  // behind its end a sequence keeps its state and gives zeros
      const Value inside = node.b.call("unsqueeze", {node.b.call("gt", {seq.lengths, t})},
                                       {{"axes", std::vector<std::int64_t>{1}}});
      for (std::size_t s = 0; s < next.size(); ++s) next[s] = where(inside, next[s], state[s]);
      output = where(inside, output, number_like(output, 0));
    }
    TESSERA_TRY(node.status());
    return std::pair(std::move(next), output);
  }
};

Value stacked(NodeCall& node, const Values& parts, std::int64_t axis) {
  Values all;
  for (Value part : parts) all.push_back(node.b.call("unsqueeze", {part}, {{"axes", std::vector{axis}}}));
  return node.b.call("concat", all, {{"axis", axis}});
}

/// The outputs [T, B, H] and the last state, step by step.
Result<std::pair<Value, State>> run_written_out(const Direction& d, State state) {
  const std::int64_t steps = d.seq.steps.value();
  Values outputs(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = d.is_reverse ? steps - 1 - i : i;
    const Value x = at_first(d.node, d.projected, static_cast<std::size_t>(t));
    auto [next, output] = TESSERA_TRY(d.run(x, d.node.b.extent(t), state));
    outputs[static_cast<std::size_t>(t)] = output;
    state = std::move(next);
  }
  return std::pair(stacked(d.node, outputs, 0), std::move(state));
}

/// The same as a loop that carries the outputs, a row of which each step writes.
Result<std::pair<Value, State>> run_as_loop(const Direction& d, State state) {
  op::Builder& b = d.node.b;
  Values carried = std::move(state);
  carried.push_back(op::full(b, 0, {d.seq.x.dtype(), {d.seq.steps, d.seq.x.shape()[1], Dim(d.seq.hidden)}}));
  TESSERA_TRY(d.node.status());
  const auto body = [&](Value i, const Values& now) -> Result<Values> {
    const Value t = d.is_reverse ? b.extent(d.seq.steps - Dim(1)) - i : i;
    const Value x = b.call("gather", {d.projected, t}, {{"axis", 0}});
    auto [next, output] = TESSERA_TRY(d.run(x, t, State(now.begin(), now.end() - 1)));
    const Value row = b.call("unsqueeze", {output}, {{"axes", std::vector<std::int64_t>{0}}});
    next.push_back(b.call("scatter_nd", {now.back(), reshape(t, Shape{Dim(1), Dim(1)}), row}));
    TESSERA_TRY(d.node.status());
    return next;
  };
  Values last = TESSERA_TRY(d.node.target.loop(d.seq.steps, carried, body));
  const Value outputs = last.back();
  last.pop_back();
  return std::pair(outputs, std::move(last));
}

Result<std::pair<Value, State>> run_direction(NodeCall& node, const Recurrence& kind, const Sequences& seq,
                                              std::span<const Activation> by, std::size_t d) {
  Direction one{
      node, kind, seq, by, weights_of(node, kind, seq.hidden, d), {}, seq.direction == "reverse" || d == 1};
  one.projected = plus(times(seq.x, one.weights.w), one.weights.input_bias);
  const State state = TESSERA_TRY(initial_state(node, kind, seq, d));
  TESSERA_TRY(node.status());
  return seq.steps.is_constant() ? run_written_out(one, state) : run_as_loop(one, state);
}

Result<Items> run_recurrence(NodeCall& node, const Recurrence& kind) {
  const Sequences seq = TESSERA_TRY(sequences(node, kind));
  const auto by = TESSERA_TRY(activations(node, kind.activations, seq.directions));
  if (seq.steps == Dim(0)) return node.unsupported("there are no steps");
  Values outputs;  // per direction
  std::vector<Values> last(kind.states);
  for (std::size_t d = 0; d < seq.directions; ++d) {
    const auto own = std::span(by).subspan(d * kind.activations.size(), kind.activations.size());
    auto [rows, state] = TESSERA_TRY(run_direction(node, kind, seq, own, d));
    outputs.push_back(rows);
    for (std::size_t s = 0; s < kind.states; ++s) last[s].push_back(state[s]);
  }
  Value y = stacked(node, outputs, 1);  // [T, D, B, H]
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
  return node.b.call("clip", {x, number_like(x, -limit), number_like(x, limit)});
}

Result<Items> map_rnn(NodeCall& node) {
  const Step step = [&](const Weights& w, std::span<const Activation> by, Value x,
                        const State& s) -> Result<State> {
    const Value sum = x + w.from_state(s[0], 0);
    return State{TESSERA_TRY(activate(node, by[0], clipped(node, sum)))};
  };
  return run_recurrence(node, {1, 1, {"Tanh"}, step});
}

Result<Items> map_gru(NodeCall& node) {
  const bool is_linear_first = node.flag("linear_before_reset", false);
  const Step step = [&](const Weights& w, std::span<const Activation> by, Value x,
                        const State& s) -> Result<State> {
    const Value h = s[0], sums = w.from_state(h, 0);
    const Value z = TESSERA_TRY(activate(node, by[0], clipped(node, w.gate(x, 0) + w.gate(sums, 0))));
    const Value r = TESSERA_TRY(activate(node, by[0], clipped(node, w.gate(x, 1) + w.gate(sums, 1))));
    const Value memory = is_linear_first ? r * w.gate(sums, 2) : w.from_state(r * h, 1);
    const Value fresh = TESSERA_TRY(activate(node, by[1], clipped(node, w.gate(x, 2) + memory)));
    return State{(1.0 - z) * fresh + z * h};
  };
  Recurrence gru{3, 1, {"Sigmoid", "Tanh"}, step};
  if (!is_linear_first) gru.together = {2, 1};
  return run_recurrence(node, gru);
}

template <bool is_quantised>
Result<Items> map_lstm(NodeCall& node) {
  const bool couples = node.flag("input_forget", false);
  const Step step = [&](const Weights& w, std::span<const Activation> by, Value x,
                        const State& s) -> Result<State> {
    const Value c = s[1];
    const Value sums = x + w.from_state(s[0], 0);
    // Gates stand in the order input, output, forget, cell; peepholes in the order input, output, forget.
    const auto before = [&](std::int64_t k, Value cell) {
      const Value peephole = cell ? w.gate(w.peepholes, k) : Value();
      return clipped(node, peephole ? w.gate(sums, k) + peephole * cell : w.gate(sums, k));
    };
    const Value i = TESSERA_TRY(activate(node, by[0], before(0, c)));
    const Value f = couples ? 1.0 - i : TESSERA_TRY(activate(node, by[0], before(2, c)));
    const Value fresh = TESSERA_TRY(activate(node, by[1], before(3, {})));
    const Value cell = f * c + i * fresh;
    const Value o = TESSERA_TRY(activate(node, by[0], before(1, cell)));
    return State{o * TESSERA_TRY(activate(node, by[2], cell)), cell};
  };
  return run_recurrence(node, {4, 2, {"Sigmoid", "Tanh", "Tanh"}, step, is_quantised});
}

constexpr Mapping recurrent_table[] = {
    {"DynamicQuantizeLSTM", map_lstm<true>, 1, "com.microsoft"},
    {"GRU", map_gru},
    {"LSTM", map_lstm<false>},
    {"RNN", map_rnn},
};

}  // namespace

std::span<const Mapping> tessera::onnx::recurrent_mappings() { return recurrent_table; }

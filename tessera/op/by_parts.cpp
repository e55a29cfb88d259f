#include "tessera/op/by_parts.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::op;

namespace {

/// Writes calls into another builder and remembers them, with the gradients of their values.
class Tape : public Builder {
 public:
  explicit Tape(Builder& to) : to_(to) {}

  /// The value here that stands for one of the other builder.
  Value import(Value outer) { return add(outer, ir::is_float(outer.dtype())); }
  [[nodiscard]] Value gradient(Value value) const { return entries_[value.id].gradient; }

  void accumulate(Value value, Value gradient) {
    Entry& entry = entries_[value.id];
    if (!entry.active || !gradient) return;
    entry.gradient = entry.gradient ? to_.add_gradients(entry.gradient, gradient) : gradient;
  }

  /// Passes the gradients of results on to inputs, from the last call to the first.
  void go_back() {
    for (std::size_t i = calls_.size(); i-- > 0;) go_back_through(calls_[i]);
  }

 protected:
  Result<Values> emit(const Card& card, std::span<const Value> inputs, Attributes attributes,
                      ValueTypes types) override {
    Call call{card, Values(inputs.begin(), inputs.end()), {}, attributes};
    const Values outer = to_.call_all(card.name, outer_values(inputs), std::move(attributes));
    TESSERA_TRY(to_.status());
    const bool active =
        std::any_of(inputs.begin(), inputs.end(), [&](Value value) { return entries_[value.id].active; });
    for (std::size_t i = 0; i < types.size(); ++i)
      call.results.push_back(add(outer[i], active && ir::is_float(types[i].dtype)));
    calls_.push_back(std::move(call));
    return calls_.back().results;
  }
  Value emit_constant(double value, Dtype dtype) override { return add(to_.constant(value, dtype), false); }
  Value emit_extent(const Dim& size) override { return add(to_.extent(size), false); }
  Assumptions* assumptions() override { return &assumptions_; }

 private:
  struct Entry {
    Value outer;
    Value gradient;       ///< of the other builder
    bool active = false;  ///< depends on a float input
  };
  struct Call {
    const Card& card;
    Values inputs, results;
    Attributes attributes;
  };

  Value add(Value outer, bool active) {
    entries_.push_back({outer, Value(), active});
    return add_value(outer.type());
  }

  [[nodiscard]] Values outer_values(std::span<const Value> values) const {
    Values out;
    for (Value value : values) out.push_back(entries_[value.id].outer);
    return out;
  }

  void go_back_through(const Call& call) {
    Values of_results;
    for (Value result : call.results) of_results.push_back(gradient(result));
    const bool any = std::any_of(of_results.begin(), of_results.end(), [](Value v) { return bool(v); });
    if (!any || call.card.gradient == nullptr) return;
    const Values inputs = outer_values(call.inputs), results = outer_values(call.results);
    ValueTypes types;
    for (Value input : inputs) types.push_back(input.type());
    const CallInfo info(call.card, types, call.attributes, &assumptions_);
    GradientCall step(to_, info, inputs, results, of_results);
    const Values of_inputs = call.card.gradient(step);
    for (std::size_t i = 0; i < of_inputs.size(); ++i) accumulate(call.inputs[i], of_inputs[i]);
  }

  Builder& to_;
  std::vector<Entry> entries_;  ///< by the id of the value
  std::vector<Call> calls_;
  Assumptions assumptions_;  ///< the other builder makes the same ones
};

}  // namespace

Values tessera::op::gradient_by_parts(GradientCall& call) {
  Tape tape(call.b);
  Values inputs;
  for (std::size_t i = 0; i < call.input_count(); ++i) inputs.push_back(tape.import(call.x(i)));
  const Values results = call.info.card().decompose(tape, call.info, inputs);
  Values out(inputs.size());
  if (!tape.status()) return out;  // the builder of the call has the error
  for (std::size_t i = 0; i < results.size(); ++i)
    if (call.has_dy(i)) tape.accumulate(results[i], call.dy(i));
  tape.go_back();
  for (std::size_t i = 0; i < inputs.size(); ++i) out[i] = tape.gradient(inputs[i]);
  return out;
}

// A graph recorded as a whole, from calls in any order.
#include "tessera/capi/arguments.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

class Description {
 public:
  explicit Description(std::span<const tsr_call_description> calls) : calls_(calls), made_(calls.size()) {}

  /// Records all calls, those that need others after them.
  void record_all() {
    sort();
    for (std::size_t i : order_) record_call(i);
  }

  [[nodiscard]] Tensor result(const tsr_operand& operand, const char* name) const {
    if (operand.kind == TSR_OPERAND_TENSOR) return tensor_of(operand.value.tensor, name);
    if (operand.kind != TSR_OPERAND_RESULT)
      fail(TSR_ERROR_INVALID_OPERATION, "'", name, "' is neither a tensor nor a result of a call");
    const std::size_t call = call_index(operand, name);
    const std::int64_t number = operand.value.result.number;
    if (number < 0 || number >= std::ssize(made_[call]))
      fail(TSR_ERROR_INVALID_OPERATION, "'", name, "' is result ", number, " of ", text_of(call),
           ", which has ", made_[call].size());
    return made_[call][static_cast<std::size_t>(number)];
  }

 private:
  [[nodiscard]] std::string text_of(std::size_t call) const {
    return cat("call ", call, " (", printable(calls_[call].op), ")");
  }

  [[nodiscard]] std::size_t call_index(const tsr_operand& operand, const char* name) const {
    const std::int64_t call = operand.value.result.call;
    if (call < 0 || call >= std::ssize(calls_))
      fail(TSR_ERROR_INVALID_OPERATION, "'", name, "' is a result of call ", call, "; there are ",
           calls_.size());
    return static_cast<std::size_t>(call);
  }

  /// The calls that call `i` takes results of, by slot.
  [[nodiscard]] std::vector<std::size_t> needs(std::size_t i) const {
    std::vector<std::size_t> out;
    for (int k = 0; k < calls_[i].input_count; ++k)
      if (calls_[i].inputs[k].kind == TSR_OPERAND_RESULT)
        out.push_back(call_index(calls_[i].inputs[k], "inputs"));
    return out;
  }

  /// Kahn: a call is ready when all it needs stand in the order.
  void sort() {
    std::vector<std::vector<std::size_t>> users(calls_.size());
    std::vector<std::size_t> waiting(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      require(calls_[i].op, "op");
      require_array(calls_[i].inputs, calls_[i].input_count, "inputs");
      for (std::size_t other : needs(i)) users[other].push_back(i);
      waiting[i] = needs(i).size();
      if (waiting[i] == 0) order_.push_back(i);
    }
    for (std::size_t k = 0; k < order_.size(); ++k)
      for (std::size_t user : users[order_[k]])
        if (--waiting[user] == 0) order_.push_back(user);
    if (order_.size() < calls_.size()) fail_with_cycle(waiting);
  }

  /// From any call that still waits, going on to what it waits for must come around.
  [[noreturn]] void fail_with_cycle(const std::vector<std::size_t>& waiting) const {
    std::size_t at = 0;
    while (waiting[at] == 0) ++at;
    std::vector<std::size_t> path;
    std::vector<bool> seen(calls_.size());
    while (!seen[at]) {
      seen[at] = true;
      path.push_back(at);
      const auto below = needs(at);
      at = *std::find_if(below.begin(), below.end(), [&](std::size_t call) { return waiting[call] > 0; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    constexpr std::size_t longest = 16;
    std::string text = text_of(path[0]);
    for (std::size_t i = 1; i < path.size() && i < longest; ++i) text += cat(" needs ", text_of(path[i]));
    if (path.size() > longest) text += cat(" needs ", path.size() - longest, " more calls");
    fail(TSR_ERROR_CYCLE, "the description has a cycle: ", text, " needs ", text_of(path[0]));
  }

  void record_call(std::size_t i) {
    const tsr_call_description& call = calls_[i];
    try {
      Operands operands;
      for (int k = 0; k < call.input_count; ++k)
        if (call.inputs[k].kind == TSR_OPERAND_RESULT)
          operands.add(result(call.inputs[k], cat("inputs[", k, "]").c_str()));
        else
          operands.add(call.inputs[k], k);
      made_[i] = record(card_from(call.op), operands, attributes_from(call.attributes, call.attribute_count));
    } catch (Failure& failure) {
      fail(failure.code, text_of(i), ": ", failure.message);
    } catch (const Exception& exception) {
      fail(code_of(exception.error().code()), text_of(i), ": ", exception.what());
    }
  }

  std::span<const tsr_call_description> calls_;
  std::vector<std::vector<Tensor>> made_;  ///< the results of each call
  std::vector<std::size_t> order_;
};

}  // namespace

int tsr_describe(const tsr_call_description* calls, int call_count, const tsr_operand* results,
                 int result_count, tsr_tensor* out) noexcept {
  return guard("tsr_describe", [&] {
    require_array(calls, call_count, "calls");
    require_array(results, result_count, "results");
    require_array(out, result_count, "out");
    Description description({calls, static_cast<std::size_t>(call_count)});
    description.record_all();
    std::vector<Tensor> asked;
    for (int i = 0; i < result_count; ++i)
      asked.push_back(description.result(results[i], cat("results[", i, "]").c_str()));
    make_handles(std::move(asked), out);
  });
}

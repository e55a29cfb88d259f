#include "tessera/stream/readable.h"

#include <unordered_map>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::stream;

namespace {

class Printer {
 public:
  Printer(const Trace& trace, const Encoding& encoding) : trace_(trace) {
    for (std::uint32_t i = 0; i < encoding.symbols.size(); ++i)
      symbol_number_.emplace(encoding.symbols[i], i);
  }

  std::string line(OpIndex op) {
    const OpText text = op_text(view(trace_.op_label(op)));
    std::vector<std::string> operands;
    for (const Operand operand : trace_.operands(op)) operands.push_back(shown(operand));
    std::vector<std::string> results;
    std::string marks = text.effect == Effect::none ? "" : cat(" ", to_string(text.effect));
    for (std::uint32_t i = 0; i < trace_.result_count(op); ++i) {
      const std::uint32_t result = trace_.first_result(op) + i;
      const auto number = static_cast<std::uint32_t>(result_number_.size());
      result_number_.emplace(result, number);
      results.push_back(cat("t", number, typed(trace_.result_type(result))));
      if (trace_.is_live(result) != trace_.is_read(result) && !trace_.is_freed(result)) continue;
      marks += trace_.is_freed(result) ? " freed" : trace_.is_live(result) ? " live" : " dead";
      if (trace_.result_count(op) > 1) marks += cat(":", i);
    }
    return cat(join(results, ","), results.empty() ? "" : "=", text.name, "(", join(operands, ","), ")",
               text.attributes, marks);
  }

 private:
  std::string shown(Operand operand) {
    if (operand.is_result()) return cat("t", result_number_.at(operand.index()));
    if (!operand.is_input()) {
      const std::string dtype =
          operand.index() == 0 ? "" : cat(":", to_string(static_cast<ir::Dtype>(operand.index() - 1)));
      return cat("$", next_parameter_++, dtype);
    }
    const auto number = static_cast<std::uint32_t>(input_number_.size());
    const auto [at, is_new] = input_number_.emplace(operand.index(), number);
    return cat("in", at->second, is_new ? typed(trace_.input_type(operand.index())) : "");
  }

  std::string typed(const Label& type) {
    const std::string text = type_text(view(type));
    return text.empty() ? text : cat(":", text);
  }

  PatternView view(const Label& label) {
    symbolic_.clear();
    for (const SymbolicSizeRef& size : label.symbolic) {
      std::vector<std::uint64_t> numbers;
      for (const ir::Var* symbol : size->symbols()) numbers.push_back(symbol_number_.at(symbol->id));
      symbolic_.push_back(size->text(numbers));
    }
    return {trace_.patterns().bytes(label.pattern), label.sizes, symbolic_};
  }

  const Trace& trace_;
  std::unordered_map<SymbolId, std::uint32_t> symbol_number_;
  std::unordered_map<std::uint32_t, std::uint32_t> result_number_;
  std::unordered_map<std::uint32_t, std::uint32_t> input_number_;
  std::uint32_t next_parameter_ = 0;
  std::vector<std::string> symbolic_;
};

}  // namespace

std::vector<std::string> tessera::stream::readable(const Trace& trace, const Encoding& encoding) {
  Printer printer(trace, encoding);
  std::vector<std::string> lines;
  lines.reserve(encoding.ops.size());
  for (const OpIndex op : encoding.ops) lines.push_back(printer.line(op));
  return lines;
}

#include "tessera/pattern/pattern_text.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/text.h"
#include "tessera/pattern/text_form.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

class PatternTextReader {
 public:
  PatternTextReader(const SourceText& source, TextForm form, const ir::OpFacts& facts)
      : source_(source), form_(std::move(form)), facts_(facts) {}

  Result<PatternParts> read(std::string name) {
    parts_.name = std::move(name);
    for (const TextNode& node : form_.nodes) TESSERA_TRY(add_node(node));
    for (const TextEdge& edge : form_.edges)
      parts_.nodes[edge.to].inputs.push_back({PatternInput::Kind::node, edge.from, edge.result});
    for (PatternNode& node : parts_.nodes) std::ranges::sort(node.op.names);
    parts_.outputs = sinks_of(parts_.nodes);
    for (const TextOption& option : form_.options) TESSERA_TRY(read_option(option));
    return std::move(parts_);
  }

 private:
  Result<void> add_node(const TextNode& text) {
    PatternNode node{.id = text.id};
    std::string_view op = text.op;
    if (const char last = op.back(); (last == '?' || last == '+' || last == '*') && op.size() > 1) {
      node.is_optional = last != '+';
      if (last != '?') node.repeat = {1, none};
      op.remove_suffix(1);
    }
    for (std::size_t begin = 0; begin <= op.size();) {
      const std::size_t bar = std::min(op.find('|', begin), op.size());
      TESSERA_TRY(add_op(node, op.substr(begin, bar - begin), text.op_offset + begin));
      begin = bar + 1;
    }
    parts_.nodes.push_back(std::move(node));
    return {};
  }

  Result<void> add_op(PatternNode& node, std::string_view op, std::size_t offset) {
    if (op.empty()) return source_.error_at(offset, "expected an op");
    if (const std::size_t bad = op.find_first_of("?*+"); bad != std::string_view::npos && op.size() > 1)
      return source_.error_at(offset + bad, cat("'", op[bad], "' can only stand after an op"));
    if (op.front() != '<') {
      if (!node.op.traits.empty()) return source_.error_at(offset, "a trait cannot be one of several");
      node.op.names.emplace_back(facts_.find(op).canonical);
      return {};
    }
    if (op.size() < 3 || op.back() != '>')
      return source_.error_at(offset, "expected a trait, like <elementwise>");
    if (!node.op.names.empty() || !node.op.traits.empty())
      return source_.error_at(offset, "a trait cannot be one of several");
    node.op.traits.emplace_back(op.substr(1, op.size() - 2));
    if (auto message = find_unknown_trait(facts_, node.op.traits.back()))
      return source_.error_at(offset + 1, *std::move(message));
    return {};
  }

  Result<void> read_option(const TextOption& option) {
    if (option.key == "kernel") {
      parts_.kernel = option.value;
    } else if (option.key == "cost") {
      parts_.cost.base = TESSERA_TRY(read_cost(option));
    } else if (option.key == "out") {
      parts_.outputs.clear();
      for (const TextResult& result : TESSERA_TRY(form_.results(source_, option)))
        parts_.outputs.push_back({result.node, result.result, result.is_whole_node});
    } else {
      return source_.error_at(option.offset, cat("unknown option @", option.key,
                                                 " of a pattern, expected @out, @cost or @kernel"));
    }
    return {};
  }

  [[nodiscard]] Result<double> read_cost(const TextOption& option) const {
    double cost = 0;
    const char* end = option.value.data() + option.value.size();
    const auto parsed = std::from_chars(option.value.data(), end, cost);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
    if (!is_number || !(cost >= 0) || cost > std::numeric_limits<double>::max())
      return source_.error_at(option.value_offset, cat("cost ", quote(shortened(option.value, 40)),
                                                       " is not a finite number of at least 0"));
    return cost;
  }

  const SourceText& source_;
  TextForm form_;
  const ir::OpFacts& facts_;
  PatternParts parts_;
};

}  // namespace

Result<Pattern> tessera::pattern::parse_pattern_text(const SourceText& source, std::string name,
                                                     const ir::OpFactsRef& facts) {
  TextForm form = TESSERA_TRY(parse_text_form(source));
  PatternParts parts = TESSERA_TRY(PatternTextReader(source, std::move(form), *facts).read(std::move(name)));
  auto pattern = Pattern::create(std::move(parts));
  if (!pattern) return std::move(pattern).error().at(source.span_at(0));
  return pattern;
}

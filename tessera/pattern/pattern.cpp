#include "tessera/pattern/pattern.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "tessera/base/text.h"
#include "tessera/pattern/variant.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

template <class... Args>
Error invalid(const Args&... args) {
  return Error(ErrorCode::invalid_argument, cat(args...));
}

std::string quoted(const std::string& text) { return quote(shortened(text, 60)); }

Result<void> check_inputs(const PatternParts& parts, const PatternNode& node) {
  for (const PatternInput& input : node.inputs) {
    const bool is_node = input.kind == PatternInput::Kind::node;
    const std::size_t count = is_node ? parts.nodes.size() : parts.externals.size();
    if (input.kind != PatternInput::Kind::any && input.index >= count)
      return invalid("node ", quoted(node.id), " has input ", input.index, ", expected one below ", count);
    if (is_node && input.result > 0 && parts.nodes[input.index].is_optional)
      return invalid("node ", quoted(node.id), " takes a further result of ",
                     quoted(parts.nodes[input.index].id), ", which is optional");
    if (is_node && input.result > 0 && parts.nodes[input.index].repeat.most != 1)
      return invalid("node ", quoted(node.id), " takes a further result of ",
                     quoted(parts.nodes[input.index].id), ", which is repeated");
  }
  if (node.is_optional && !node.inputs.empty() && node.passes >= node.inputs.size())
    return invalid("optional node ", quoted(node.id), " passes slot ", node.passes, ", but has ",
                   node.inputs.size(), " inputs");
  return {};
}

Result<void> check_repeat(const PatternNode& node) {
  const auto [least, most] = node.repeat;
  if (least == 1 && most == 1) return {};
  if (least < 1 || most < least)
    return invalid("node ", quoted(node.id), " is repeated ", least, " to ", most,
                   " times, expected at least once");
  if (node.lists_inputs || node.inputs.size() > 1 ||
      (node.inputs.size() == 1 && node.inputs[0].kind != PatternInput::Kind::node))
    return invalid("repeated node ", quoted(node.id), " can only have one input, a node of the pattern");
  for (const AttributeCondition& condition : node.attributes)
    if (!condition.value.capture.empty())
      return invalid("repeated node ", quoted(node.id), " cannot capture attributes");
  return {};
}

Result<void> check_node(const PatternParts& parts, const PatternNode& node) {
  if (node.id.empty()) return invalid("a node has no id");
  if (node.op.names.empty() && node.op.traits.empty())
    return invalid("node ", quoted(node.id), " has no op and no trait");
  TESSERA_TRY(check_inputs(parts, node));
  return check_repeat(node);
}

Result<void> check_cost(const PatternCost& cost) {
  for (double part : {cost.base, cost.per_node})
    if (!std::isfinite(part) || part < 0)
      return invalid("cost ", part, " is not a finite number of at least 0");
  return {};
}

}  // namespace

std::vector<PatternOutput> tessera::pattern::sinks_of(const std::vector<PatternNode>& nodes) {
  std::vector<bool> is_read(nodes.size(), false);
  for (const PatternNode& node : nodes)
    for (const PatternInput& input : node.inputs)
      if (input.kind == PatternInput::Kind::node && input.index < nodes.size()) is_read[input.index] = true;
  std::vector<PatternOutput> out;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (!is_read[i]) out.push_back({.node = i});
  return out;
}

Result<void> Pattern::check() const {
  if (parts_.nodes.empty()) return invalid("the pattern is empty");
  std::unordered_set<std::string_view> ids;
  for (const PatternNode& node : parts_.nodes) {
    TESSERA_TRY(check_node(parts_, node));
    if (!ids.insert(node.id).second) return invalid("node id ", quoted(node.id), " is used twice");
  }
  for (const PatternOutput& output : parts_.outputs)
    if (output.node >= parts_.nodes.size())
      return invalid("output ", output.node, " is no node, expected one below ", parts_.nodes.size());
  return check_cost(parts_.cost);
}

Result<void> Pattern::expand() {
  variants_ = TESSERA_TRY(expand_variants(parts_));
  return {};
}

Result<Pattern> Pattern::create(PatternParts parts) {
  if (parts.kernel.empty()) parts.kernel = parts.name;
  Pattern pattern(std::move(parts));
  TESSERA_TRY(pattern.check());
  TESSERA_TRY(pattern.expand());
  return pattern;
}

#include "tessera/pattern/pattern_json.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/pattern/json_values.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

Result<double> read_cost(const JsonCursor& json) {
  const double cost = TESSERA_TRY(json.number());
  if (cost < 0) return json.error(cat("cost ", cost, " is negative"));
  return cost;
}

Result<PatternCost> read_pattern_cost(const JsonCursor& json) {
  if (!json.is(Json::Kind::object)) return PatternCost{.base = TESSERA_TRY(read_cost(json))};
  TESSERA_TRY(json.only_fields({"base", "per_node"}));
  PatternCost cost;
  if (const auto base = TESSERA_TRY(json.optional_field("base"))) cost.base = TESSERA_TRY(read_cost(*base));
  if (const auto per_node = TESSERA_TRY(json.optional_field("per_node")))
    cost.per_node = TESSERA_TRY(read_cost(*per_node));
  return cost;
}

/// {"in": [...], "not": …, "min": …, "max": …, "capture": "name"}
Result<ValueCondition> read_value_condition(const JsonCursor& json) {
  ValueCondition condition;
  if (const auto values = TESSERA_TRY(json.optional_field("in"))) {
    for (const JsonCursor item : TESSERA_TRY(values->array()))
      condition.one_of.push_back(TESSERA_TRY(read_attribute(item)));
    if (condition.one_of.empty()) return values->error("expected at least one value");
  }
  if (const auto value = TESSERA_TRY(json.optional_field("not")))
    condition.none_of.push_back(TESSERA_TRY(read_attribute(*value)));
  if (const auto value = TESSERA_TRY(json.optional_field("min")))
    condition.at_least = TESSERA_TRY(value->number());
  if (const auto value = TESSERA_TRY(json.optional_field("max")))
    condition.at_most = TESSERA_TRY(value->number());
  if (const auto name = TESSERA_TRY(json.optional_field("capture"))) {
    condition.capture = TESSERA_TRY(name->string());
    if (condition.capture.empty()) return name->error("expected a name, got an empty string");
  }
  return condition;
}

Result<AttributeCondition> read_attribute_condition(const std::string& name, const JsonCursor& json) {
  AttributeCondition out{.name = name};
  if (!json.is(Json::Kind::object)) {
    out.value = ValueCondition::equal_to(TESSERA_TRY(read_attribute(json)));
    return out;
  }
  TESSERA_TRY(json.only_fields({"in", "not", "min", "max", "capture", "optional", "absent"}));
  out.value = TESSERA_TRY(read_value_condition(json));
  const auto flag = [&](std::string_view key) -> Result<bool> {
    const auto field = TESSERA_TRY(json.optional_field(key));
    return field ? TESSERA_TRY(field->boolean()) : false;
  };
  if (TESSERA_TRY(flag("optional"))) out.presence = AttributeCondition::Presence::optional;
  if (TESSERA_TRY(flag("absent"))) out.presence = AttributeCondition::Presence::absent;
  return out;
}

Result<std::vector<ir::Dtype>> read_dtypes(const JsonCursor& json) {
  if (json.is(Json::Kind::string)) return std::vector{TESSERA_TRY(read_dtype(json))};
  std::vector<ir::Dtype> out;
  for (const JsonCursor item : TESSERA_TRY(json.array())) out.push_back(TESSERA_TRY(read_dtype(item)));
  return out;
}

Result<Repeat> read_repeat(const JsonCursor& json) {
  if (json.is(Json::Kind::boolean)) return json.value().boolean() ? Repeat{1, none} : Repeat{};
  TESSERA_TRY(json.only_fields({"min", "max"}));
  Repeat repeat{1, none};
  const auto bound = [&](std::string_view key, std::uint32_t& out) -> Result<void> {
    const auto field = TESSERA_TRY(json.optional_field(key));
    if (!field) return {};
    const std::int64_t value = TESSERA_TRY(field->integer());
    if (value < 0 || value >= none) return field->error(cat("expected a number of times, got ", value));
    out = static_cast<std::uint32_t>(value);
    return {};
  };
  TESSERA_TRY(bound("min", repeat.least));
  TESSERA_TRY(bound("max", repeat.most));
  if (repeat.least > repeat.most)
    return json.error(cat("min ", repeat.least, " is larger than max ", repeat.most));
  return repeat;
}

class PatternReader {
 public:
  PatternReader(const JsonCursor& json, const ir::OpFacts& facts) : json_(json), facts_(facts) {}

  Result<Pattern> read() {
    TESSERA_TRY(
        json_.only_fields({"name", "kernel", "nodes", "outputs", "cost", "externals", "comment", "meta"}));
    const JsonCursor name = TESSERA_TRY(json_.field("name"));
    parts_.name = TESSERA_TRY(name.string());
    if (parts_.name.empty()) return name.error("expected a name, got an empty string");
    if (const auto kernel = TESSERA_TRY(json_.optional_field("kernel")))
      parts_.kernel = TESSERA_TRY(kernel->string());
    const JsonCursor list = TESSERA_TRY(json_.field("nodes"));
    const JsonItems nodes = TESSERA_TRY(list.array());
    if (nodes.empty()) return list.error(cat("pattern ", quote(shortened(parts_.name, 60)), " is empty"));
    TESSERA_TRY(read_ids(nodes));
    for (const JsonCursor node : nodes) TESSERA_TRY(read_node(node));
    TESSERA_TRY(read_outputs());
    if (const auto cost = TESSERA_TRY(json_.optional_field("cost")))
      parts_.cost = TESSERA_TRY(read_pattern_cost(*cost));
    TESSERA_TRY(read_externals());
    auto pattern = Pattern::create(std::move(parts_));
    if (!pattern) return json_.error(pattern.error().message());
    return pattern;
  }

 private:
  Result<void> read_ids(const JsonItems& nodes) {
    for (const JsonCursor node : nodes) {
      const JsonCursor id = TESSERA_TRY(node.field("id"));
      parts_.nodes.push_back({.id = TESSERA_TRY(id.string())});
      const std::string& name = parts_.nodes.back().id;
      if (name.empty()) return id.error("expected an id, got an empty string");
      if (!names_.add(name)) return id.error(cat("node id ", quote(shortened(name, 60)), " is used twice"));
    }
    if (const std::string* id = names_.ambiguous())
      return json_.error(
          cat("node id ", quote(shortened(*id, 60)), " also reads as a result of another node"));
    return {};
  }

  Result<void> read_node(const JsonCursor& json) {
    TESSERA_TRY(json.only_fields({"id", "op", "trait", "inputs", "attrs", "dtype", "optional", "passes",
                                  "repeat", "name", "comment", "meta"}));
    PatternNode& node = parts_.nodes[next_++];
    TESSERA_TRY(read_op(json, node));
    if (const auto inputs = TESSERA_TRY(json.optional_field("inputs")))
      TESSERA_TRY(read_inputs(*inputs, node));
    if (const auto attrs = TESSERA_TRY(json.optional_field("attrs"))) {
      node.lists_attributes = true;
      for (const auto& [name, value] : TESSERA_TRY(attrs->members()))
        node.attributes.push_back(TESSERA_TRY(read_attribute_condition(name, value)));
    }
    if (const auto dtype = TESSERA_TRY(json.optional_field("dtype")))
      node.dtypes = TESSERA_TRY(read_dtypes(*dtype));
    return read_presence(json, node);
  }

  Result<void> read_op(const JsonCursor& json, PatternNode& node) {
    const auto op = TESSERA_TRY(json.optional_field("op"));
    const auto trait = TESSERA_TRY(json.optional_field("trait"));
    if (op && trait) return trait->error("expected an op or a trait, got both");
    if (!op && !trait) return json.error("missing field \"op\"");
    const JsonCursor& given = op ? *op : *trait;
    for (const std::string& name : TESSERA_TRY(read_names(given))) {
      if (name.empty()) return given.error("expected a name, got an empty string");
      if (op)
        node.op.names.emplace_back(facts_.find(name).canonical);
      else
        node.op.traits.push_back(name);
      if (op) continue;
      if (const auto message = find_unknown_trait(facts_, name)) return given.error(*message);
    }
    if (node.op.names.empty() && node.op.traits.empty()) return given.error("expected at least one name");
    std::ranges::sort(node.op.names);
    return {};
  }

  Result<void> read_presence(const JsonCursor& json, PatternNode& node) {
    if (const auto optional = TESSERA_TRY(json.optional_field("optional")))
      node.is_optional = TESSERA_TRY(optional->boolean());
    const auto is_node = [](const PatternInput& input) { return input.kind == PatternInput::Kind::node; };
    const auto first = std::ranges::find_if(node.inputs, is_node);
    if (first != node.inputs.end()) node.passes = static_cast<std::uint32_t>(first - node.inputs.begin());
    if (const auto passes = TESSERA_TRY(json.optional_field("passes"))) {
      const std::int64_t slot = TESSERA_TRY(passes->integer());
      if (slot < 0 || static_cast<std::size_t>(slot) >= node.inputs.size())
        return passes->error(cat("slot ", slot, " is none of the ", node.inputs.size(), " inputs"));
      node.passes = static_cast<std::uint32_t>(slot);
    }
    if (const auto repeat = TESSERA_TRY(json.optional_field("repeat"))) {
      node.repeat = TESSERA_TRY(read_repeat(*repeat));
      if (node.repeat.least == 0) {  // a chain of any number is an optional chain of at least one
        node.is_optional = true;
        node.repeat.least = 1;
      }
      if (node.repeat.most != 1) node.lists_inputs = false;
    }
    return {};
  }

  Result<void> read_inputs(const JsonCursor& json, PatternNode& node) {
    node.lists_inputs = true;
    for (const JsonCursor item : TESSERA_TRY(json.array()))
      node.inputs.push_back(TESSERA_TRY(read_input(item)));
    return {};
  }

  Result<PatternInput> read_input(const JsonCursor& json) {
    if (json.is(Json::Kind::null)) return PatternInput{};
    if (json.is(Json::Kind::number) || json.is(Json::Kind::boolean)) {
      const AttributeValue value = TESSERA_TRY(read_attribute(json));
      return add_external({.is_constant = true, .value = ValueCondition::equal_to(value)});
    }
    if (json.is(Json::Kind::object)) return read_constant(json);
    const std::string name = TESSERA_TRY(json.string());
    if (name.empty()) return json.error("expected a name, got an empty string");
    if (names_.is_bad_result(name))
      return json.error(cat(quote(shortened(name, 60)), " is no result, expected a number from 0 to 9999"));
    if (const auto found = names_.find(name))
      return PatternInput{PatternInput::Kind::node, found->node, found->result};
    return named_external(name);
  }

  /// {"constant": true} or {"constant": {"min": 0, "capture": "eps"}}, with a "name" if it has one.
  Result<PatternInput> read_constant(const JsonCursor& json) {
    TESSERA_TRY(json.only_fields({"constant", "name"}));
    const JsonCursor condition = TESSERA_TRY(json.field("constant"));
    const auto name = TESSERA_TRY(json.optional_field("name"));
    PatternInput input;
    if (name) {
      const std::string text = TESSERA_TRY(name->string());
      if (text.empty() || names_.find(text)) return name->error("expected the name of an external input");
      input = named_external(text);
    } else {
      input = add_external({});
    }
    PatternExternal& external = parts_.externals[input.index];
    external.is_constant = true;
    if (condition.is(Json::Kind::object)) {
      TESSERA_TRY(condition.only_fields({"in", "not", "min", "max", "capture"}));
      external.value = TESSERA_TRY(read_value_condition(condition));
    } else if (!condition.is(Json::Kind::boolean) || !condition.value().boolean()) {
      return condition.error("expected true or an object with conditions");
    }
    return input;
  }

  PatternInput named_external(const std::string& name) {
    const auto [at, is_new] =
        externals_.try_emplace(name, static_cast<std::uint32_t>(parts_.externals.size()));
    if (is_new) add_external({.name = name});
    return {PatternInput::Kind::external, at->second, 0};
  }
  PatternInput add_external(PatternExternal external) {
    parts_.externals.push_back(std::move(external));
    return {PatternInput::Kind::external, static_cast<std::uint32_t>(parts_.externals.size() - 1), 0};
  }

  Result<void> read_outputs() {
    const auto outputs = TESSERA_TRY(json_.optional_field("outputs"));
    if (!outputs) {
      parts_.outputs = sinks_of(parts_.nodes);
      return {};
    }
    for (const JsonCursor item : TESSERA_TRY(outputs->array())) {
      const std::string name = TESSERA_TRY(item.string());
      const auto found = names_.find(name);
      if (!found) return item.error(cat(quote(shortened(name, 60)), " is no node id of the pattern"));
      parts_.outputs.push_back({found->node, found->result, found->is_whole_node});
    }
    return {};
  }

  Result<void> read_externals() {
    const auto externals = TESSERA_TRY(json_.optional_field("externals"));
    if (!externals) return {};
    for (const auto& [name, json] : TESSERA_TRY(externals->members())) {
      const auto at = externals_.find(name);
      if (at == externals_.end())
        return json.error(cat(quote(shortened(name, 60)), " is no external input of the pattern"));
      TESSERA_TRY(json.only_fields({"dtype"}));
      if (const auto dtype = TESSERA_TRY(json.optional_field("dtype")))
        parts_.externals[at->second].dtypes = TESSERA_TRY(read_dtypes(*dtype));
    }
    return {};
  }

  JsonCursor json_;
  const ir::OpFacts& facts_;
  NodeNames names_;
  std::unordered_map<std::string, std::uint32_t> externals_;
  std::size_t next_ = 0;
  PatternParts parts_;
};

}  // namespace

Result<std::vector<Pattern>> tessera::pattern::read_patterns(const JsonDocument& document,
                                                             const ir::OpFactsRef& facts) {
  const JsonCursor root = document.cursor();
  TESSERA_TRY(root.only_fields({"patterns", "name", "comment", "meta"}));
  const JsonCursor list = TESSERA_TRY(root.field("patterns"));
  std::vector<Pattern> out;
  std::unordered_set<std::string> names;
  for (const JsonCursor item : TESSERA_TRY(list.array())) {
    out.push_back(TESSERA_TRY(PatternReader(item, *facts).read()));
    if (!names.insert(out.back().name()).second)
      return TESSERA_TRY(item.field("name"))
          .error(cat("pattern name ", quote(shortened(out.back().name(), 60)), " is used twice"));
  }
  return out;
}

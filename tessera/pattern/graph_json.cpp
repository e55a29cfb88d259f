#include "tessera/pattern/graph_json.h"

#include "tessera/pattern/graph_draft.h"
#include "tessera/pattern/json_values.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

class GraphReader {
 public:
  explicit GraphReader(const JsonCursor& root) : root_(root) {}

  Result<GraphDraft> read() {
    TESSERA_TRY(root_.only_fields(
        {"nodes", "outputs", "commutative", "traits", "externals", "name", "comment", "meta"}));
    const JsonCursor list = TESSERA_TRY(root_.field("nodes"));
    const JsonItems nodes = TESSERA_TRY(list.array());
    TESSERA_TRY(read_ids(nodes));
    auto draft = draft_.nodes.begin();
    for (const JsonCursor node : nodes) TESSERA_TRY(read_node(node, *draft++));
    if (const auto outputs = TESSERA_TRY(root_.optional_field("outputs")))
      TESSERA_TRY(read_outputs(*outputs));
    if (const auto externals = TESSERA_TRY(root_.optional_field("externals")))
      TESSERA_TRY(read_externals(*externals));
    return std::move(draft_);
  }

 private:
  Result<void> read_ids(const JsonItems& nodes) {
    for (const JsonCursor node : nodes) {
      const JsonCursor id = TESSERA_TRY(node.field("id"));
      const std::string name = TESSERA_TRY(id.string());
      if (name.empty()) return id.error("expected an id, got an empty string");
      if (!names_.add(name)) return id.error(cat("node id ", quote(shortened(name, 60)), " is used twice"));
      draft_.nodes.push_back({.id = name, .offset = id.value().offset()});
    }
    if (const std::string* id = names_.ambiguous())
      return root_.error(
          cat("node id ", quote(shortened(*id, 60)), " also reads as a result of another node"));
    return {};
  }

  Result<void> read_node(const JsonCursor& json, DraftNode& node) {
    TESSERA_TRY(json.only_fields({"id", "op", "inputs", "attrs", "dtype", "shape", "results", "overwrites",
                                  "after", "name", "comment", "meta"}));
    const JsonCursor op = TESSERA_TRY(json.field("op"));
    node.spelling = TESSERA_TRY(op.string());
    if (node.spelling.empty()) return op.error("expected an op, got an empty string");
    if (const auto inputs = TESSERA_TRY(json.optional_field("inputs")))
      node.inputs = TESSERA_TRY(read_values(*inputs));
    if (const auto attrs = TESSERA_TRY(json.optional_field("attrs")))
      TESSERA_TRY(read_attributes(*attrs, node));
    if (const auto values = TESSERA_TRY(json.optional_field("overwrites")))
      node.overwrites = TESSERA_TRY(read_values(*values));
    if (const auto after = TESSERA_TRY(json.optional_field("after"))) TESSERA_TRY(read_after(*after, node));
    return read_results(json, node);
  }

  Result<std::vector<DraftValue>> read_values(const JsonCursor& json) {
    std::vector<DraftValue> out;
    for (const JsonCursor item : TESSERA_TRY(json.array())) out.push_back(TESSERA_TRY(read_value(item)));
    return out;
  }

  Result<DraftValue> read_value(const JsonCursor& json) {
    const std::size_t offset = json.value().offset();
    if (json.is(Json::Kind::number) || json.is(Json::Kind::boolean)) {
      auto constant = TESSERA_TRY(read_attribute(json));
      return DraftValue{
          .kind = DraftValue::Kind::constant, .constant = std::move(constant), .offset = offset};
    }
    const std::string name = TESSERA_TRY(json.string());
    if (name.empty()) return json.error("expected a name, got an empty string");
    if (names_.is_bad_result(name))
      return json.error(cat(quote(shortened(name, 60)), " is no result, expected a number from 0 to 9999"));
    if (const auto found = names_.find(name))
      return DraftValue{
          .kind = DraftValue::Kind::result, .node = found->node, .result = found->result, .offset = offset};
    return DraftValue{.kind = DraftValue::Kind::external, .name = name, .offset = offset};
  }

  Result<void> read_attributes(const JsonCursor& json, DraftNode& node) {
    for (const auto& [name, value] : TESSERA_TRY(json.members()))
      if (!value.is(Json::Kind::null)) node.attributes.set(name, TESSERA_TRY(read_attribute(value)));
    return {};
  }

  Result<void> read_after(const JsonCursor& json, DraftNode& node) {
    for (const JsonCursor item : TESSERA_TRY(json.array())) {
      const auto found = names_.find(TESSERA_TRY(item.string()));
      if (!found) return item.error(cat(quote(shortened(item.value().text(), 60)), " is no node id"));
      node.after.push_back(found->node);
    }
    return {};
  }

  /// The types of the results: `results` lists them, `dtype` and `shape` are those of a single one.
  Result<void> read_results(const JsonCursor& json, DraftNode& node) {
    const auto results = TESSERA_TRY(json.optional_field("results"));
    if (!results) {
      node.results.push_back(TESSERA_TRY(types_.read(json)));
      return {};
    }
    node.lists_results = true;
    for (const JsonCursor item : TESSERA_TRY(results->array())) {
      TESSERA_TRY(item.only_fields({"dtype", "shape"}));
      node.results.push_back(TESSERA_TRY(types_.read(item)));
    }
    return {};
  }

  Result<void> read_outputs(const JsonCursor& json) {
    draft_.outputs.emplace();
    for (const JsonCursor item : TESSERA_TRY(json.array())) {
      DraftValue value = TESSERA_TRY(read_value(item));
      if (value.kind != DraftValue::Kind::result)
        return item.error(cat(quote(shortened(item.value().text(), 60)), " is no node id"));
      draft_.outputs->push_back(std::move(value));
    }
    return {};
  }

  Result<void> read_externals(const JsonCursor& json) {
    for (const auto& [name, type] : TESSERA_TRY(json.members())) {
      TESSERA_TRY(type.only_fields({"dtype", "shape"}));
      if (names_.find(name))
        return type.error(cat(quote(shortened(name, 60)), " is a node id, not an external"));
      draft_.externals.emplace_back(name, TESSERA_TRY(types_.read(type)));
    }
    return {};
  }

  JsonCursor root_;
  NodeNames names_;
  TypeReader types_;
  GraphDraft draft_;
};

/// The traits with what the file says of its ops.
Result<ir::OpFactsRef> read_traits(const JsonCursor& root, ir::OpFactsRef base) {
  const ir::OpFacts& known = *base;
  auto traits = std::make_shared<ListedTraits>(std::move(base));
  if (const auto lists = TESSERA_TRY(root.optional_field("traits")))
    for (const auto& [trait, ops] : TESSERA_TRY(lists->members()))
      for (const std::string& op : TESSERA_TRY(read_names(ops))) traits->add(trait, known.find(op).canonical);
  const auto commutative = TESSERA_TRY(root.optional_field("commutative"));
  if (commutative) {
    traits->hide_base(trait::commutative);
    for (const JsonCursor op : TESSERA_TRY(commutative->array()))
      traits->add(trait::commutative, known.find(TESSERA_TRY(op.string())).canonical);
  }
  return ir::OpFactsRef(std::move(traits));
}

}  // namespace

Result<Graph> tessera::pattern::read_graph(const JsonDocument& document, ir::OpFactsRef facts) {
  GraphDraft draft = TESSERA_TRY(GraphReader(document.cursor()).read());
  ir::OpFactsRef own = TESSERA_TRY(read_traits(document.cursor(), std::move(facts)));
  return build_graph(std::move(draft), std::move(own), document.source());
}

#include "tessera/pattern/graph_draft.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/pattern/graph_builder.h"
#include "tessera/pattern/in_place.h"
#include "tessera/pattern/text_form.h"

using namespace tessera;
using namespace tessera::pattern;

namespace {

/// A name of eight characters stands for up to 10,000 results; a file that names more than this is no
/// program.
constexpr std::size_t further_result_limit = 1U << 20;

class DraftBuilder {
 public:
  DraftBuilder(GraphDraft draft, ir::OpFactsRef facts, const SourceText& source)
      : source_(source), draft_(std::move(draft)), builder_(std::move(facts)) {}

  Result<Graph> run() {
    TESSERA_TRY(add_nodes());
    for (const auto& [name, type] : draft_.externals) builder_.set_type(builder_.input(name), resolve(type));
    for (NodeId node = 0; node < draft_.nodes.size(); ++node) connect(node);
    set_outputs();
    resolve_overwrites();
    builder_.set_places([&](NodeId node) { return source_.span_at(draft_.nodes[node].offset); });
    return std::move(builder_).build();
  }

 private:
  Result<void> add_nodes() {
    for (DraftNode& node : draft_.nodes)
      if (node.results.empty()) node.results.resize(1);
    for (const DraftNode& node : draft_.nodes) {
      for (const DraftValue& value : node.inputs) TESSERA_TRY(need(value));
      if (!node.overwrites) continue;
      for (const DraftValue& value : *node.overwrites) TESSERA_TRY(need(value));
    }
    if (draft_.outputs)
      for (const DraftValue& value : *draft_.outputs) TESSERA_TRY(need(value));
    for (DraftNode& node : draft_.nodes) add_node(node);
    return {};
  }

  /// The value's node has the result that is meant: it is given it, unless it lists those it has.
  Result<void> need(const DraftValue& value) {
    if (value.kind != DraftValue::Kind::result) return {};
    DraftNode& node = draft_.nodes[value.node];
    if (value.result < node.results.size()) return {};
    if (node.lists_results)
      return Error(ErrorCode::invalid_argument,
                   cat("node ", quote(shortened(node.id, 60)), " lists ", node.results.size(),
                       " results, but result ", value.result, " is used"),
                   source_.span_at(value.offset));
    further_results_ += value.result + 1 - node.results.size();
    if (further_results_ > further_result_limit)
      return Error(
          ErrorCode::limit,
          cat("the nodes have more than ", further_result_limit, " results besides their first ones"),
          source_.span_at(value.offset));
    node.results.resize(value.result + std::size_t{1});
    return {};
  }

  void add_node(DraftNode& node) {
    NodeParts parts{.id = std::move(node.id), .op = std::string(meaning_of(node).canonical)};
    parts.attributes = std::move(node.attributes);
    parts.results.clear();
    for (const DraftType& type : node.results) parts.results.push_back(resolve(type));
    builder_.add_node(std::move(parts));
  }

  [[nodiscard]] ir::OpSpelling meaning_of(const DraftNode& node) const {
    return builder_.facts().find(node.spelling);
  }

  ValueType resolve(const DraftType& type) {
    return {type.dtype, type.shape ? builder_.shape(*type.shape) : none};
  }
  ValueId resolve(const DraftValue& value) {
    switch (value.kind) {
      case DraftValue::Kind::result:
        return builder_.result(value.node, value.result);
      case DraftValue::Kind::external:
        return builder_.input(value.name);
      case DraftValue::Kind::constant:
        return builder_.constant(value.constant);
    }
    return none;
  }

  void connect(NodeId node) {
    std::vector<ValueId> inputs;
    for (const DraftValue& value : draft_.nodes[node].inputs) inputs.push_back(resolve(value));
    builder_.set_inputs(node, std::move(inputs));
    for (std::uint32_t earlier : draft_.nodes[node].after) builder_.add_order(earlier, node);
  }

  void set_outputs() {
    if (!draft_.outputs) return builder_.set_sinks_as_outputs();
    for (const DraftValue& value : *draft_.outputs) builder_.set_output(resolve(value));
  }

  void resolve_overwrites() {
    const auto overwrites = [&](const DraftNode& node) {
      return meaning_of(node).in_place || node.overwrites.has_value();
    };
    if (std::ranges::none_of(draft_.nodes, overwrites)) return;
    std::vector<StorageUse> uses;
    for (NodeId node = 0; node < draft_.nodes.size(); ++node) uses.push_back(storage_use(node));
    const Overwrites found = find_overwrites(uses, builder_.output_flags());
    for (NodeId node = 0; node < draft_.nodes.size(); ++node)
      if (found.is_hazard[node]) builder_.set_op(node, draft_.nodes[node].spelling);
    for (const auto& [earlier, later] : found.orders) builder_.add_order(earlier, later);
  }

  StorageUse storage_use(NodeId node) {
    const DraftNode& draft = draft_.nodes[node];
    StorageUse use;
    for (const DraftValue& value : draft.inputs) use.inputs.push_back(resolve(value));
    for (std::uint32_t k = 0; k < draft.results.size(); ++k) use.results.push_back(builder_.result(node, k));
    use.is_view = builder_.facts().has(meaning_of(draft).canonical, trait::view);
    if (draft.overwrites)
      for (const DraftValue& value : *draft.overwrites) use.overwritten.push_back(resolve(value));
    else if (meaning_of(draft).in_place && !use.inputs.empty())
      use.overwritten.push_back(use.inputs[0]);
    return use;
  }

  const SourceText& source_;
  GraphDraft draft_;
  GraphBuilder builder_;
  std::size_t further_results_ = 0;  ///< beyond those that are listed, and the first of each node
};

}  // namespace

Result<Graph> tessera::pattern::build_graph(GraphDraft draft, ir::OpFactsRef facts,
                                            const SourceText& source) {
  return DraftBuilder(std::move(draft), std::move(facts), source).run();
}

bool NodeNames::add(const std::string& id) {
  if (!index_.try_emplace(id, static_cast<std::uint32_t>(ids_.size())).second) return false;
  ids_.push_back(id);
  return true;
}

const std::string* NodeNames::ambiguous() const {
  for (const std::string& id : ids_) {
    const std::size_t colon = id.rfind(':');
    if (colon != std::string::npos && parse_result_index(std::string_view(id).substr(colon + 1)) &&
        index_.contains(id.substr(0, colon)))
      return &id;
  }
  return nullptr;
}

bool NodeNames::is_bad_result(const std::string& name) const {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos || !index_.contains(name.substr(0, colon)) || index_.contains(name))
    return false;
  const std::string_view number = std::string_view(name).substr(colon + 1);
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number && !parse_result_index(number);
}

std::optional<NodeNames::Found> NodeNames::find(const std::string& name) const {
  if (const auto at = index_.find(name); at != index_.end()) return Found{at->second, 0, true};
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto result = parse_result_index(std::string_view(name).substr(colon + 1));
  const auto at = index_.find(name.substr(0, colon));
  if (!result || at == index_.end()) return std::nullopt;
  return Found{at->second, *result, false};
}

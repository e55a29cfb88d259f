#include "tessera/ir/to_json.h"

#include "tessera/ir/literal.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/visit.h"
#include "tessera/ir/walk.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

class GraphWriter {
 public:
  explicit GraphWriter(JsonWriter& json) : json_(json) {}

  void write(const Node& root) {
    const std::vector<const Node*> order = post_order(root);
    for (std::size_t i = 0; i < order.size(); ++i) index_[*order[i]] = i;
    json_.begin_object().member("root", index_[root]).key("nodes").begin_array();
    for (const Node* node : order) {
      json_.begin_object().member("kind", to_string(node->kind()));
      visit_node(*node, [&](const auto& concrete) {
        for_each_field(concrete, [&](const auto& field, const auto& member) {
          json_.key(field.name);
          value(member);
        });
      });
      json_.end_object();
    }
    json_.end_array().end_object();
  }

 private:
  template <class T>
  void value(const Ref<T>& node) {
    if (node == nullptr)
      json_.null();
    else
      json_.value(index_[*node]);
  }
  void value(const Dim& dim) {
    if (dim.is_constant())
      json_.value(dim.value());
    else
      json_.begin_object().member("node", index_[*dim.expr()]).end_object();
  }
  void value(const std::string& text) { json_.value(text); }
  void value(Dtype dtype) { json_.value(to_string(dtype)); }
  void value(ScalarOpcode opcode) { json_.value(to_string(opcode)); }
  void value(double number) { json_.value(number); }
  void value(bool flag) { json_.value(flag); }
  template <std::integral T>
  void value(T number) {
    json_.value(number);
  }
  void value(const Bytes& bytes) {
    std::string hex;
    append_hex(hex, bytes.span());
    json_.value(hex.substr(2, hex.size() - 3));
  }
  void value(const Range& range) {
    json_.begin_object();
    for_each_field(range, [&](const auto& field, const auto& member) {
      json_.key(field.name);
      value(member);
    });
    json_.end_object();
  }
  void value(const Attributes& attrs) {
    json_.begin_object();
    for (const auto& [name, held] : attrs.entries()) {
      json_.key(name);
      std::visit([&](const auto& v) { value(v); }, held);
    }
    json_.end_object();
  }
  template <class T>
  void value(const std::optional<T>& optional) {
    if (optional)
      value(*optional);
    else
      json_.null();
  }
  template <class List>
  requires requires(const List& list) { list.begin(); }
  void value(const List& list) {
    json_.begin_array();
    for (const auto& item : list) value(item);
    json_.end_array();
  }

  JsonWriter& json_;
  NodeTable<std::size_t> index_;
};

}  // namespace

JsonWriter& tessera::ir::write_graph_json(JsonWriter& json, const Node& root) {
  GraphWriter(json).write(root);
  return json;
}

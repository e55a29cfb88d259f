// Graphs: merging, nodes, order, pictures.
#include <cstdio>
#include <cstring>

#include "tessera/base/hash.h"
#include "tessera/capi/arguments.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

NodeId id_from(tsr_node_id id) { return {id.high, id.low}; }
tsr_node_id id_to(NodeId id) { return {id.high, id.low}; }

tsr_op_type op_type_of(const engine::Node& node) {
  static constexpr std::pair<std::string_view, tsr_op_type> types[] = {
      {"add", TSR_OP_ADD},         {"sub", TSR_OP_SUB},
      {"matmul", TSR_OP_GEMM},     {"transpose", TSR_OP_TRANSPOSE},
      {"reshape", TSR_OP_RESHAPE}, {"sum", TSR_OP_REDUCE_SUM}};
  if (node.card == nullptr) return node.is(engine::Node::is_result) ? TSR_OP_OTHER : TSR_OP_LEAF;
  for (const auto& [name, type] : types)
    if (node.card->name == name) return type;
  return TSR_OP_OTHER;
}

/// Texts that are too long lose their end.
template <std::size_t n>
void copy_text(char (&out)[n], std::string_view text) {
  const std::size_t length = std::min(text.size(), n - 1);
  std::copy_n(text.data(), length, out);
  out[length] = '\0';
}

tsr_node node_from(const Tensor& tensor) {
  const engine::Node& node = *tensor.node();
  tsr_node out{};
  out.id = id_to(node_id(tensor));
  out.op_type = op_type_of(node);
  copy_text(out.op_name, out.op_type == TSR_OP_LEAF ? "leaf"
                         : node.card != nullptr     ? node.card->name
                                                    : "result");
  out.dtype = dtype_to(node.dtype);
  out.ndim = node.rank;
  out.is_materialized = tensor.is_evaluated() ? 1 : 0;
  const op::Extents shape(node.shape().begin(), node.shape().end());
  std::copy(shape.begin(), shape.end(), out.shape);
  if (out.is_materialized != 0) {
    const Shape strides = tensor.strides(here());
    std::copy(strides.begin(), strides.end(), out.strides);
  } else {
    const op::Layout layout = op::contiguous(shape);
    std::copy(layout.strides.begin(), layout.strides.end(), out.strides);
  }
  copy_text(out.device, tensor.engine()->device().name());
  out.input_count = static_cast<int>(node.input_count);
  return out;
}

}  // namespace

int tsr_graph_merge(tsr_graph graph1, tsr_graph graph2) noexcept {
  return guard("tsr_graph_merge", [&] {
    Graph first = graph_of(graph1, "graph1");
    const Graph second = graph_of(graph2, "graph2");
    if (first.engine() != second.engine()) fail(TSR_ERROR_MERGE, "graphs of two engines cannot be merged");
    first.merge(second);
  });
}

int tsr_graph_free(tsr_graph graph) noexcept {
  return guard("tsr_graph_free", [&] { free_handle(graph); });
}

int tsr_graph_get_node(tsr_graph graph, tsr_node_id id, tsr_node* out) noexcept {
  return guard("tsr_graph_get_node", [&] {
    require(out, "out");
    *out = node_from(graph_of(graph).tensor(id_from(id)));
  });
}

int tsr_graph_get_nodes(tsr_graph graph, tsr_node* out, int max, int* out_count) noexcept {
  return guard("tsr_graph_get_nodes", [&] {
    require(out_count, "out_count");
    require_array(out, max, "out");
    const auto tensors = graph_of(graph).tensors();
    for (std::size_t i = 0; i < tensors.size() && i < static_cast<std::size_t>(max); ++i)
      out[i] = node_from(tensors[i]);
    *out_count = static_cast<int>(tensors.size());
  });
}

int tsr_graph_get_inputs(tsr_graph graph, tsr_node_id id, tsr_node_id* out, int max,
                         int* out_count) noexcept {
  return guard("tsr_graph_get_inputs", [&] {
    require(out_count, "out_count");
    require_array(out, max, "out");
    std::vector<tsr_node_id> ids;
    for (const NodeId& input : graph_of(graph).inputs(id_from(id))) ids.push_back(id_to(input));
    copy_out<tsr_node_id>(ids, out, max, out_count);
  });
}

int tsr_graph_topological_sort(tsr_graph graph, tsr_node_id* out, int max, int* out_count) noexcept {
  return guard("tsr_graph_topological_sort", [&] {
    require(out_count, "out_count");
    require_array(out, max, "out");
    std::vector<tsr_node_id> ids;
    for (const NodeId& node : graph_of(graph).topological_order()) ids.push_back(id_to(node));
    copy_out<tsr_node_id>(ids, out, max, out_count);
  });
}

int tsr_graph_to_dot(tsr_graph graph, const char* filename) noexcept {
  return guard("tsr_graph_to_dot", [&] {
    require(filename, "filename");
    graph_of(graph).to_dot(filename);
  });
}

// ---- printing

namespace {

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    fail(TSR_ERROR_IO, "cannot write to the standard output");
}

}  // namespace

int tsr_graph_print(tsr_graph graph) noexcept {
  return guard("tsr_graph_print", [&] { print(graph_of(graph).to_text()); });
}

int tsr_node_print(const tsr_node* node) noexcept {
  return guard("tsr_node_print", [&] {
    require(node, "node");
    if (node->ndim < 0 || node->ndim > TSR_MAX_RANK)
      fail(TSR_ERROR_INVALID_OPERATION, "the node has ", node->ndim, " axes");
    const std::span shape(node->shape, static_cast<std::size_t>(node->ndim));
    print(cat(Hash128{node->id.high, node->id.low}.to_hex(), " = ",
              std::string_view(node->op_name, strnlen(node->op_name, TSR_NAME_SIZE)), ": ",
              dtype_from(node->dtype), "[", join(shape, ", "), "]",
              node->is_materialized != 0 ? ", evaluated" : "", "\n"));
  });
}

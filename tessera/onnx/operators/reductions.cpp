// Operators that make one number of many along axes.
#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

/// The axes of a reduction: an input in newer versions, an attribute in older ones.
struct Reduced {
  Value x;
  std::vector<std::int64_t> axes;
  bool keepdims = true;
  bool is_noop = false;
};

Result<Reduced> reduced(NodeCall& node) {
  Reduced out;
  out.x = node.in(0);
  out.axes = node.has(1) ? TESSERA_TRY(node.integers_in(1)) : node.integers("axes");
  out.keepdims = node.flag("keepdims", true);
  out.is_noop = out.axes.empty() && node.flag("noop_with_empty_axes", false);
  TESSERA_TRY(node.status());
  for (const std::int64_t axis : out.axes) TESSERA_TRY(node.axis(axis, out.x.rank()));
  return out;
}

Value apply(NodeCall& node, std::string_view op, const Reduced& of, Value x) {
  return node.b.call(op, {x}, {{"axes", of.axes}, {"keepdims", of.keepdims}});
}

template <const std::string_view& op>
Result<Items> map_reduce(NodeCall& node) {
  const Reduced of = TESSERA_TRY(reduced(node));
  if (of.is_noop) return Items{of.x};
  return Items{apply(node, op, of, of.x)};
}
constexpr std::string_view l1 = "l1_norm", l2 = "l2_norm", log_sum_exp = "logsumexp", largest = "max",
                           mean = "mean", smallest = "min", product = "prod", total = "sum";

Result<Items> map_reduce_log_sum(NodeCall& node) {
  const Reduced of = TESSERA_TRY(reduced(node));
  return Items{unary("log", of.is_noop ? of.x : apply(node, "sum", of, of.x))};
}

Result<Items> map_reduce_sum_square(NodeCall& node) {
  const Reduced of = TESSERA_TRY(reduced(node));
  const Value squares = unary("square", of.x);
  return Items{of.is_noop ? squares : apply(node, "sum", of, squares)};
}

template <const std::string_view& op>
Result<Items> map_arg(NodeCall& node) {
  return Items{node.b.call(op, {node.in(0)},
                           {{"axis", node.integer("axis", 0)},
                            {"keepdims", node.flag("keepdims", true)},
                            {"select_last", node.flag("select_last_index", false)}})};
}
constexpr std::string_view argmax_op = "argmax", argmin_op = "argmin";

Result<Items> map_cumsum(NodeCall& node) {
  const std::int64_t axis = TESSERA_TRY(node.integer_in(1));
  return Items{node.b.call("cumsum", {node.in(0)},
                           {{"axis", axis},
                            {"exclusive", node.flag("exclusive", false)},
                            {"reverse", node.flag("reverse", false)}})};
}

Result<Items> top_k(NodeCall& node, const Dim& k) {
  const Values out = node.b.call_all("topk", {node.in(0)},
                                     {{"k", Shape{k}},
                                      {"axis", node.integer("axis", -1)},
                                      {"largest", node.flag("largest", true)},
                                      {"sorted", node.flag("sorted", true)}});
  return Items(out.begin(), out.end());
}

Result<Items> map_old_topk(NodeCall& node) { return top_k(node, node.integer("k", -1)); }

Result<Items> map_topk(NodeCall& node) {
  const auto k = TESSERA_TRY(node.learned_sizes(node.in(1), "input 1"));
  if (k.size() != 1) return node.error("input 1 has ", k.size(), " elements, expected 1");
  return top_k(node, k[0]);
}

constexpr Mapping reduction_table[] = {
    {"ArgMax", map_arg<argmax_op>},
    {"ArgMin", map_arg<argmin_op>},
    {"CumSum", map_cumsum},
    {"ReduceL1", map_reduce<l1>},
    {"ReduceL2", map_reduce<l2>},
    {"ReduceLogSum", map_reduce_log_sum},
    {"ReduceLogSumExp", map_reduce<log_sum_exp>},
    {"ReduceMax", map_reduce<largest>},
    {"ReduceMean", map_reduce<mean>},
    {"ReduceMin", map_reduce<smallest>},
    {"ReduceProd", map_reduce<product>},
    {"ReduceSum", map_reduce<total>},
    {"ReduceSumSquare", map_reduce_sum_square},
    {"TopK", map_old_topk},
    {"TopK", map_topk, 10},
};

}  // namespace

std::span<const Mapping> tessera::onnx::reduction_mappings() { return reduction_table; }

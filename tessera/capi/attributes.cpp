// The attributes of a node by name and type.
#include <cstring>

#include "tessera/capi/arguments.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

/// A number that was given as an operand: its name is that of the input.
std::optional<ir::AttributeValue> operand_value(const engine::Node& node, std::string_view name) {
  std::size_t scalars = 0;
  for (std::size_t i = 0; i < node.input_count; ++i) {
    if (node.input(i) != nullptr) continue;
    const engine::ScalarBits bits = node.scalar_at(scalars++);
    if (i >= node.card->inputs.size() || node.card->inputs[i].name != name) continue;
    if (ir::is_float(engine::scalar_dtype_of(node, i))) return bits.as_float();
    return bits.as_integer();
  }
  return std::nullopt;
}

ir::AttributeValue attribute_of(tsr_graph graph, tsr_node_id id, const char* name) {
  require(name, "name");
  const Tensor tensor = graph_of(graph).tensor({id.high, id.low});
  const engine::Node& node = *tensor.node();
  if (node.card != nullptr) {
    if (const ir::AttributeValue* value = node.attributes().find(name)) return *value;
    if (auto value = operand_value(node, name)) return *std::move(value);
  }
  fail(TSR_ERROR_NOT_FOUND, "the node has no attribute '", printable(name), "'");
}

[[noreturn]] void fail_type(const char* name, const ir::AttributeValue& value, const char* wanted) {
  fail(TSR_ERROR_INVALID_OPERATION, "attribute '", name, "' is ", ir::describe_kind(value), ", not ", wanted);
}

template <class T>
T typed(tsr_graph graph, tsr_node_id id, const char* name, const char* wanted) {
  ir::AttributeValue value = attribute_of(graph, id, name);
  if (!std::holds_alternative<T>(value)) fail_type(name, value, wanted);
  return std::get<T>(std::move(value));
}

std::vector<std::int64_t> integers_of(const char* name, const ir::AttributeValue& value) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  if (const auto* shape = std::get_if<ir::Shape>(&value))
    if (const auto sizes = ir::constant_shape(*shape)) return {sizes->begin(), sizes->end()};
  fail_type(name, value, "a list of integers");
}

}  // namespace

int tsr_node_get_bool(tsr_graph graph, tsr_node_id id, const char* name, int* out) noexcept {
  return guard("tsr_node_get_bool", [&] {
    require(out, "out");
    *out = typed<bool>(graph, id, name, "a boolean") ? 1 : 0;
  });
}

int tsr_node_get_integer(tsr_graph graph, tsr_node_id id, const char* name, std::int64_t* out) noexcept {
  return guard("tsr_node_get_integer", [&] {
    require(out, "out");
    *out = typed<std::int64_t>(graph, id, name, "an integer");
  });
}

int tsr_node_get_real(tsr_graph graph, tsr_node_id id, const char* name, double* out) noexcept {
  return guard("tsr_node_get_real", [&] {
    require(out, "out");
    *out = typed<double>(graph, id, name, "a float");
  });
}

int tsr_node_get_dtype(tsr_graph graph, tsr_node_id id, const char* name, tsr_dtype* out) noexcept {
  return guard("tsr_node_get_dtype", [&] {
    require(out, "out");
    *out = dtype_to(typed<Dtype>(graph, id, name, "a dtype"));
  });
}

int tsr_node_get_text(tsr_graph graph, tsr_node_id id, const char* name, char* out, std::size_t size,
                      std::size_t* out_length) noexcept {
  return guard("tsr_node_get_text", [&] {
    require(out_length, "out_length");
    if (size > 0) require(out, "out");
    const std::string text = typed<std::string>(graph, id, name, "a text");
    *out_length = text.size();
    if (size == 0) return;
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
  });
}

int tsr_node_get_integers(tsr_graph graph, tsr_node_id id, const char* name, std::int64_t* out, int max,
                          int* out_count) noexcept {
  return guard("tsr_node_get_integers", [&] {
    require(out_count, "out_count");
    require_array(out, max, "out");
    const auto values = integers_of(name, attribute_of(graph, id, name));
    copy_out<std::int64_t>(values, out, max, out_count);
  });
}

int tsr_node_get_reals(tsr_graph graph, tsr_node_id id, const char* name, double* out, int max,
                       int* out_count) noexcept {
  return guard("tsr_node_get_reals", [&] {
    require(out_count, "out_count");
    require_array(out, max, "out");
    const auto values = typed<std::vector<double>>(graph, id, name, "a list of floats");
    copy_out<double>(values, out, max, out_count);
  });
}

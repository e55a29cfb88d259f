#include "tessera/ir/describe.h"

#include <cmath>

#include "tessera/base/text.h"
#include "tessera/ir/dim.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/print.h"

using namespace tessera;
using namespace tessera::ir;

namespace {

template <class T>
std::string describe_list(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values) {
    if (out.size() > 60) return out + "…]";
    if (out.size() > 1) out += ", ";
    out += describe(value);
  }
  return out + "]";
}

/// As in the text form, in which a value shows its type.
struct DescribeAttribute {
  std::string operator()(const Shape& shape) const { return cat("shape", to_text(shape)); }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    if (values.empty() && std::is_same_v<T, double>) return "[:float]";
    if (values.empty() && std::is_same_v<T, std::string>) return "[:string]";
    return describe_list(values);
  }
  template <class T>
  std::string operator()(const T& value) const {
    return describe(value);
  }
};

}  // namespace

std::string tessera::ir::describe(const Node& node) {
  if (const auto* var = as<Var>(node)) return printable(shortened(var->name, 60));
  if (const auto* constant = as<FloatConst>(node)) return describe_float(constant->value, constant->dtype);
  if (const auto* function = as<Function>(node))
    return function->name.empty() ? "function" : printable(shortened(function->name, 60));
  if (node.kind() <= NodeKind::tuple_type || node.kind() == NodeKind::assign) return print_line(node);
  std::string out(to_string(node.kind()));
  visit_node(node, [&](const auto& concrete) {
    for_each_field(concrete, [&](const auto& field, const auto& value) {
      if constexpr (requires { describe(value); })
        if (field.head) out = describe(value);
    });
  });
  return out;
}

std::string tessera::ir::describe(const AttributeValue& value) {
  return std::visit(DescribeAttribute(), value);
}
std::string tessera::ir::describe(const Bytes& bytes) {
  std::string out;
  append_hex(out, bytes.span().first(std::min<std::size_t>(bytes.size(), 16)));
  return cat(bytes.size(), " bytes ", out, bytes.size() > 16 ? "…" : "");
}
std::string tessera::ir::describe(const Dim& dim) { return to_text(dim); }
std::string tessera::ir::describe(const std::string& text) { return printable(shortened(text, 60)); }
std::string tessera::ir::describe(Dtype dtype) { return std::string(to_string(dtype)); }
std::string tessera::ir::describe(double value) { return describe_float(value, Dtype::f64); }
std::string tessera::ir::describe_float(double value, Dtype dtype) {
  if (!std::isnan(value)) return cat(value);
  std::string out;
  append_float(out, value, dtype);
  return out;
}
std::string tessera::ir::describe(ScalarOpcode opcode) { return std::string(to_string(opcode)); }

std::string_view tessera::ir::field_name(const Node& node, std::uint8_t index) {
  return visit_node(node, [&](const auto& concrete) {
    std::string_view name;
    std::uint8_t at = 0;
    for_each_field(concrete, [&](const auto& field, const auto&) {
      if (at++ == index) name = field.name;
    });
    return name;
  });
}

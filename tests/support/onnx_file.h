// ONNX models for tests, written field by field (the numbers are those of onnx.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace tessera::fixture {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  return out + static_cast<char>(value);
}
inline std::string onnx_integer(std::uint64_t field, std::int64_t value) {
  return varint(field << 3) + varint(static_cast<std::uint64_t>(value));
}
inline std::string onnx_field(std::uint64_t field, const std::string& data) {
  return varint(field << 3 | 2) + varint(data.size()) + data;
}

/// An f32 tensor.
inline std::string onnx_tensor(const std::string& name, std::initializer_list<std::int64_t> dims,
                               const std::vector<float>& values) {
  std::string out;
  for (const std::int64_t dim : dims) out += onnx_integer(1, dim);
  const std::string raw(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out + onnx_integer(2, 1) + onnx_field(8, name) + onnx_field(9, raw);
}

/// A value of type f32, or another by its number; a dimension is a number or a name.
inline std::string onnx_value(const std::string& name, std::initializer_list<std::string> dims,
                              std::int64_t type = 1) {
  std::string shape;
  for (const std::string& dim : dims)
    shape += onnx_field(1, dim.find_first_not_of("0123456789") == std::string::npos
                               ? onnx_integer(1, std::stoll(dim))
                               : onnx_field(2, dim));
  return onnx_field(1, name) + onnx_field(2, onnx_field(1, onnx_integer(1, type) + onnx_field(2, shape)));
}

inline std::string onnx_attribute(const std::string& name, std::int64_t value) {
  return onnx_field(1, name) + onnx_integer(3, value) + onnx_integer(20, 2);
}
inline std::string onnx_attribute(const std::string& name, const std::string& text) {
  return onnx_field(1, name) + onnx_field(4, text) + onnx_integer(20, 3);
}
/// `graph` is that of an OnnxFile.
inline std::string onnx_graph_attribute(const std::string& name, const std::string& graph) {
  return onnx_field(1, name) + onnx_field(6, graph) + onnx_integer(20, 5);
}

inline std::string onnx_node(const std::string& op, std::initializer_list<std::string> inputs,
                             std::initializer_list<std::string> outputs, const std::string& name = "",
                             std::initializer_list<std::string> attributes = {}) {
  std::string out;
  for (const std::string& input : inputs) out += onnx_field(1, input);
  for (const std::string& output : outputs) out += onnx_field(2, output);
  out += onnx_field(3, name) + onnx_field(4, op);
  for (const std::string& attribute : attributes) out += onnx_field(5, attribute);
  return out;
}

struct OnnxFile {
  std::vector<std::string> nodes, tensors, inputs, outputs;

  [[nodiscard]] std::string graph() const {
    std::string out;
    for (const std::string& node : nodes) out += onnx_field(1, node);
    out += onnx_field(2, "g");
    for (const std::string& tensor : tensors) out += onnx_field(5, tensor);
    for (const std::string& input : inputs) out += onnx_field(11, input);
    for (const std::string& output : outputs) out += onnx_field(12, output);
    return out;
  }

  /// Writes the model, of operator set `opset`, and returns its path.
  [[nodiscard]] std::string write(const std::string& name, std::int64_t opset = 13) const {
    const auto path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path, std::ios::binary)
        << onnx_integer(1, 8) << onnx_field(8, onnx_integer(2, opset)) << onnx_field(7, graph());
    return path.string();
  }
};

/// y = relu(x w + b) for x [N, 2].
inline OnnxFile dense_layer() {
  return {{onnx_node("MatMul", {"x", "w"}, {"product"}, "multiply"),
           onnx_node("Add", {"product", "b"}, {"sum"}, "add"), onnx_node("Relu", {"sum"}, {"y"}, "cut")},
          {onnx_tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6}), onnx_tensor("b", {3}, {0, -100, 1})},
          {onnx_value("x", {"N", "2"})},
          {onnx_value("y", {"N", "3"})}};
}

/// y [`size`] = `then` if the elements of x [N] add up to more than 0, else `otherwise`.
inline OnnxFile choice_by_sum(const OnnxFile& then, const OnnxFile& otherwise, const std::string& size) {
  OnnxFile out;
  out.nodes = {onnx_node("ReduceSum", {"x"}, {"total"}, "", {onnx_attribute("keepdims", 0)}),
               onnx_node("Greater", {"total", "zero"}, {"is_positive"}),
               onnx_node("If", {"is_positive"}, {"y"}, "choose",
                         {onnx_graph_attribute("then_branch", then.graph()),
                          onnx_graph_attribute("else_branch", otherwise.graph())})};
  out.tensors = {onnx_tensor("zero", {}, {0})};
  out.inputs = {onnx_value("x", {"N"})};
  out.outputs = {onnx_value("y", {size})};
  return out;
}

/// Which branch is taken is said by the data: w·x, or relu(x - w).
inline OnnxFile branch_on_data() {
  OnnxFile then, otherwise;
  then.nodes = {onnx_node("Mul", {"x", "w"}, {"a"})};
  then.outputs = {onnx_value("a", {"N"})};
  otherwise.nodes = {onnx_node("Sub", {"x", "w"}, {"m"}), onnx_node("Relu", {"m"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"N"})};
  OnnxFile out = choice_by_sum(then, otherwise, "N");
  out.tensors.push_back(onnx_tensor("w", {1}, {3}));
  return out;
}

/// By the flag `cached` y has the elements of `past` before its own, or not.
inline OnnxFile flagged_decoder() {
  constexpr std::int64_t onnx_bool = 9;
  OnnxFile then, otherwise, out;
  then.nodes = {onnx_node("Concat", {"past", "x"}, {"a"}, "join", {onnx_attribute("axis", 0)})};
  then.outputs = {onnx_value("a", {"M"})};
  otherwise.nodes = {onnx_node("Neg", {"x"}, {"b"})};
  otherwise.outputs = {onnx_value("b", {"K"})};
  out.nodes = {onnx_node("If", {"cached"}, {"chosen"}, "if",
                         {onnx_graph_attribute("then_branch", then.graph()),
                          onnx_graph_attribute("else_branch", otherwise.graph())}),
               onnx_node("Relu", {"chosen"}, {"y"})};
  out.inputs = {onnx_value("x", {"N"}), onnx_value("cached", {"1"}, onnx_bool), onnx_value("past", {"P"})};
  out.outputs = {onnx_value("y", {"Q"})};
  return out;
}

}  // namespace tessera::fixture

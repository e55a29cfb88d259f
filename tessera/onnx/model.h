// An ONNX model as plain data: what read.h makes of a file and import.h walks. Nothing here knows protobuf.
//
// Names are those of the file, byte for byte; messages show them through `shown`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/onnx/limits.h"
#include "tessera/op/array.h"

namespace tessera::onnx {

using ir::Dtype;
using op::HostTensor;

/// A name from a file as messages show it: quoted, control characters escaped, not too long.
[[nodiscard]] inline std::string shown(std::string_view name) {
  return cat("'", shortened(printable(name), 120), "'");
}

/// One dimension of a declared shape: a number, a name, or neither.
using DeclaredDim = std::variant<std::monostate, std::int64_t, std::string>;

/// The declared type of an input or output.
struct DeclaredType {
  enum class Kind : std::uint8_t { unknown, tensor, sequence, optional, other };
  Kind kind = Kind::unknown;
  std::optional<Dtype> dtype;  ///< of a tensor, or of the tensors in a sequence or an optional
  std::string dtype_name;      ///< as the format calls it, also where there is no dtype for it here
  std::optional<std::vector<DeclaredDim>> shape;
};

/// "float[batch, 3, ?]", with control characters escaped.
[[nodiscard]] std::string to_text(const DeclaredType& type);
[[nodiscard]] std::string to_text(const DeclaredDim& dim);

struct ValueInfo {
  std::string name;
  DeclaredType type;
};

struct Graph;

/// A dense tensor or why it is none that can be used ("its elements are strings").
struct Tensor {
  std::string name;
  HostTensor value;
  std::string unusable;
};

struct Attribute {
  using Value = std::variant<std::monostate, float, std::int64_t, std::string, Tensor, std::vector<float>,
                             std::vector<std::int64_t>, std::vector<std::string>, std::vector<Graph>>;
  std::string name;
  Value value;
  std::string reference;  ///< in a function: the attribute of the call whose value this takes
  std::string kind;       ///< what it is, for messages: "a float", "a graph"
};

struct Node {
  std::string name;
  std::string op;
  std::string domain;               ///< "" for ONNX's own
  std::vector<std::string> inputs;  ///< "" where one is left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;

  [[nodiscard]] const Attribute* find(std::string_view attribute) const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

/// The version of an operator set per domain.
using Opsets = std::vector<std::pair<std::string, std::int64_t>>;
[[nodiscard]] std::optional<std::int64_t> find_opset(const Opsets& opsets, std::string_view domain);

struct LocalFunction {
  std::string name;
  std::string domain;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  std::string file;  ///< as messages show it
  std::string producer;
  std::int64_t ir_version = 0;
  Opsets opsets;
  Graph graph;
  std::vector<LocalFunction> functions;
  std::unordered_map<std::string, std::size_t>
      function_index;  ///< by domain, 0 and name, the first of several

  void add_function(LocalFunction function);
  [[nodiscard]] const LocalFunction* find_function(std::string_view domain, std::string_view name) const;
};

/// How messages call a node: "node 'conv1' (Conv)"; without a name, by its first output.
[[nodiscard]] std::string describe(const Node& node);

}  // namespace tessera::onnx

// How ONNX operators become calls of ours. A mapping is a function over NodeCall; the tables in operators/
// list them, and an operator whose name and meaning a card has (Card::onnx) needs none.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/onnx/target.h"

namespace tessera::onnx {

using op::Values;

/// What a name of a model stands for: nothing (an empty optional), a tensor, or a sequence of tensors.
struct Item {
  enum class Kind : std::uint8_t { none, tensor, sequence };
  Kind kind = Kind::none;
  Value value;
  std::shared_ptr<const Values> sequence;

  Item() = default;
  Item(Value v) : kind(Kind::tensor), value(v) {}
  static Item of_sequence(Values values) {
    Item out;
    out.kind = Kind::sequence;
    out.sequence = std::make_shared<const Values>(std::move(values));
    return out;
  }
};
using Items = std::vector<Item>;

/// Runs or writes the graph in an attribute of a node.
class BodyRunner {
 public:
  virtual ~BodyRunner() = default;
  /// The outputs of `body` for these inputs. Names around the node are visible in it.
  [[nodiscard]] virtual Result<Items> run_body(const Graph& body, Items inputs) = 0;
  [[nodiscard]] virtual const Limits& limits() const = 0;
};

/// The attributes of the call of a function, for attributes in it that refer to them.
using CallAttributes = std::vector<std::pair<std::string_view, const Attribute*>>;

/// A node as its mapping sees it. Accessors that find something wrong remember the first error and return
/// something harmless, so that a mapping reads as a formula; status() tells.
class NodeCall {
 public:
  NodeCall(const Node& of, std::int64_t version, Target& where, BodyRunner& runner,
           std::span<const Item> items, const CallAttributes* outer)
      : node(of),
        opset(version),
        target(where),
        b(where.builder()),
        bodies(runner),
        items_(items),
        outer_(outer) {}

  const Node& node;
  const std::int64_t opset;  ///< version of the operator set of the node's domain
  Target& target;
  op::Builder& b;
  BodyRunner& bodies;

  // ---- inputs

  [[nodiscard]] std::size_t input_count() const { return items_.size(); }
  /// Whether input i is given. An empty optional counts as given.
  [[nodiscard]] bool has(std::size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
  /// A tensor.
  [[nodiscard]] Value in(std::size_t i);
  /// A tensor, or nothing where the input is not given.
  [[nodiscard]] Value in_or_none(std::size_t i) { return has(i) ? in(i) : Value(); }
  /// All inputs, which are tensors.
  [[nodiscard]] Values all();
  [[nodiscard]] const Item& item(std::size_t i);
  [[nodiscard]] const Values& sequence(std::size_t i);

  /// The elements of input i. Fails with code `unsupported` where they are not known before the program runs.
  [[nodiscard]] Result<HostTensor> elements(std::size_t i);
  [[nodiscard]] Result<std::vector<std::int64_t>> integers_in(std::size_t i);
  [[nodiscard]] Result<std::int64_t> integer_in(std::size_t i);
  [[nodiscard]] Result<double> number_in(std::size_t i);
  /// The elements of an integer input, which may be sizes.
  [[nodiscard]] Result<std::vector<Dim>> sizes_in(std::size_t i);
  /// The elements of a value, which are sizes and not negative; the program may compute them. `what` is for
  /// messages.
  [[nodiscard]] Result<std::vector<Dim>> learned_sizes(Value value, std::string_view what);
  /// The elements of a value that is not an input.
  [[nodiscard]] Result<HostTensor> elements_of(Value value, std::string_view what);

  // ---- attributes

  [[nodiscard]] const Attribute* attribute(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise);
  [[nodiscard]] bool flag(std::string_view name, bool otherwise) {
    return integer(name, otherwise ? 1 : 0) != 0;
  }
  [[nodiscard]] double number(std::string_view name, double otherwise);
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise);
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name);
  [[nodiscard]] std::vector<double> numbers(std::string_view name);
  [[nodiscard]] std::vector<std::string> texts(std::string_view name);
  [[nodiscard]] Result<HostTensor> tensor(std::string_view name);
  [[nodiscard]] Result<const Graph*> graph(std::string_view name);
  /// The dtype that an integer attribute names by the format's number.
  [[nodiscard]] Result<Dtype> dtype(std::string_view name, Dtype otherwise);

  // ---- what mappings often need

  /// A vector of known integers.
  [[nodiscard]] Value vector_of(std::span<const std::int64_t> integers);
  /// An axis of `rank` axes, from the end if negative.
  [[nodiscard]] Result<std::int64_t> axis(std::int64_t value, std::size_t rank) const;
  /// The sizes of a value as numbers; fails with code `unsupported` where one is symbolic.
  [[nodiscard]] Result<std::vector<std::int64_t>> numbers_of_shape(Value value) const;

  template <class... Args>
  [[nodiscard]] Error error(const Args&... args) const {
    return Error(ErrorCode::invalid_argument, cat(args...));
  }
  template <class... Args>
  [[nodiscard]] Error unsupported(const Args&... args) const {
    return Error(ErrorCode::unsupported, cat(args...));
  }
  [[nodiscard]] Result<void> status() const;

 private:
  void fail(Error error);
  template <class T>
  const T* attribute_as(std::string_view name, std::string_view expected);

  std::span<const Item> items_;
  const CallAttributes* outer_;
  std::optional<Error> error_;
};

using MappingFunction = Result<Items> (*)(NodeCall& node);

/// Of operators that a runtime added to those of the format.
inline constexpr std::string_view microsoft_domain = "com.microsoft";

/// An operator, from a version of its operator set on.
struct Mapping {
  std::string_view op;
  MappingFunction map = nullptr;
  std::int64_t since = 1;
  std::string_view domain = {};
};

/// The mapping of an operator, or null: one from the tables, or that of a card with this name.
[[nodiscard]] MappingFunction find_mapping(std::string_view domain, std::string_view op, std::int64_t opset);

/// Every operator that is imported, each once per version of its operator set from which it is another. Those
/// of cards have no function here.
[[nodiscard]] std::vector<Mapping> all_mappings();

// The tables.
[[nodiscard]] std::span<const Mapping> attention_mappings();
[[nodiscard]] std::span<const Mapping> control_mappings();
[[nodiscard]] std::span<const Mapping> detection_mappings();
[[nodiscard]] std::span<const Mapping> elementwise_mappings();
[[nodiscard]] std::span<const Mapping> grid_mappings();
[[nodiscard]] std::span<const Mapping> indexing_mappings();
[[nodiscard]] std::span<const Mapping> microsoft_mappings();
[[nodiscard]] std::span<const Mapping> network_mappings();
[[nodiscard]] std::span<const Mapping> quantised_mappings();
[[nodiscard]] std::span<const Mapping> recurrent_mappings();
[[nodiscard]] std::span<const Mapping> reduction_mappings();
[[nodiscard]] std::span<const Mapping> resampling_mappings();
[[nodiscard]] std::span<const Mapping> sequence_mappings();
[[nodiscard]] std::span<const Mapping> shape_mappings();
[[nodiscard]] std::span<const Mapping> signal_mappings();

/// A number of the dtype of `like`.
[[nodiscard]] inline Value number_like(Value like, double value) {
  return like ? like.builder->constant(value, like.dtype()) : Value();
}
/// Every axis from `first` on of a value: what reductions over the rest of a shape take.
[[nodiscard]] std::vector<std::int64_t> axes_from(std::size_t first, std::size_t rank);

}  // namespace tessera::onnx

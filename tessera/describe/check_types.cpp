#include "tessera/describe/check_types.h"

#include <cmath>

#include "tessera/base/checked.h"
#include "tessera/describe/program_order.h"
#include "tessera/describe/shape_rule.h"
#include "tessera/ir/integers.h"
#include "tessera/op/call_info.h"

using namespace tessera;
using namespace tessera::description;

namespace {

class NodeChecker {
 public:
  NodeChecker(Graph& graph, std::uint32_t index, Report& report)
      : graph_(graph), index_(index), node_(graph.nodes[index]), report_(report) {}

  void run() {
    for (Pin& pin : node_.pins) check_pin(pin);
    parse_rules();
    if (node_.is_broken || !inputs_known()) return;
    const bool are_names_known = bind_inputs();
    check_rules(Access::read);
    if (node_.card != nullptr)
      infer_op();
    else if (!node_.is_broken)
      make_types();
    if (are_names_known) check_rules(Access::write);
  }

 private:
  GraphBuffer& buffer_of(const Pin& pin) { return graph_.buffers[pin.buffer]; }

  void check_pin(const Pin& pin) {
    const Parameter& p = pin.declared;
    if (p.scalar && p.dtype && !fits(*p.scalar, *p.dtype))
      fail(pin, cat("the number does not fit dtype ", to_string(*p.dtype)));
    if (pin.buffer == no_index) return;
    const GraphBuffer& buffer = buffer_of(pin);
    if (buffer.has_type && p.dtype && *p.dtype != buffer.dtype)
      fail(pin, cat("has dtype ", to_string(*p.dtype), ", buffer ", shown(buffer.name), " has ",
                    to_string(buffer.dtype)));
    if (buffer.is_appended && (p.access == Access::append || p.access == Access::write))
      check_append(pin, buffer);
  }

  void check_append(const Pin& pin, const GraphBuffer& buffer) {
    if (pin.declared.access == Access::write)
      fail(pin, cat("buffer ", shown(buffer.name), " is appended to elsewhere, and written here"));
    if (buffer.has_type && buffer.shape.empty())
      fail(pin, cat("buffer ", shown(buffer.name), " has rank 0, there are no rows to append"));
  }

  void parse_rules() {
    rules_.resize(node_.pins.size());
    for (std::size_t i = 0; i < node_.pins.size(); ++i) {
      const Parameter& p = node_.pins[i].declared;
      if (p.shape.empty()) continue;
      auto rule = parse_shape_rule(p.shape);
      if (rule) {
        rules_[i] = *std::move(rule);
        continue;
      }
      Diagnostic diagnostic = graph_.about(index_, node_.pins[i],
                                           cat("shape rule ", quote(shortened(p.shape, 60)), " at column ",
                                               rule.error().span().column, ": ", rule.error().message()));
      diagnostic.code = ErrorCode::parse;
      if (p.shape_at.line != 0) diagnostic.at = graph_.description->span_of(p.shape_at);
      if (p.shape_at.column != 0) diagnostic.at.column += rule.error().span().column;  // behind the quote
      report_.add(std::move(diagnostic));
      node_.is_broken = true;
    }
  }

  /// Collects the shapes of the reading pins.
  bool inputs_known() {
    for (const Pin& pin : node_.pins) {
      if (pin.is_scalar() || pin.buffer == no_index || !description::reads(pin.declared.access)) continue;
      if (!buffer_of(pin).has_type) return false;
      inputs_.push_back(buffer_of(pin).shape);
    }
    return true;
  }

  /// Gives names their sizes; false if an input does not fit the pattern of its rule.
  bool bind_inputs() {
    bool out = true;
    for (std::size_t i = 0; i < node_.pins.size(); ++i) {
      if (!rules_[i] || !is_input(node_.pins[i])) continue;
      const auto bound = bind_names(*rules_[i], buffer_of(node_.pins[i]).shape, names_);
      check(node_.pins[i], bound);
      if (!bound) rules_[i].reset();  // is reported
      out &= bound.ok();
    }
    return out;
  }

  /// Checks the rules of what the node reads, or of what it only writes.
  void check_rules(Access access) {
    for (std::size_t i = 0; i < node_.pins.size(); ++i) {
      const Pin& pin = node_.pins[i];
      if (!rules_[i] || pin.buffer == no_index || !buffer_of(pin).has_type) continue;
      if (is_input(pin) == (access == Access::read))
        check(pin, check_shape(*rules_[i], buffer_of(pin).shape, inputs_, names_));
    }
  }

  /// Of what a kernel writes to buffers of its own.
  void make_types() {
    for (std::size_t i = 0; i < node_.pins.size(); ++i)
      if (const Pin& pin = node_.pins[i]; pin.buffer != no_index && !buffer_of(pin).has_type)
        make_type(pin, rules_[i]);
  }
  [[nodiscard]] static bool is_input(const Pin& pin) {
    return pin.buffer != no_index && description::reads(pin.declared.access);
  }

  void make_type(const Pin& pin, const std::optional<ShapeRule>& rule) {
    if (!pin.declared.dtype || !rule)
      return fail(pin, cat("has no buffer and declares no ", pin.declared.dtype ? "shape" : "dtype"));
    auto shape = evaluate(*rule, inputs_, names_);
    if (!shape) return check(pin, std::move(shape).error());
    set_type(pin, *pin.declared.dtype, *std::move(shape));
  }

  void set_type(const Pin& pin, Dtype dtype, Extents shape) {
    GraphBuffer& buffer = buffer_of(pin);
    const auto count = checked_product(shape);
    const auto bytes = count
                           ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(dtype)))
                           : std::nullopt;
    if (!bytes) return fail(pin, cat("shape ", to_text(shape), " does not fit 64 bits"));
    buffer.dtype = dtype;
    buffer.shape = std::move(shape);
    buffer.bytes = static_cast<std::uint64_t>(*bytes);
    buffer.has_type = true;
    check_pin(pin);
  }

  /// The type of a number of an op, which it must fit.
  op::ValueType number_type(Pin& pin) {
    const Dtype dtype = scalar_dtype(graph_, node_, pin);
    if (pin.is_left_out) convert_default(pin, dtype);
    const bool is_checked = pin.is_left_out || pin.declared.dtype;  // by check_pin
    if (!is_checked && !fits(*pin.declared.scalar, dtype))
      fail(pin, cat("the number does not fit dtype ", to_string(dtype)));
    return {dtype, {}};
  }

  void infer_op() {
    std::vector<op::ValueType> types;
    for (Pin& pin : node_.pins) {
      if (writes(pin.declared.access)) continue;
      if (pin.is_scalar())
        types.push_back(number_type(pin));
      else
        types.push_back({buffer_of(pin).dtype, ir::shape_of(buffer_of(pin).shape)});
    }
    auto results = op::infer(*node_.card, types, node_.attributes);
    if (!results) return fail_node(results.error());
    std::size_t next = 0;
    for (Pin& pin : node_.pins)
      if (writes(pin.declared.access)) {
        if (next == results->size()) return fail(pin, cat("the op has only ", results->size(), " results"));
        take_result(pin, (*results)[next++]);
      }
    if (next != results->size())
      fail_node(
          Error(ErrorCode::shape, cat("the op has ", results->size(), " results, parameters for ", next)));
  }

  /// Cards have floats: an infinity is the end of the range where there is none.
  static void convert_default(Pin& pin, Dtype dtype) {
    if (const auto* number = std::get_if<double>(&*pin.declared.scalar);
        number != nullptr && !ir::is_float(dtype))
      pin.declared.scalar = ir::integer_from_float(*number, dtype);
  }

  void take_result(const Pin& pin, const op::ValueType& type) {
    const auto shape = ir::constant_shape(type.shape);
    if (!shape) return fail(pin, "its size depends on data; a kernel with an append buffer can do that");
    GraphBuffer& buffer = buffer_of(pin);
    if (!buffer.has_type) return set_type(pin, type.dtype, *shape);
    if (buffer.dtype != type.dtype || buffer.shape != *shape)
      return fail(pin, cat("the op gives ", op::to_text(type), ", buffer ", shown(buffer.name), " has ",
                           to_string(buffer.dtype), to_text(buffer.shape)));
    check_in_place(pin, buffer);
  }

  /// An op that writes what it reads: only element by element, and only where each element is read once.
  void check_in_place(const Pin& result, const GraphBuffer& buffer) {
    for (const Pin& pin : node_.pins) {
      if (&pin == &result || pin.buffer != result.buffer) continue;
      if (writes(pin.declared.access)) return fail(result, "two results of the op go to one buffer");
      if (!node_.card->traits.elementwise)
        return fail(result, cat("op '", node_.card->name, "' cannot write buffer ", shown(buffer.name),
                                ", which it reads"));
    }
  }

  void check(const Pin& pin, Result<void> result) {
    if (!result) fail(pin, result.error().message());
  }
  void fail(const Pin& pin, std::string message) {
    Diagnostic diagnostic = graph_.about(index_, pin, std::move(message));
    diagnostic.code = ErrorCode::shape;
    report_.add(std::move(diagnostic));
    node_.is_broken = true;
  }
  void fail_node(const Error& error) {
    Diagnostic diagnostic = graph_.about(Item{false, index_}, error.message());
    diagnostic.code = error.code();
    report_.add(std::move(diagnostic));
    node_.is_broken = true;
  }

  Graph& graph_;
  std::uint32_t index_;
  GraphNode& node_;
  Report& report_;
  std::vector<std::optional<ShapeRule>> rules_;  // by pin
  std::vector<Extents> inputs_;                  // of the reading pins
  SizeNames names_;
};

/// Where an op takes a number of one dtype only.
std::optional<Dtype> card_dtype(const GraphNode& node, const Pin& pin) {
  if (node.card == nullptr) return std::nullopt;
  for (const op::Input& input : node.card->inputs)
    if (input.name == pin.declared.name) return ir::parse_dtype(input.type);
  return std::nullopt;
}

}  // namespace

void tessera::description::check_types(Graph& graph, const std::vector<Sequence>& sequences, Report& report) {
  for_each_node_in_order(graph, sequences, [&](std::uint32_t node) { check_types(graph, node, report); });
}

void tessera::description::check_types(Graph& graph, std::uint32_t node, Report& report) {
  NodeChecker(graph, node, report).run();
}

bool tessera::description::fits(const ScalarValue& value, Dtype dtype) {
  if (ir::is_float(dtype)) return true;
  std::int64_t number = 0;
  if (const auto* fraction = std::get_if<double>(&value)) {
    constexpr double exact = 9007199254740992;  // 2^53: beyond it a double is no longer a certain integer
    if (!(std::fabs(*fraction) <= exact) || std::trunc(*fraction) != *fraction) return false;
    number = static_cast<std::int64_t>(*fraction);
  } else {
    number = std::get<std::int64_t>(value);
  }
  if (dtype == Dtype::boolean) return number == 0 || number == 1;
  const auto bits = static_cast<int>(8 * ir::size_of(dtype));
  if (ir::is_unsigned(dtype)) return number >= 0 && (bits == 64 || number < std::int64_t{1} << bits);
  if (bits == 64) return true;
  return number >= -(std::int64_t{1} << (bits - 1)) && number < std::int64_t{1} << (bits - 1);
}

bool tessera::description::is_exact_double(const ScalarValue& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) return true;
  const auto number = static_cast<double>(*integer);
  constexpr double beyond = 9223372036854775808.0;  // 2^63, which no i64 is
  return number < beyond && static_cast<std::int64_t>(number) == *integer;
}

Dtype tessera::description::scalar_dtype(const Graph& graph, const GraphNode& node, const Pin& pin) {
  if (pin.declared.dtype) return *pin.declared.dtype;
  if (const auto fixed = card_dtype(node, pin)) return *fixed;
  for (const Pin& other : node.pins)
    if (node.card != nullptr && other.buffer != no_index && description::reads(other.declared.access))
      return graph.buffers[other.buffer].dtype;
  return std::holds_alternative<double>(*pin.declared.scalar) ? Dtype::f64 : Dtype::i64;
}

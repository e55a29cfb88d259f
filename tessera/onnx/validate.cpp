#include "tessera/onnx/validate.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

using namespace tessera;
using namespace tessera::onnx;

namespace {

/// The names that code sees: its own scope and those around it.
using Scope = std::unordered_set<std::string_view>;

class Validator {
 public:
  Validator(const Model& model, const Limits& limits) : model_(model), limits_(limits) {}

  Result<void> operator()() {
    TESSERA_TRY(check_opsets(model_.opsets, "the model"));
    std::vector<Scope> scopes;
    TESSERA_TRY(check_graph(model_.graph, scopes));
    for (const LocalFunction& function : model_.functions) TESSERA_TRY(check_function(function));
    return check_calls();
  }

 private:
  template <class... Args>
  Error error(ErrorCode code, const Args&... args) const {
    return Error(code, cat(args...), {model_.file, 0, 0});
  }

  Result<void> check_opsets(const Opsets& opsets, const std::string& owner) const {
    const auto version = find_opset(opsets, "");
    if (opsets.empty()) return error(ErrorCode::parse, owner, ": field 'opset_import' is missing");
    if (version && (*version < 1 || *version > max_opset))
      return error(ErrorCode::unsupported, owner, ": field 'opset_import' asks for version ", *version,
                   " of the ONNX operators, 1 to ", max_opset, " are supported");
    return {};
  }

  Result<void> define(Scope& scope, std::string_view name, const std::string& owner,
                      std::string_view field) const {
    if (name.empty()) return {};
    if (!scope.insert(name).second)
      return error(ErrorCode::parse, owner, ": ", field, " ", shown(name), " is defined twice");
    return {};
  }

  static bool is_visible(std::span<const Scope> scopes, std::string_view name) {
    return std::any_of(scopes.begin(), scopes.end(),
                       [&](const Scope& scope) { return scope.count(name) != 0; });
  }

  /// A name that is used before it is defined: a cycle if a later node defines it.
  Error undefined(std::span<const Node> nodes, const Node& node, std::string_view name) const {
    for (const Node& other : nodes)
      if (std::find(other.outputs.begin(), other.outputs.end(), name) != other.outputs.end())
        return error(ErrorCode::cycle, describe(node), ": input ", shown(name), " is the output of ",
                     describe(other), ", which does not stand before it: a cycle, or not in order");
    return error(ErrorCode::parse, describe(node), ": input ", shown(name), " is not defined");
  }

  Result<void> check_nodes(std::span<const Node> nodes, std::vector<Scope>& scopes) {
    for (const Node& node : nodes) {
      for (const std::string& input : node.inputs)
        if (!input.empty() && !is_visible(scopes, input)) return undefined(nodes, node, input);
      std::unordered_set<std::string_view> seen;
      for (const Attribute& attribute : node.attributes) {
        if (!seen.insert(attribute.name).second)
          return error(ErrorCode::parse, describe(node), ": attribute ", shown(attribute.name),
                       " is given twice");
        const auto* graphs = std::get_if<std::vector<Graph>>(&attribute.value);
        if (graphs == nullptr) continue;
        for (const Graph& graph : *graphs) TESSERA_TRY(check_graph(graph, scopes));
      }
      for (const std::string& output : node.outputs)
        TESSERA_TRY(define(scopes.back(), output, describe(node), "output"));
    }
    return {};
  }

  Result<void> check_graph(const Graph& graph, std::vector<Scope>& scopes) {
    const std::string what = cat("graph ", shown(graph.name));
    scopes.emplace_back();
    for (const ValueInfo& input : graph.inputs) {
      if (input.name.empty()) return error(ErrorCode::parse, what, ": an input has no name");
      TESSERA_TRY(define(scopes.back(), input.name, what, "input"));
    }
    Scope initializers;
    for (const Tensor& tensor : graph.initializers) {
      if (tensor.name.empty()) return error(ErrorCode::parse, what, ": an initializer has no name");
      TESSERA_TRY(define(initializers, tensor.name, what, "initializer"));
      scopes.back().insert(tensor.name);  // an input may have an initializer: its default
    }
    TESSERA_TRY(check_nodes(graph.nodes, scopes));
    for (const ValueInfo& output : graph.outputs)
      if (!is_visible(scopes, output.name))
        return error(ErrorCode::parse, what, ": output ", shown(output.name), " is not defined");
    scopes.pop_back();
    return {};
  }

  Result<void> check_function(const LocalFunction& function) {
    const std::string what = cat("function ", shown(function.name));
    if (model_.find_function(function.domain, function.name) != &function)
      return error(ErrorCode::parse, what, " is defined twice");
    TESSERA_TRY(check_opsets(function.opsets, what));
    std::vector<Scope> scopes(1);
    for (const std::string& input : function.inputs) TESSERA_TRY(define(scopes[0], input, what, "input"));
    TESSERA_TRY(check_nodes(function.nodes, scopes));
    for (const std::string& output : function.outputs)
      if (!is_visible(scopes, output))
        return error(ErrorCode::parse, what, ": output ", shown(output), " is not defined");
    return {};
  }

  // ---- which function calls which

  /// The functions that nodes call, also from nested graphs.
  std::vector<std::size_t> callees(std::span<const Node> nodes) const {
    std::vector<std::size_t> out;
    std::vector<std::span<const Node>> todo{nodes};
    while (!todo.empty()) {
      const auto part = todo.back();
      todo.pop_back();
      for (const Node& node : part) {
        if (const auto at = index_.find({node.domain, node.op}); at != index_.end())
          out.push_back(at->second);
        for (const Attribute& attribute : node.attributes)
          if (const auto* graphs = std::get_if<std::vector<Graph>>(&attribute.value))
            for (const Graph& graph : *graphs) todo.push_back(graph.nodes);
      }
    }
    return out;
  }

  /// Follows the calls without recursion: a function that reaches itself is an error, and so are chains that
  /// are too deep and trees that are too large when every call is written out.
  Result<void> check_calls() {
    for (std::size_t i = 0; i < model_.functions.size(); ++i)
      index_.try_emplace({model_.functions[i].domain, model_.functions[i].name}, i);
    std::vector<std::vector<std::size_t>> calls;
    for (const LocalFunction& function : model_.functions) calls.push_back(callees(function.nodes));
    enum class State : std::uint8_t { fresh, open, done };
    std::vector<State> states(calls.size(), State::fresh);
    sizes_.assign(calls.size(), 0);
    depths_.assign(calls.size(), 1);
    for (std::size_t root = 0; root < calls.size(); ++root) {
      std::vector<std::pair<std::size_t, std::size_t>> stack{{root, 0}};  // a function, and its next callee
      while (!stack.empty()) {
        auto& [at, next] = stack.back();
        if (states[at] == State::done) {
          stack.pop_back();
          continue;
        }
        states[at] = State::open;
        if (next < calls[at].size()) {
          const std::size_t callee = calls[at][next++];
          if (states[callee] == State::open)
            return error(ErrorCode::cycle, "function ", shown(model_.functions[callee].name),
                         " calls itself");
          if (states[callee] == State::fresh) stack.emplace_back(callee, 0);
          continue;
        }
        states[at] = State::done;
        TESSERA_TRY(measure(at, calls[at]));
        stack.pop_back();
      }
    }
    return {};
  }

  /// The depth and the size of a function whose callees are known.
  Result<void> measure(std::size_t at, std::span<const std::size_t> calls) {
    const LocalFunction& function = model_.functions[at];
    std::int64_t size = static_cast<std::int64_t>(function.nodes.size());
    int depth = 1;
    for (const std::size_t callee : calls) {
      size = std::min(size + sizes_[callee], limits_.nodes + 1);
      depth = std::max(depth, depths_[callee] + 1);
    }
    if (size > limits_.nodes)
      return error(ErrorCode::limit, "function ", shown(function.name), " has more than ", limits_.nodes,
                   " nodes with the functions it calls");
    if (depth > limits_.function_depth)
      return error(ErrorCode::limit, "function ", shown(function.name), " calls functions more than ",
                   limits_.function_depth, " deep");
    sizes_[at] = size;
    depths_[at] = depth;
    return {};
  }

  const Model& model_;
  const Limits& limits_;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> index_;
  std::vector<std::int64_t> sizes_;
  std::vector<int> depths_;
};

}  // namespace

Result<void> tessera::onnx::validate(const Model& model, const Limits& limits) {
  return Validator(model, limits)();
}

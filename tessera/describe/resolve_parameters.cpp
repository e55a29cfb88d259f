#include <unordered_map>

#include "tessera/describe/check_types.h"
#include "tessera/describe/resolve.h"
#include "tessera/op/call_info.h"
#include "tessera/op/card_text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::description;

namespace {

/// "parts[3]" is one of the list "parts".
bool is_one_of(std::string_view name, std::string_view list) {
  return name.size() > list.size() + 2 && name.starts_with(list) && name[list.size()] == '[' &&
         name.back() == ']';
}

class ParameterResolver {
 public:
  ParameterResolver(Graph& graph, std::uint32_t node, const Names* names, Report& report)
      : graph_(graph),
        node_(graph.description->nodes[node]),
        out_(graph.nodes[node]),
        index_(node),
        names_(names),
        report_(report) {}

  void run() {
    if (node_.incomplete) out_.is_broken = true;
    if (node_.kind == NodeKind::op)
      take_from_card();
    else
      for (const Parameter& parameter : node_.parameters) out_.pins.push_back({.declared = parameter});
    check_names();
    for (Pin& pin : out_.pins) check(pin);
    if (node_.call.empty() && !node_.incomplete) fail(cat("names no ", to_string(node_.kind)));
    for (std::int64_t size : node_.grid)
      if (size < 1) fail(cat("a grid of ", size, " is not positive"));
    if (node_.kind == NodeKind::op && node_.grid != Node().grid) fail("an op has no grid");
  }

 private:
  void take_from_card() {
    out_.card = op::find_card(node_.call);
    if (out_.card == nullptr) {
      const auto near = op::nearest_ops(node_.call);
      fail(cat("there is no op ", shown(node_.call), near.empty() ? "" : cat(", perhaps '", near[0], "'")));
      for (const Parameter& parameter : node_.parameters) out_.pins.push_back({.declared = parameter});
      out_.is_broken = true;
      return;
    }
    std::vector<Error> wrong;
    out_.attributes = op::complete_attributes(*out_.card, with_dtypes(), wrong);
    for (const Error& error : wrong) fail(error.message());
    out_.is_broken |= !wrong.empty();
    add_inputs();
    add_results();
    for (std::size_t i = 0; i < node_.parameters.size(); ++i)
      if (!taken_.contains(node_.parameters[i].name))
        fail(cat("op '", out_.card->name, "' has no parameter ", shown(node_.parameters[i].name), ": ",
                 op::signature(*out_.card)));
  }

  /// Files write a dtype as a text.
  [[nodiscard]] ir::Attributes with_dtypes() const {
    ir::Attributes out = node_.attributes;
    for (const op::AttributeSpec& spec : out_.card->attributes)
      if (const auto* name = out.get<std::string>(spec.name);
          name != nullptr && spec.kind == op::AttributeKind::dtype)
        if (const auto dtype = ir::parse_dtype(*name)) out.set(std::string(spec.name), *dtype);
    return out;
  }

  void add_inputs() {
    for (const op::Input& input : out_.card->inputs) {
      if (input.kind == op::InputKind::variadic) {
        add_list(input.name, Access::read);
        continue;
      }
      const Parameter* declared = find(input.name);
      if (declared == nullptr && input.kind == op::InputKind::optional) continue;
      Parameter pin =
          declared != nullptr ? *declared : Parameter{.name = std::string(input.name), .at = node_.at};
      const bool is_left_out = declared == nullptr && input.kind == op::InputKind::scalar;
      if (is_left_out) pin.scalar = input.otherwise;
      add(std::move(pin), Access::read);
      out_.pins.back().is_left_out = is_left_out;
    }
  }

  void add_results() {
    if (out_.card->results.empty()) add_result("y");
    for (std::string_view name : out_.card->results)
      if (name.ends_with("[]"))
        add_list(name.substr(0, name.size() - 2), Access::write);
      else
        add_result(name);
  }
  void add_result(std::string_view name) {
    const Parameter* declared = find(name);
    add(declared != nullptr ? *declared
                            : Parameter{.name = std::string(name), .access = Access::write, .at = node_.at},
        Access::write);
  }

  void add_list(std::string_view list, Access access) {
    for (const Parameter& parameter : node_.parameters)
      if (is_one_of(parameter.name, list)) {
        taken_.emplace(parameter.name, 0);
        add(parameter, access);
      }
  }

  /// A parameter of an op has the access that the card says; `read` is what a description says by saying
  /// nothing.
  void add(Parameter parameter, Access access) {
    if (parameter.access != access && parameter.access != Access::read)
      report_.add(graph_.about(index_, Pin{.declared = parameter},
                               cat("is declared as ", to_string(parameter.access), ", op '", out_.card->name,
                                   "' has ", to_string(access))));
    parameter.access = access;
    parameter.required = true;  // an input that may be left out is not declared
    out_.pins.push_back({.declared = std::move(parameter)});
  }

  const Parameter* find(std::string_view name) {
    for (const Parameter& parameter : node_.parameters)
      if (parameter.name == name) {
        taken_.emplace(parameter.name, 0);
        return &parameter;
      }
    return nullptr;
  }

  void check_names() {
    std::unordered_map<std::string_view, int> seen;
    for (const Parameter& parameter : node_.parameters)
      if (!parameter.name.empty() && ++seen[parameter.name] == 2)
        fail(cat("parameter ", shown(parameter.name), " is declared twice"));
  }

  void check(Pin& pin) {
    const Parameter& p = pin.declared;
    if (p.scalar && !p.buffer.empty()) fail(pin, "is a number and has a buffer");
    if (p.in_device_memory && !p.scalar) fail(pin, "only a number can be in device memory");
    if (p.in_device_memory && p.scalar && !is_exact_double(*p.scalar))
      fail(pin, cat("the integer ", std::get<std::int64_t>(*p.scalar),
                    " is in device memory, where numbers are f64"));
    if (p.scalar && (p.access != Access::read || !p.shape.empty()))
      fail(pin, "a number is only read and has no shape");
    if (!p.required && writes(p.access)) fail(pin, "only an input can be left out");
    if (p.buffer.empty() || p.scalar || names_ == nullptr) return;
    const auto buffer = names_->buffer(p.buffer);
    if (!buffer) return fail(pin, cat("there is no buffer ", shown(p.buffer)));
    pin.buffer = *buffer;
  }

  void fail(std::string message) { report_.add(graph_.about(Item{false, index_}, std::move(message))); }
  void fail(const Pin& pin, std::string message) {
    out_.is_broken = true;
    report_.add(graph_.about(index_, pin, std::move(message)));
  }

  Graph& graph_;
  const Node& node_;
  GraphNode& out_;
  std::uint32_t index_;
  const Names* names_;  // null: none
  Report& report_;
  std::unordered_map<std::string_view, int> taken_;  // the declared parameters that the card has
};

}  // namespace

void tessera::description::resolve_parameters(Graph& graph, const Names& names, Report& report) {
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node)
    resolve_parameters(graph, node, &names, report);
}

void tessera::description::resolve_parameters(Graph& graph, std::uint32_t node, const Names* names,
                                              Report& report) {
  ParameterResolver(graph, node, names, report).run();
}

#include "tessera/pattern/pattern_builder.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

namespace tessera::pattern {

PatternValue operator+(const PatternValue& a, const PatternValue& b) { return a.builder_->op("add", {a, b}); }
PatternValue operator-(const PatternValue& a, const PatternValue& b) { return a.builder_->op("sub", {a, b}); }
PatternValue operator*(const PatternValue& a, const PatternValue& b) { return a.builder_->op("mul", {a, b}); }
PatternValue operator/(const PatternValue& a, const PatternValue& b) { return a.builder_->op("div", {a, b}); }
PatternValue operator%(const PatternValue& a, const PatternValue& b) { return a.builder_->op("mod", {a, b}); }
PatternValue operator<(const PatternValue& a, const PatternValue& b) { return a.builder_->op("lt", {a, b}); }
PatternValue operator<=(const PatternValue& a, const PatternValue& b) { return a.builder_->op("le", {a, b}); }
PatternValue operator>(const PatternValue& a, const PatternValue& b) { return a.builder_->op("gt", {a, b}); }
PatternValue operator>=(const PatternValue& a, const PatternValue& b) { return a.builder_->op("ge", {a, b}); }
PatternValue operator-(const PatternValue& a) { return a.builder_->op("neg", {a}); }

namespace {
PatternValue literal(PatternBuilder& builder, double value) {
  return builder.constant(ValueCondition::equal_to(value));
}
}  // namespace

PatternValue operator+(const PatternValue& a, double b) { return a + literal(*a.builder_, b); }
PatternValue operator-(const PatternValue& a, double b) { return a - literal(*a.builder_, b); }
PatternValue operator*(const PatternValue& a, double b) { return a * literal(*a.builder_, b); }
PatternValue operator/(const PatternValue& a, double b) { return a / literal(*a.builder_, b); }
PatternValue operator+(double a, const PatternValue& b) { return literal(*b.builder_, a) + b; }
PatternValue operator-(double a, const PatternValue& b) { return literal(*b.builder_, a) - b; }
PatternValue operator*(double a, const PatternValue& b) { return literal(*b.builder_, a) * b; }
PatternValue operator/(double a, const PatternValue& b) { return literal(*b.builder_, a) / b; }

}  // namespace tessera::pattern

PatternNode& PatternValue::node() const {
  if (input_.kind == PatternInput::Kind::node) return builder_->parts_.nodes[input_.index];
  builder_->fail("an external input is no node: it has no id, no attributes and no further results");
  return builder_->no_node_;
}

const PatternValue& PatternValue::as(std::string id) const {
  node().id = std::move(id);
  return *this;
}

const PatternValue& PatternValue::attribute(std::string name, ValueCondition condition) const {
  return attribute({.name = std::move(name), .value = std::move(condition)});
}

const PatternValue& PatternValue::attribute(AttributeCondition condition) const {
  node().lists_attributes = true;
  node().attributes.push_back(std::move(condition));
  return *this;
}

const PatternValue& PatternValue::only_listed_attributes() const {
  node().lists_attributes = true;
  return *this;
}

const PatternValue& PatternValue::dtype(std::vector<ir::Dtype> one_of) const {
  node().dtypes = std::move(one_of);
  return *this;
}

const PatternValue& PatternValue::optional(std::uint32_t passes) const {
  node().is_optional = true;
  node().passes = passes;
  return *this;
}

const PatternValue& PatternValue::repeated(std::uint32_t least, std::uint32_t most) const {
  node().repeat = {least, most};
  node().lists_inputs = false;
  return *this;
}

PatternValue PatternValue::result(std::uint32_t k) const {
  static_cast<void>(node());
  PatternInput other = input_;
  other.result = k;
  return {*builder_, other};
}

PatternValue PatternBuilder::input(const std::string& name, std::vector<ir::Dtype> one_of) {
  const auto at = std::ranges::find(parts_.externals, name, &PatternExternal::name);
  const auto index = static_cast<std::uint32_t>(at - parts_.externals.begin());
  if (at == parts_.externals.end()) parts_.externals.push_back({.name = name});
  if (!one_of.empty()) parts_.externals[index].dtypes = std::move(one_of);
  return {*this, {PatternInput::Kind::external, index, 0}};
}

PatternValue PatternBuilder::constant(ValueCondition condition, const std::string& name) {
  if (name.empty()) parts_.externals.emplace_back();
  const auto index =
      name.empty() ? static_cast<std::uint32_t>(parts_.externals.size() - 1) : input(name).input_.index;
  parts_.externals[index].is_constant = true;
  parts_.externals[index].value = std::move(condition);
  return {*this, {PatternInput::Kind::external, index, 0}};
}

void PatternBuilder::fail(std::string message) {
  if (!error_) error_ = Error(ErrorCode::invalid_argument, std::move(message));
}

PatternValue PatternBuilder::add(OpCondition op, std::initializer_list<PatternValue> inputs) {
  const auto index = static_cast<std::uint32_t>(parts_.nodes.size());
  PatternNode node{.id = cat("n", index), .op = std::move(op), .lists_inputs = true};
  std::ranges::sort(node.op.names);
  for (const PatternValue& value : inputs) {
    if (value.builder_ != this)
      fail(cat("input ", node.inputs.size(), " of ", node.id, " is a value of another pattern"));
    node.inputs.push_back(value.builder_ == this ? value.input_ : PatternInput{});
  }
  parts_.nodes.push_back(std::move(node));
  return {*this, {PatternInput::Kind::node, index, 0}};
}

PatternValue PatternBuilder::op(std::string_view op, std::initializer_list<PatternValue> inputs) {
  return add({.names = {std::string(op)}}, inputs);
}

PatternValue PatternBuilder::one_of(std::initializer_list<std::string_view> ops,
                                    std::initializer_list<PatternValue> inputs) {
  OpCondition condition;
  for (std::string_view op : ops) condition.names.emplace_back(op);
  return add(std::move(condition), inputs);
}

PatternValue PatternBuilder::with_trait(std::string_view trait, std::initializer_list<PatternValue> inputs) {
  PatternValue value = add({.traits = {std::string(trait)}}, inputs);
  parts_.nodes.back().lists_inputs = false;
  return value;
}

PatternBuilder& PatternBuilder::output(const PatternValue& value) {
  static_cast<void>(value.node());
  parts_.outputs.push_back({value.input_.index, value.input_.result, value.input_.result == 0});
  return *this;
}

PatternBuilder& PatternBuilder::cost(double cost) {
  parts_.cost = {.base = cost};
  return *this;
}

PatternBuilder& PatternBuilder::cost(PatternCost cost) {
  parts_.cost = std::move(cost);
  return *this;
}

PatternBuilder& PatternBuilder::kernel(std::string name) {
  parts_.kernel = std::move(name);
  return *this;
}

PatternBuilder& PatternBuilder::where(std::function<bool(const Graph&, const Tile&)> claim) {
  parts_.where = std::move(claim);
  return *this;
}

Result<Pattern> PatternBuilder::build() {
  if (error_) return *error_;
  PatternParts parts = parts_;
  if (parts.outputs.empty()) parts.outputs = sinks_of(parts.nodes);
  return Pattern::create(std::move(parts));
}

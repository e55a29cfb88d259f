// Patterns in C++, written with the operators of tensors:
//
//   PatternBuilder p("linear_relu");
//   const auto x = p.input("x"), w = p.input("w"), b = p.input("b");
//   const auto y = p.op("relu", {p.op("matmul", {x, w}) + b});
//   const Pattern pattern = TESSERA_TRY(p.cost(1.5).build());
//
// A value is a small handle; it belongs to the builder that made it and must not outlive it.
#pragma once

#include <initializer_list>
#include <optional>

#include "tessera/pattern/pattern.h"

namespace tessera::pattern {

class PatternBuilder;

/// A node's result or an external input of the pattern that is being built.
class PatternValue {
 public:
  // Of the node; the value itself comes back, so that calls can follow each other. REQUIRES it is a node.
  /// The node's id in matches; by default "n0", "n1", …
  const PatternValue& as(std::string id) const;
  /// Lists an attribute. Other attributes are then no longer allowed, except for those listed too.
  const PatternValue& attribute(std::string name, ValueCondition condition) const;
  const PatternValue& attribute(AttributeCondition condition) const;
  const PatternValue& attribute(std::string name, AttributeValue value) const {
    return attribute(std::move(name), ValueCondition::equal_to(std::move(value)));
  }
  /// No attributes are allowed but those that are listed.
  const PatternValue& only_listed_attributes() const;
  const PatternValue& dtype(std::vector<ir::Dtype> one_of) const;
  /// The node may be missing; its consumers then take what stands in its slot `passes`.
  const PatternValue& optional(std::uint32_t passes = 0) const;
  /// The node stands for `least` to `most` ops in a row.
  const PatternValue& repeated(std::uint32_t least = 1, std::uint32_t most = none) const;
  /// Result k of the same node.
  [[nodiscard]] PatternValue result(std::uint32_t k) const;

 private:
  friend class PatternBuilder;
  PatternValue(PatternBuilder& builder, PatternInput input) : builder_(&builder), input_(input) {}
  [[nodiscard]] PatternNode& node() const;

  PatternBuilder* builder_;
  PatternInput input_;

  friend PatternValue operator+(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator-(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator*(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator/(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator%(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator<(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator<=(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator>(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator>=(const PatternValue& a, const PatternValue& b);
  friend PatternValue operator-(const PatternValue& a);
  friend PatternValue operator*(const PatternValue& a, double b);
  friend PatternValue operator*(double a, const PatternValue& b);
  friend PatternValue operator+(const PatternValue& a, double b);
  friend PatternValue operator+(double a, const PatternValue& b);
  friend PatternValue operator-(const PatternValue& a, double b);
  friend PatternValue operator-(double a, const PatternValue& b);
  friend PatternValue operator/(const PatternValue& a, double b);
  friend PatternValue operator/(double a, const PatternValue& b);
};

class PatternBuilder {
 public:
  explicit PatternBuilder(std::string name) { parts_.name = std::move(name); }
  PatternBuilder(const PatternBuilder&) = delete;
  PatternBuilder& operator=(const PatternBuilder&) = delete;

  /// The external input of that name. Asked again, the same.
  PatternValue input(const std::string& name, std::vector<ir::Dtype> one_of = {});
  /// A constant of the graph that satisfies the condition.
  PatternValue constant(ValueCondition condition = {}, const std::string& name = {});
  /// Any value from outside the match.
  PatternValue any() { return {*this, PatternInput{}}; }

  /// A node whose op is `op`, in any spelling, with exactly these inputs.
  PatternValue op(std::string_view op, std::initializer_list<PatternValue> inputs);
  /// A node whose op is one of several.
  PatternValue one_of(std::initializer_list<std::string_view> ops,
                      std::initializer_list<PatternValue> inputs);
  /// A node whose op has a trait. Inputs beyond those given are open.
  PatternValue with_trait(std::string_view trait, std::initializer_list<PatternValue> inputs);

  /// Declares an output: a node with all its results, or with result(k) only that one. Without any, the sinks
  /// are the outputs.
  PatternBuilder& output(const PatternValue& value);
  PatternBuilder& cost(double cost);
  PatternBuilder& cost(PatternCost cost);
  PatternBuilder& kernel(std::string name);
  PatternBuilder& where(std::function<bool(const Graph&, const Tile&)> claim);

  /// The pattern, or the first thing that was wrong in building it.
  [[nodiscard]] Result<Pattern> build();

 private:
  friend class PatternValue;
  PatternValue add(OpCondition op, std::initializer_list<PatternValue> inputs);

  /// Keeps the first mistake for build().
  void fail(std::string message);

  PatternParts parts_;
  PatternNode no_node_;  ///< takes what was said of a node that is none
  std::optional<Error> error_;
};

}  // namespace tessera::pattern

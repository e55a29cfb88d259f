// Shape rules on sizes that are symbols: what shape_rule.h does with numbers, so that one plan serves many
// sizes.
#pragma once

#include <map>
#include <span>
#include <string>

#include "tessera/describe/shape_rule.h"
#include "tessera/op/call_info.h"

namespace tessera::description {

/// The sizes of a call that rules name.
class SizeSymbols {
 public:
  SizeSymbols(const op::CallInfo& call, std::vector<op::Shape> inputs)
      : call_(call), inputs_(std::move(inputs)) {}

  /// Binds the names that stand alone in the rule of input `i`, and checks the other sizes. `name` is that of
  /// the input, for messages.
  [[nodiscard]] Result<void> bind(const ShapeRule& rule, std::size_t i, std::string_view name);
  /// The shape that a rule gives.
  [[nodiscard]] Result<op::Shape> evaluate(const ShapeRule& rule) const;

 private:
  [[nodiscard]] Result<const op::Shape*> input(std::size_t i) const;
  [[nodiscard]] Result<op::Dim> size(const SizeRule& rule, std::size_t axis) const;
  [[nodiscard]] Result<op::Dim> leaf(const SizeCode& code, std::size_t axis) const;

  const op::CallInfo& call_;
  std::vector<op::Shape> inputs_;
  std::map<std::string, op::Dim, std::less<>> names_;
};

}  // namespace tessera::description

#include "tessera/describe/size_symbols.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::description;
using op::Dim;

namespace {

bool is_name(const SizeRule& rule) { return rule.size() == 1 && rule[0].kind == SizeCode::Kind::name; }

Dim apply(SizeCode::Kind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case SizeCode::Kind::add:
      return a + b;
    case SizeCode::Kind::subtract:
      return a - b;
    case SizeCode::Kind::multiply:
      return a * b;
    case SizeCode::Kind::divide:
      return ir::floor_div(a, b);
    default:
      return ir::floor_mod(a, b);
  }
}

}  // namespace

Result<const op::Shape*> SizeSymbols::input(std::size_t i) const {
  if (i < inputs_.size()) return &inputs_[i];
  return call_.error("a rule names input ", i, ", it reads ", inputs_.size());
}

Result<Dim> SizeSymbols::leaf(const SizeCode& code, std::size_t axis) const {
  if (code.kind == SizeCode::Kind::number) return Dim(code.number);
  const bool is_dim = code.kind == SizeCode::Kind::dim;
  if (const auto found = is_dim ? names_.end() : names_.find(code.name); found != names_.end())
    return found->second;
  const std::size_t from = is_dim ? code.input : 0,
                    at = is_dim ? static_cast<std::size_t>(code.number) : axis;
  const op::Shape& shape = *TESSERA_TRY(input(from));
  if (at < shape.size()) return shape[at];
  return call_.error("a rule takes axis ", at, " of input ", from, ", which has shape ", shape);
}

Result<Dim> SizeSymbols::size(const SizeRule& rule, std::size_t axis) const {
  std::vector<Dim> stack;
  for (const SizeCode& code : rule) {
    if (code.kind <= SizeCode::Kind::dim) {
      stack.push_back(TESSERA_TRY(leaf(code, axis)));
      continue;
    }
    const Dim b = stack.back();
    stack.pop_back();
    const bool divides = code.kind == SizeCode::Kind::divide || code.kind == SizeCode::Kind::modulo;
    if (divides && !ir::provably_at_least(b, 1) && !ir::provably_at_least(Dim(-1), b))
      return call_.error("the size at axis ", axis, " may divide by 0");
    stack.back() = apply(code.kind, stack.back(), b);
  }
  return stack.back();
}

Result<void> SizeSymbols::bind(const ShapeRule& rule, std::size_t i, std::string_view name) {
  const op::Shape shape = inputs_[i];
  if (rule.kind == ShapeRule::Kind::sizes) {
    if (rule.sizes.size() != shape.size())
      return call_.error("'", name, "' has shape ", shape, ", rank ", rule.sizes.size(), " is expected");
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (is_name(rule.sizes[axis])) names_.emplace(rule.sizes[axis][0].name, shape[axis]);
  }
  const op::Shape expected = TESSERA_TRY(evaluate(rule));
  if (expected.size() != shape.size())
    return call_.error("'", name, "' has shape ", shape, ", expected ", expected);
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    (void)TESSERA_TRY(call_.unify(expected[axis], shape[axis],
                                  cat("axis ", axis, " of '", name, "', which has shape ", ir::to_text(shape),
                                      ", expected ", ir::to_text(expected))));
  return {};
}

Result<op::Shape> SizeSymbols::evaluate(const ShapeRule& rule) const {
  if (rule.kind == ShapeRule::Kind::same) return *TESSERA_TRY(input(rule.inputs[0]));
  op::Shape out;
  if (rule.kind == ShapeRule::Kind::broadcast) {
    for (const std::size_t i : rule.inputs) {
      const op::Shape& next = *TESSERA_TRY(input(i));
      out = TESSERA_TRY(call_.broadcast(out, next, "the inputs before", cat("input ", i)));
    }
    return out;
  }
  for (std::size_t axis = 0; axis < rule.sizes.size(); ++axis)
    out.push_back(TESSERA_TRY(size(rule.sizes[axis], axis)));
  return out;
}

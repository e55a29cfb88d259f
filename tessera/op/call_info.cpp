#include "tessera/op/call_info.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/ir/describe.h"

using namespace tessera;
using namespace tessera::op;

namespace {

std::string_view kind_with_article(AttributeKind kind) {
  static constexpr std::string_view names[] = {
      "a boolean",          "an integer",        "a number", "a text", "a dtype",
      "a list of integers", "a list of numbers", "a shape",  "a size"};
  return names[static_cast<std::size_t>(kind)];
}

AttributeValue default_value(const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return spec.integer != 0;
    case AttributeKind::integer:
      return spec.integer;
    case AttributeKind::number:
      return spec.number;
    case AttributeKind::text:
      return std::string(spec.text);
    case AttributeKind::dtype:
      return static_cast<Dtype>(spec.integer);
    case AttributeKind::integers:
      return std::vector<std::int64_t>();
    case AttributeKind::numbers:
      return std::vector<double>();
    case AttributeKind::shape:
      return Shape();
    case AttributeKind::size:
      return Shape{spec.integer};
  }
  return false;
}

/// Which alternative of an AttributeValue holds a kind.
std::size_t alternative_of(AttributeKind kind) {
  static constexpr std::size_t alternatives[] = {0, 1, 2, 3, 4, 5, 6, 8, 8};
  return alternatives[static_cast<std::size_t>(kind)];
}

/// The value as the kind the card asks for: an integer may stand for a number or a size, a list of integers
/// for a shape.
std::optional<AttributeValue> converted(const AttributeValue& value, AttributeKind kind) {
  if (kind == AttributeKind::number && std::holds_alternative<std::int64_t>(value))
    return static_cast<double>(std::get<std::int64_t>(value));
  if (kind == AttributeKind::shape && std::holds_alternative<std::vector<std::int64_t>>(value))
    return ir::shape_of(std::get<std::vector<std::int64_t>>(value));
  if (kind == AttributeKind::integers && std::holds_alternative<Shape>(value)) {
    const auto numbers = ir::constant_shape(std::get<Shape>(value));
    if (numbers) return std::vector<std::int64_t>(numbers->begin(), numbers->end());
  }
  if (kind == AttributeKind::numbers && std::holds_alternative<std::vector<std::int64_t>>(value)) {
    const auto& integers = std::get<std::vector<std::int64_t>>(value);
    return std::vector<double>(integers.begin(), integers.end());
  }
  if (kind == AttributeKind::size) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return Shape{*integer};
    const auto* shape = std::get_if<Shape>(&value);
    return shape != nullptr && shape->size() == 1 ? std::optional(value) : std::nullopt;
  }
  if (value.index() == alternative_of(kind)) return value;
  return std::nullopt;
}

/// Whether every attribute of the card is given, and as the card asks for it: most calls that were completed
/// before.
bool is_complete(const Card& card, const Attributes& given) {
  if (given.size() != card.attributes.size()) return false;
  return std::all_of(card.attributes.begin(), card.attributes.end(), [&](const AttributeSpec& spec) {
    const AttributeValue* value = given.find(spec.name);
    return value != nullptr && spec.kind != AttributeKind::size &&
           value->index() == alternative_of(spec.kind);
  });
}

Error call_error(const Card& card, ErrorCode code, std::string message) {
  return Error(code, cat(card.name, ": ", message));
}

/// A sum or product of numbers that does not fit stays an expression, one without symbols.
bool has_overflowed(const Dim& dim) { return !dim.is_constant() && !dim.expr()->has_variables(); }

/// How many inputs a call must and may have.
Result<void> check_count(const Card& card, std::size_t given) {
  const auto required =
      static_cast<std::size_t>(std::count_if(card.inputs.begin(), card.inputs.end(), [](const Input& input) {
        return input.kind != InputKind::optional;
      }));
  const bool variadic = !card.inputs.empty() && card.inputs.back().kind == InputKind::variadic;
  const std::size_t most = variadic ? std::numeric_limits<std::size_t>::max() : card.inputs.size();
  if (given >= required && given <= most) return {};
  const std::string wanted = variadic           ? cat("at least ", required)
                             : required == most ? cat(required)
                                                : cat(required, " to ", most);
  return call_error(card, ErrorCode::invalid_argument, cat("takes ", wanted, " inputs, got ", given));
}

std::string names_of(DtypeSet set) {
  std::vector<std::string_view> names;
  for (Dtype dtype : ir::all_dtypes())
    if (set.contains(dtype)) names.push_back(to_string(dtype));
  return join(names, " ");
}

class InputChecker {
 public:
  explicit InputChecker(const CallInfo& call) : call_(call) {}

  Result<void> run() {
    for (std::size_t i = 0; i < call_.inputs().size(); ++i) {
      const Input& spec = call_.card().inputs[std::min(i, call_.card().inputs.size() - 1)];
      const ValueType& type = call_.input(i);
      if (spec.kind == InputKind::scalar && type.rank() != 0)
        return call_.error("input ", call_.input_name(i), " must be a scalar, got ", type);
      if (type.rank() > max_rank)
        return call_.error("input ", call_.input_name(i), " has rank ", type.rank(), ", at most ", max_rank,
                           " is supported");
      TESSERA_TRY(check_dtype(i, spec, type.dtype));
    }
    return {};
  }

 private:
  Result<void> check_dtype(std::size_t i, const Input& spec, Dtype dtype) {
    if (spec.type == "any") return {};
    if (spec.type == "T" || spec.type == "U") {
      TESSERA_TRY(must_be_in(i, spec.type == "T" ? call_.card().T : call_.card().U, dtype));
      auto& first = spec.type == "T" ? first_t_ : first_u_;
      if (first && call_.input(*first).dtype != dtype)
        return call_.error("inputs ", call_.input_name(*first), " and ", call_.input_name(i),
                           " have different dtypes: ", call_.input(*first).dtype, " and ", dtype);
      if (!first) first = i;
      return {};
    }
    if (spec.type == "index") return must_be_in(i, index_dtypes, dtype);
    if (spec.type == "bool") return must_be_in(i, bool_dtypes, dtype);
    return must_be_in(i, DtypeSet{ir::parse_dtype(spec.type).value_or(Dtype::i64)}, dtype);
  }
  Result<void> must_be_in(std::size_t i, DtypeSet set, Dtype dtype) const {
    if (set.contains(dtype)) return {};
    return call_.error("input ", call_.input_name(i), " has dtype ", dtype, ", expected one of ",
                       names_of(set));
  }

  const CallInfo& call_;
  std::optional<std::size_t> first_t_, first_u_;
};

Result<ValueTypes> infer_elementwise(const CallInfo& call) {
  Dtype dtype = call.inputs().empty() ? Dtype::f32 : call.input(0).dtype;
  for (std::size_t i = 0; i < call.inputs().size(); ++i)
    if (call.card().inputs[i].type == "T") {
      dtype = call.input(i).dtype;
      break;
    }
  if (call.card().result == ResultDtype::boolean) dtype = Dtype::boolean;
  if (call.card().result == ResultDtype::i64) dtype = Dtype::i64;
  auto shape = TESSERA_TRY(call.broadcast_inputs());
  return ValueTypes{{dtype, std::move(shape)}};
}

/// Element-wise on values of one type, which is valid already: most calls that gradients write.
bool is_plain(const Card& card, std::span<const ValueType> inputs) {
  if (card.infer != nullptr || inputs.size() != card.inputs.size() || inputs.empty()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (card.inputs[i].kind != InputKind::tensor || card.inputs[i].type != "T" || inputs[i] != inputs[0])
      return false;
  return card.T.contains(inputs[0].dtype) && inputs[0].rank() <= max_rank;
}

}  // namespace

Error CallInfo::make_error(ErrorCode code, std::string message) const {
  return call_error(card_, code, std::move(message));
}

std::string CallInfo::input_name(std::size_t i) const {
  const std::size_t last = card_.inputs.size() - 1;
  if (card_.inputs[last].kind == InputKind::variadic && i >= last)
    return cat("'", card_.inputs[last].name, "[", i - last, "]'");
  return cat("'", card_.inputs[i].name, "'");
}

Result<std::size_t> CallInfo::axis(std::int64_t value, std::size_t rank, std::string_view what) const {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (value < -signed_rank || value >= signed_rank)
    return error(what, " ", value, " is outside [", -signed_rank, ", ", signed_rank,
                 ") for a tensor of rank ", rank);
  return static_cast<std::size_t>(value < 0 ? value + signed_rank : value);
}

Result<std::vector<std::size_t>> CallInfo::axes(std::string_view name, std::size_t rank) const {
  std::vector<std::size_t> out;
  for (std::int64_t value : integers(name)) out.push_back(TESSERA_TRY(axis(value, rank)));
  std::sort(out.begin(), out.end());
  const auto twice = std::adjacent_find(out.begin(), out.end());
  if (twice != out.end()) return error("axis ", *twice, " is given twice in '", name, "'");
  if (out.empty())
    for (std::size_t i = 0; i < rank; ++i) out.push_back(i);
  return out;
}

Result<Dim> CallInfo::unify(const Dim& a, const Dim& b, std::string_view what) const {
  if (provably_equal(a, b)) return a.is_constant() ? a : b;
  if (provably_different(a, b)) return error(what, ": ", a, " and ", b, " do not agree");
  if (assumptions_ == nullptr) return error(what, ": cannot tell whether ", a, " and ", b, " agree");
  assumptions_->equal.emplace_back(a, b);
  return a.is_constant() ? a : b;
}

Result<Shape> CallInfo::broadcast(const Shape& a, const Shape& b, std::string_view a_name,
                                  std::string_view b_name) const {
  Shape out(std::max(a.size(), b.size()), Dim(1));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t from_end = out.size() - i;
    const Dim x = from_end <= a.size() ? a[a.size() - from_end] : Dim(1);
    const Dim y = from_end <= b.size() ? b[b.size() - from_end] : Dim(1);
    if (x == Dim(1)) {
      out[i] = y;
    } else if (y == Dim(1) || x == y) {
      out[i] = x;
    } else {
      out[i] = TESSERA_TRY(
          unify(x, y, cat("axis ", i, " of ", a_name, " of shape ", a, " and ", b_name, " of shape ", b)));
    }
  }
  return out;
}

Result<Shape> CallInfo::broadcast_inputs() const {
  if (inputs_.empty()) return Shape();
  Shape out = inputs_[0].shape;
  for (std::size_t i = 1; i < inputs_.size(); ++i) {
    // Nearly always there is nothing to do, and the names of the inputs are not needed.
    if (inputs_[i].rank() == 0 || inputs_[i].shape == out) continue;
    out = TESSERA_TRY(
        broadcast(out, inputs_[i].shape, i == 1 ? input_name(0) : "the inputs before", input_name(i)));
  }
  return out;
}

Attributes tessera::op::complete_attributes(const Card& card, const Attributes& given,
                                            std::vector<Error>& errors) {
  const auto fail = [&](std::string message) {
    errors.push_back(call_error(card, ErrorCode::invalid_argument, std::move(message)));
  };
  Attributes out;
  for (const auto& [name, value] : given.entries()) {
    const auto spec = std::find_if(card.attributes.begin(), card.attributes.end(),
                                   [&](const AttributeSpec& s) { return s.name == name; });
    if (spec == card.attributes.end()) {
      fail(cat("has no attribute '", printable(name), "'"));
      continue;
    }
    auto typed = converted(value, spec->kind);
    if (!typed)
      fail(cat("attribute '", name, "' must be ", kind_with_article(spec->kind), ", got ",
               ir::describe(value)));
    else
      out.set(name, *std::move(typed));
  }
  for (const AttributeSpec& spec : card.attributes) {
    if (out.find(spec.name) != nullptr || spec.may_be_absent) continue;
    if (!spec.required)
      out.set(std::string(spec.name), default_value(spec));
    else if (given.find(spec.name) == nullptr)
      fail(cat("needs the attribute '", spec.name, "'"));
  }
  return out;
}

Result<Attributes> tessera::op::complete_attributes(const Card& card, Attributes given) {
  if (is_complete(card, given)) return given;
  std::vector<Error> errors;
  Attributes out = complete_attributes(card, given, errors);
  if (!errors.empty()) return std::move(errors.front());
  return out;
}

Result<ValueTypes> tessera::op::infer(const Card& card, std::span<const ValueType> inputs,
                                      const Attributes& attributes, Assumptions* assumptions) {
  if (card.result == ResultDtype::same && is_plain(card, inputs)) return ValueTypes{inputs[0]};
  TESSERA_TRY(check_count(card, inputs.size()));
  const CallInfo call(card, inputs, attributes, assumptions);
  TESSERA_TRY(InputChecker(call).run());
  auto types = TESSERA_TRY(card.infer != nullptr ? card.infer(call) : infer_elementwise(call));
  for (const ValueType& type : types) {
    if (type.rank() > max_rank)
      return call.error("the result has rank ", type.rank(), ", at most ", max_rank, " is supported");
    for (const Dim& dim : type.shape) {
      if (dim.is_constant() && dim.value() < 0) return call.error("the result would have shape ", type.shape);
      if (has_overflowed(dim))
        return call.error("a result of shape ", type.shape, " has a size that does not fit 64 bits");
    }
    const auto extents = ir::constant_shape(type.shape);
    if (extents && !ir::element_count(type.shape))
      return call.error("a result of shape ", type.shape, " has too many elements");
  }
  return types;
}

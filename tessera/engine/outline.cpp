#include "tessera/engine/outline.h"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/text.h"
#include "tessera/ir/describe.h"
#include "tessera/ir/dim.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

using Kind = OutlineOperand::Kind;

std::string name_of(const Node& node) {
  if (node.is(Node::is_result)) return cat("result ", node.extra->result);
  if (node.extra != nullptr && node.extra->function) return node.extra->function->name;
  return std::string(node.card->name);
}

/// "model.cpp:12", without folders.
std::string place_of(const OutlineOp& op) {
  if (op.file == nullptr) return "?";
  const std::string_view file = op.file;
  return cat(file.substr(file.find_last_of('/') + 1), ":", op.line);
}

std::string type_of(Dtype dtype, const Extents& shape) { return cat(dtype, "[", join(shape, ", "), "]"); }

std::string text_of(const ir::AttributeValue& value) {
  if (const auto* shape = std::get_if<op::Shape>(&value)) return ir::to_text(*shape);
  return ir::describe(value);
}

std::string text_of(const Outline& outline, const OutlineOperand& operand) {
  switch (operand.kind) {
    case Kind::number:
      return "a number";
    case Kind::input:
      return cat("input ", operand.index);
    case Kind::step:
      return cat("the result of ", outline.ops[operand.index].name, " (",
                 place_of(outline.ops[operand.index]), ")");
  }
  return "?";
}

std::string ordinal(std::size_t slot) { return cat("operand ", slot); }

/// What of two ops is compared: what no plan allows to differ, or the numbers.
enum class Compared : std::uint8_t { structure, numbers };

/// What differs between two ops of one place, or nothing. Numbers are compared of ops of one structure.
class OpDifference {
 public:
  OpDifference(const Outline& before, const Outline& now, std::size_t i, Compared what)
      : before_(before), now_(now), a_(before.ops[i]), b_(now.ops[i]), what_(what) {}

  [[nodiscard]] std::string text() const {
    if (a_.name != b_.name) return cat(here(), b_.name, ", where the plan has ", a_.name, there());
    for (const auto check : {&OpDifference::operands, &OpDifference::attributes, &OpDifference::result})
      if (std::string found = (this->*check)(); !found.empty())
        return cat(here(), b_.name, ": ", found, there());
    return "";
  }

 private:
  [[nodiscard]] bool compares_numbers() const { return what_ == Compared::numbers; }
  [[nodiscard]] std::string here() const { return cat(place_of(b_), ": "); }
  [[nodiscard]] std::string there() const {
    return place_of(a_) == place_of(b_) ? "" : cat(" (", place_of(a_), ")");
  }

  [[nodiscard]] std::string operands() const {
    if (a_.operands.size() != b_.operands.size())
      return cat("takes ", b_.operands.size(), " operands, the plan's takes ", a_.operands.size());
    for (std::size_t k = 0; k < a_.operands.size(); ++k) {
      const OutlineOperand &x = a_.operands[k], &y = b_.operands[k];
      if (!(x == y))
        return cat(ordinal(k), " is ", text_of(now_, y), ", in the plan it is ", text_of(before_, x));
      if (y.kind == Kind::input)
        if (std::string found = input(y.index, k); !found.empty()) return found;
    }
    return "";
  }

  [[nodiscard]] std::string input(std::uint32_t index, std::size_t slot) const {
    const OutlineInput &x = before_.inputs[index], &y = now_.inputs[index];
    const std::string what = cat(ordinal(slot), " (input ", index, ")");
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size())
      return cat(what, " is ", type_of(y.dtype, y.shape), ", in the plan ", type_of(x.dtype, x.shape));
    if (compares_numbers()) return dimension(what, x.shape, y.shape);
    if (x.is_contiguous != y.is_contiguous)
      return cat(what, y.is_contiguous ? " is contiguous" : " is a view with strides",
                 ", in the plan it is not");
    return "";
  }

  static std::string dimension(const std::string& what, const Extents& x, const Extents& y) {
    for (std::size_t d = 0; d < x.size(); ++d)
      if (x[d] != y[d]) return cat("dimension ", d, " of ", what, " is ", y[d], ", in the plan ", x[d]);
    return "";
  }

  [[nodiscard]] std::string attributes() const {
    for (const auto& [name, value] : b_.attributes.entries()) {
      const ir::AttributeValue* other = a_.attributes.find(name);
      if (other == nullptr) return cat("has ", name, " = ", text_of(value), ", the plan's has not");
      const auto* sizes = std::get_if<op::Shape>(&value);
      const auto* others = std::get_if<op::Shape>(other);
      const bool are_sizes = sizes != nullptr && others != nullptr && sizes->size() == others->size();
      if (are_sizes && !compares_numbers()) continue;
      if (text_of(*other) != text_of(value))
        return cat(name, " is ", text_of(value), ", in the plan ", text_of(*other));
    }
    for (const auto& [name, value] : a_.attributes.entries())
      if (b_.attributes.find(name) == nullptr)
        return cat("has no ", name, ", the plan's has ", text_of(value));
    return "";
  }

  [[nodiscard]] std::string result() const {
    if (a_.dtype != b_.dtype || a_.shape.size() != b_.shape.size())
      return cat("gives ", type_of(b_.dtype, b_.shape), ", in the plan ", type_of(a_.dtype, a_.shape));
    if (compares_numbers()) return dimension("the result", a_.shape, b_.shape);
    if (a_.is_kept != b_.is_kept)
      return b_.is_kept ? "the program holds its result, in the plan it is dropped"
                        : "nobody holds its result, in the plan it is kept";
    return "";
  }

  const Outline& before_;
  const Outline& now_;
  const OutlineOp& a_;
  const OutlineOp& b_;
  Compared what_;
};

/// Calls `f` with each number of an outline in the order of the key, and with null for one that it has not:
/// a stride, or a size of another result. Positions are not among them.
template <class F>
void for_each_size(Outline& outline, F&& f) {
  std::size_t known = 0;
  const auto each = [&](auto& list) {
    for (auto& entry : list) f(&entry);
  };
  const auto skip = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) f(static_cast<std::int64_t*>(nullptr));
  };
  for (OutlineOp& op : outline.ops) {
    for (const OutlineOperand& operand : op.operands) {
      if (operand.kind != Kind::input || operand.index != known) continue;
      OutlineInput& input = outline.inputs[known++];
      each(input.shape);
      if (!input.is_contiguous) skip(input.shape.size());
    }
    for (auto& [name, value] : op.attributes.mutable_entries())
      if (auto* shape = std::get_if<op::Shape>(&value); shape != nullptr && op.position_count == 0)
        each(*shape);
    skip(op.other_sizes);
    each(op.shape);
  }
}

/// Where a part begins and ends.
void take_position(OutlineOp& to, const OutlineOp& from, std::size_t entry) {
  for (auto& [name, value] : to.attributes.mutable_entries())
    if (auto* list = std::get_if<op::Shape>(&value))
      if (const auto* other = from.attributes.get<op::Shape>(name); other != nullptr && entry < other->size())
        (*list)[entry] = (*other)[entry];
}

/// `before` with the numbers that its plan would have where it serves the sizes of `now`.
Outline as_allowed(Outline before, const SizeRules& rules, const Outline& now) {
  if (now.sizes.size() != rules.rules().size()) return before;
  const std::vector<std::int64_t> expected = rules.expected(now.sizes);
  std::size_t next = 0;
  for_each_size(before, [&](auto* size) {
    if (size != nullptr && next < expected.size()) *size = expected[next];
    ++next;
  });
  for (std::size_t i = 0; i < before.ops.size(); ++i)
    for (std::size_t entry = 0; entry < before.ops[i].position_count; ++entry, ++next)
      if (next < expected.size() && expected[next] == now.sizes[next])
        take_position(before.ops[i], now.ops[i], entry);
  return before;
}

}  // namespace

Outline Outline::of(const Needed& needed, std::span<const std::uint32_t> steps,
                    std::span<const std::uint32_t> local, const PlanKey& key) {
  Outline out;
  std::unordered_map<const Node*, std::uint32_t> number;
  for (const KeyInput& input : key.inputs) {
    number.emplace(input.node, static_cast<std::uint32_t>(number.size()));
    out.inputs.push_back({.dtype = input.node->dtype,
                          .shape = Extents(input.node->shape().begin(), input.node->shape().end()),
                          .is_contiguous = input.storage->layout.is_contiguous()});
  }
  out.sizes.assign(key.sizes.begin(), key.sizes.end());
  const std::size_t count = steps.empty() ? needed.size() : steps.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t step = steps.empty() ? i : steps[i];
    const Node& node = needed.node(step);
    OutlineOp op{.name = name_of(node),
                 .file = node.file,
                 .line = node.line,
                 .attributes = node.attributes(),
                 .dtype = node.dtype,
                 .shape = Extents(node.shape().begin(), node.shape().end()),
                 .is_kept = needed.must_keep(step)};
    op.position_count = PlanKey::positions_of(node);
    for (std::size_t k = 1; node.extra != nullptr && k < node.extra->results.size(); ++k)
      op.other_sizes += node.extra->results[k].rank();
    std::size_t slot = 0;
    for (const std::uint32_t from : needed.from(step)) {
      const Node* input = node.input(slot++);
      if (from != Needed::stored)
        op.operands.push_back({Kind::step, local.empty() ? from : local[from]});
      else if (input == nullptr)
        op.operands.push_back({Kind::number, 0});
      else
        op.operands.push_back({Kind::input, number.at(input)});
    }
    out.ops.push_back(std::move(op));
  }
  return out;
}

std::string tessera::engine::first_difference(const Outline& before, const SizeRules& rules,
                                              const Outline& now) {
  const std::size_t common = std::min(before.ops.size(), now.ops.size());
  for (std::size_t i = 0; i < common; ++i)
    if (std::string found = OpDifference(before, now, i, Compared::structure).text(); !found.empty())
      return found;
  if (now.ops.size() > common)
    return cat(place_of(now.ops[common]), ": ", now.ops[common].name, " and ", now.ops.size() - common - 1,
               " more ops, where the plan ends");
  if (before.ops.size() > common)
    return cat("the plan goes on with ", before.ops[common].name, " (", place_of(before.ops[common]),
               ") and ", before.ops.size() - common - 1, " more ops");
  const Outline allowed = as_allowed(before, rules, now);
  for (std::size_t i = 0; i < common; ++i)
    if (std::string found = OpDifference(allowed, now, i, Compared::numbers).text(); !found.empty())
      return found;
  return "";
}

std::size_t tessera::engine::common_ops(const Outline& a, const Outline& b) {
  const std::size_t common = std::min(a.ops.size(), b.ops.size());
  for (std::size_t i = 0; i < common; ++i)
    if (!OpDifference(a, b, i, Compared::structure).text().empty()) return i;
  return common;
}

// Sequences and optionals. A sequence is known to the importer, its tensors need not be: no op knows
// sequences.
#include <algorithm>

#include "tessera/onnx/mapping.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

Result<Items> map_sequence_empty(NodeCall&) { return Items{Item::of_sequence({})}; }

Result<Items> map_sequence_construct(NodeCall& node) { return Items{Item::of_sequence(node.all())}; }

/// The place that input `i` names in `places` places, the last one if it is not given.
Result<std::size_t> place(NodeCall& node, std::size_t i, std::size_t places) {
  const auto count = static_cast<std::int64_t>(places);
  if (!node.has(i)) return places - 1;
  const std::int64_t at = TESSERA_TRY(node.integer_in(i));
  if (at < -count || at >= count)
    return node.error("position ", at, " is outside [", -count, ", ", count, ")");
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

Result<Items> map_sequence_at(NodeCall& node) {
  const Values& all = node.sequence(0);
  TESSERA_TRY(node.status());
  if (all.empty()) return node.error("the sequence is empty");
  return Items{all[TESSERA_TRY(place(node, 1, all.size()))]};
}

/// Where input 2 inserts: before the element it names, at the end if it is not given or the length.
Result<std::size_t> insertion_place(NodeCall& node, std::size_t length) {
  const auto count = static_cast<std::int64_t>(length);
  const std::int64_t at = node.has(2) ? TESSERA_TRY(node.integer_in(2)) : count;
  if (at < -count || at > count)
    return node.error("position ", at, " is outside [", -count, ", ", count, "]");
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

Result<Items> map_sequence_insert(NodeCall& node) {
  Values all = node.sequence(0);
  const Value value = node.in(1);
  TESSERA_TRY(node.status());
  const std::size_t at = TESSERA_TRY(insertion_place(node, all.size()));
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), value);
  return Items{Item::of_sequence(std::move(all))};
}

Result<Items> map_sequence_erase(NodeCall& node) {
  Values all = node.sequence(0);
  TESSERA_TRY(node.status());
  if (all.empty()) return node.error("the sequence is empty");
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(TESSERA_TRY(place(node, 1, all.size()))));
  return Items{Item::of_sequence(std::move(all))};
}

Result<Items> map_sequence_length(NodeCall& node) {
  return Items{node.b.extent(static_cast<std::int64_t>(node.sequence(0).size()))};
}

/// The sizes of the parts: all of one size but perhaps the last, or as listed.
Result<std::vector<Dim>> part_sizes(NodeCall& node, const Dim& whole, bool& is_single) {
  if (!whole.is_constant()) return node.unsupported("the size ", whole, " must be a number");
  is_single = !node.has(1);
  if (is_single) {
    if (whole.value() > node.bodies.limits().iterations)
      return Error(ErrorCode::limit, cat("a sequence of ", whole, " tensors is too long"));
    return std::vector<Dim>(static_cast<std::size_t>(whole.value()), Dim(1));
  }
  const auto given = TESSERA_TRY(node.integers_in(1));
  if (node.in(1).rank() != 0) return std::vector<Dim>(given.begin(), given.end());
  if (given[0] < 1) return node.error("input 1 is ", given[0], ", expected 1 or more");
  if (whole.value() / given[0] > node.bodies.limits().iterations)
    return Error(ErrorCode::limit, cat("a sequence of parts of ", given[0], " of ", whole, " is too long"));
  std::vector<Dim> out;
  for (std::int64_t rest = whole.value(); rest > 0; rest -= given[0])
    out.emplace_back(std::min(rest, given[0]));
  return out;
}

Result<Items> map_split_to_sequence(NodeCall& node) {
  const Value x = node.in(0);
  TESSERA_TRY(node.status());
  const std::int64_t axis = TESSERA_TRY(node.axis(node.integer("axis", 0), x.rank()));
  bool is_single = false;
  const auto sizes = TESSERA_TRY(part_sizes(node, x.shape()[static_cast<std::size_t>(axis)], is_single));
  Values parts =
      node.b.call_all("split", {x}, {{"sizes", Shape(sizes.begin(), sizes.end())}, {"axis", axis}});
  if (is_single && !node.flag("keepdims", true))
    for (Value& part : parts) part = node.b.call("squeeze", {part}, {{"axes", std::vector{axis}}});
  return Items{Item::of_sequence(std::move(parts))};
}

Result<Items> map_concat_from_sequence(NodeCall& node) {
  Values all = node.sequence(0);
  TESSERA_TRY(node.status());
  if (all.empty()) return node.error("the sequence is empty");
  std::int64_t axis = node.integer("axis", 0);
  if (node.flag("new_axis", false)) {
    if (axis < 0) axis += static_cast<std::int64_t>(all[0].rank()) + 1;
    for (Value& one : all) one = node.b.call("unsqueeze", {one}, {{"axes", std::vector{axis}}});
  }
  return Items{node.b.call("concat", all, {{"axis", axis}})};
}

// ---- optionals

Result<Items> map_optional(NodeCall& node) { return Items{node.has(0) ? node.item(0) : Item()}; }

Result<Items> map_optional_has_element(NodeCall& node) {
  const bool has = node.has(0) && node.item(0).kind != Item::Kind::none;
  return Items{node.b.constant(has ? 1 : 0, Dtype::boolean)};
}

Result<Items> map_optional_get_element(NodeCall& node) {
  const Item& item = node.item(0);
  if (item.kind == Item::Kind::none) return node.error("the optional is empty");
  return Items{item};
}

constexpr Mapping sequence_table[] = {
    {"ConcatFromSequence", map_concat_from_sequence},
    {"Optional", map_optional},
    {"OptionalGetElement", map_optional_get_element},
    {"OptionalHasElement", map_optional_has_element},
    {"SequenceAt", map_sequence_at},
    {"SequenceConstruct", map_sequence_construct},
    {"SequenceEmpty", map_sequence_empty},
    {"SequenceErase", map_sequence_erase},
    {"SequenceInsert", map_sequence_insert},
    {"SequenceLength", map_sequence_length},
    {"SplitToSequence", map_split_to_sequence},
};

}  // namespace

std::span<const Mapping> tessera::onnx::sequence_mappings() { return sequence_table; }

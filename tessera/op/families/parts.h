// Which elements slices and updates of them are about, for those who run or rewrite them.
// parts.cpp has those at attributes, moving_parts.cpp those at positions that are values.
#pragma once

#include "tessera/op/call_info.h"

namespace tessera::op {

/// What is taken of one axis: `count` indices from `start`, each `step` further. With a count of 0 the start
/// means nothing.
struct AxisPart {
  std::size_t axis = 0;
  Dim start;
  std::int64_t step = 1;
  Dim count;
};

/// The axes that the entries of a list, `starts` or `positions`, are about: those of the attribute `axes`, or
/// the first ones.
[[nodiscard]] Result<std::vector<std::size_t>> listed_axes(const CallInfo& call, std::string_view list,
                                                           std::size_t entries);
/// The attribute `steps`, for so many entries of a list; 1 if it is left out.
[[nodiscard]] Result<std::vector<std::int64_t>> listed_steps(const CallInfo& call, std::string_view list,
                                                             std::size_t entries);

/// The axes that a call of update_slice says something of; all of the others are replaced from end to end.
[[nodiscard]] Result<std::vector<AxisPart>> updated_axes(const CallInfo& call);

/// The elements of `x`, the layout of the first input or of the result, that a call of update_slice replaces.
/// Sizes are numbers.
[[nodiscard]] Result<Layout> updated_part(const CallInfo& call, Layout x);

/// Whether calls of a card have attributes that say where a part lies, and how the same is said by values.
struct PartForm {
  enum class Kind : std::uint8_t { none, slice, update };
  Kind kind = Kind::none;
  std::string_view by_values;  ///< the op that takes the positions as inputs
};
/// Of slice and update_slice; `none` of all others.
[[nodiscard]] PartForm part_form(const Card& card);
/// Where the parts begin that a call of slice or update_slice lists, in one form: inside the axis, from its
/// end if it was given so, 0 of a part without elements. `part` is the shape of the result or of the update.
/// REQUIRES a call that was checked, and room for as many as its attribute `starts` has.
void find_starts(const Attributes& call, std::span<const std::int64_t> x, std::span<const std::int64_t> part,
                 std::int64_t* out);
/// The attributes of a slice that takes `counts` from `starts` on, one of each for every entry; positions are
/// as find_starts has them, or symbols that are not negative.
[[nodiscard]] Attributes slice_from(const Attributes& call, const Shape& starts, const Shape& counts);

// ---- parts whose positions are values

/// What a call of slice_at or update_slice_at takes of one axis, wherever that is. As XLA's dynamic slices,
/// it is brought inside: a position outside `low` .. `high` becomes the nearer of the two.
struct MovingPart {
  std::size_t axis = 0;
  std::int64_t step = 1;
  Dim count;
  Dim low, high;  ///< what the part may start from

  /// The start for a position, which counts from the end if it is negative. Sizes are numbers.
  [[nodiscard]] std::int64_t start(std::int64_t position, std::int64_t size) const;
};

/// By position.
[[nodiscard]] Result<std::vector<MovingPart>> moving_parts(const CallInfo& call);
/// The first of the inputs that are positions.
[[nodiscard]] std::size_t first_position(const CallInfo& call);

/// The elements of `x`, the layout of the first input or of the result, that a call of slice_at takes or one
/// of update_slice_at replaces. Sizes are numbers.
[[nodiscard]] Result<Layout> moving_part(const CallInfo& call, Layout x, std::span<const Array> inputs);

}  // namespace tessera::op

// The equation of einsum, "bij,bjk->bik": which axis of which operand is called what.
#pragma once

#include <map>
#include <vector>

#include "tessera/op/call_info.h"

namespace tessera::op {

/// The name of an axis: a letter, or -1, -2, … for the axes that "..." stands for, counted from the last.
using Label = int;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;  ///< one label per axis
  Labels result;
  std::map<Label, Dim> sizes;

  [[nodiscard]] Shape shape_of(const Labels& labels) const;
};

/// Reads the attribute `equation` for the inputs of the call, all of them operands. An axis of size 1 goes
/// with any size of the same name in other operands. Without "->" the result has "..." and then the letters
/// that occur once, sorted.
[[nodiscard]] Result<Equation> read_equation(const CallInfo& call);

}  // namespace tessera::op

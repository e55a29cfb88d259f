#include "tessera/runtime/cuda/cell_table.h"

#include <algorithm>
#include <numeric>

#include "tessera/runtime/cuda/number_value.h"
#include "tessera/runtime/number_cell.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

CellTable::CellTable(const plan::Plan& plan, const PlanProgram& program)
    : cells_(plan.parameters.size(), 0), is_read_(program.reads_cells) {
  if (program.reads_parameters) parameters_ = plan.parameters;
  for (const std::int64_t size : program.sizes) cells_.push_back(static_cast<std::uint64_t>(size));
  list_uses(plan, program);
  cells_.resize(cells_.size() + uses_.size(), 0);
  is_read_ = is_read_ && !cells_.empty();
}

/// By slot, one list after another.
void CellTable::list_uses(const plan::Plan& plan, const PlanProgram& program) {
  const std::vector<NumberCell>& numbers = program.number_cells;
  first_of_.assign(plan.parameters.size() + 1, 0);
  for (const NumberCell& number : numbers) ++first_of_[number.slot + 1];
  std::partial_sum(first_of_.begin(), first_of_.end(), first_of_.begin());
  std::vector<std::size_t> next(first_of_.begin(), first_of_.end());
  uses_.resize(numbers.size());
  auto cell = static_cast<std::uint32_t>(cells_.size());
  for (const auto& [slot, dtype] : numbers)
    uses_[next[slot]++] = {.slot = slot, .cell = cell++, .from = plan.parameters[slot], .as = dtype};
}

CellTable::Change CellTable::follow(std::span<const std::uint64_t> numbers) {
  if (!is_read_) return {};
  const bool is_first = numbers_.size() != numbers.size();
  if (is_first) numbers_.assign(numbers.size(), 0);
  const auto differs = std::mismatch(numbers.begin(), numbers.end(), numbers_.begin());
  auto first = static_cast<std::size_t>(differs.first - numbers.begin()), last = numbers.size();
  if (is_first)
    first = 0;
  else if (first == last && is_copied_)
    return {};
  while (!is_first && last > first && numbers[last - 1] == numbers_[last - 1]) --last;
  std::copy(numbers.begin() + static_cast<std::ptrdiff_t>(first),
            numbers.begin() + static_cast<std::ptrdiff_t>(last),
            numbers_.begin() + static_cast<std::ptrdiff_t>(first));
  Change changed = set(first, last);
  if (!is_copied_) changed = {0, cells_.size()};
  is_copied_ = is_copied_ && changed.is_empty();
  return changed;
}

/// The cells of slots that follow each other.
CellTable::Change CellTable::set(std::size_t first, std::size_t last) {
  Change out{cells_.size(), 0};
  const auto note = [&out](std::size_t cell) {
    out.begin = std::min(out.begin, cell);
    out.end = std::max(out.end, cell + 1);
  };
  for (std::size_t slot = first; slot < last && slot < parameters_.size(); ++slot) {
    cells_[slot] = number_cell(numbers_[slot], parameters_[slot]);
    note(slot);
  }
  for (std::size_t i = first_of_[first]; i < first_of_[last]; ++i) {
    const Use& use = uses_[i];
    cells_[use.cell] = argument_value(numbers_[use.slot], use.from, use.as);
    note(use.cell);
  }
  return out.is_empty() ? Change{} : out;
}

#include "tessera/kernel/input_view.h"

#include "tessera/base/checked.h"

using namespace tessera;
using namespace tessera::kernel;

InputView InputView::whole(std::uint32_t argument, std::size_t rank) {
  InputView out{argument, std::vector<Start>(rank), {}, {}, false};
  for (std::size_t i = 0; i < rank; ++i) out.steps.push_back({{static_cast<std::uint32_t>(i), 1}});
  return out;
}

bool InputView::is_whole() const {
  for (const Start& start : starts)
    if (start != Start()) return false;
  if (steps.size() != starts.size()) return false;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].size() != 1 || steps[i][0].array_axis != i || steps[i][0].step != 1) return false;
  return true;
}

bool InputView::compose(const ViewMap& map, std::size_t rank) {
  InputView out{argument, starts, std::vector<std::vector<Step>>(rank), seen_as, is_reshaped};
  for (std::size_t k = 0; k < map.starts.size(); ++k) {
    const Start& start = map.starts[k];
    for (const Step& step : steps[k]) {
      Start& to = out.starts[step.array_axis];
      if (start.from_end) {
        // The size of the view's axis is that of the array's only if it is the array's axis as it is.
        if (steps[k].size() != 1 || step.step != 1 || to != Start()) return false;
        to = start;
        continue;
      }
      to.whole = to.whole && start.whole;
      const auto moved = checked_mul(start.value, step.step);
      const auto sum = !moved        ? std::nullopt
                       : to.from_end ? checked_sub(to.value, *moved)
                                     : checked_add(to.value, *moved);
      if (!sum) return false;
      to.value = *sum;
    }
  }
  for (const Term& term : map.terms)
    for (const Step& step : steps[term.array_axis]) {
      const auto product = checked_mul(step.step, term.step);
      if (!product) return false;
      out.steps[term.axis].push_back({step.array_axis, *product});
    }
  *this = std::move(out);
  return true;
}

// An input as views of it see it: which element of the array an index of the view names.
#pragma once

#include <utility>
#include <vector>

#include "tessera/kernel/affine_view.h"

namespace tessera::kernel {

struct InputView {
  struct Step {
    std::uint32_t array_axis = 0;
    std::int64_t step = 1;
  };

  std::uint32_t argument = 0;
  std::vector<Start> starts;             ///< by axis of the array
  std::vector<std::vector<Step>> steps;  ///< by axis of the view
  std::vector<std::int64_t> seen_as;
  bool is_reshaped = false;

  /// The array as it is.
  static InputView whole(std::uint32_t argument, std::size_t rank);
  [[nodiscard]] bool is_whole() const;
  /// The view of this view, if starts can be written down.
  [[nodiscard]] bool compose(const ViewMap& map, std::size_t rank);
};

}  // namespace tessera::kernel

#include "tessera/runtime/cuda/window_text.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cuda;

void runtime::cuda::add_window(KernelWriter& writer, const op::Sliding& window) {
  constexpr std::size_t axes = 3;
  const auto list = [&](std::string_view name, std::int64_t op::SlidingAxis::*member) {
    op::Extents values(axes, op::SlidingAxis().*member);
    const std::size_t lead = axes - window.axes.size();
    for (std::size_t i = 0; i < window.axes.size(); ++i) values[lead + i] = window.axes[i].*member;
    writer.integers(name, values);
  };
  list("extent", &op::SlidingAxis::size);
  list("kernel", &op::SlidingAxis::kernel);
  list("places", &op::SlidingAxis::positions);
  list("stride", &op::SlidingAxis::stride);
  list("pad", &op::SlidingAxis::pad);
  list("dilation", &op::SlidingAxis::dilation);
}

IndexWidth runtime::cuda::width_of(const op::Sliding& window, std::int64_t most_elements) {
  constexpr std::int64_t limit = std::int64_t{1} << 30;
  const bool is_small = std::all_of(window.axes.begin(), window.axes.end(), [](const op::SlidingAxis& a) {
    return a.positions <= limit / a.stride && a.kernel <= limit / a.dilation &&
           a.positions * a.stride + a.kernel * a.dilation <= limit && a.pad <= limit;
  });
  return is_small && most_elements <= limit ? IndexWidth::narrow : IndexWidth::wide;
}

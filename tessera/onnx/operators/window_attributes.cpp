#include "tessera/onnx/operators/window_attributes.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::onnx;

namespace {

Result<void> fill(NodeCall& node, std::vector<std::int64_t>& list, std::string_view name, std::size_t count,
                  std::int64_t otherwise, std::int64_t least) {
  if (list.empty()) list.assign(count, otherwise);
  if (list.size() != count)
    return node.error("attribute '", name, "' has ", list.size(), " entries, expected ", count);
  for (const std::int64_t entry : list)
    if (entry < least || entry > std::int64_t{1} << 31)
      return node.error("attribute '", name, "' has the entry ", entry);
  return {};
}

/// As many positions as sizes divided by strides, rounded up.
Result<void> pad_to_same(NodeCall& node, Value x, WindowAttributes& window) {
  const std::size_t axes = window.kernel.size();
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t span = (window.kernel[i] - 1) * window.dilations[i] + 1, stride = window.strides[i];
    std::int64_t total = span - 1;
    if (stride != 1) {
      const Dim& size = x.shape()[2 + i];
      if (!size.is_constant())
        return node.unsupported("attribute 'auto_pad' needs the sizes of ", x.type(), " as numbers");
      const std::int64_t positions = (size.value() + stride - 1) / stride;
      total = std::max<std::int64_t>(0, (positions - 1) * stride + span - size.value());
    }
    const std::int64_t less = total / 2;
    window.pads[i] = window.auto_pad == "SAME_UPPER" ? less : total - less;
    window.pads[axes + i] = total - window.pads[i];
  }
  return {};
}

}  // namespace

Result<WindowAttributes> tessera::onnx::window_attributes(NodeCall& node, Value x,
                                                          std::vector<std::int64_t> kernel) {
  WindowAttributes out{std::move(kernel), node.integers("strides"), node.integers("dilations"),
                       node.integers("pads"), node.text("auto_pad", "NOTSET")};
  TESSERA_TRY(node.status());
  const std::size_t axes = out.kernel.size();
  if (axes == 0 || x.rank() != axes + 2)
    return node.error("input 0 is ", x.type(), ", the window has ", axes, " axes");
  TESSERA_TRY(fill(node, out.kernel, "kernel_shape", axes, 1, 1));
  TESSERA_TRY(fill(node, out.strides, "strides", axes, 1, 1));
  TESSERA_TRY(fill(node, out.dilations, "dilations", axes, 1, 1));
  TESSERA_TRY(fill(node, out.pads, "pads", 2 * axes, 0, 0));
  if (out.auto_pad == "SAME_UPPER" || out.auto_pad == "SAME_LOWER")
    TESSERA_TRY(pad_to_same(node, x, out));
  else if (out.auto_pad != "NOTSET" && out.auto_pad != "VALID")
    return node.error("attribute 'auto_pad' is ", shown(out.auto_pad));
  return out;
}

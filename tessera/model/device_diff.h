// One model on two devices: every call is run on both with the same inputs, so that the first call whose
// results differ is at fault, and no error is carried on.
#pragma once

#include <optional>
#include <string>

#include "tessera/onnx/import.h"
#include "tessera/runtime/device.h"

namespace tessera {

/// Results may differ by absolute + relative * |the first device's|.
struct DiffTolerance {
  double relative = 1e-3;
  double absolute = 1e-5;
};

/// The first call whose results differ.
struct DeviceDifference {
  std::string node;          ///< "node 'conv1' (Conv)"
  std::size_t position = 0;  ///< of the node, or of the one it is inside, in the model's graph, from 1
  std::string op;            ///< the call: the name of a card
  std::size_t result = 0;    ///< which result of the call
  std::int64_t element = 0;  ///< the one that differs most
  double first = 0, second = 0;
  double largest = 0;  ///< the largest difference, absolute; infinite where one side is no number
};

struct DeviceDiff {
  std::optional<DeviceDifference> first;
  std::size_t calls = 0;      ///< that were compared
  std::size_t different = 0;  ///< how many of them differ
};

/// The model goes on with the values of device `a`. Errors are those of running the model, or of a device.
[[nodiscard]] Result<DeviceDiff> diff_devices(const onnx::Model& model,
                                              std::span<const onnx::DataValue> inputs, runtime::Device& a,
                                              runtime::Device& b, const DiffTolerance& tolerance = {},
                                              const onnx::RunOptions& options = {});

}  // namespace tessera

// What errors and profiles call a node of a model: "model.onnx: node 'n' (Relu)".
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/onnx/model.h"

namespace tessera {

/// The labels of the nodes of a model's own graph, for engine::Caller. They stay for the life of the process,
/// as __FILE__ does: recorded nodes point to them and may outlive the model. Equal labels are kept once.
[[nodiscard]] std::vector<const char*> node_labels(const onnx::Model& model);

}  // namespace tessera

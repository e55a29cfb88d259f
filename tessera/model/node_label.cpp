#include "tessera/model/node_label.h"

#include <mutex>
#include <string>
#include <unordered_set>

#include "tessera/base/text.h"

using namespace tessera;

std::vector<const char*> tessera::node_labels(const onnx::Model& model) {
  static std::mutex mutex;
  // Never destroyed: other statics may still hold nodes when the process ends.
  static auto& kept = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  std::vector<const char*> out;
  for (const onnx::Node& node : model.graph.nodes)
    out.push_back(kept.insert(cat(model.file, ": ", onnx::describe(node))).first->c_str());
  return out;
}

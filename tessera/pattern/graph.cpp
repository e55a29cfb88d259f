#include "tessera/pattern/graph.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::pattern;

std::string Graph::value_name(ValueId value) const {
  const NodeId node = producer(value);
  if (node == none) return external(value).name;
  return result_index(value) == 0 ? ids_[node] : cat(ids_[node], ":", result_index(value));
}

OpId Graph::find_op(const std::string& name) const {
  const auto at = op_index_.find(name);
  return at == op_index_.end() ? none : at->second;
}

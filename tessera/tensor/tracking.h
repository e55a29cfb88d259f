// Which tensors lead back to those whose gradients are asked for, while they are.
#pragma once

#include <vector>

#include "tessera/engine/record.h"
#include "tessera/tensor/tensor.h"

namespace tessera::detail {

/// While it lives, gradients are tracked, whatever is around. What began to track meanwhile forgets it
/// afterwards, unless something else tracks it: otherwise nothing that came of a gradient could ever be let
/// go, neither the results nor what was handed out on the way.
class TrackingScope {
 public:
  TrackingScope();
  ~TrackingScope();
  TrackingScope(const TrackingScope&) = delete;
  TrackingScope& operator=(const TrackingScope&) = delete;

  /// A tensor of the same value that is tracked until the end.
  Tensor tracked(const Tensor& x, Here here);

 private:
  bool enabled_before_;
  std::vector<engine::NodeRef>* outer_;
  std::vector<engine::NodeRef> nodes_;    ///< in the order they were recorded: inputs first
  std::vector<engine::NodeRef> sources_;  ///< what tracked() made
};

/// Arguments of a function, those in `wrt` tracked until the end of the scope.
struct TrackedArguments {
  TrackedArguments(TrackingScope& scope, const std::vector<Tensor>& xs, const std::vector<std::size_t>& wrt,
                   Here here);

  std::vector<Tensor> all;
  std::vector<Tensor> tracked;
};

}  // namespace tessera::detail

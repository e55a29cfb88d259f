// How long a matrix product of a library takes: the choice between its algorithms.
#pragma once

#include <utility>
#include <vector>

#include "tessera/runtime/cuda/blas.h"

namespace tessera::runtime::cuda {

/// One thread at a time. REQUIRES, for all functions, that the context is current.
class ProductTimer {
 public:
  /// Takes memory for the operands. Refuses products that are large for the device.
  [[nodiscard]] static Result<ProductTimer> create(const BlasDevice& device, const Product& product);
  ProductTimer(ProductTimer&& other) noexcept;
  ProductTimer& operator=(ProductTimer&&) = delete;
  ~ProductTimer();

  /// Of one run. Short ones are timed as nodes of a graph, which is how they will run: on a stream the calls
  /// take longer than the work. Long ones run `runs` times: the longer it takes, the more the clocks are what
  /// they are in the long run.
  [[nodiscard]] Result<double> microseconds(const BlasProduct& product, int runs = 3) const;

 private:
  explicit ProductTimer(BlasDevice device) : device_(std::move(device)) {}
  [[nodiscard]] Result<CUdeviceptr> take(std::size_t bytes);
  [[nodiscard]] Result<CUdeviceptr> take_numbers(std::size_t bytes, ir::Dtype dtype);
  [[nodiscard]] Result<double> on_stream(const BlasProduct& product, int runs) const;
  [[nodiscard]] Result<double> in_graph(const BlasProduct& product) const;

  BlasDevice device_;
  std::shared_ptr<const Stream> capturing_;
  std::vector<std::pair<std::byte*, std::size_t>> taken_;
  ProductMemory memory_;
};

}  // namespace tessera::runtime::cuda

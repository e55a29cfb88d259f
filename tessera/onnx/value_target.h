// A target that runs every call at once by the reference kernels: shapes that depend on data are numbers
// here.
#pragma once

#include <functional>

#include "tessera/onnx/budget.h"
#include "tessera/onnx/target.h"

namespace tessera::onnx {

/// Computes one call into results that are allocated.
using CallRunner = std::function<Result<void>(const op::CallInfo& call, std::span<const op::Array> inputs,
                                              std::span<const op::Array> results)>;

class ValueTarget final : public Target, private op::Builder {
 public:
  /// `call` computes; without one the reference kernels do.
  explicit ValueTarget(Budget& budget, CallRunner call = {}) : budget_(budget), call_(std::move(call)) {}

  op::Builder& builder() override { return *this; }
  Value tensor(HostTensor elements) override { return add(std::move(elements)); }
  Value sizes_vector(std::span<const Dim> sizes) override;
  std::optional<HostTensor> elements(Value value) override { return tensors_[value.id]; }
  std::optional<std::vector<Dim>> sizes(Value value) override;
  void at_node(std::uint32_t) override {}
  std::size_t mark() const override { return tensors_.size(); }
  void hold(Value value) override { ++holders_[value.id]; }
  void release(Value value) override { --holders_[value.id]; }
  void forget_unheld(Value value) override;
  void forget_unheld_since(std::size_t mark) override;

 private:
  Value add(HostTensor tensor);
  void forget_unheld(std::size_t id);
  Result<void> check_memory(const op::ValueTypes& types) const;

  Result<op::Values> emit(const op::Card& card, std::span<const Value> inputs, op::Attributes attributes,
                          op::ValueTypes types) override;
  Value emit_constant(double value, Dtype dtype) override;
  Value emit_extent(const Dim& size) override;

  Budget& budget_;
  CallRunner call_;
  std::vector<HostTensor> tensors_;
  std::vector<std::uint32_t> holders_;  ///< by value, as tensors_ is
  std::int64_t live_bytes_ = 0;
};

/// The elements of an integer or boolean tensor.
[[nodiscard]] std::vector<std::int64_t> integers_of(const HostTensor& tensor);
/// The elements of a tensor as numbers.
[[nodiscard]] std::vector<double> numbers_of(const HostTensor& tensor);
/// A tensor of these elements, converted as `cast` does.
[[nodiscard]] HostTensor tensor_of(Dtype dtype, const op::Extents& shape, std::span<const double> numbers);
[[nodiscard]] HostTensor tensor_of(Dtype dtype, const op::Extents& shape,
                                   std::span<const std::int64_t> integers);

}  // namespace tessera::onnx

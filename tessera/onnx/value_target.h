// A target that runs every call at once by the reference kernels: shapes that depend on data are numbers
// here.
#pragma once

#include "tessera/onnx/target.h"

namespace tessera::onnx {

class ValueTarget final : public Target, private op::Builder {
 public:
  explicit ValueTarget(const Limits& limits) : limits_(limits) {}

  op::Builder& builder() override { return *this; }
  Value tensor(HostTensor elements) override { return add(std::move(elements)); }
  Value sizes_vector(std::span<const Dim> sizes) override;
  std::optional<HostTensor> elements(Value value) override { return tensors_[value.id]; }
  std::optional<std::vector<Dim>> sizes(Value value) override;
  void at_node(std::uint32_t) override {}
  std::size_t mark() const override { return tensors_.size(); }
  void forget_since(std::size_t mark, std::span<const Value> kept) override;

 private:
  Value add(HostTensor tensor);
  Result<void> check_budget(const op::ValueTypes& types) const;

  Result<op::Values> emit(const op::Card& card, std::span<const Value> inputs, op::Attributes attributes,
                          op::ValueTypes types) override;
  Value emit_constant(double value, Dtype dtype) override;
  Value emit_extent(const Dim& size) override;

  const Limits& limits_;
  std::vector<HostTensor> tensors_;
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

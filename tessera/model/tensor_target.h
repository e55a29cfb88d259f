// A target that records every call as a lazy node. What follows from known elements alone, as shapes do, is
// computed at once and on the host; asking for other elements evaluates.
#pragma once

#include <unordered_map>

#include "tessera/onnx/budget.h"
#include "tessera/onnx/target.h"
#include "tessera/tensor/node_builder.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

/// Tensors of a model's file by where their elements are.
using WeightTensors = std::unordered_map<const std::byte*, Tensor>;

/// A stored tensor that shares the elements.
[[nodiscard]] Tensor tensor_of(const op::HostTensor& elements, const std::shared_ptr<engine::Engine>& engine);

/// The elements on the host, kept by the tensor. Computes.
[[nodiscard]] op::HostTensor elements_of(const Tensor& tensor, Here here = {});

class TensorTarget final : public onnx::Target, private detail::NodeBuilder {
 public:
  /// `labels` name the nodes of the model, for what is recorded.
  TensorTarget(std::shared_ptr<engine::Engine> engine, std::span<const char* const> labels,
               const WeightTensors& weights, onnx::Budget& budget)
      : NodeBuilder(engine),
        engine_(std::move(engine)),
        labels_(labels),
        weights_(weights),
        budget_(budget) {}

  /// A tensor of the caller.
  op::Value input(const Tensor& tensor);
  /// A handle to a value.
  [[nodiscard]] Tensor output(op::Value value);

  op::Builder& builder() override { return *this; }
  op::Value tensor(op::HostTensor elements) override;
  op::Value sizes_vector(std::span<const op::Dim> sizes) override;
  std::optional<op::HostTensor> elements(op::Value value) override;
  std::optional<std::vector<op::Dim>> sizes(op::Value value) override;
  void at_node(std::uint32_t line) override { set_caller({labels_[line - 1], 0}); }
  std::size_t mark() const override { return value_count(); }
  void hold(op::Value value) override;
  void release(op::Value value) override { --holders_[value.id]; }
  void forget_unheld(op::Value value) override;
  void forget_unheld_since(std::size_t mark) override;

 private:
  Result<op::Values> emit(const op::Card& card, std::span<const op::Value> inputs, op::Attributes attributes,
                          op::ValueTypes types) override;
  op::Value emit_constant(double value, Dtype dtype) override;
  op::Value emit_extent(const op::Dim& size) override;
  void forget_unheld(std::uint32_t id);
  [[nodiscard]] std::optional<std::vector<op::HostTensor>> folded(const op::Card& card,
                                                                  std::span<const op::Value> inputs,
                                                                  const op::Attributes& attributes,
                                                                  const op::ValueTypes& types) const;

  std::shared_ptr<engine::Engine> engine_;
  std::span<const char* const> labels_;  ///< by line - 1
  const WeightTensors& weights_;
  onnx::Budget& budget_;
  std::unordered_map<std::uint32_t, op::HostTensor> known_;  ///< elements by value
  std::vector<std::uint32_t> holders_;                       ///< by value; grows when one is held
};

}  // namespace tessera

// A target that writes an IR function for inputs of any size. It knows the elements of constants and what can
// be folded from them, and of values that come from shapes it knows each element as an expression of sizes;
// so the Shape, Gather, Concat, Reshape chains of exporters leave no trace but symbolic shapes.
#pragma once

#include <unordered_map>

#include "tessera/onnx/budget.h"
#include "tessera/onnx/target.h"
#include "tessera/op/ir_builder.h"

namespace tessera::onnx {

class FunctionTarget final : public Target, public op::IrBuilder {
 public:
  /// `file` has one label per node of the model's graph.
  FunctionTarget(Ref<ir::SourceFile> file, Budget& budget) : file_(std::move(file)), budget_(budget) {}

  op::Builder& builder() override { return *this; }
  Value tensor(HostTensor elements) override;
  Value sizes_vector(std::span<const Dim> sizes) override;
  std::optional<HostTensor> elements(Value value) override;
  std::optional<std::vector<Dim>> sizes(Value value) override;
  /// Not in bodies of regions, whose results may not have sizes of their own.
  std::optional<std::vector<Dim>> learned_sizes(Value value) override;
  /// The body becomes a region; what it takes from around becomes its captures.
  Result<op::Values> loop(const Dim& count, const op::Values& carried, const LoopBody& body) override;
  /// Where the bodies differ in types, the condition is that two sizes are equal, and the first body cannot
  /// run unless they are, it stands for the branch: other sizes are an error when the program runs.
  Result<op::Values> branch(Value condition, const BranchBody& then, const BranchBody& otherwise) override;
  void at_node(std::uint32_t line) override {
    node_ = {file_, line, 0};
    at(node_);
  }
  // Everything that is written stays in the function until it is known what is used.
  std::size_t mark() const override { return 0; }
  void hold(Value) override {}
  void release(Value) override {}
  void forget_unheld(Value) override {}
  void forget_unheld_since(std::size_t) override {}

 protected:
  Result<op::Values> emit(const op::Card& card, std::span<const Value> inputs, op::Attributes attributes,
                          op::ValueTypes types) override;
  Value emit_constant(double value, Dtype dtype) override;
  Value emit_extent(const Dim& size) override;

 private:
  using Sizes = std::vector<Dim>;
  using SizePair = std::pair<Dim, Dim>;

  struct Body;
  /// The symbols of the function and those that were learned.
  [[nodiscard]] std::vector<Ref<ir::Var>> visible_sizes() const;
  [[nodiscard]] Body cut_body(std::size_t begin, op::Values results);
  [[nodiscard]] std::vector<Ref<ir::Var>> captures_of(std::span<const Body* const> bodies,
                                                      std::span<const Ref<ir::Var>> parameters) const;
  [[nodiscard]] ir::FunctionRef closed(const Body& body, std::string name,
                                       std::vector<Ref<ir::Var>> parameters,
                                       std::span<const Ref<ir::Var>> captures) const;
  template <class Region>
  Result<op::Values> append_region(std::unique_ptr<Region> region, std::span<const Ref<ir::Var>> captures,
                                   const op::ValueTypes& types);

  std::optional<std::vector<HostTensor>> folded(const op::Card& card, std::span<const Value> inputs,
                                                const op::Attributes& attributes,
                                                const op::ValueTypes& types);
  std::optional<std::vector<Sizes>> symbolic(const op::Card& card, std::span<const Value> inputs,
                                             const op::Attributes& attributes, const op::ValueTypes& types);
  std::optional<std::vector<Sizes>> moved(const op::Card& card, std::span<const Value> inputs,
                                          const op::Attributes& attributes);
  /// The sizes whose equality the result of a call is.
  std::optional<SizePair> compared(const op::Card& card, std::span<const Value> inputs,
                                   const op::ValueTypes& types);
  /// Whether what was assumed since `begin` says what the condition says.
  [[nodiscard]] bool is_assumed(Value condition, std::size_t begin) const;
  /// The result of a comparison of sizes, if it is the same whatever they are.
  std::optional<HostTensor> decided_comparison(const op::Card& card, std::span<const Value> inputs,
                                               const op::ValueTypes& types);
  /// The result of `where` on sizes.
  std::optional<Sizes> chosen(std::span<const Value> inputs, const op::ValueType& type);
  std::optional<Sizes> combined(const op::Card& card, std::span<const Value> inputs,
                                const op::ValueType& type);

  Ref<ir::SourceFile> file_;
  Budget& budget_;
  ir::Span node_;  ///< that is written
  std::unordered_map<std::uint32_t, HostTensor> elements_;
  std::unordered_map<std::uint32_t, Sizes> sizes_;
  std::unordered_map<std::uint32_t, SizePair> equalities_;  ///< of booleans: that two sizes are equal
  std::vector<Ref<ir::Var>> learned_;
  std::uint32_t body_depth_ = 0;
};

}  // namespace tessera::onnx

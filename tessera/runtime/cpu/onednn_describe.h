// From a request to a primitive of oneDNN: the parts that matrix products and convolutions share.
#pragma once

#include "tessera/runtime/cpu/onednn_library.h"

namespace tessera::runtime::cpu {

/// In whatever order the library likes.
[[nodiscard]] Result<dnnl_memory_desc_t> any_form(const OneDnn::Library& library, const Sizes& sizes);
/// Row-major, without gaps.
[[nodiscard]] Result<dnnl_memory_desc_t> dense_form(const OneDnn::Library& library, const Sizes& sizes);

/// A chain of operations after the product. No element-wise algorithm may stand in it twice: oneDNN 2.6 gives
/// both the parameters of one.
class PostOps {
 public:
  explicit PostOps(const OneDnn::Library& library)
      : library_(library), attributes_(library), chain_(library) {}

  Result<void> begin();
  Result<void> binary(dnnl_alg_kind_t kind, const dnnl_memory_desc_t& with, Slot slot);
  /// The part of an epilogue behind scale and bias. A residual is added from the destination, or from an
  /// operand of the form `separate`.
  Result<void> finish(const Epilogue& epilogue, const dnnl_memory_desc_t* separate);

  [[nodiscard]] dnnl_primitive_attr_t attributes() const { return attributes_.get(); }
  [[nodiscard]] const std::vector<OneDnnStep::Argument>& arguments() const { return arguments_; }

 private:
  Result<void> activate(const Epilogue& epilogue);
  Result<void> add_residual(const dnnl_memory_desc_t* separate);

  const OneDnn::Library& library_;
  AttributesHandle attributes_;
  PostOpsHandle chain_;
  int length_ = 0;
  std::vector<OneDnnStep::Argument> arguments_;
};

/// The library's choice of code for a description. Fails with code `unsupported` if it is none, or slow.
[[nodiscard]] Result<DescriptorHandle> describe(const OneDnn::Library& library, const void* description,
                                                const PostOps& post_ops, std::string& implementation);

/// Sets a place in scratch memory aside.
void reserve(Primitive::State& state, Slot slot, const dnnl_memory_desc_t& form);

/// Adds the step that computes, with the arguments that every computation has.
Result<void> add_main_step(Primitive::State& state, const DescriptorHandle& descriptor,
                           const PostOps& post_ops, std::vector<OneDnnStep::Argument> arguments);

}  // namespace tessera::runtime::cpu

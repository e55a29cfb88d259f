#include "tessera/runtime/cpu/onednn_describe.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

using Library = OneDnn::Library;

dnnl_alg_kind_t algorithm(Activation activation) {
  switch (activation) {
    case Activation::none:
    case Activation::by_card:
      break;
    case Activation::relu:
      return dnnl_eltwise_relu;
    case Activation::tanh:
      return dnnl_eltwise_tanh;
    case Activation::sigmoid:
      return dnnl_eltwise_logistic;
    case Activation::gelu_erf:
      return dnnl_eltwise_gelu_erf;
    case Activation::gelu_tanh:
      return dnnl_eltwise_gelu_tanh;
    case Activation::silu:
      return dnnl_eltwise_swish;
    case Activation::hard_swish:
      return dnnl_eltwise_hardswish;
    case Activation::leaky_relu:
      return dnnl_eltwise_relu;
    case Activation::clip:
      return dnnl_eltwise_clip;
  }
  return dnnl_alg_kind_undef;
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Result<dnnl_memory_desc_t> tessera::runtime::cpu::any_form(const Library& library, const Sizes& sizes) {
  dnnl_dims_t given = {};
  std::copy(sizes.begin(), sizes.end(), given);
  dnnl_memory_desc_t out;
  TESSERA_TRY(library.check(library.memory_desc_init_by_tag(&out, static_cast<int>(sizes.size()), given,
                                                            dnnl_f32, dnnl_format_tag_any),
                            "a memory descriptor"));
  return out;
}

Result<dnnl_memory_desc_t> tessera::runtime::cpu::dense_form(const Library& library, const Sizes& sizes) {
  OperandForm form{sizes, sizes};
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    form.strides[axis] = stride;
    stride *= sizes[axis];
  }
  return plain_form(library, form);
}

// ---- post-ops

Result<void> PostOps::begin() {
  TESSERA_TRY(library_.check(library_.primitive_attr_create(attributes_.out()), "attributes"));
  TESSERA_TRY(library_.check(library_.post_ops_create(chain_.out()), "post-ops"));
  return library_.check(
      library_.primitive_attr_set_scratchpad_mode(attributes_.get(), dnnl_scratchpad_mode_user),
      "the mode of a scratchpad");
}

Result<void> PostOps::binary(dnnl_alg_kind_t kind, const dnnl_memory_desc_t& with, Slot slot) {
  arguments_.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(length_++) | DNNL_ARG_SRC_1, with, slot});
  return library_.check(library_.post_ops_append_binary(chain_.get(), kind, &with), "a binary post-op");
}

Result<void> PostOps::activate(const Epilogue& epilogue) {
  if (epilogue.activation == Activation::none) return {};
  ++length_;
  const bool has_numbers =
      epilogue.activation == Activation::leaky_relu || epilogue.activation == Activation::clip;
  const float usual = epilogue.activation == Activation::silu ? 1.0f : 0.0f;
  const float alpha = has_numbers ? epilogue.alpha : usual, beta = has_numbers ? epilogue.beta : 0.0f;
  return library_.check(
      library_.post_ops_append_eltwise(chain_.get(), 1.0f, algorithm(epilogue.activation), alpha, beta),
      "an activation");
}

Result<void> PostOps::add_residual(const dnnl_memory_desc_t* separate) {
  if (separate != nullptr) return binary(dnnl_binary_add, *separate, Slot::residual);
  ++length_;
  return library_.check(library_.post_ops_append_sum(chain_.get(), 1.0f), "a sum");
}

Result<void> PostOps::finish(const Epilogue& epilogue, const dnnl_memory_desc_t* separate) {
  const bool has_residual = epilogue.residual != Residual::none;
  if (has_residual && epilogue.place == ResidualPlace::before_activation) TESSERA_TRY(add_residual(separate));
  TESSERA_TRY(activate(epilogue));
  if (has_residual && epilogue.place == ResidualPlace::after_activation) TESSERA_TRY(add_residual(separate));
  return library_.check(library_.primitive_attr_set_post_ops(attributes_.get(), chain_.get()), "post-ops");
}

// ---- primitives

Result<DescriptorHandle> tessera::runtime::cpu::describe(const Library& library, const void* description,
                                                         const PostOps& post_ops,
                                                         std::string& implementation) {
  DescriptorHandle out(library);
  const auto status = library.primitive_desc_create(out.out(), static_cast<const_dnnl_op_desc_t>(description),
                                                    post_ops.attributes(), library.engine, nullptr);
  if (status != dnnl_success)
    return Error(ErrorCode::unsupported,
                 cat("oneDNN has no code for this (", library.status2str(status), ")"));
  const char* name = "";
  TESSERA_TRY(library.check(library.primitive_desc_query(out.get(), dnnl_query_impl_info_str, 0, &name),
                            "the name of an implementation"));
  implementation = name;
  if (implementation.find("ref") != std::string::npos)
    return Error(ErrorCode::unsupported, cat("oneDNN has only slow code for this (", implementation, ")"));
  return out;
}

void tessera::runtime::cpu::reserve(Primitive::State& state, Slot slot, const dnnl_memory_desc_t& form) {
  state.scratch_offsets[static_cast<std::size_t>(slot)] = state.scratch_bytes;
  state.scratch_bytes += aligned(state.library.memory_desc_get_size(&form));
}

Result<void> tessera::runtime::cpu::add_main_step(Primitive::State& state, const DescriptorHandle& descriptor,
                                                  const PostOps& post_ops,
                                                  std::vector<OneDnnStep::Argument> arguments) {
  const Library& library = state.library;
  const dnnl_memory_desc_t& scratchpad =
      *library.primitive_desc_query_md(descriptor.get(), dnnl_query_scratchpad_md, 0);
  reserve(state, Slot::scratchpad, scratchpad);
  arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, Slot::scratchpad});
  arguments.insert(arguments.end(), post_ops.arguments().begin(), post_ops.arguments().end());
  OneDnnStep step{PrimitiveHandle(library), std::move(arguments)};
  TESSERA_TRY(library.check(library.primitive_create(step.primitive.out(), descriptor.get()), "a primitive"));
  state.steps.push_back(std::move(step));
  return {};
}

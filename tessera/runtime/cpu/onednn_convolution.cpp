#include "tessera/runtime/cpu/onednn_describe.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

using Library = OneDnn::Library;

/// The forms of source and destination: the caller's and those that the library computes with.
struct Forms {
  dnnl_memory_desc_t source, destination, own_source, own_destination;
};

Result<DescriptorHandle> describe_by(dnnl_alg_kind_t algorithm, const Library& library,
                                     const ConvolutionRequest& request, const dnnl_memory_desc_t& bias,
                                     const PostOps& post_ops, std::string& implementation) {
  const auto source = TESSERA_TRY(any_form(library, request.source.sizes)),
             destination = TESSERA_TRY(any_form(library, request.destination.sizes)),
             weights = TESSERA_TRY(any_form(library, request.weights));
  Sizes gaps = request.dilations;
  for (auto& gap : gaps) --gap;
  dnnl_convolution_desc_t description;
  TESSERA_TRY(library.check(
      library.dilated_convolution_forward_desc_init(&description, dnnl_forward_inference, algorithm, &source,
                                                    &weights, request.epilogue.has_bias ? &bias : nullptr,
                                                    &destination, request.strides.data(), gaps.data(),
                                                    request.padding_low.data(), request.padding_high.data()),
      "a convolution"));
  return describe(library, &description, post_ops, implementation);
}

/// By Winograd's method if the request allows it and the library has it for these sizes.
Result<DescriptorHandle> describe_convolution(const Library& library, const ConvolutionRequest& request,
                                              const dnnl_memory_desc_t& bias, const PostOps& post_ops,
                                              std::string& implementation) {
  if (request.method == ConvolutionMethod::winograd) {
    auto fast = describe_by(dnnl_convolution_winograd, library, request, bias, post_ops, implementation);
    if (fast) return fast;
  }
  return describe_by(dnnl_convolution_direct, library, request, bias, post_ops, implementation);
}

bool equal(const Library& library, const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) {
  return library.memory_desc_equal(&a, &b) != 0;
}

/// What brings the source and what is added to the result into the forms of the library. Returns the slots
/// that the computation reads and writes.
Result<std::pair<Slot, Slot>> add_steps_before(Primitive::State& state, const Forms& forms,
                                               Residual residual) {
  const Library& library = state.library;
  std::pair<Slot, Slot> slots{Slot::source, Slot::destination};
  if (!equal(library, forms.source, forms.own_source)) {
    slots.first = Slot::own_source;
    reserve(state, Slot::own_source, forms.own_source);
    state.steps.push_back(
        TESSERA_TRY(reorder_step(library, forms.source, Slot::source, forms.own_source, Slot::own_source)));
  }
  const bool is_moved = !equal(library, forms.destination, forms.own_destination);
  if (is_moved) {
    slots.second = Slot::own_destination;
    reserve(state, Slot::own_destination, forms.own_destination);
  }
  if (residual == Residual::separate || (residual == Residual::in_destination && is_moved))
    state.steps.push_back(TESSERA_TRY(reorder_step(
        library, forms.destination, residual == Residual::separate ? Slot::residual : Slot::destination,
        forms.own_destination, slots.second)));
  return slots;
}

}  // namespace

Result<std::unique_ptr<const Primitive>> OneDnn::convolution(const ConvolutionRequest& request) const {
  const Library& library = *library_;
  const OnCallingThread alone(library);
  const auto bias = TESSERA_TRY(dense_form(library, {request.destination.sizes[1]}));
  PostOps post_ops(library);
  TESSERA_TRY(post_ops.begin());
  TESSERA_TRY(post_ops.finish(request.epilogue, nullptr));

  auto state = std::make_unique<Primitive::State>(library);
  const auto descriptor =
      TESSERA_TRY(describe_convolution(library, request, bias, post_ops, state->implementation));
  const auto form = [&](dnnl_query_t what) -> const dnnl_memory_desc_t& {
    return *library.primitive_desc_query_md(descriptor.get(), what, 0);
  };
  const auto plain_source = TESSERA_TRY(plain_form(library, request.source));
  const auto plain_destination = TESSERA_TRY(plain_form(library, request.destination));
  const Forms forms{plain_source, plain_destination, form(dnnl_query_src_md), form(dnnl_query_dst_md)};
  state->has_packed_weights = true;
  state->weights_form = form(dnnl_query_weights_md);
  const auto [source, destination] = TESSERA_TRY(add_steps_before(*state, forms, request.epilogue.residual));
  std::vector<OneDnnStep::Argument> arguments = {{DNNL_ARG_SRC, forms.own_source, source},
                                                 {DNNL_ARG_WEIGHTS, state->weights_form, Slot::weights},
                                                 {DNNL_ARG_DST, forms.own_destination, destination}};
  if (request.epilogue.has_bias) arguments.push_back({DNNL_ARG_BIAS, bias, Slot::bias});
  TESSERA_TRY(add_main_step(*state, descriptor, post_ops, std::move(arguments)));
  if (destination == Slot::own_destination)
    state->steps.push_back(TESSERA_TRY(reorder_step(library, forms.own_destination, Slot::own_destination,
                                                    forms.destination, Slot::destination)));
  return std::make_unique<const Primitive>(std::move(state));
}

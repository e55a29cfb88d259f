#include "tessera/runtime/cpu/onednn_describe.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

using Library = OneDnn::Library;

Result<void> matmul_post_ops(PostOps& out, const Library& library, const MatmulRequest& request,
                             const dnnl_memory_desc_t& bias, bool bias_is_post_op) {
  TESSERA_TRY(out.begin());
  const Epilogue& epilogue = request.epilogue;
  const Sizes one(request.c.sizes.size(), 1);
  // As an operand, so that another scale needs no other primitive.
  if (epilogue.has_scale)
    TESSERA_TRY(out.binary(dnnl_binary_mul, TESSERA_TRY(dense_form(library, one)), Slot::scale));
  if (bias_is_post_op) TESSERA_TRY(out.binary(dnnl_binary_add, bias, Slot::bias));
  if (epilogue.residual != Residual::separate) return out.finish(epilogue, nullptr);
  const auto residual = TESSERA_TRY(plain_form(library, request.residual));
  return out.finish(epilogue, &residual);
}

}  // namespace

Result<std::unique_ptr<const Primitive>> OneDnn::matmul(const MatmulRequest& request) const {
  const Library& library = *library_;
  const OnCallingThread alone(library);
  const auto a = TESSERA_TRY(plain_form(library, request.a)), c = TESSERA_TRY(plain_form(library, request.c));
  const bool packed = request.weights == WeightForm::packed;
  const auto b = TESSERA_TRY(packed ? any_form(library, request.b.sizes) : plain_form(library, request.b));
  Sizes bias_sizes(request.c.sizes.size(), 1);
  const std::size_t bias_axis = bias_sizes.size() - (request.epilogue.bias_of_rows ? 2 : 1);
  bias_sizes[bias_axis] = request.c.sizes[bias_axis];
  const auto bias = TESSERA_TRY(dense_form(library, bias_sizes));
  // The library adds its own bias, which is one of columns, before the scale.
  const bool own_bias =
      request.epilogue.has_bias && !request.epilogue.has_scale && !request.epilogue.bias_of_rows;
  PostOps post_ops(library);
  TESSERA_TRY(matmul_post_ops(post_ops, library, request, bias, request.epilogue.has_bias && !own_bias));

  dnnl_matmul_desc_t description;
  TESSERA_TRY(library.check(library.matmul_desc_init(&description, &a, &b, own_bias ? &bias : nullptr, &c),
                            "a matrix product"));
  auto state = std::make_unique<Primitive::State>(library);
  const auto descriptor = TESSERA_TRY(describe(library, &description, post_ops, state->implementation));
  state->has_packed_weights = packed;
  state->weights_form = *library.primitive_desc_query_md(descriptor.get(), dnnl_query_weights_md, 0);
  std::vector<OneDnnStep::Argument> arguments = {{DNNL_ARG_SRC, a, Slot::source},
                                                 {DNNL_ARG_WEIGHTS, state->weights_form, Slot::weights},
                                                 {DNNL_ARG_DST, c, Slot::destination}};
  if (own_bias) arguments.push_back({DNNL_ARG_BIAS, bias, Slot::bias});
  TESSERA_TRY(add_main_step(*state, descriptor, post_ops, std::move(arguments)));
  return std::make_unique<const Primitive>(std::move(state));
}

bool OneDnn::multiplies_bytes_exactly() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

void OneDnn::make_byte_code() const {
  if (!multiplies_bytes_exactly()) return;
  const std::uint8_t a = 0;
  const std::int8_t b = 0;
  std::int32_t c = 0;
  (void)multiply(
      {.rows = 1, .columns = 1, .depth = 1, .a = &a, .b = &b, .b_stride = 1, .c = &c, .c_stride = 1});
}

Result<void> OneDnn::multiply(const ByteProduct& product) const {
  const Library& library = *library_;
  const OnCallingThread alone(library);
  const std::int32_t nothing = 0;  // to add to the result
  return library.check(
      library.gemm_u8s8s32('N', 'N', 'F', product.rows, product.columns, product.depth, 1.0f, product.a,
                           product.depth, product.a_zero, product.b, product.b_stride, product.b_zero, 0.0f,
                           product.c, product.c_stride, &nothing),
      "a product of bytes");
}

// Recording: the six named ops, and any op of the catalogue.
#include <array>

#include "tessera/capi/arguments.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using namespace tessera::capi;

namespace {

/// Records a call with one result and makes its handle.
void call_into(tsr_tensor* out, const op::Card& card, const Tensor& input, op::Attributes attributes = {}) {
  Operands operands;
  operands.add(input);
  *out = make_handle({std::move(record(card, operands, std::move(attributes))[0])});
}

int binary(const char* function, Tensor (*op)(const Operand&, const Operand&), tsr_tensor a, tsr_tensor b,
           tsr_tensor* out) noexcept {
  return guard(function, [&] {
    require(out, "out");
    const std::array inputs{tensor_of(a, "a"), tensor_of(b, "b")};
    require_one_engine(inputs);
    *out = make_handle({op({inputs[0], here()}, {inputs[1], here()})});
  });
}

/// The first of the last `ndim` axes.
std::int64_t first_axis(const Tensor& tensor, int ndim, const char* what) {
  if (ndim > tensor.rank())
    fail(TSR_ERROR_RANK, "the ", what, " is about ", ndim, " axes, the tensor has ", tensor.rank());
  return tensor.rank() - ndim;
}

}  // namespace

int tsr_add(tsr_tensor a, tsr_tensor b, tsr_tensor* out) noexcept {
  return binary("tsr_add", add, a, b, out);
}
int tsr_sub(tsr_tensor a, tsr_tensor b, tsr_tensor* out) noexcept {
  return binary("tsr_sub", sub, a, b, out);
}
int tsr_gemm(tsr_tensor a, tsr_tensor b, tsr_tensor* out) noexcept {
  return binary("tsr_gemm", matmul, a, b, out);
}

int tsr_transpose(tsr_tensor tensor, const std::uint32_t* perm, int ndim, tsr_tensor* out) noexcept {
  return guard("tsr_transpose", [&] {
    require(out, "out");
    require_array(perm, ndim, "perm");
    const Tensor input = tensor_of(tensor);
    const std::int64_t first = first_axis(input, ndim, "permutation");
    Shape permutation;
    for (std::int64_t axis = 0; axis < first; ++axis) permutation.push_back(axis);
    for (int i = 0; i < ndim; ++i) {
      if (perm[i] >= static_cast<std::uint32_t>(ndim))
        fail(TSR_ERROR_SHAPE, "perm[", i, "] is ", perm[i], ", expected a number below ", ndim);
      permutation.push_back(first + perm[i]);
    }
    call_into(out, detail::card("transpose"), input, {{"permutation", std::move(permutation)}});
  });
}

int tsr_reshape(tsr_tensor tensor, const std::int64_t* shape, int ndim, tsr_tensor* out) noexcept {
  return guard("tsr_reshape", [&] {
    require(out, "out");
    const Shape sizes = shape_from(shape, ndim);
    call_into(out, detail::card("reshape"), tensor_of(tensor), {{"shape", ir::shape_of(sizes)}});
  });
}

int tsr_reduce_sum(tsr_tensor tensor, const std::uint8_t* mask, int ndim, tsr_tensor* out) noexcept {
  return guard("tsr_reduce_sum", [&] {
    require(out, "out");
    require_array(mask, ndim, "mask");
    const Tensor input = tensor_of(tensor);
    const std::int64_t first = first_axis(input, ndim, "mask");
    Shape axes;
    for (int i = 0; i < ndim; ++i)
      if (mask[i] != 0) axes.push_back(first + i);
    // An empty list of axes would mean all of them.
    if (axes.empty()) return call_into(out, detail::card("identity"), input);
    call_into(out, detail::card("sum"), input, {{"axes", std::move(axes)}, {"keepdims", true}});
  });
}

int tsr_call(const char* op, const tsr_operand* inputs, int input_count, const tsr_attribute* attributes,
             int attribute_count, tsr_tensor* out, int max, int* out_count) noexcept {
  return tsr_call_in(nullptr, op, inputs, input_count, attributes, attribute_count, out, max, out_count);
}

int tsr_call_in(const tsr_options* options, const char* op, const tsr_operand* inputs, int input_count,
                const tsr_attribute* attributes, int attribute_count, tsr_tensor* out, int max,
                int* out_count) noexcept {
  return guard("tsr_call", [&] {
    const op::Card& card = card_from(op);
    require_array(inputs, input_count, "inputs");
    require_array(out, max, "out");
    Operands operands;
    for (int i = 0; i < input_count; ++i) operands.add(inputs[i], i);
    const CreateOptions created = create_options(options);
    std::vector<Tensor> results = record(card, operands, attributes_from(attributes, attribute_count),
                                         options == nullptr ? nullptr : &created);
    const std::size_t count = results.size();
    if (count > static_cast<std::size_t>(max)) results.resize(static_cast<std::size_t>(max));
    make_handles(std::move(results), out);
    if (out_count != nullptr) *out_count = static_cast<int>(count);
  });
}

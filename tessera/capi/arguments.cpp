#include "tessera/capi/arguments.h"

#include <iterator>

#include "tessera/op/card_text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using namespace tessera::capi;

static_assert(TSR_MAX_RANK == op::max_rank);

namespace {

/// By the number of a tsr_dtype.
constexpr Dtype dtypes[] = {Dtype::f32, Dtype::f64, Dtype::f16,    Dtype::bf16, Dtype::i64,
                            Dtype::i32, Dtype::i16, Dtype::i8,     Dtype::u8,   Dtype::u16,
                            Dtype::u32, Dtype::u64, Dtype::boolean};
static_assert(std::size(dtypes) == TSR_BOOL + 1);

ir::AttributeValue value_from(const tsr_attribute& attribute) {
  switch (attribute.kind) {
    case TSR_ATTRIBUTE_BOOL:
      return attribute.value.integer != 0;
    case TSR_ATTRIBUTE_INTEGER:
      return attribute.value.integer;
    case TSR_ATTRIBUTE_REAL:
      return attribute.value.real;
    case TSR_ATTRIBUTE_TEXT:
      require(attribute.value.text, attribute.name);
      return std::string(attribute.value.text);
    case TSR_ATTRIBUTE_DTYPE:
      return dtype_from(attribute.value.integer);
    case TSR_ATTRIBUTE_INTEGERS:
      require_array(attribute.value.integers, attribute.count, attribute.name);
      return std::vector<std::int64_t>(attribute.value.integers, attribute.value.integers + attribute.count);
    case TSR_ATTRIBUTE_REALS:
      require_array(attribute.value.reals, attribute.count, attribute.name);
      return std::vector<double>(attribute.value.reals, attribute.value.reals + attribute.count);
  }
  fail(TSR_ERROR_INVALID_OPERATION, "attribute '", attribute.name, "' is of the unknown kind ",
       static_cast<int>(attribute.kind));
}

}  // namespace

Dtype tessera::capi::dtype_from(std::int64_t dtype) {
  if (dtype < 0 || dtype >= std::ssize(dtypes))
    fail(TSR_ERROR_INVALID_OPERATION, "there is no dtype ", dtype);
  return dtypes[dtype];
}

tsr_dtype tessera::capi::dtype_to(Dtype dtype) {
  return static_cast<tsr_dtype>(std::find(std::begin(dtypes), std::end(dtypes), dtype) - std::begin(dtypes));
}

CreateOptions tessera::capi::create_options(const tsr_options* options) {
  CreateOptions out{.engine = engine_of(options == nullptr ? nullptr : options->engine)};
  if (options == nullptr) return out;
  out.dtype = dtype_from(options->dtype);
  if (options->device != nullptr && out.engine->device().name() != options->device)
    fail(TSR_ERROR_DEVICE, "device '", printable(options->device),
         "': a device belongs to an engine, and that of this tensor computes on '",
         out.engine->device().name(), "'; give an engine of the other device");
  return out;
}

CreateOptions tessera::capi::create_options(tsr_backend backend) {
  if (backend != TSR_BACKEND_F32_CPU && backend != TSR_BACKEND_F64_CPU)
    fail(TSR_ERROR_DEVICE, "there is no backend ", static_cast<int>(backend));
  CreateOptions out = create_options(nullptr);
  out.dtype = backend == TSR_BACKEND_F32_CPU ? Dtype::f32 : Dtype::f64;
  return out;
}

Shape tessera::capi::shape_from(const std::int64_t* shape, int ndim) {
  require_array(shape, ndim, "shape");
  if (ndim > TSR_MAX_RANK)
    fail(TSR_ERROR_INVALID_OPERATION, "a rank of ", ndim, " was asked for, at most ", TSR_MAX_RANK,
         " is supported");
  return Shape(shape, shape + ndim);
}

op::Attributes tessera::capi::attributes_from(const tsr_attribute* attributes, int count) {
  require_array(attributes, count, "attributes");
  op::Attributes out;
  for (int i = 0; i < count; ++i) {
    require(attributes[i].name, "the name of an attribute");
    if (out.find(attributes[i].name) != nullptr)
      fail(TSR_ERROR_INVALID_OPERATION, "attribute '", printable(attributes[i].name), "' is given twice");
    out.set(attributes[i].name, value_from(attributes[i]));
  }
  return out;
}

void Operands::add(Tensor tensor) {
  operands.push_back(engine::Operand::of(tensor.node()));
  tensors.push_back(std::move(tensor));
}

void Operands::add(const tsr_operand& operand, int index) {
  switch (operand.kind) {
    case TSR_OPERAND_TENSOR:
      return add(tensor_of(operand.value.tensor, cat("inputs[", index, "]").c_str()));
    case TSR_OPERAND_REAL:
      operands.push_back(engine::Operand::of(operand.value.real));
      return;
    case TSR_OPERAND_INTEGER:
      operands.push_back(engine::Operand::of(operand.value.integer));
      return;
    case TSR_OPERAND_RESULT:
      fail(TSR_ERROR_INVALID_OPERATION, "inputs[", index, "] is the result of a call outside a description");
  }
  fail(TSR_ERROR_INVALID_OPERATION, "inputs[", index, "] is of the unknown kind ",
       static_cast<int>(operand.kind));
}

std::vector<Tensor> tessera::capi::record(const op::Card& card, const Operands& operands,
                                          op::Attributes attributes, const CreateOptions* options) {
  require_one_engine(operands.tensors);
  const auto nodes =
      value_or_throw(engine::record(card, operands.operands, std::move(attributes), detail::caller_of(here()),
                                    options == nullptr ? nullptr : options->engine,
                                    options == nullptr ? std::nullopt : std::optional(options->dtype)));
  std::vector<Tensor> out;
  for (engine::Node* node : nodes) out.push_back(Tensor::adopt(node));
  return out;
}

const op::Card& tessera::capi::card_from(const char* op) {
  require(op, "op");
  const op::Card* card = op::find_card(op);
  if (card != nullptr) return *card;
  const auto near = op::nearest_ops(op);
  fail(TSR_ERROR_INVALID_OPERATION, "there is no op '", printable(shortened(op, 80)), "'",
       near.empty() ? "" : cat(", perhaps '", near[0], "'"));
}

void tessera::capi::require_one_engine(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors)
    if (tensor.node()->component->engine() != tensors[0].node()->component->engine())
      fail(TSR_ERROR_MERGE, "tensors of two engines cannot be combined");
}

void tessera::capi::execute(std::span<const Tensor> tensors) {
  try {
    eval(tensors, here());
  } catch (const Exception& exception) {
    if (exception.error().code() == ErrorCode::memory || exception.error().code() == ErrorCode::internal)
      throw;
    throw Failure{TSR_ERROR_EXECUTION, exception.what(), true};
  }
}

// Convolutions whose window is one element: matrix products of the filters by the images as they lie, which
// no other order of the channels would make faster.
#include <algorithm>

#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

class PointwiseCall final : public LibraryCall {
 public:
  explicit PointwiseCall(const LibraryForm& form) : form_(form) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result, Libraries& libraries) {
    const op::Extents& x = inputs[form_.left].shape();
    MatmulSpec spec;
    spec.batch = x[0];
    spec.rows = inputs[form_.right].shape()[0];
    spec.depth = x[1];
    spec.columns = 1;
    for (std::size_t axis = 2; axis < x.size(); ++axis) spec.columns *= x[axis];
    spec.a = {0, spec.depth, 1};
    spec.b = {spec.depth * spec.columns, spec.columns, 1};
    spec.c = {spec.rows * spec.columns, spec.columns, 1};
    spec.epilogue = form_.epilogue;
    spec.epilogue.bias_of_rows = spec.epilogue.has_bias;
    if (form_.residual != no_input) spec.residual = spec.c;
    if (spec.batch * spec.rows * spec.columns != result.size())
      return Error(ErrorCode::internal, "a convolution has another size than its result");
    TESSERA_TRY(source_.prepare(inputs[form_.left].layout));
    TESSERA_TRY(filters_.prepare(inputs[form_.right].layout));
    if (form_.bias != no_input) TESSERA_TRY(bias_.prepare(inputs[form_.bias].layout));
    if (form_.residual != no_input) TESSERA_TRY(residual_.prepare(inputs[form_.residual].layout));
    product_ = TESSERA_TRY(libraries.products.get(spec));
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    operands_.a = filters_.get(launch.inputs[form_.right]);
    operands_.b = source_.get(launch.inputs[form_.left]);
    operands_.c = reinterpret_cast<float*>(launch.results[0].at(launch.results[0].layout.offset));
    if (form_.bias != no_input) operands_.bias = bias_.get(launch.inputs[form_.bias]);
    if (form_.residual != no_input) operands_.residual = residual_.get(launch.inputs[form_.residual]);
    return {};
  }

  [[nodiscard]] std::int64_t items() const override { return product_->items(); }
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    return product_->run(operands_, range, scratch);
  }
  [[nodiscard]] std::string implementation() const override { return product_->implementation(); }

 private:
  const LibraryForm& form_;
  DenseOperand source_, filters_, bias_, residual_;
  std::shared_ptr<const Matmul> product_;
  MatmulOperands operands_;
};

}  // namespace

bool runtime::cpu::is_pointwise(const LibraryForm& form, std::span<const op::Array> inputs) {
  const op::CallInfo call(*form.card, {}, form.attributes);
  const auto all = [](const auto& numbers, std::size_t from, std::int64_t wanted) {
    return std::all_of(numbers.begin() + static_cast<std::ptrdiff_t>(std::min(from, numbers.size())),
                       numbers.end(), [&](std::int64_t number) { return number == wanted; });
  };
  return call.integer("groups") == 1 && all(inputs[form.right].shape(), 2, 1) &&
         all(call.integers("strides"), 0, 1) && all(call.integers("pads"), 0, 0);
}

Result<LibraryCallRef> runtime::cpu::make_pointwise_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         Libraries& libraries) {
  auto out = std::make_unique<PointwiseCall>(form);
  TESSERA_TRY(out->prepare(inputs, results[0], libraries));
  return LibraryCallRef(std::move(out));
}

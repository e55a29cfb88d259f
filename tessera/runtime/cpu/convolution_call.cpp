// Convolutions as library calls.
#include <bit>
#include <span>

#include "tessera/runtime/cpu/dense_operand.h"
#include "tessera/runtime/cpu/library_call.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Fewer channels than these do not fill the vectors of Winograd's method.
constexpr std::int64_t winograd_channels = 16;

bool has_padding(const ConvolutionSpec& spec) {
  return spec.padding_low != Pair{} || spec.padding_high != Pair{};
}

/// The exponent of infinities and of what is no number is all ones.
bool are_finite(std::span<const float> numbers) {
  constexpr std::uint32_t exponent = 0x7f800000;
  bool out = true;
  for (const float number : numbers) out &= (std::bit_cast<std::uint32_t>(number) & exponent) != exponent;
  return out;
}

/// Whether it is right for filters that are not finite, too (convolution_for).
bool suits_any_filters(const ConvolutionSpec& spec) {
  return spec.method == ConvolutionMethod::exact && !has_padding(spec);
}

/// Filters with the convolution that packed them.
struct PackedConvolution final : Derived {
  std::shared_ptr<const Convolution> wanted;  ///< for filters of finite numbers
  std::shared_ptr<const Convolution> by;
  bool are_finite = false;  ///< false also where it does not matter
  PackedFilters filters;
  WeightPlace from;

  explicit PackedConvolution(const op::Array& array) : from(array) {}
  [[nodiscard]] std::size_t byte_size() const override { return filters.byte_size(); }
};

class ConvolutionCall final : public LibraryCall {
 public:
  ConvolutionCall(const LibraryForm& form, Libraries& libraries)
      : form_(form), libraries_(libraries), packed_(libraries.constants) {}

  Result<void> prepare(std::span<const op::Array> inputs, const op::Array& result) {
    spec_ = TESSERA_TRY(convolution_spec(form_, inputs, result));
    TESSERA_TRY(source_.prepare(inputs[form_.left].layout));
    TESSERA_TRY(filters_.prepare(inputs[form_.right].layout));
    if (form_.bias != no_input) TESSERA_TRY(bias_.prepare(inputs[form_.bias].layout));
    if (form_.residual != no_input) TESSERA_TRY(residual_.prepare(inputs[form_.residual].layout));
    convolution_ = by_ = TESSERA_TRY(find_convolution(spec_, libraries_));
    return {};
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    operands_.source = source_.get(launch.inputs[form_.left]);
    operands_.destination = reinterpret_cast<float*>(launch.results[0].at(launch.results[0].layout.offset));
    if (form_.bias != no_input) operands_.bias = bias_.get(launch.inputs[form_.bias]);
    if (form_.residual != no_input) operands_.residual = residual_.get(launch.inputs[form_.residual]);
    return choose_filters(launch.inputs[form_.right], launch.weights);
  }

  [[nodiscard]] std::int64_t items() const override { return by_->items(); }
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    return by_->run(operands_, range, scratch);
  }
  void end() override { packed_.end(); }
  [[nodiscard]] std::string implementation() const override { return by_->implementation(); }

 private:
  Result<void> choose_filters(const op::Array& array, const WeightSource& source) {
    (void)packed_.begin(source, array);
    if (packed_.get() == nullptr && !find_filters(array)) TESSERA_TRY(pack_filters(array));
    const PackedConvolution& packed = *packed_.get();
    operands_.filters = &packed.filters;
    by_ = is_same_convolution(packed) ? packed.by : convolution_;
    return {};
  }

  /// Filters that were packed for another size of the images, or of the batch, mostly serve this one.
  bool find_filters(const op::Array& array) {
    return packed_.find([&](const PackedConvolution& packed) {
      return packed.from.is_of(array) && (is_same_convolution(packed) || serves(packed));
    });
  }
  [[nodiscard]] bool is_same_convolution(const PackedConvolution& packed) const {
    return packed.wanted == convolution_ || packed.wanted->spec() == convolution_->spec();
  }
  [[nodiscard]] bool serves(const PackedConvolution& packed) const {
    return (packed.are_finite || suits_any_filters(convolution_->spec())) &&
           convolution_->accepts(packed.filters);
  }

  Result<void> pack_filters(const op::Array& array) {
    const float* filters = filters_.get(array);
    auto made = std::make_shared<PackedConvolution>(array);
    made->wanted = convolution_;
    made->by = TESSERA_TRY(convolution_for(convolution_, filters, libraries_));
    made->are_finite = made->by == convolution_ && !suits_any_filters(convolution_->spec());
    made->filters = TESSERA_TRY(made->by->pack(filters));
    packed_.use(std::move(made));
    return {};
  }

  const LibraryForm& form_;
  Libraries& libraries_;
  ConvolutionSpec spec_;
  DenseOperand source_, filters_, bias_, residual_;
  std::shared_ptr<const Convolution> convolution_;  ///< for filters of finite numbers
  std::shared_ptr<const Convolution> by_;           ///< for those of the launch
  ConvolutionOperands operands_;
  WeightsAs<PackedConvolution> packed_;
};

bool suits_winograd(const ConvolutionSpec& spec) {
  return spec.groups == 1 && spec.window == Pair{3, 3} && spec.strides == Pair{1, 1} &&
         spec.dilations == Pair{1, 1} && spec.channels >= winograd_channels &&
         spec.filters >= winograd_channels;
}

/// The spatial sizes; a single axis is a row.
Pair axes_of(const op::Extents& shape) {
  return shape.size() == 3 ? Pair{1, shape[2]} : Pair{shape[2], shape[3]};
}

}  // namespace

Result<std::shared_ptr<const Convolution>> runtime::cpu::find_convolution(ConvolutionSpec& spec,
                                                                          Libraries& libraries) {
  if (!libraries.is_precise && suits_winograd(spec)) {
    spec.method = ConvolutionMethod::winograd;
    if (auto made = libraries.winograd.get(spec)) return made;
    spec.method = ConvolutionMethod::exact;
  }
  return libraries.convolutions.get(spec);
}

/// A window over padding adds zero times the weight, which is no number if the weight is infinite;
/// Winograd's method adds up weights. Libraries leave padding out, so windows are gathered for such weights.
Result<std::shared_ptr<const Convolution>> runtime::cpu::convolution_for(
    const std::shared_ptr<const Convolution>& found, const float* filters, Libraries& libraries) {
  ConvolutionSpec spec = found->spec();
  const std::int64_t count = spec.filters * (spec.channels / spec.groups) * spec.window[0] * spec.window[1];
  if (suits_any_filters(spec) || are_finite({filters, static_cast<std::size_t>(count)})) return found;
  spec.method = ConvolutionMethod::exact;
  return libraries.gathered.get(spec);
}

Result<ConvolutionSpec> runtime::cpu::convolution_spec(const LibraryForm& form,
                                                       std::span<const op::Array> inputs,
                                                       const op::Array& result) {
  const op::CallInfo call(*form.card, {}, form.attributes);
  const op::Extents &x = inputs[form.left].shape(), &w = inputs[form.right].shape();
  ConvolutionSpec out{.batch = x[0], .channels = x[1], .filters = w[0], .groups = call.integer("groups")};
  out.size = axes_of(x);
  out.window = axes_of(w);
  out.epilogue = form.epilogue;
  const std::size_t count = x.size() - 2, first = 2 - count;
  const auto read = [&](std::string_view name, std::size_t from, Pair& to) {
    const auto& numbers = call.integers(name);
    for (std::size_t i = 0; i < count && from + i < numbers.size(); ++i) to[first + i] = numbers[from + i];
  };
  read("strides", 0, out.strides);
  read("dilations", 0, out.dilations);
  read("pads", 0, out.padding_low);
  read("pads", count, out.padding_high);
  if (out.output_size() != axes_of(result.shape()))
    return Error(ErrorCode::internal, "a convolution has another size than its result");
  return out;
}

Result<LibraryCallRef> runtime::cpu::make_convolution_call(const LibraryForm& form,
                                                           std::span<const op::Array> inputs,
                                                           std::span<const op::Array> results,
                                                           Libraries& libraries) {
  auto out = std::make_unique<ConvolutionCall>(form, libraries);
  TESSERA_TRY(out->prepare(inputs, results[0]));
  return LibraryCallRef(std::move(out));
}

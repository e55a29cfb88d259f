#include "tessera/runtime/cpu/convolution.h"

#include <algorithm>

#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cpu/windows.h"
#include "tessera/runtime/cpu/winograd.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::int64_t most_blocks = 16, least_output_rows = 8, least_items = 4;
/// Tiles of Winograd's method have four rows.
constexpr std::int64_t tile_row_step = 4;
/// Of an item, as if it were not computed by Winograd's method: about the least there, and the most. Images
/// of few flops are halved all the same, if the halves are worth a second thread.
constexpr double item_flops = 12e6, winograd_flops = 100e6, most_flops = 500e6;
constexpr double halved_flops = 8e6, halved_winograd_flops = 24e6;
/// More weights than this are shared out by filters: they do not fit the cache of one core.
constexpr std::int64_t most_weights = 1 << 19;
constexpr std::int64_t most_filter_panels = 4;
/// The library computes so many filters at once; fewer take longer.
constexpr std::int64_t filter_step = 64, least_filter_step = 16;

Result<void> check_axis(const ConvolutionSpec& spec, std::size_t axis) {
  constexpr std::int64_t most = 1 << 30;
  for (std::int64_t number : {spec.size[axis], spec.window[axis], spec.strides[axis], spec.dilations[axis],
                              spec.padding_low[axis], spec.padding_high[axis]})
    if (number < 0 || number > most)
      return Error(ErrorCode::invalid_argument,
                   cat("convolution: axis ", axis, " has the number ", number, ", expected 0 to ", most));
  if (spec.window[axis] == 0 || spec.strides[axis] == 0 || spec.dilations[axis] == 0)
    return Error(ErrorCode::invalid_argument,
                 cat("convolution: axis ", axis, " has a window, stride or dilation of 0"));
  const std::int64_t span = (spec.window[axis] - 1) * spec.dilations[axis] + 1,
                     padded = spec.size[axis] + spec.padding_low[axis] + spec.padding_high[axis];
  if (span > padded)
    return Error(ErrorCode::shape, cat("convolution: axis ", axis, ": the window spans ", span,
                                       " elements, with padding there are ", padded));
  return {};
}

Result<void> check(const ConvolutionSpec& spec) {
  for (std::size_t axis : {0, 1}) TESSERA_TRY(check_axis(spec, axis));
  if (spec.batch < 0 || spec.channels < 0 || spec.filters < 0 || spec.groups < 1)
    return Error(ErrorCode::invalid_argument, "convolution: a size is negative, or there are no groups");
  if (spec.channels % spec.groups != 0 || spec.filters % spec.groups != 0)
    return Error(ErrorCode::shape, cat("convolution: ", spec.groups, " groups do not divide ", spec.channels,
                                       " channels and ", spec.filters, " filters"));
  const Pair output = spec.output_size();
  const std::int64_t per_group = spec.channels / spec.groups;
  for (const auto& sizes : {std::array{spec.batch, spec.channels, spec.size[0], spec.size[1]},
                            std::array{spec.batch, spec.filters, output[0], output[1]},
                            std::array{spec.filters, per_group, spec.window[0], spec.window[1]}}) {
    std::int64_t bytes = sizeof(float);
    for (std::int64_t size : sizes)
      if (__builtin_mul_overflow(bytes, size, &bytes))
        return Error(ErrorCode::limit,
                     cat("convolution: an array of sizes [", join(sizes, ", "), "] is too large"));
  }
  if (spec.epilogue.has_scale)
    return Error(ErrorCode::unsupported, "convolution: a scale is part of the weights");
  return {};
}

}  // namespace

Hash128 ConvolutionSpec::hash() const {
  Hasher hasher;
  for (std::int64_t number : {batch, channels, filters, groups})
    hasher.add(static_cast<std::uint64_t>(number));
  for (const Pair& pair : {size, window, strides, dilations, padding_low, padding_high})
    for (std::int64_t number : pair) hasher.add(static_cast<std::uint64_t>(number));
  return hasher.add(static_cast<std::uint64_t>(method)).add(epilogue.code()).finish();
}

Pair ConvolutionSpec::output_size() const {
  Pair out{};
  for (std::size_t axis : {0, 1}) {
    const std::int64_t span = (window[axis] - 1) * dilations[axis] + 1;
    out[axis] = (size[axis] + padding_low[axis] + padding_high[axis] - span) / strides[axis] + 1;
  }
  return out;
}

std::size_t PackedFilters::byte_size() const {
  std::size_t out = own_.size() * sizeof(float);
  for (const PackedWeights& copy : copies_) out += copy.byte_size();
  return out;
}

Result<std::shared_ptr<const Convolution>> Convolution::create(const ConvolutionSpec& spec,
                                                               ProductLibrary library) {
  TESSERA_TRY(check(spec));
  std::shared_ptr<Convolution> out(new Convolution(spec));
  out->cut();
  const bool is_empty = out->items() == 0 || spec.filters == 0 || spec.channels == 0;
  if (library == ProductLibrary::best && !is_empty && spec.method == ConvolutionMethod::winograd &&
      Winograd::suits(spec)) {
    out->use_winograd();
    return out;
  }
  if (library != ProductLibrary::blocked && !is_empty) {
    const auto onednn = OneDnn::open();
    auto made = onednn ? out->make_primitives(**onednn) : Result<void>(onednn.error());
    if (made) return out;
    if (library == ProductLibrary::onednn) return std::move(made).error();
    out->variants_.clear();
  }
  out->prepare_blocked();
  return out;
}

void Convolution::use_winograd() {
  winograd_ = std::make_shared<const Winograd>(spec_);
  implementation_ = "winograd";
  scratch_bytes_ = winograd_->scratch_bytes();
}

// ---- items

std::int64_t Convolution::items() const {
  return winograd_ != nullptr ? winograd_->items() : batch_blocks_ * panels_ * row_blocks_;
}

// How it is cut depends on the sizes alone: the library sums up in another order in another part. Threads
// mostly come in even numbers, so there is an even number of parts.
namespace {

/// Parts of each image, by its flops.
std::int64_t parts_of_image(const ConvolutionSpec& spec, double flops) {
  const bool is_winograd = spec.method == ConvolutionMethod::winograd;
  if (is_winograd && spec.batch % 2 == 0 && flops < most_flops) return 1;  // images are shared out
  const double wanted = flops / (is_winograd ? winograd_flops : item_flops);
  const auto parts = static_cast<std::int64_t>(std::min(wanted, static_cast<double>(most_blocks)));
  if (parts > 1) return rounded_up(parts, 2);
  return flops >= (is_winograd ? halved_winograd_flops : halved_flops) ? 2 : 1;
}

/// Filters of one item: all, unless their weights are many or there are too few rows to share out.
std::int64_t filters_of_panel(const ConvolutionSpec& spec, std::int64_t rows, double flops) {
  if (spec.groups > 1) return spec.filters;
  const std::int64_t weights = spec.filters * spec.channels * spec.window[0] * spec.window[1];
  std::int64_t panels = weights > most_weights ? most_filter_panels : 1;
  if (rows < 2 * least_output_rows)
    panels = std::max(panels, std::min(parts_of_image(spec, flops), most_filter_panels));
  if (panels == 1) return spec.filters;
  const std::int64_t even = divided_up(spec.filters, panels), wide = rounded_up(even, filter_step);
  const bool is_balanced = divided_up(spec.filters, wide) % 2 == 0;
  return std::min(spec.filters, is_balanced ? wide : rounded_up(even, least_filter_step));
}

/// Images that one call takes. Winograd's method puts all of them into one product.
std::int64_t images_at_once(const ConvolutionSpec& spec, double flops) {
  if (spec.method != ConvolutionMethod::winograd) return 1;
  const auto most = static_cast<std::int64_t>(std::clamp(most_flops / flops, 1.0, 1e6));
  std::int64_t out = std::clamp<std::int64_t>(spec.batch / least_items, 1, most);
  while (out > 1 && (spec.batch % out != 0 || spec.batch / out % 2 != 0)) --out;
  return out;
}

}  // namespace

void Convolution::cut() {
  panel_filters_ = spec_.filters;
  block_rows_ = output_[0];
  batch_blocks_ = spec_.batch;
  if (spec_.batch == 0 || spec_.filters == 0 || output_[0] == 0 || output_[1] == 0) return;
  const auto flops_of = [&](std::int64_t filters) {
    return 2.0 * static_cast<double>(filters * depth()) * static_cast<double>(output_[0]) *
           static_cast<double>(output_[1]);
  };
  panel_filters_ = filters_of_panel(spec_, output_[0], flops_of(spec_.filters));
  panels_ = divided_up(spec_.filters, panel_filters_);
  const double flops = flops_of(panel_filters_);
  const std::int64_t blocks = std::clamp<std::int64_t>(
      parts_of_image(spec_, flops), 1, std::max<std::int64_t>(output_[0] / least_output_rows, 1));
  block_rows_ = std::min(output_[0], rounded_up(divided_up(output_[0], blocks), tile_row_step));
  row_blocks_ = divided_up(output_[0], block_rows_);
  if (row_blocks_ == 1 && panels_ == 1) block_images_ = images_at_once(spec_, flops);
  batch_blocks_ = divided_up(spec_.batch, block_images_);
}

Convolution::Item Convolution::item(std::int64_t number) const {
  Item out{};
  out.image = number / (panels_ * row_blocks_) * block_images_;
  out.images = std::min(block_images_, spec_.batch - out.image);
  out.panel = number / row_blocks_ % panels_;
  out.filter = out.panel * panel_filters_;
  out.filters = std::min(panel_filters_, spec_.filters - out.filter);
  out.row = number % row_blocks_ * block_rows_;
  out.rows = std::min(block_rows_, output_[0] - out.row);
  const std::int64_t first = out.row * spec_.strides[0] - spec_.padding_low[0];
  const std::int64_t end =
      first + (out.rows - 1) * spec_.strides[0] + (spec_.window[0] - 1) * spec_.dilations[0] + 1;
  out.padding_low = std::max<std::int64_t>(0, -first);
  out.padding_high = std::max<std::int64_t>(0, end - spec_.size[0]);
  out.source_row = std::max<std::int64_t>(0, first);
  out.source_rows = std::min(end, spec_.size[0]) - out.source_row;
  return out;
}

Result<void> Convolution::run(const ConvolutionOperands& operands, kernel::ItemRange range,
                              kernel::Scratch& scratch) const {
  std::byte* const memory = scratch.reserve(scratch_bytes_);
  if (winograd_ != nullptr) {
    for (std::int64_t number = range.begin; number < range.end; ++number)
      winograd_->run(operands, operands.filters->own_.data(), number, reinterpret_cast<float*>(memory));
    return {};
  }
  const std::int64_t blocks = panels_ * row_blocks_;
  for (std::int64_t number = range.begin; number < range.end; ++number) {
    const Item here = item(number);
    if (variants_.empty())
      run_blocked(operands, here, reinterpret_cast<float*>(memory));
    else
      TESSERA_TRY(run_onednn(operands, here, static_cast<std::size_t>(number % blocks), memory));
  }
  return {};
}

PackedFilters::Order Convolution::order() const {
  if (winograd_ != nullptr) return PackedFilters::Order::points;
  return variants_.empty() ? PackedFilters::Order::plain : PackedFilters::Order::library;
}

Result<PackedFilters> Convolution::pack(const float* weights) const {
  PackedFilters out;
  out.order_ = order();
  out.filters_ = spec_.filters;
  out.depth_ = depth();
  out.groups_ = spec_.groups;
  if (out.order_ == PackedFilters::Order::points) out.own_ = winograd_->pack(weights);
  if (out.order_ == PackedFilters::Order::plain) out.own_.assign(weights, weights + spec_.filters * depth());
  for (const Copy& copy : copies_) {
    const Item here = item(copy.panel * row_blocks_);
    out.firsts_.push_back(here.filter);
    out.copies_.push_back(TESSERA_TRY(variants_[copy.variant].primitive->pack(weights + here.filter * depth(),
                                                                              filters_form(here.filters))));
  }
  return out;
}

bool Convolution::accepts(const PackedFilters& packed) const {
  if (packed.order_ != order() || packed.filters_ != spec_.filters || packed.depth_ != depth() ||
      packed.groups_ != spec_.groups || packed.copies_.size() != copies_.size())
    return false;
  for (std::size_t c = 0; c < copies_.size(); ++c)
    if (packed.firsts_[c] != item(copies_[c].panel * row_blocks_).filter ||
        !variants_[copies_[c].variant].primitive->accepts(packed.copies_[c]))
      return false;
  return true;
}

// ---- oneDNN

/// The library has an axis of groups only where there are several.
OperandForm Convolution::filters_form(std::int64_t filters) const {
  const std::int64_t g = spec_.groups, channels = spec_.channels / g, kh = spec_.window[0],
                     kw = spec_.window[1];
  if (g == 1) return {{filters, channels, kh, kw}, {channels * kh * kw, kh * kw, kw, 1}};
  return {{g, filters / g, channels, kh, kw},
          {filters / g * channels * kh * kw, channels * kh * kw, kh * kw, kw, 1}};
}

ConvolutionRequest Convolution::request(const Item& item) const {
  const std::int64_t source = spec_.size[0] * spec_.size[1], result = output_[0] * output_[1];
  ConvolutionRequest out;
  out.source = {{item.images, spec_.channels, item.source_rows, spec_.size[1]},
                {spec_.channels * source, source, spec_.size[1], 1}};
  out.destination = {{item.images, item.filters, item.rows, output_[1]},
                     {spec_.filters * result, result, output_[1], 1}};
  out.weights = filters_form(item.filters).sizes;
  out.strides = {spec_.strides[0], spec_.strides[1]};
  out.dilations = {spec_.dilations[0], spec_.dilations[1]};
  out.padding_low = {item.padding_low, spec_.padding_low[1]};
  out.padding_high = {item.padding_high, spec_.padding_high[1]};
  out.method = spec_.method;
  out.epilogue = spec_.epilogue;
  if (finishes_own()) out.epilogue.activation = Activation::none;
  return out;
}

Result<std::uint32_t> Convolution::variant_for(const Item& item, const OneDnn& onednn) {
  for (std::size_t v = 0; v < variants_.size(); ++v) {
    const Item& other = variants_[v].item;
    if (other.images == item.images && other.filters == item.filters && other.rows == item.rows &&
        other.source_rows == item.source_rows && other.padding_low == item.padding_low &&
        other.padding_high == item.padding_high)
      return static_cast<std::uint32_t>(v);
  }
  if (item.source_rows <= 0)
    return Error(ErrorCode::unsupported, "convolution: rows of the result that see padding alone");
  auto primitive = TESSERA_TRY(onednn.convolution(request(item)));
  variants_.push_back({item, std::move(primitive)});
  scratch_bytes_ = std::max(scratch_bytes_, variants_.back().primitive->scratch_bytes());
  return static_cast<std::uint32_t>(variants_.size() - 1);
}

std::uint32_t Convolution::copy_for(std::int64_t panel, std::uint32_t variant) {
  for (std::size_t c = 0; c < copies_.size(); ++c)
    if (copies_[c].panel == panel &&
        variants_[variant].primitive->shares_weights_with(*variants_[copies_[c].variant].primitive))
      return static_cast<std::uint32_t>(c);
  copies_.push_back({panel, variant});
  return static_cast<std::uint32_t>(copies_.size() - 1);
}

Result<void> Convolution::make_primitives(const OneDnn& onednn) {
  for (std::int64_t block = 0; block < panels_ * row_blocks_; ++block) {
    const std::uint32_t variant = TESSERA_TRY(variant_for(item(block), onednn));
    blocks_.push_back({variant, copy_for(block / row_blocks_, variant)});
  }
  implementation_ = variants_[0].primitive->implementation();
  return {};
}

Result<void> Convolution::run_onednn(const ConvolutionOperands& operands, const Item& item, std::size_t block,
                                     std::byte* scratch) const {
  const std::int64_t result = output_[0] * output_[1];
  const std::int64_t place = (item.image * spec_.filters + item.filter) * result + item.row * output_[1];
  PrimitiveOperands given;
  given.source = operands.source + item.image * spec_.channels * spec_.size[0] * spec_.size[1] +
                 item.source_row * spec_.size[1];
  given.packed = &operands.filters->copies_[blocks_[block].copy];
  given.destination = operands.destination + place;
  if (spec_.epilogue.has_bias) given.bias = operands.bias + item.filter;
  if (spec_.epilogue.residual == Residual::separate) given.residual = operands.residual + place;
  TESSERA_TRY(variants_[blocks_[block].variant].primitive->run(given, scratch));
  if (!finishes_own()) return {};
  const auto count = static_cast<std::size_t>(item.rows * output_[1]);
  for (std::int64_t image = 0; image < item.images; ++image)
    for (std::int64_t filter = 0; filter < item.filters; ++filter)
      finish_in_place(spec_.epilogue, given.destination + (image * spec_.filters + filter) * result, nullptr,
                      count);
  return {};
}

#include "tessera/runtime/cpu/convolution.h"

#include <atomic>
#include <thread>

#include "tessera/runtime/cpu/product_cache.h"
#include "tessera/runtime/cpu/product_case.h"

using namespace tessera;
using namespace tessera::fixture;
using namespace tessera::runtime::cpu;

namespace {

ConvolutionSpec same(std::int64_t channels, std::int64_t filters, std::int64_t size,
                     std::int64_t window = 3) {
  ConvolutionSpec out{.channels = channels, .filters = filters};
  out.size = {size, size};
  out.window = {window, window};
  out.padding_low = out.padding_high = {window / 2, window / 2};
  return out;
}

class ConvolutionCase {
 public:
  ConvolutionCase(const ConvolutionSpec& spec, std::uint32_t seed)
      : spec_(spec),
        output_(spec.output_size()),
        source_(random_floats(spec.batch * spec.channels * spec.size[0] * spec.size[1], seed)),
        weights_(random_floats(spec.filters * (spec.channels / spec.groups) * spec.window[0] * spec.window[1],
                               seed + 1)),
        result_(random_floats(spec.batch * spec.filters * output_[0] * output_[1], seed + 2)),
        residual_(random_floats(static_cast<std::int64_t>(result_.size()), seed + 3)),
        bias_(random_floats(spec.filters, seed + 4)),
        before_(result_) {}

  Result<void> run(const Convolution& convolution, int thread_count = 1) {
    const PackedFilters filters = TESSERA_TRY(convolution.pack(weights_.data()));
    result_ = before_;
    const ConvolutionOperands operands{source_.data(), &filters, result_.data(), bias_.data(),
                                       residual_.data()};
    std::atomic<std::int64_t> next = 0;
    std::atomic<int> failures = 0;
    const auto work = [&] {
      kernel::Scratch scratch;
      for (std::int64_t i; (i = next++) < convolution.items();)
        if (!convolution.run(operands, {i, i + 1}, scratch)) ++failures;
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < thread_count; ++t) threads.emplace_back(work);
    work();
    for (auto& thread : threads) thread.join();
    if (failures != 0) return Error(ErrorCode::device, cat(failures.load(), " items failed"));
    return {};
  }

  op::HostTensor expected() const {
    using Integers = std::vector<std::int64_t>;
    const auto& s = spec_;
    const op::Extents shape{s.batch, s.filters, output_[0], output_[1]};
    const auto y =
        call("conv",
             {f32_tensor({s.batch, s.channels, s.size[0], s.size[1]}, source_),
              f32_tensor({s.filters, s.channels / s.groups, s.window[0], s.window[1]}, weights_)},
             {{"strides", Integers{s.strides[0], s.strides[1]}},
              {"dilations", Integers{s.dilations[0], s.dilations[1]}},
              {"pads", Integers{s.padding_low[0], s.padding_low[1], s.padding_high[0], s.padding_high[1]}},
              {"groups", s.groups}});
    const bool in_place = s.epilogue.residual == Residual::in_destination;
    return finished(s.epilogue, y, 1, f32_tensor({s.filters, 1, 1}, bias_),
                    f32_tensor(shape, in_place ? before_ : residual_));
  }
  const std::vector<float>& result() const { return result_; }

 private:
  ConvolutionSpec spec_;
  Pair output_;
  std::vector<float> source_, weights_, result_, residual_, bias_;
  std::vector<float> before_;
};

void expect_right(const ConvolutionSpec& spec, ProductLibrary library, double tolerance = 0) {
  SCOPED_TRACE(cat("batch ", spec.batch, ", channels ", spec.channels, ", filters ", spec.filters,
                   ", groups ", spec.groups, ", size ", join(spec.size, "x"), ", window ",
                   join(spec.window, "x"), ", strides ", join(spec.strides, "x"), ", epilogue ",
                   spec.epilogue.code(), ", library ", static_cast<int>(library)));
  const double depth = static_cast<double>(spec.channels / spec.groups * spec.window[0] * spec.window[1]);
  if (tolerance == 0) tolerance = 4e-6 * std::sqrt(depth) + 1e-6;
  const auto convolution = Convolution::create(spec, library);
  ASSERT_TRUE(convolution) << convolution.error().to_text();
  ConvolutionCase arrays(spec, 1);
  const auto done = arrays.run(**convolution);
  ASSERT_TRUE(done) << done.error().to_text();
  EXPECT_LE(largest_difference(arrays.result(), arrays.expected().values<float>()), tolerance)
      << (*convolution)->implementation();
}

void expect_right_everywhere(const ConvolutionSpec& spec, double tolerance = 0) {
  expect_right(spec, ProductLibrary::blocked, tolerance);
  expect_right(spec, ProductLibrary::best, tolerance);
}

TEST(Convolution, IsRightForManySizes) {
  expect_right_everywhere(same(1, 1, 1, 1));
  expect_right_everywhere(same(3, 16, 30, 7));
  expect_right_everywhere(same(16, 32, 20));
  expect_right_everywhere(same(17, 5, 9));
  expect_right_everywhere(same(64, 64, 28));
  ConvolutionSpec batch = same(8, 24, 11);
  batch.batch = 3;
  expect_right_everywhere(batch);
}

TEST(Convolution, TakesStridesPaddingAndDilation) {
  for (const auto& strides : {Pair{1, 2}, Pair{2, 1}, Pair{3, 3}})
    for (const auto& dilations : {Pair{1, 1}, Pair{2, 3}})
      for (const auto& padding : {Pair{0, 0}, Pair{2, 1}, Pair{4, 5}}) {
        ConvolutionSpec spec = same(16, 20, 25);
        spec.strides = strides;
        spec.dilations = dilations;
        spec.padding_low = padding;
        spec.padding_high = {padding[1], padding[0]};
        expect_right_everywhere(spec);
      }
}

TEST(Convolution, TakesGroups) {
  for (std::int64_t groups : {2, 4, 16}) {
    ConvolutionSpec spec = same(16, 32, 24);
    spec.groups = groups;
    expect_right_everywhere(spec);
  }
  ConvolutionSpec depthwise = same(32, 32, 40);
  depthwise.groups = 32;
  expect_right_everywhere(depthwise);
}

TEST(Convolution, FollowsEveryEpilogue) {
  for (int code = 0; code < 5 * 2 * 7; ++code) {
    ConvolutionSpec spec = same(16, code % 2 == 0 ? 32 : 18, 18);
    const int residual = code / 14;
    const Activation activations[] = {Activation::none, Activation::relu,       Activation::sigmoid,
                                      Activation::silu, Activation::hard_swish, Activation::leaky_relu,
                                      Activation::clip};
    spec.epilogue = {.has_bias = code % 2 == 0,
                     .activation = activations[code / 2 % 7],
                     .alpha = code / 2 % 7 == 6 ? -0.5f : 0.25f,
                     .beta = 0.75f,
                     .residual = static_cast<Residual>((residual + 1) / 2),
                     .place = static_cast<ResidualPlace>(residual & 1)};
    expect_right_everywhere(spec);
  }
}

TEST(Convolution, SharesOutRowsAndFilters) {
  ConvolutionSpec spec = same(64, 64, 56);
  EXPECT_GT(value_or_throw(Convolution::create(spec))->items(), 3);
  expect_right_everywhere(spec);
  const ConvolutionSpec many = same(256, 300, 7);
  EXPECT_GT(value_or_throw(Convolution::create(many))->items(), 2);
  expect_right_everywhere(many);
}

TEST(Convolution, ByWinogradIsNearlyAsExact) {
  ConvolutionSpec spec = same(64, 64, 56);
  spec.method = ConvolutionMethod::winograd;
  spec.epilogue = {.has_bias = true, .activation = Activation::relu};
  expect_right_everywhere(spec, 2e-4);
}

/// Tiles at the edges, channels and filters that do not fill vectors, rows of several strips.
TEST(Convolution, ByWinogradTakesAnySizes) {
  struct Sizes {
    std::int64_t batch, channels, filters, rows, columns, padding;
  };
  for (const Sizes& sizes :
       {Sizes{1, 16, 16, 3, 3, 0}, Sizes{2, 17, 19, 5, 9, 1}, Sizes{3, 16, 48, 1, 2, 1},
        Sizes{1, 64, 64, 2, 150, 1}, Sizes{5, 33, 31, 7, 18, 2}, Sizes{1, 16, 16, 6, 5, 5}}) {
    ConvolutionSpec spec{.batch = sizes.batch, .channels = sizes.channels, .filters = sizes.filters};
    spec.size = {sizes.rows, sizes.columns};
    spec.window = {3, 3};
    spec.padding_low = {sizes.padding, sizes.padding};
    spec.padding_high = {sizes.padding, std::min<std::int64_t>(sizes.padding, 1)};
    spec.method = ConvolutionMethod::winograd;
    EXPECT_EQ(value_or_throw(Convolution::create(spec))->implementation(), "winograd");
    expect_right(spec, ProductLibrary::best, 2e-4);
  }
}

TEST(Convolution, ByWinogradFollowsEveryEpilogue) {
  for (int residual = 0; residual < 6; ++residual) {
    ConvolutionSpec spec = same(20, 18, 9);
    spec.method = ConvolutionMethod::winograd;
    spec.epilogue = {.has_bias = residual % 2 == 0,
                     .activation = residual < 3 ? Activation::relu : Activation::gelu_erf,
                     .residual = static_cast<Residual>(residual / 2),
                     .place = static_cast<ResidualPlace>(residual & 1)};
    expect_right(spec, ProductLibrary::best, 2e-4);
  }
}

TEST(Convolution, ByWinogradGivesTheSameBitsOnSeveralThreads) {
  ConvolutionSpec spec = same(32, 48, 40);
  spec.batch = 3;
  spec.method = ConvolutionMethod::winograd;
  const auto convolution = value_or_throw(Convolution::create(spec));
  ConvolutionCase arrays(spec, 4);
  ASSERT_TRUE(arrays.run(*convolution));
  const auto alone = arrays.result();
  ASSERT_TRUE(arrays.run(*convolution, 4));
  EXPECT_EQ(arrays.result(), alone);
}

TEST(Convolution, OfNothing) {
  ConvolutionSpec spec = same(3, 4, 5);
  spec.batch = 0;
  expect_right_everywhere(spec);
  spec = same(3, 0, 5);
  expect_right_everywhere(spec);
  spec = same(0, 4, 5);
  spec.epilogue.has_bias = true;
  expect_right_everywhere(spec);
}

TEST(Convolution, SeesNothingButPadding) {
  ConvolutionSpec spec = same(16, 16, 1, 1);
  spec.padding_low = spec.padding_high = {40, 3};
  expect_right_everywhere(spec);
}

TEST(Convolution, GivesTheSameBitsOnSeveralThreads) {
  for (ProductLibrary library : {ProductLibrary::best, ProductLibrary::blocked}) {
    ConvolutionSpec spec = same(32, 48, 40);
    spec.batch = 2;
    const auto convolution = value_or_throw(Convolution::create(spec, library));
    ConvolutionCase arrays(spec, 4);
    ASSERT_TRUE(arrays.run(*convolution));
    const auto alone = arrays.result();
    ASSERT_TRUE(arrays.run(*convolution, 4));
    EXPECT_EQ(arrays.result(), alone);
  }
}

TEST(Convolution, SaysWhatIsWrong) {
  ConvolutionSpec spec = same(3, 4, 5);
  spec.groups = 2;
  EXPECT_EQ(Convolution::create(spec).error().message(),
            "convolution: 2 groups do not divide 3 channels and 4 filters");
  spec = same(3, 4, 5);
  spec.window = {9, 3};
  EXPECT_EQ(Convolution::create(spec).error().message(),
            "convolution: axis 0: the window spans 9 elements, with padding there are 7");
  spec = same(3, 4, 5);
  spec.strides[1] = 0;
  EXPECT_EQ(Convolution::create(spec).error().code(), ErrorCode::invalid_argument);
  spec = same(1 << 30, 1 << 30, 1 << 20);
  EXPECT_EQ(Convolution::create(spec).error().code(), ErrorCode::limit);
}

TEST(ProductCache, HoldsConvolutionsToo) {
  ConvolutionCache cache(2);
  const auto first = value_or_throw(cache.get(same(3, 4, 5)));
  EXPECT_EQ(value_or_throw(cache.get(same(3, 4, 5))), first);
  ASSERT_TRUE(cache.get(same(3, 5, 5)));
  ASSERT_TRUE(cache.get(same(3, 6, 5)));
  EXPECT_EQ(cache.size(), 2u);
}

}  // namespace

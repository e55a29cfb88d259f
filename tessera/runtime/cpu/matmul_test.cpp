#include "tessera/runtime/cpu/matmul.h"

#include <atomic>
#include <thread>

#include "tessera/runtime/cpu/epilogue_function.h"
#include "tessera/runtime/cpu/matmul_split.h"
#include "tessera/runtime/cpu/product_cache.h"
#include "tessera/runtime/cpu/product_case.h"

using namespace tessera;
using namespace tessera::fixture;
using namespace tessera::runtime::cpu;

namespace {

MatrixForm row_major(std::int64_t rows, std::int64_t columns, std::int64_t gap = 0) {
  return {rows * (columns + gap), columns + gap, 1};
}
MatrixForm transposed(std::int64_t rows, std::int64_t columns, std::int64_t gap = 0) {
  return {columns * (rows + gap), 1, rows + gap};
}

MatmulSpec dense(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t batch = 1) {
  MatmulSpec out{.batch = batch, .rows = rows, .columns = columns, .depth = depth};
  out.a = row_major(rows, depth);
  out.b = row_major(depth, columns);
  out.c = out.residual = row_major(rows, columns);
  return out;
}

/// Elements that a batch of matrices spans.
std::int64_t span_of(const MatrixForm& form, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  if (batch == 0 || rows == 0 || columns == 0) return 0;
  return (batch - 1) * form.batch_stride + (rows - 1) * form.row_stride + (columns - 1) * form.column_stride +
         1;
}

/// The arrays of one product, and what the cards make of them.
class MatmulCase {
 public:
  MatmulCase(const MatmulSpec& spec, std::uint32_t seed)
      : spec_(spec),
        a_(random_floats(span_of(spec.a, spec.batch, spec.rows, spec.depth), seed)),
        b_(random_floats(span_of(spec.b, spec.batch, spec.depth, spec.columns), seed + 1)),
        c_(random_floats(span_of(spec.c, spec.batch, spec.rows, spec.columns), seed + 2)),
        residual_(random_floats(span_of(spec.residual, spec.batch, spec.rows, spec.columns), seed + 3)),
        bias_(random_floats(spec.columns, seed + 4)),
        before_(c_),
        product_(c_) {}

  /// In ranges of `step` items.
  Result<void> run(const Matmul& matmul, std::int64_t step = 1 << 30) {
    PackedMatrix packed;
    if (spec_.weights == WeightForm::packed) packed = TESSERA_TRY(matmul.pack(b_.data()));
    EXPECT_TRUE(spec_.weights == WeightForm::plain || matmul.accepts(packed));
    return run(matmul, operands(&packed), step);
  }
  Result<void> run(const Matmul& matmul, const MatmulOperands& given, std::int64_t step = 1 << 30) {
    kernel::Scratch scratch;
    c_ = before_;
    for (std::int64_t i = 0; i < matmul.items(); i += step)
      TESSERA_TRY(matmul.run(given, {i, std::min(matmul.items(), i + step)}, scratch));
    return {};
  }
  MatmulOperands operands(const PackedMatrix* packed) {
    return {.a = a_.data(),
            .b = b_.data(),
            .packed = packed,
            .c = c_.data(),
            .product = product_.data(),
            .bias = bias_.data(),
            .scale = scale,
            .residual = residual_.data()};
  }

  op::HostTensor expected_product() {
    const op::Array a = array(a_, spec_.a, spec_.rows, spec_.depth),
                    b = array(b_, spec_.b, spec_.depth, spec_.columns);
    return value_or_throw(op::run_reference(*op::find_card("matmul"), std::vector{a, b}, {}))[0];
  }
  op::HostTensor expected() {
    const op::HostTensor product = expected_product();
    const bool in_place = spec_.epilogue.residual == Residual::in_destination;
    const auto residual = copied(in_place ? before_ : residual_, in_place ? spec_.c : spec_.residual);
    return finished(spec_.epilogue, product, scale, f32_tensor({spec_.columns}, bias_), residual);
  }
  op::HostTensor result() { return copied(c_, spec_.c); }
  op::HostTensor kept() { return copied(product_, spec_.c); }
  /// Between the rows nothing may be written.
  bool keeps_gaps() {
    std::vector<bool> is_written(c_.size());
    for (std::int64_t n = 0; n < spec_.batch; ++n)
      for (std::int64_t i = 0; i < spec_.rows; ++i)
        for (std::int64_t j = 0; j < spec_.columns; ++j)
          is_written[static_cast<std::size_t>(n * spec_.c.batch_stride + i * spec_.c.row_stride + j)] = true;
    for (std::size_t i = 0; i < c_.size(); ++i)
      if (!is_written[i] && c_[i] != before_[i]) return false;
    return true;
  }
  std::vector<float>& c() { return c_; }
  std::vector<float>& a() { return a_; }
  const std::vector<float>& b() const { return b_; }

  float scale = 0.37f;

 private:
  op::Array array(std::vector<float>& data, const MatrixForm& form, std::int64_t rows,
                  std::int64_t columns) const {
    return {ir::Dtype::f32,
            {{spec_.batch, rows, columns}, {form.batch_stride, form.row_stride, form.column_stride}, 0},
            reinterpret_cast<std::byte*>(data.data())};
  }
  op::HostTensor copied(std::vector<float>& data, const MatrixForm& form) const {
    auto out =
        value_or_throw(op::HostTensor::allocate(ir::Dtype::f32, {spec_.batch, spec_.rows, spec_.columns}));
    op::copy_elements(array(data, form, spec_.rows, spec_.columns), out.array());
    return out;
  }

  MatmulSpec spec_;
  std::vector<float> a_, b_, c_, residual_, bias_;
  std::vector<float> before_;
  std::vector<float> product_;  ///< where it is kept
};

std::string text(const MatmulSpec& spec, ProductLibrary library) {
  return cat(spec.batch, " x ", spec.rows, " x ", spec.columns, " x ", spec.depth, ", a ", spec.a.row_stride,
             " ", spec.a.column_stride, ", b ", spec.b.batch_stride, " ", spec.b.row_stride, " ",
             spec.b.column_stride, ", epilogue ", spec.epilogue.code(), ", packed ",
             spec.weights == WeightForm::packed, ", library ", static_cast<int>(library));
}

void expect_right(const MatmulSpec& spec, ProductLibrary library, std::uint32_t seed = 1) {
  SCOPED_TRACE(text(spec, library));
  const auto matmul = Matmul::create(spec, library);
  ASSERT_TRUE(matmul) << matmul.error().to_text();
  MatmulCase arrays(spec, seed);
  const auto done = arrays.run(**matmul);
  ASSERT_TRUE(done) << done.error().to_text();
  const double tolerance = 2e-6 * std::sqrt(static_cast<double>(spec.depth) + 1) + 1e-6;
  EXPECT_LE(largest_difference(arrays.result().values<float>(), arrays.expected().values<float>()),
            tolerance);
  if (spec.epilogue.keeps_product) {
    EXPECT_LE(largest_difference(arrays.kept().values<float>(), arrays.expected_product().values<float>()),
              tolerance);
  }
  EXPECT_TRUE(arrays.keeps_gaps());
}

std::vector<ProductLibrary> libraries() {
  std::vector<ProductLibrary> out = {ProductLibrary::blocked};
  if (has_onednn()) out.push_back(ProductLibrary::onednn);
  return out;
}

constexpr std::int64_t some_sizes[][3] = {{1, 1, 1},      {1, 1, 1000},  {3, 5, 7},   {64, 64, 64},
                                          {1, 3072, 200}, {8, 300, 77},  {17, 1, 33}, {200, 131, 65},
                                          {129, 65, 257}, {2, 700, 700}, {15, 33, 1}, {300, 1030, 90}};

TEST(Matmul, IsRightForEverySize) {
  for (ProductLibrary library : libraries())
    for (const auto& s : some_sizes)
      for (WeightForm weights : {WeightForm::plain, WeightForm::packed}) {
        MatmulSpec spec = dense(s[0], s[1], s[2]);
        spec.weights = weights;
        expect_right(spec, library);
      }
}

TEST(Matmul, TakesTransposedOperandsAndGaps) {
  for (ProductLibrary library : libraries())
    for (const auto& s : some_sizes)
      for (int form = 0; form < 8; ++form) {
        MatmulSpec spec = dense(s[0], s[1], s[2]);
        spec.a =
            form & 1 ? transposed(s[0], s[2], form & 4 ? 3 : 0) : row_major(s[0], s[2], form & 4 ? 5 : 0);
        spec.b =
            form & 2 ? transposed(s[2], s[1], form & 4 ? 2 : 0) : row_major(s[2], s[1], form & 4 ? 1 : 0);
        spec.c = row_major(s[0], s[1], form & 4 ? 4 : 0);
        spec.weights = form & 1 ? WeightForm::packed : WeightForm::plain;
        expect_right(spec, library);
      }
}

TEST(Matmul, FollowsEveryEpilogue) {
  for (ProductLibrary library : libraries())
    for (int code = 0; code < 8 * 2 * 2 * 5; ++code) {
      MatmulSpec spec = dense(code % 3 == 0 ? 70 : 5, code % 4 == 0 ? 200 : 37, 40);
      const int residual = code / 32;
      spec.epilogue = {.has_scale = (code & 1) != 0,
                       .has_bias = (code & 2) != 0,
                       .activation = static_cast<Activation>(code / 4 % 8),
                       .residual = static_cast<Residual>((residual + 1) / 2),
                       .place = static_cast<ResidualPlace>(residual & 1)};
      spec.residual = row_major(spec.rows, spec.columns, 3);
      spec.weights = code % 5 < 2 ? WeightForm::packed : WeightForm::plain;
      expect_right(spec, library, static_cast<std::uint32_t>(code));
    }
}

TEST(Matmul, EndsWithTheFormulaOfACard) {
  EpilogueFunction elu(*op::find_card("elu"), {});
  for (ProductLibrary library : libraries())
    for (int code = 0; code < 2 * 5; ++code) {
      MatmulSpec spec = dense(code % 3 == 0 ? 70 : 5, code % 2 == 0 ? 1037 : 37, 40);
      spec.epilogue = {.has_bias = (code & 1) != 0,
                       .activation = Activation::by_card,
                       .alpha = 0.7f,
                       .function = &elu,
                       .residual = static_cast<Residual>((code / 2 + 1) / 2),
                       .place = static_cast<ResidualPlace>(code / 2 & 1)};
      spec.residual = row_major(spec.rows, spec.columns, 3);
      expect_right(spec, library, static_cast<std::uint32_t>(code));
    }
  EXPECT_TRUE(EpilogueFunction::exists(*op::find_card("log1p")));
  EXPECT_FALSE(EpilogueFunction::exists(*op::find_card("sum")));
}

TEST(Matmul, AddsAResidualToEveryItem) {
  for (ProductLibrary library : libraries())
    for (std::int64_t gap : {0, 3})
      for (Residual residual : {Residual::separate, Residual::in_destination}) {
        MatmulSpec spec = dense(200, 1030, 90);
        spec.residual = row_major(200, 1030, gap);
        spec.weights = WeightForm::packed;
        spec.epilogue = {.has_bias = true, .activation = Activation::gelu_tanh, .residual = residual};
        expect_right(spec, library);
        MatmulSpec batch = dense(5, 7, 9, 50);
        batch.residual = row_major(5, 7, gap);
        batch.epilogue = {.residual = residual};
        expect_right(batch, library);
      }
}

/// Whole panels of columns are updated while they are multiplied, others behind it.
TEST(Matmul, KeepsAProductThatUpdatesAnArray) {
  for (ProductLibrary library : libraries())
    for (const auto& s : {std::array{256, 1024, 64}, {70, 200, 40}, {33, 96, 500}, {3, 37, 11}, {2, 256, 20}})
      for (std::int64_t gap : {0, 3})
        for (std::int64_t batch : {1, 3}) {
          MatmulSpec spec = dense(s[0], s[1], s[2], batch);
          if (gap == 0) spec.a = transposed(s[0], s[2]);
          spec.residual = row_major(s[0], s[1], gap);
          spec.weights = batch == 1 && gap > 0 ? WeightForm::packed : WeightForm::plain;
          spec.epilogue = {.has_scale = true, .keeps_product = true, .residual = Residual::separate};
          expect_right(spec, library);
        }
}

TEST(Matmul, RunsBatches) {
  for (ProductLibrary library : libraries())
    for (std::int64_t batch : {2, 7, 300})
      for (int form = 0; form < 4; ++form) {
        MatmulSpec spec = dense(batch == 7 ? 65 : 4, batch == 2 ? 130 : 6, 9, batch);
        if (form & 1) spec.b.batch_stride = 0;
        if (form & 2) spec.a = transposed(spec.rows, spec.depth);
        spec.epilogue.has_bias = true;
        expect_right(spec, library);
      }
}

TEST(Matmul, SharesPackedWeightsInABatch) {
  for (ProductLibrary library : libraries()) {
    MatmulSpec spec = dense(6, 90, 20, 5);
    spec.weights = WeightForm::packed;
    spec.b.batch_stride = 0;
    expect_right(spec, library);
    spec.a.batch_stride += 7;  // not one matrix any more
    expect_right(spec, library);
    spec.b.batch_stride = 20 * 90;
    EXPECT_EQ(Matmul::create(spec, library).error().code(), ErrorCode::unsupported);
  }
}

TEST(Matmul, OfNothing) {
  for (ProductLibrary library : {ProductLibrary::best, ProductLibrary::blocked})
    for (const auto& s : {std::array{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 0}})
      for (WeightForm weights : {WeightForm::plain, WeightForm::packed}) {
        MatmulSpec spec = dense(s[0], s[1], s[2]);
        spec.weights = weights;
        spec.epilogue = {.has_bias = true, .activation = Activation::tanh};
        expect_right(spec, library);
        spec.batch = 0;
        expect_right(spec, library);
      }
}

TEST(Matmul, TakesAnyStridesWhereOneDnnDoesNot) {
  MatmulSpec spec = dense(9, 11, 13);
  spec.a = {0, 26, 2};
  spec.b = {0, 0, 1};  // every row the same
  expect_right(spec, ProductLibrary::best);
  EXPECT_EQ(value_or_throw(Matmul::create(spec))->implementation(), "blocked");
  if (!has_onednn()) GTEST_SKIP() << "no oneDNN: its refusal is not tested";
  EXPECT_EQ(Matmul::create(spec, ProductLibrary::onednn).error().code(), ErrorCode::unsupported);
}

TEST(Matmul, SaysWhatItDoesNotTake) {
  MatmulSpec spec = dense(3, 4, 5);
  spec.c = transposed(3, 4);
  EXPECT_EQ(Matmul::create(spec).error().message(),
            "matrix product of sizes 1 x 3 x 4 x 5: the rows of the result have gaps");
  spec = dense(3, 4, 5);
  spec.epilogue = {.has_bias = true, .keeps_product = true, .residual = Residual::separate};
  EXPECT_EQ(
      Matmul::create(spec).error().message(),
      "matrix product of sizes 1 x 3 x 4 x 5: only what is updated by it follows a product that is kept");
  EXPECT_EQ(Matmul::create(dense(-1, 2, 3)).error().code(), ErrorCode::invalid_argument);
  MatmulSpec huge = dense(1, 1, 1);
  huge.rows = huge.columns = std::int64_t{1} << 40;
  EXPECT_EQ(Matmul::create(huge).error().code(), ErrorCode::limit);
}

TEST(Matmul, TakesAnotherScaleWithoutANewPrimitive) {
  MatmulSpec spec = dense(30, 40, 50);
  spec.epilogue.has_scale = true;
  MatmulCache cache(4);
  MatmulCase arrays(spec, 3);
  for (float scale : {1.0f, -2.5f, 0.0f}) {
    arrays.scale = scale;
    const auto matmul = value_or_throw(cache.get(spec));
    ASSERT_TRUE(arrays.run(*matmul));
    EXPECT_LE(largest_difference(arrays.result().values<float>(), arrays.expected().values<float>()), 1e-4);
  }
  EXPECT_EQ(cache.misses(), 1u);
}

TEST(Matmul, OneCopyOfWeightsServesAnyNumberOfRows) {
  for (ProductLibrary library : libraries()) {
    MatmulSpec spec = dense(1, 500, 300);
    spec.weights = WeightForm::packed;
    MatmulCase first(spec, 5);
    const auto packed = value_or_throw(value_or_throw(Matmul::create(spec, library))->pack(first.b().data()));
    EXPECT_GE(packed.byte_size(), 500u * 300 * 4);
    for (std::int64_t rows : {1, 3, 64, 500}) {
      MatmulSpec other = dense(rows, 500, 300);
      other.weights = WeightForm::packed;
      const auto matmul = value_or_throw(Matmul::create(other, library));
      ASSERT_TRUE(matmul->accepts(packed)) << rows;
      MatmulCase arrays(other, 5);
      const auto b = first.b();
      ASSERT_TRUE(arrays.run(*matmul));
      const auto own = arrays.c();
      ASSERT_TRUE(arrays.run(*matmul, arrays.operands(&packed)));
      // The other case has the same weights: they come from the same seed.
      EXPECT_EQ(arrays.c(), own) << rows;
    }
    MatmulSpec narrow = dense(1, 499, 300);
    narrow.weights = WeightForm::packed;
    EXPECT_FALSE(value_or_throw(Matmul::create(narrow, library))->accepts(packed));
  }
}

TEST(Matmul, GivesTheSameBitsHoweverItIsSplit) {
  for (ProductLibrary library : libraries()) {
    const MatmulSpec spec = dense(260, 700, 400);
    const auto matmul = value_or_throw(Matmul::create(spec, library));
    ASSERT_GT(matmul->items(), 3);
    MatmulCase arrays(spec, 9);
    ASSERT_TRUE(arrays.run(*matmul));
    const auto whole = arrays.c();
    for (std::int64_t step : {1, 3}) {
      ASSERT_TRUE(arrays.run(*matmul, step));
      EXPECT_EQ(arrays.c(), whole);
    }
  }
}

/// Weights that no cache holds are read by fewer items, as many as the threads need.
TEST(Matmul, ItemsOfLargeWeightsAreLargeOnFewThreads) {
  MatmulSpec spec = dense(2048, 2048, 2048);
  EXPECT_EQ(large_row_block(spec, 1), 256);
  EXPECT_EQ(large_row_block(spec, 2), 256);
  EXPECT_EQ(large_row_block(spec, 4), 128);
  EXPECT_EQ(large_row_block(spec, 16), 0);
  EXPECT_EQ(large_row_block(dense(2048, 8192, 256), 2), 0) << "short sums";
  EXPECT_EQ(large_row_block(dense(2048, 1024, 1024), 2), 0) << "weights that caches hold";
  EXPECT_EQ(large_row_block(dense(512, 2048, 2048, 8), 2), 0) << "each has its own weights";
  spec = dense(600, 1500, 1400);
  spec.weights = WeightForm::packed;
  for (const ProductLibrary library : libraries()) {
    MatmulCase arrays(spec, 5);
    spec.row_block = large_row_block(spec, 16);
    const auto usual = value_or_throw(Matmul::create(spec, library));
    ASSERT_TRUE(arrays.run(*usual));
    const auto results = arrays.c();
    spec.row_block = large_row_block(spec, 1);
    const auto large = value_or_throw(Matmul::create(spec, library));
    EXPECT_EQ(large->row_block(), 128);
    EXPECT_NE(usual->row_block(), 128);
    ASSERT_TRUE(arrays.run(*large));
    EXPECT_EQ(arrays.c(), results);
  }
}

/// Our own product holds the tile of an item.
TEST(Matmul, BlocksOfVeryLongRowsHavePanels) {
  MatmulSpec spec = dense(512, 50257, 256);
  spec.weights = WeightForm::packed;
  spec.row_block = 16;
  EXPECT_EQ(value_or_throw(Matmul::create(spec, ProductLibrary::blocked))->row_block(), 16);
  spec.row_block = 256;
  EXPECT_EQ(value_or_throw(Matmul::create(spec, ProductLibrary::blocked))->row_block(), 0);
}

TEST(Matmul, BlocksOfRowsAreItemsIfAskedFor) {
  for (const WeightForm weights : {WeightForm::plain, WeightForm::packed})
    for (const std::int64_t block : {1, 5, 16, 64}) {
      MatmulSpec spec = dense(16, 70, 33, 2);
      spec.b.batch_stride = 0;
      spec.weights = weights;
      spec.row_block = block;
      spec.epilogue = {.has_bias = true, .activation = Activation::gelu_erf};
      const auto matmul = value_or_throw(Matmul::create(spec));
      EXPECT_EQ(matmul->row_block(), std::min<std::int64_t>(block, 32)) << "the batch is one matrix";
      EXPECT_EQ(matmul->items(), (32 + block - 1) / block);
      MatmulCase test(spec, 11);
      value_or_throw(test.run(*matmul, 1));
      EXPECT_LT(largest_difference(test.expected().values<float>(), test.result().values<float>()), 1e-4);
    }
  MatmulSpec several = dense(16, 70, 33, 2);
  several.row_block = 8;
  EXPECT_EQ(value_or_throw(Matmul::create(several))->row_block(), 0) << "each has its own weights";
  MatmulSpec nothing = dense(0, 70, 33);
  nothing.row_block = 8;
  EXPECT_EQ(value_or_throw(Matmul::create(nothing))->row_block(), 0);
}

TEST(Matmul, RunsOnSeveralThreads) {
  for (ProductLibrary library : libraries()) {
    MatmulSpec spec = dense(260, 700, 400);
    spec.weights = WeightForm::packed;
    spec.epilogue = {.has_bias = true, .activation = Activation::gelu_erf};
    const auto matmul = value_or_throw(Matmul::create(spec, library));
    MatmulCase arrays(spec, 9);
    ASSERT_TRUE(arrays.run(*matmul));
    const auto alone = arrays.c();
    std::fill(arrays.c().begin(), arrays.c().end(), 0.0f);
    const auto packed = value_or_throw(matmul->pack(arrays.b().data()));
    const MatmulOperands operands = arrays.operands(&packed);
    std::vector<std::thread> threads;
    std::atomic<std::int64_t> next = 0;
    std::atomic<int> failures = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        kernel::Scratch scratch;
        for (std::int64_t i; (i = next++) < matmul->items();)
          if (!matmul->run(operands, {i, i + 1}, scratch)) ++failures;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(arrays.c(), alone);
  }
}

TEST(Matmul, OneDnnIsNeverItsReferenceCode) {
  if (!has_onednn()) GTEST_SKIP() << "no oneDNN";
  const auto matmul = value_or_throw(Matmul::create(dense(40, 50, 60), ProductLibrary::onednn));
  EXPECT_EQ(matmul->implementation().find("ref"), std::string::npos) << matmul->implementation();
  EXPECT_EQ(value_or_throw(OneDnn::open())->version().substr(0, 2), "2.");
}

TEST(ProductCache, FindsWhatItMade) {
  MatmulCache cache(8);
  const auto first = value_or_throw(cache.get(dense(3, 4, 5)));
  EXPECT_EQ(value_or_throw(cache.get(dense(3, 4, 5))), first);
  EXPECT_NE(value_or_throw(cache.get(dense(3, 4, 6))), first);
  EXPECT_EQ(cache.misses(), 2u);
}

TEST(ProductCache, DropsTheLeastRecentlyUsed) {
  MatmulCache cache(3);
  const auto first = value_or_throw(cache.get(dense(1, 4, 5)));
  for (std::int64_t rows = 2; rows < 50; ++rows) {
    ASSERT_TRUE(cache.get(dense(rows, 4, 5)));
    ASSERT_TRUE(cache.get(dense(1, 4, 5)));
    EXPECT_LE(cache.size(), 3u);
  }
  EXPECT_EQ(value_or_throw(cache.get(dense(1, 4, 5))), first);
  EXPECT_EQ(cache.misses(), 49u);
}

TEST(ProductCache, KeepsErrorsOut) {
  MatmulCache cache(3);
  EXPECT_FALSE(cache.get(dense(-1, 4, 5)));
  EXPECT_EQ(cache.size(), 0u);
}

std::vector<GemmKernel> kernels_of_this_processor() {
  std::vector<GemmKernel> out = {gemm_baseline::kernel()};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back(gemm_v3::kernel());
  if (__builtin_cpu_supports("avx512vl")) out.push_back(gemm_v4::kernel());
#endif
  return out;
}

TEST(BlockedGemm, EveryKernelOfThisProcessorIsRight) {
  for (const GemmKernel& kernel : kernels_of_this_processor())
    for (std::int64_t rows = 1; rows <= kernel.rows; ++rows) {
      const std::int64_t depth = 19, columns = kernel.columns;
      const auto a = random_floats(depth * rows, 1), b = random_floats(depth * columns, 2);
      std::vector<float> c(static_cast<std::size_t>(rows * columns));
      for (bool is_first : {true, false})
        kernel.function[rows]({.a = {a.data(), 1, rows},
                               .b = b.data(),
                               .b_stride = columns,
                               .depth = depth,
                               .c = c.data(),
                               .c_stride = columns,
                               .is_first = is_first,
                               .ahead = b.data()});
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < depth; ++k)
            sum += static_cast<double>(a[static_cast<std::size_t>(k * rows + i)]) *
                   b[static_cast<std::size_t>(k * columns + j)];
          EXPECT_NEAR(c[static_cast<std::size_t>(i * columns + j)], 2 * sum, 1e-5);
        }
    }
}

TEST(BlockedGemm, PanelsAreCopiedFromAnyStrides) {
  for (const GemmKernel& kernel : kernels_of_this_processor())
    for (const std::int64_t depth : {1, 16, 37})
      for (const std::int64_t columns : {kernel.columns, kernel.vector + 1, kernel.vector, std::int64_t{1}}) {
        const std::int64_t width = kernel.columns;
        const auto numbers = random_floats(3 * depth * width, 3);
        for (const MatrixView& b :
             {MatrixView{numbers.data(), width + 1, 1}, MatrixView{numbers.data(), 1, depth + 2},
              MatrixView{numbers.data(), 2, 2 * depth}, MatrixView{numbers.data(), 0, 1}}) {
          std::vector<float> out(static_cast<std::size_t>(depth * width), 7.0f);
          kernel.pack(b, depth, columns, out.data());
          for (std::int64_t k = 0; k < depth; ++k)
            for (std::int64_t j = 0; j < width; ++j)
              ASSERT_EQ(out[static_cast<std::size_t>(k * width + j)],
                        j < columns ? b.data[k * b.row_stride + j * b.column_stride] : 0.0f)
                  << k << ", " << j << " of " << depth << " x " << columns;
        }
      }
}

TEST(BlockedGemm, TheLargestOfAWindowIsNaNWhereOneIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), low = -std::numeric_limits<float>::infinity();
  for (const GemmKernel& kernel : kernels_of_this_processor())
    for (const std::int64_t step : {1, 2, 3}) {
      const std::int64_t row = kernel.vector * step + 2, offsets[] = {0, 1, row};
      auto in = random_floats(7 * row, 5);
      for (std::size_t i = 0; i < in.size(); i += 11) in[i] = nan;
      std::vector<float> out(static_cast<std::size_t>(5 * kernel.vector));
      kernel.filter({.in = in.data(),
                     .row_step = row,
                     .column_step = step,
                     .offsets = offsets,
                     .taps = 3,
                     .rows = 5,
                     .columns = kernel.vector,
                     .start = low,
                     .out = out.data(),
                     .out_stride = kernel.vector});
      for (std::int64_t y = 0; y < 5; ++y)
        for (std::int64_t x = 0; x < kernel.vector; ++x) {
          float largest = low;
          for (const std::int64_t offset : offsets) {
            const float value = in[static_cast<std::size_t>(offset + y * row + x * step)];
            if (!(largest >= value) && !std::isnan(largest)) largest = value;
          }
          const float got = out[static_cast<std::size_t>(y * kernel.vector + x)];
          EXPECT_TRUE(got == largest || (std::isnan(got) && std::isnan(largest)))
              << y << ", " << x << ", " << step;
        }
    }
}

TEST(Matmul, OurOwnServesWhereOneDnnWouldGenerateAllOfItsGeneralProduct) {
  if (!has_onednn()) GTEST_SKIP() << "no oneDNN";
  for (const std::int64_t rows : {1, 64, 512, 2048}) {
    const auto theirs = value_or_throw(Matmul::create(dense(rows, 768, 256), ProductLibrary::onednn));
    const auto best = value_or_throw(Matmul::create(dense(rows, 768, 256)));
    const bool is_small = rows * 768 * 256 <= 64'000'000;
    EXPECT_EQ(best->implementation(), is_small && theirs->implementation().starts_with("gemm")
                                          ? "blocked"
                                          : theirs->implementation());
  }
}

TEST(Matmul, OurOwnMultipliesFewRowsByPackedWeights) {
  if (!has_onednn()) GTEST_SKIP() << "no oneDNN";
  const auto implementation = [](std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                 ProductLibrary library = ProductLibrary::best) {
    MatmulSpec spec = dense(rows, columns, depth);
    spec.weights = WeightForm::packed;
    return value_or_throw(Matmul::create(spec, library))->implementation();
  };
  for (const std::int64_t rows : {1, 4}) EXPECT_EQ(implementation(rows, 768, 256), "blocked") << rows;
  EXPECT_EQ(implementation(2, 64, 64), "blocked");
  if (implementation(64, 768, 256, ProductLibrary::onednn).starts_with("gemm"))
    GTEST_SKIP() << "oneDNN has its general product only";
  EXPECT_NE(implementation(2, 768, 256), "blocked");
  EXPECT_NE(implementation(64, 768, 256), "blocked");
  EXPECT_NE(implementation(1, 4096, 4096), "blocked");
}

}  // namespace

#include "tessera/runtime/cpu/byte_matmul.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

using Integers = std::vector<std::int32_t>;

template <class Integer>
std::optional<ByteMatrix> right_of(const std::vector<Integer>& from, std::int32_t less = 0) {
  return ByteMatmul::right_of(std::span(from), less);
}

/// Skips where bytes are not multiplied exactly.
class ByteMatmulTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto onednn = OneDnn::open();
    if (!onednn) GTEST_SKIP() << onednn.error().to_text();
    if (!OneDnn::multiplies_bytes_exactly()) GTEST_SKIP() << "the processor has no products of bytes";
    onednn_ = *onednn;
  }

  /// By bytes, in items one by one, backwards.
  Integers product(const ByteMatmulSizes& sizes, const Integers& a, const Integers& b) {
    ByteMatmul matmul(*onednn_, sizes);
    const auto right = right_of(b);
    EXPECT_TRUE(matmul.read_left(a) && right);
    matmul.set_right(*right);
    Integers out(static_cast<std::size_t>(sizes.batch * sizes.rows * sizes.columns), -1);
    for (std::int64_t item = matmul.items(); item-- > 0;)
      EXPECT_TRUE(matmul.run(out.data(), {item, item + 1}));
    return out;
  }

  const OneDnn* onednn_ = nullptr;
};

Integers expected(const ByteMatmulSizes& sizes, const Integers& a, const Integers& b) {
  Integers out;
  for (std::int64_t row = 0; row < sizes.batch * sizes.rows; ++row)
    for (std::int64_t column = 0; column < sizes.columns; ++column) {
      std::uint32_t sum = 0;
      for (std::int64_t k = 0; k < sizes.depth; ++k) {
        const std::int64_t at = row / sizes.rows * sizes.right_stride + k * sizes.columns + column;
        sum += static_cast<std::uint32_t>(a[static_cast<std::size_t>(row * sizes.depth + k)]) *
               static_cast<std::uint32_t>(b[static_cast<std::size_t>(at)]);
      }
      out.push_back(static_cast<std::int32_t>(sum));
    }
  return out;
}

Integers numbers(std::int64_t count, std::int32_t least, std::int32_t most, std::uint32_t seed) {
  std::mt19937 source(seed);
  std::uniform_int_distribution<std::int32_t> from(least, most);
  Integers out(static_cast<std::size_t>(count));
  for (std::int32_t& value : out) value = from(source);
  return out;
}

}  // namespace

TEST_F(ByteMatmulTest, IsExactForAllSizesAndRanges) {
  struct Range {
    std::int32_t least, most;
  };
  for (const auto& [rows, columns, depth] :
       {std::array{1, 1, 1}, std::array{3, 17, 5}, std::array{130, 300, 33}, std::array{40, 288, 1152}})
    for (const Range left : {Range{0, 255}, Range{-255, 0}, Range{-128, 127}, Range{-3, 252}})
      for (const Range right : {Range{-128, 127}, Range{0, 255}, Range{-255, 0}, Range{-1, 1}}) {
        SCOPED_TRACE(cat(rows, "x", columns, "x", depth, " of ", left.least, " … ", left.most, " and ",
                         right.least, " … ", right.most));
        const ByteMatmulSizes sizes{.rows = rows, .columns = columns, .depth = depth};
        const Integers a = numbers(rows * depth, left.least, left.most, 1),
                       b = numbers(columns * depth, right.least, right.most, 2);
        EXPECT_EQ(product(sizes, a, b), expected(sizes, a, b));
      }
}

TEST_F(ByteMatmulTest, LargestSumsKeepEveryBit) {
  const ByteMatmulSizes sizes{.rows = 2, .columns = 33, .depth = 70'001};  // more than 2^31 in the last
  for (const auto& [left, right] : {std::pair{255, 127}, std::pair{255, -128}, std::pair{-255, -255}}) {
    const Integers a(static_cast<std::size_t>(sizes.rows * sizes.depth), left),
        b(static_cast<std::size_t>(sizes.columns * sizes.depth), right);
    EXPECT_EQ(product(sizes, a, b), expected(sizes, a, b)) << left << " by " << right;
  }
}

TEST_F(ByteMatmulTest, HasAMatrixForEachOfTheBatch) {
  const ByteMatmulSizes sizes{.batch = 3, .rows = 5, .columns = 140, .depth = 9, .right_stride = 9 * 140};
  const Integers a = numbers(3 * 5 * 9, -100, 100, 3), b = numbers(3 * 9 * 140, -100, 100, 4);
  EXPECT_EQ(product(sizes, a, b), expected(sizes, a, b));
}

TEST_F(ByteMatmulTest, TakesANumberFromBytes) {
  const ByteMatmulSizes sizes{.rows = 3, .columns = 40, .depth = 9};
  const Integers a = numbers(3 * 9, 0, 255, 5), given = numbers(9 * 40, 0, 255, 6);
  const std::vector<std::uint8_t> bytes(given.begin(), given.end());
  for (const std::int32_t less : {0, 1, 131, 255}) {
    Integers b = given;
    for (std::int32_t& value : b) value -= less;
    ByteMatmul matmul(*onednn_, sizes);
    const auto right = right_of(bytes, less);
    ASSERT_TRUE(matmul.read_left(a) && right);
    matmul.set_right(*right);
    Integers out(3 * 40, -1);
    ASSERT_TRUE(matmul.run(out.data(), {0, matmul.items()}));
    EXPECT_EQ(out, expected(sizes, a, b)) << less;
  }
}

TEST_F(ByteMatmulTest, SaysWhatDoesNotFit) {
  ByteMatmul matmul(*onednn_, {.rows = 1, .columns = 1, .depth = 2});
  EXPECT_FALSE(matmul.read_left(Integers{-1, 255}));
  EXPECT_FALSE(matmul.read_left(Integers{0, 256}));
  EXPECT_FALSE(matmul.read_left(Integers{-300, -299}));
  EXPECT_FALSE(right_of(Integers{-129, 127}));
  EXPECT_FALSE(right_of(Integers{300, 310}));
  EXPECT_FALSE(right_of(Integers{INT32_MIN, INT32_MAX}));
  const std::vector<std::int8_t> wraps{-1, 0}, far{0, 1};
  EXPECT_FALSE(right_of(wraps, INT32_MIN));
  EXPECT_FALSE(right_of(far, 300));
  EXPECT_TRUE(matmul.read_left(Integers{-1, 254}));
  EXPECT_TRUE(right_of(Integers{-255, -1}));
}

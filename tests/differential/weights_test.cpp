// Library calls keep what they made of their weights for the next launch: only as long as they are the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/compile/plan_function.h"
#include "tessera/engine/devices.h"
#include "tessera/ir/parse.h"

namespace tessera::differential {
namespace {

using runtime::Buffer;

struct Kind {
  const char* name;
  op::Dtype dtype;
  op::Extents input, weights;
  const char* result;  ///< its shape
  const char* call;
  int terms;  ///< that an element of the result is the sum of
};

/// A plan of one product whose weights the caller chooses for each launch. All elements of the other operand
/// are 1.
class Product {
 public:
  explicit Product(const Kind& kind) : kind_(kind) {
    const auto cpu = value_or_throw(engine::find_device("cpu"));
    const std::string text = cat("func f(x: ", type(kind.input), ", w: ", type(kind.weights),
                                 ") { y: ", kind.dtype, kind.result, " = ", kind.call, " return y }");
    const auto planned =
        value_or_throw(compiler::plan_function(value_or_throw(ir::parse_function(text)), cpu->target()));
    EXPECT_EQ(planned.plan->steps.size(), 1U);
    EXPECT_EQ(planned.plan->steps[0].kind, plan::StepKind::library);
    executable_ = value_or_throw(cpu->load(planned.plan, pool_));
    value_or_throw(
        executable_->prepare({}, std::vector{op::contiguous(kind.input), op::contiguous(kind.weights)}));
    result_ = value_or_throw(pool_->allocate(1024));
    input_ = filled(static_cast<std::size_t>(op::element_count(kind.input)), 1);
  }

  [[nodiscard]] Ref<Buffer> filled(std::size_t elements, int value) const {
    Ref<Buffer> out = value_or_throw(pool_->allocate(4 * elements));
    fill(*out, 0, elements, value);
    return out;
  }
  [[nodiscard]] std::size_t weight_count() const {
    return static_cast<std::size_t>(op::element_count(kind_.weights));
  }
  void fill(const Buffer& buffer, std::size_t from, std::size_t elements, int value) const {
    if (kind_.dtype == op::Dtype::f32)
      std::fill_n(reinterpret_cast<float*>(buffer.data()) + from, elements, static_cast<float>(value));
    else
      std::fill_n(reinterpret_cast<std::int32_t*>(buffer.data()) + from, elements, value);
  }

  /// Launches with the weights from this element of a buffer on, which all are `value`.
  void expect(const Buffer& weights, std::size_t from, int value) const {
    std::byte* const inputs[] = {input_->data(), weights.data() + 4 * from};
    std::byte* const outputs[] = {result_->data()};
    const Buffer* const buffers[] = {input_.get(), &weights};
    value_or_throw(
        executable_->run({.inputs = inputs, .parameters = {}, .outputs = outputs, .buffers = buffers}));
    const double first = kind_.dtype == op::Dtype::f32 ? *reinterpret_cast<float*>(result_->data())
                                                       : *reinterpret_cast<std::int32_t*>(result_->data());
    EXPECT_EQ(first, static_cast<double>(kind_.terms) * value);
  }

 private:
  [[nodiscard]] std::string type(const op::Extents& shape) const {
    return cat(kind_.dtype, "[", join(shape, ", "), "]");
  }

  const Kind& kind_;
  std::shared_ptr<runtime::MemoryPool> pool_ = runtime::MemoryPool::create();
  std::unique_ptr<runtime::Executable> executable_;
  Ref<Buffer> input_, result_;
};

class Weights : public testing::TestWithParam<Kind> {};

/// Small ones are bytes to some calls, the largest are too large for sums of floats.
constexpr int values[] = {1, 2, 5, 1 << 25, 3};

TEST_P(Weights, that_are_written_are_read_again) {
  const Product product(GetParam());
  const auto weights = product.filled(product.weight_count(), 0);
  for (const int value : values) {
    weights->begin_write();
    product.fill(*weights, 0, product.weight_count(), value);
    for (int launch = 0; launch < 3; ++launch) product.expect(*weights, 0, value);
  }
}

/// A view of stacked weights begins elsewhere in the same buffer.
TEST_P(Weights, elsewhere_in_one_buffer_are_others) {
  const Product product(GetParam());
  const std::size_t count = product.weight_count();
  const auto weights = product.filled(std::size(values) * count, 0);
  for (std::size_t i = 0; i < std::size(values); ++i) product.fill(*weights, i * count, count, values[i]);
  for (const std::size_t i : {0U, 0U, 1U, 1U, 0U, 2U, 3U, 3U, 1U, 4U, 0U})
    product.expect(*weights, i * count, values[i]);
}

/// A buffer that is gone leaves its place to the next.
TEST_P(Weights, in_a_buffer_at_the_same_place_are_others) {
  const Product product(GetParam());
  for (int round = 0; round < 20; ++round)
    for (const int value : values) {
      const auto weights = product.filled(product.weight_count(), value);
      product.expect(*weights, 0, value);
      product.expect(*weights, 0, value);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, Weights,
    testing::Values(
        Kind{"matmul", op::Dtype::f32, {2, 3}, {3, 4}, "[2, 4]", "matmul(x, w)", 3},
        Kind{"integer_matmul", op::Dtype::i32, {2, 3}, {3, 4}, "[2, 4]", "matmul(x, w)", 3},
        Kind{"conv", op::Dtype::f32, {1, 3, 4, 4}, {8, 3, 3, 3}, "[1, 8, 2, 2]", "conv(x, w)", 27},
        Kind{"pointwise", op::Dtype::f32, {1, 3, 4, 4}, {8, 3, 1, 1}, "[1, 8, 4, 4]", "conv(x, w)", 3},
        Kind{"depthwise",
             op::Dtype::f32,
             {1, 3, 4, 4},
             {3, 1, 3, 3},
             "[1, 3, 2, 2]",
             "conv(x, w) {groups = 3}",
             9},
        Kind{"integer_conv", op::Dtype::i32, {1, 3, 4, 4}, {8, 3, 3, 3}, "[1, 8, 2, 2]", "conv(x, w)", 27}),
    [](const auto& test) { return std::string(test.param.name); });

/// Memory, and buffers, come again at the same address; contents never have the same number.
TEST(BufferVersion, is_of_one_contents_alone) {
  const auto pool = runtime::MemoryPool::create();
  std::vector<std::uint64_t> versions;
  for (int i = 0; i < 100; ++i) {
    const auto buffer = value_or_throw(pool->allocate(64));
    versions.push_back(buffer->version());
    buffer->begin_write();
    versions.push_back(buffer->version());
  }
  std::sort(versions.begin(), versions.end());
  EXPECT_EQ(std::adjacent_find(versions.begin(), versions.end()), versions.end());
}

}  // namespace
}  // namespace tessera::differential

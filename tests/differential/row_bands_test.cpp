// Chains of steps that threads run block of rows by block of rows: where there are some, and that nobody sees
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tessera/base/text.h"
#include "tessera/ir/parse.h"
#include "tessera/runtime/cpu/cpu_executable.h"
#include "tests/differential/runs.h"

namespace tessera::differential {
namespace {

using runtime::Buffer;
using runtime::cpu::CpuExecutable;

using Bands = std::vector<CpuExecutable::BandRun>;

/// A function on the CPU whose inputs lie in buffers, of which the device may keep copies.
class Launched {
 public:
  Launched(const std::string& text, unsigned threads) {
    program_.function = value_or_throw(ir::parse_function(text));
    device_ = std::make_shared<runtime::cpu::CpuDevice>(runtime::cpu::CpuOptions{
        .threads = threads, .target = {.name = "cpu", .sources = {compiler::fused_regions()}}});
    plan_ = value_or_throw(compiler::plan_function(program_.function, device_->target())).plan;
    executable_ = std::make_unique<CpuExecutable>(device_, plan_, pool_);
    std::vector<op::Layout> layouts;
    for (const auto& param : program_.function->params) {
      op::Extents shape;
      for (const ir::Dim& dim : static_cast<const ir::TensorType&>(*param->type).shape)
        shape.push_back(dim.value());
      layouts.push_back(op::contiguous(shape));
      program_.inputs.push_back(value_or_throw(op::HostTensor::allocate(op::Dtype::f32, shape)));
      buffers_.push_back(value_or_throw(pool_->allocate(program_.inputs.back().values<float>().size() * 4)));
    }
    value_or_throw(executable_->prepare({}, layouts));
    for (const plan::OutputBuffer& output : executable_->binding().buffers)
      outputs_.push_back(value_or_throw(pool_->allocate(static_cast<std::size_t>(output.bytes))));
  }

  /// Other numbers in all inputs.
  void fill(std::uint32_t seed) {
    std::mt19937 source(seed);
    std::uniform_real_distribution<float> from(-1.0f, 1.0f);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto values = program_.inputs[i].values<float>();
      for (float& value : values) value = from(source);
      buffers_[i]->begin_write();
      std::copy(values.begin(), values.end(), reinterpret_cast<float*>(buffers_[i]->data()));
    }
  }

  /// All results, one behind the other.
  std::vector<float> run() {
    std::vector<std::byte*> inputs, outputs;
    std::vector<const Buffer*> buffers;
    for (const auto& buffer : buffers_) {
      inputs.push_back(buffer->data());
      buffers.push_back(buffer.get());
    }
    for (const auto& output : outputs_) outputs.push_back(output->data());
    value_or_throw(
        executable_->run({.inputs = inputs, .parameters = {}, .outputs = outputs, .buffers = buffers}));
    std::vector<float> out;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const auto* const begin = reinterpret_cast<const float*>(outputs_[i]->data());
      out.insert(out.end(), begin, begin + executable_->binding().buffers[i].bytes / 4);
    }
    return out;
  }

  std::vector<float> expected() {
    const auto results = value_or_throw(run_reference(*program_.function, program_, {}));
    std::vector<float> out;
    for (const op::HostTensor& result : results)
      out.insert(out.end(), result.values<float>().begin(), result.values<float>().end());
    return out;
  }

  void expect_right(const std::string& when) {
    const auto wanted = expected(), got = run();
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-4 * std::max(1.0f, std::abs(wanted[i]))) << when << ", element " << i;
  }

  [[nodiscard]] const Bands& bands() const { return executable_->bands(); }
  [[nodiscard]] std::string steps() const { return plan::to_text(*plan_); }

 private:
  Program program_;
  std::shared_ptr<runtime::MemoryPool> pool_ = runtime::MemoryPool::create();
  std::shared_ptr<runtime::cpu::CpuDevice> device_;
  plan::PlanRef plan_;
  std::unique_ptr<CpuExecutable> executable_;
  std::vector<Ref<Buffer>> buffers_, outputs_;
};

constexpr const char* layers =
    "func f(x: f32[37, 64], w: f32[64, 96], b: f32[96], u: f32[96, 64]) { a: f32[37, 96] = matmul(x, w) "
    "c: f32[37, 96] = add(a, b) s: f32[37, 96] = softmax(c) {axis = -1} d: f32[37, 64] = matmul(s, u) "
    "e: f32[37, 64] = add(d, x) g: f32[37, 96] = matmul(e, w) h: f32[37, 96] = tanh(g) return h }";

/// How many works go by rows in the stretches of each band.
std::vector<std::size_t> works_by_rows(const Bands& bands) {
  std::vector<std::size_t> out;
  for (const auto& run : bands)
    for (const auto& stretch : run.stretches)
      if (stretch.goes_by_rows) out.push_back(stretch.end - stretch.begin);
  return out;
}

TEST(RowBands, layers_are_one_chain) {
  Launched layer(layers, 2);
  ASSERT_EQ(layer.bands().size(), 1U) << layer.steps();
  EXPECT_EQ(layer.bands()[0].band.rows, 37);
  EXPECT_GE(layer.bands()[0].band.blocks(), 2);
  layer.fill(1);
  for (int launch = 0; launch < 20; ++launch) layer.expect_right(cat("launch ", launch));
  EXPECT_EQ(works_by_rows(layer.bands()), std::vector<std::size_t>{4}) << layer.steps();
}

TEST(RowBands, weights_may_change) {
  Launched layer(layers, 2);
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    layer.fill(seed);
    for (std::uint32_t launch = 0; launch <= seed % 3; ++launch)
      layer.expect_right(cat("numbers ", seed, ", launch ", launch));
  }
}

TEST(RowBands, the_number_of_threads_changes_no_bit) {
  std::vector<std::vector<float>> results;
  for (const unsigned threads : {1U, 2U, 3U, 8U}) {
    Launched layer(layers, threads);
    layer.fill(3);
    (void)layer.run();
    results.push_back(layer.run());
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

/// A softmax along the columns needs all rows: it begins where the chain before it has ended.
TEST(RowBands, what_reads_other_rows_ends_a_chain) {
  Launched layer(
      "func f(x: f32[32, 64], w: f32[64, 96], u: f32[96, 64]) { a: f32[32, 96] = matmul(x, w) "
      "l: f32[32, 96] = softmax(a) {axis = -1} b: f32[32, 64] = matmul(l, u) "
      "s: f32[32, 64] = softmax(b) {axis = 0} c: f32[32, 96] = matmul(s, w) "
      "m: f32[32, 96] = softmax(c) {axis = -1} d: f32[32, 64] = matmul(m, u) return d }",
      2);
  ASSERT_EQ(layer.bands().size(), 1U) << layer.steps();
  layer.fill(5);
  for (int launch = 0; launch < 20; ++launch) layer.expect_right(cat("launch ", launch));
  EXPECT_EQ(works_by_rows(layer.bands()), (std::vector<std::size_t>{3, 3})) << layer.steps();
}

/// Weights that the chain itself computes are whole before they are read.
TEST(RowBands, what_is_read_whole_is_computed_before) {
  Launched layer(
      "func f(x: f32[64, 64], w: f32[64, 64]) { a: f32[64, 64] = matmul(x, w) "
      "s: f32[64, 64] = softmax(a) {axis = -1} b: f32[64, 64] = matmul(x, s) "
      "t: f32[64, 64] = softmax(b) {axis = -1} c: f32[64, 64] = matmul(t, w) return c }",
      2);
  layer.fill(6);
  for (int launch = 0; launch < 20; ++launch) layer.expect_right(cat("launch ", launch));
}

/// Rows that each stretch which goes by rows ran at once in the last launch.
std::vector<std::int64_t> rows_at_once(const Bands& bands) {
  std::vector<std::int64_t> out;
  for (const auto& run : bands)
    for (const auto& stretch : run.stretches)
      if (stretch.goes_by_rows) out.push_back(stretch.rows_at_once);
  return out;
}

/// The gradient of a matrix, and the matrix that it changes, in a way that no library computes with it.
std::string update_of(std::int64_t rows, std::int64_t columns, std::int64_t depth = 24) {
  const std::string shape = cat("f32[", rows, ", ", columns, "]");
  return cat("func f(x: f32[", depth, ", ", rows, "], g: f32[", depth, ", ", columns, "], w: ", shape,
             ") { t: f32[", rows, ", ", depth, "] = transpose(x) {permutation = [1, 0]} d: ", shape,
             " = matmul(t, g) s: ", shape, " = mul(d, w) n: ", shape, " = sub(w, s) return n, d }");
}

/// A product whose weights change has blocks of rows of its own, if it has many; what follows goes by those.
TEST(RowBands, updates_follow_the_rows_of_gradients) {
  Launched update(update_of(320, 192), 2);
  for (std::uint32_t launch = 0; launch < 12; ++launch) {
    update.fill(launch);
    update.expect_right(cat("launch ", launch));
    ASSERT_EQ(rows_at_once(update.bands()), std::vector<std::int64_t>{160}) << update.steps();
  }
}

/// What a library updates with a product is computed with its rows, and so is what reads both.
TEST(RowBands, products_that_are_kept_go_by_rows) {
  Launched update(
      "func f(x: f32[24, 320], g: f32[24, 192], w: f32[320, 192]) { t: f32[320, 24] = transpose(x) "
      "{permutation = [1, 0]} d: f32[320, 192] = matmul(t, g) s: f32[320, 192] = mul(d, 0.125) "
      "n: f32[320, 192] = sub(w, s) e: f32[320, 192] = mul(n, d) return n, d, e }",
      2);
  for (std::uint32_t launch = 0; launch < 12; ++launch) {
    update.fill(launch);
    update.expect_right(cat("launch ", launch));
    ASSERT_EQ(works_by_rows(update.bands()), std::vector<std::size_t>{2}) << update.steps();
    ASSERT_EQ(rows_at_once(update.bands()), std::vector<std::int64_t>{160});
  }
}

/// A product that one thread computes leaves its update to all of them.
TEST(RowBands, updates_of_gradients_in_fewer_blocks_than_threads_are_run_behind) {
  Launched update(update_of(64, 2048, 4), 2);
  for (std::uint32_t launch = 0; launch < 4; ++launch) {
    update.fill(launch);
    update.expect_right(cat("launch ", launch));
    for (const std::int64_t rows : rows_at_once(update.bands())) EXPECT_LE(rows, 32) << update.steps();
  }
}

/// Items of the update have 1,024 numbers: they are not those of whole rows.
TEST(RowBands, updates_of_rows_that_no_items_end_with_are_run_behind) {
  for (const auto& [rows, columns] : {std::pair{320, 50}, std::pair{257, 100}, std::pair{300, 192}}) {
    Launched update(update_of(rows, columns), 2);
    for (std::uint32_t launch = 0; launch < 6; ++launch) {
      update.fill(launch);
      update.expect_right(cat(rows, " rows, launch ", launch));
    }
  }
}

TEST(RowBands, updates_are_the_same_on_any_number_of_threads) {
  std::vector<std::vector<float>> results;
  for (const unsigned threads : {1U, 2U, 3U, 8U}) {
    Launched update(update_of(1024, 256), threads);
    for (std::uint32_t launch = 0; launch < 3; ++launch) {
      update.fill(launch);
      results.push_back(update.run());
      EXPECT_EQ(results.back(), results[launch]) << threads << " threads";
    }
  }
}

/// Queries, keys and values are parts of one product; the heads of each query are joined for the next.
std::string block_of(std::int64_t batch, std::int64_t length) {
  const std::string rows = cat(batch, ", ", length);
  const std::string heads = cat("f32[", batch, ", 4, ", length, ", 16]");
  std::string text = cat("func f(x: f32[", rows, ", 64], w: f32[64, 192], u: f32[64, 64], v: f32[64, 96]) { ",
                         "a: f32[", rows, ", 192] = matmul(x, w) r: f32[", rows, ", 3, 4, 16] = reshape(a) ",
                         "{shape = [", rows, ", 3, 4, 16]} ");
  for (int i = 0; i < 3; ++i)
    text += cat("s", i, ": f32[", rows, ", 1, 4, 16] = slice(r) {starts = [", i, "], stops = [", i + 1,
                "], axes = [2]} q", i, ": f32[", rows, ", 4, 16] = squeeze(s", i, ") {axes = [2]} h", i, ": ",
                heads, " = transpose(q", i, ") {permutation = [0, 2, 1, 3]} ");
  return text + cat("k: f32[", batch, ", 4, 16, ", length, "] = transpose(h1) {permutation = [0, 1, 3, 2]} ",
                    "p: f32[", batch, ", 4, ", length, ", ", length, "] = matmul(h0, k) ", "o: f32[", batch,
                    ", 4, ", length, ", ", length, "] = softmax(p) {axis = -1} y: ", heads,
                    " = matmul(o, h2) z: f32[", rows, ", 4, 16] = transpose(y) {permutation = [0, 2, 1, 3]} ",
                    "j: f32[", rows, ", 64] = reshape(z) {shape = [", rows, ", 64]} e: f32[", rows,
                    ", 64] = matmul(j, u) g: f32[", rows, ", 64] = add(e, x) n: f32[", rows,
                    ", 64] = layer_norm(g) m: f32[", rows, ", 96] = matmul(n, v) return m }");
}

TEST(RowBands, attention_begins_the_chain_behind_it) {
  for (const auto& [batch, length] : {std::pair{1, 16}, std::pair{3, 21}, std::pair{2, 70}}) {
    Launched block(block_of(batch, length), 2);
    ASSERT_FALSE(block.bands().empty()) << block.steps();
    EXPECT_EQ(block.bands().back().band.rows, batch * length);
    block.fill(7);
    for (int launch = 0; launch < 10; ++launch) block.expect_right(cat("length ", length));
    EXPECT_EQ(works_by_rows({block.bands().back()}), std::vector<std::size_t>{4}) << block.steps();
  }
}

}  // namespace
}  // namespace tessera::differential

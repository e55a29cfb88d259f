// Attention as one call: scores of some queries, their softmax and the sum of values, while the scores are in
// the cache. Queries, keys and values are read as they lie.
#include <algorithm>
#include <cmath>

#include "tessera/base/rounding.h"
#include "tessera/runtime/cpu/library_call.h"
#include "tessera/runtime/cpu/row_softmax.h"

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// Queries that are computed at once: keys are put in order for each of their blocks, and the scores of a
/// thousand keys stay in the second cache.
constexpr std::int64_t least_queries = 16, most_queries = 64;
/// Multiply-adds of an item: about 5 microseconds with the softmax, of small heads.
constexpr double good_item_work = 1e5;

/// A matrix operand: where its matrices begin, by the axes before the last two of the result, and its
/// strides.
struct BatchedMatrix {
  std::vector<std::int64_t> begins;
  std::int64_t row_stride = 0, column_stride = 0;

  BatchedMatrix() = default;
  BatchedMatrix(const op::Layout& layout, const op::Extents& batch) {
    const std::size_t rank = layout.rank();
    row_stride = layout.strides[rank - 2];
    column_stride = layout.strides[rank - 1];
    op::Layout outer = layout;
    outer.shape.resize(rank - 2);
    outer.strides.resize(rank - 2);
    const op::Layout seen = op::broadcast_layout(outer, batch);
    op::for_each_offset<1>(batch, {&seen}, [&](const auto& at) { begins.push_back(at[0]); });
  }
  [[nodiscard]] MatrixView at(const float* data, std::size_t matrix, std::int64_t row) const {
    return {data + begins[matrix] + row * row_stride, row_stride, column_stride};
  }
};

class AttentionCall final : public LibraryCall {
 public:
  AttentionCall(const LibraryForm& form, std::int64_t row_block) : form_(form), row_block_(row_block) {}

  void prepare(std::span<const op::Array> inputs, const op::Array& result) {
    const op::Layout &q = inputs[form_.left].layout, &k = inputs[form_.right].layout,
                     &v = inputs[form_.values].layout;
    op::Extents shape = result.shape();
    if (form_.joins_heads) std::swap(shape[shape.size() - 2], shape[shape.size() - 3]);
    const std::size_t rank = shape.size();
    queries_ = shape[rank - 2];
    width_ = shape[rank - 1];
    depth_ = q.shape.back();
    keys_ = k.shape.back();
    const op::Extents batch(shape.begin(), shape.end() - 2);
    q_ = BatchedMatrix(q, batch);
    k_ = BatchedMatrix(k, batch);
    v_ = BatchedMatrix(v, batch);
    if (form_.joins_heads) heads_at_once_ = heads_ = batch.back();
    rows_ = result.size() == 0 ? 0 : result.size() / (heads_ * width_);
    goes_by_rows_ = row_block_ > 0 && rows_ > 0;
    if (goes_by_rows_)
      block_ = std::min(row_block_, rows_);
    else if (rows_ > 0)
      share_out();
  }

  Result<void> begin(const LibraryLaunch& launch) override {
    const auto data = [&](std::uint32_t input) {
      return reinterpret_cast<const float*>(launch.inputs[input].data);
    };
    set_if_other(q_data_, data(form_.left));
    set_if_other(k_data_, data(form_.right));
    set_if_other(v_data_, data(form_.values));
    set_if_other(out_, reinterpret_cast<float*>(launch.results[0].at(launch.results[0].layout.offset)));
    set_if_other(scale_, scale_of(form_, launch));
    return {};
  }

  [[nodiscard]] std::int64_t items() const override {
    return rows_ == 0 ? 0 : divided_up(rows_, block_) * divided_up(heads_, heads_at_once_);
  }
  [[nodiscard]] std::int64_t row_block() const override { return goes_by_rows_ ? block_ : 0; }
  [[nodiscard]] std::string implementation() const override { return "blocked"; }

  /// Rows of the result are the queries of one matrix behind those of another; with joined heads a row has
  /// the same query of each.
  [[nodiscard]] Result<void> run(kernel::ItemRange range, kernel::Scratch& scratch) const override {
    auto* const memory = reinterpret_cast<float*>(scratch.reserve(scratch_floats() * sizeof(float)));
    const std::int64_t groups = divided_up(heads_, heads_at_once_);
    for (std::int64_t item = range.begin; item < range.end; ++item)
      run_item(item / groups * block_, item % groups * heads_at_once_, memory);
    return {};
  }

 private:
  /// Blocks of queries, and of heads where those of one are little work.
  void share_out() {
    const double pair_work = std::max(1.0, static_cast<double>(keys_) * static_cast<double>(depth_ + width_));
    const auto good = static_cast<std::int64_t>(std::min(good_item_work / pair_work, 1e6));
    block_ = std::clamp(rounded_up(good, least_queries), least_queries, most_queries);
    block_ = std::clamp<std::int64_t>(queries_, 1, block_);
    heads_at_once_ = std::clamp<std::int64_t>(good / block_, 1, heads_);
  }

  void run_item(std::int64_t row, std::int64_t first_head, float* memory) const {
    const std::int64_t end = std::min(rows_, row + block_);
    const std::int64_t end_head = std::min(heads_, first_head + heads_at_once_);
    while (row < end) {
      const std::int64_t count = std::min({queries_at_once(), end - row, queries_ - row % queries_});
      for (std::int64_t head = first_head; head < end_head; ++head) attend(row, head, count, memory);
      row += count;
    }
  }

  [[nodiscard]] std::int64_t queries_at_once() const { return std::min({most_queries, queries_, block_}); }
  [[nodiscard]] std::size_t scores_size() const {
    return static_cast<std::size_t>(queries_at_once() * padded_columns(keys_));
  }
  [[nodiscard]] std::size_t sums_size() const {
    return static_cast<std::size_t>(queries_at_once() * padded_columns(width_));
  }
  [[nodiscard]] std::size_t scratch_floats() const {
    return whole_lines_of_floats(scores_size()) + whole_lines_of_floats(sums_size()) +
           gemm_workspace(queries_at_once());
  }

  /// `count` queries of a head, from that of a row on.
  void attend(std::int64_t row, std::int64_t head, std::int64_t count, float* memory) const {
    float* const sums = memory + whole_lines_of_floats(scores_size());
    float* const workspace = sums + whole_lines_of_floats(sums_size());
    const auto matrix = static_cast<std::size_t>(row / queries_ * heads_ + head);
    const std::int64_t stride = padded_columns(keys_);
    multiply_blocked(
        {count, keys_, depth_, q_.at(q_data_, matrix, row % queries_), k_.at(k_data_, matrix, 0)},
        {memory, stride}, workspace);
    softmax_in_place({memory, stride, count, keys_, scale_});
    const GemmBlock values{count, width_, keys_, {memory, stride, 1}, v_.at(v_data_, matrix, 0)};
    float* const to = out_ + (row * heads_ + head) * width_;
    const std::int64_t distance = heads_ * width_;
    if (width_ % gemm_kernel().vector == 0) return multiply_blocked(values, {to, distance}, workspace);
    multiply_blocked(values, {sums, padded_columns(width_)}, workspace);
    for (std::int64_t i = 0; i < count; ++i)
      std::copy_n(sums + i * padded_columns(width_), width_, to + i * distance);
  }

  const LibraryForm& form_;
  const std::int64_t row_block_;
  std::int64_t queries_ = 0, keys_ = 0, depth_ = 0, width_ = 0, heads_ = 1;
  std::int64_t rows_ = 0;                       ///< of the result
  std::int64_t block_ = 1, heads_at_once_ = 1;  ///< of an item
  bool goes_by_rows_ = false;
  BatchedMatrix q_, k_, v_;
  const float *q_data_ = nullptr, *k_data_ = nullptr, *v_data_ = nullptr;
  float* out_ = nullptr;
  float scale_ = 1;
};

}  // namespace

Result<LibraryCallRef> runtime::cpu::make_attention_call(const LibraryForm& form,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results,
                                                         std::int64_t row_block) {
  auto out = std::make_unique<AttentionCall>(form, row_block);
  out->prepare(inputs, results[0]);
  return LibraryCallRef(std::move(out));
}

#include "tessera/runtime/cpu/row_bands.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/base/rounding.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using plan::StepId;

namespace {

/// Threads that predictions are made for: two have the least to win.
constexpr double predicted_threads = 2;
/// Rows that a product computes well at once, if there is much to compute; the most that are better still
/// where every thread has some; and at least.
constexpr std::int64_t good_block_rows = 16, best_block_rows = 32, least_block_rows = 4;
/// What a block takes: less is not worth its share of beginning all steps.
constexpr double good_block_ns = 50'000;
/// Every block reads all weights of its chain: they stay in the caches.
constexpr std::int64_t most_band_weights = std::int64_t{4} << 20;
constexpr std::size_t least_band_steps = 2;

/// What is read beside the rows of an item; some are no inputs.
std::array<std::uint32_t, 4> inputs_needed_whole(const LibraryForm& form) {
  return {form.right, form.bias, form.values, form.op == LibraryOp::attention ? form.left : no_input};
}

class BandFinder {
 public:
  BandFinder(const plan::Plan& plan, const plan::Binding& binding,
             std::span<const std::optional<LibraryForm>> forms, std::span<const StepTime> times,
             unsigned threads)
      : plan_(plan), binding_(binding), forms_(forms), times_(times), threads_(threads) {}

  std::vector<RowBand> run() {
    for (StepId s = 0; s < plan_.steps.size(); ++s) {
      if (binding_.is_view[s]) continue;
      if (const std::int64_t rows = product_rows(s); rows > 0)
        add_product(s, rows);
      else if (plan_.steps[s].kernel != nullptr)
        add_kernel(s);
      else
        close();
    }
    close();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const op::Extents& shape_of(plan::ValueId value) const {
    return binding_.places[value].layout.shape;
  }

  /// Of a product with one matrix of weights, and of an attention; 0 for other steps.
  [[nodiscard]] std::int64_t product_rows(StepId s) const {
    const auto& form = forms_[s];
    if (!form) return 0;
    const op::Extents& result = shape_of(plan_.steps[s].results[0]);
    const std::int64_t count = op::element_count(result);
    if (count == 0) return 0;
    if (form->op == LibraryOp::attention)
      return form->joins_heads ? count / (result[result.size() - 2] * result.back()) : count / result.back();
    if (form->op != LibraryOp::matmul || form->epilogue.bias_of_rows) return 0;
    const op::Extents& weights = shape_of(plan_.steps[s].inputs[form->right]);
    if (op::element_count(weights) != weights[weights.size() - 2] * weights.back()) return 0;
    return count / result.back();
  }

  /// Whether an open step computes what a value looks at.
  [[nodiscard]] bool is_open(plan::ValueId value) const {
    while (plan_.values[value].kind == plan::ValueKind::computed) {
      const StepId step = plan_.values[value].index;
      if (!binding_.is_view[step]) return std::find(open_.begin(), open_.end(), step) != open_.end();
      value = plan_.steps[step].inputs[0];
    }
    return false;
  }

  void add_product(StepId s, std::int64_t rows) {
    const LibraryForm& form = *forms_[s];
    const auto& inputs = plan_.steps[s].inputs;
    bool follows = rows_ == 0 || rows_ == rows;
    for (const std::uint32_t input : inputs_needed_whole(form))
      follows = follows && (input == no_input || !is_open(inputs[input]));
    if (!follows) close();
    if (rows_ == 0) begin_rows(rows);
    open_.push_back(s);
    if (form.op == LibraryOp::matmul)
      weights_ += op::element_count(shape_of(inputs[form.right])) * static_cast<std::int64_t>(sizeof(float));
  }

  /// Kernels before the first product may go over other rows.
  void begin_rows(std::int64_t rows) {
    rows_ = rows;
    const auto fits = [&](StepId s) { return has_rows(s); };
    open_.erase(open_.begin(), std::find_if_not(open_.rbegin(), open_.rend(), fits).base());
  }

  [[nodiscard]] bool has_rows(StepId s) const {
    const auto& results = plan_.steps[s].results;
    return std::all_of(results.begin(), results.end(), [&](plan::ValueId value) {
      const std::int64_t count = op::element_count(shape_of(value));
      return count > 0 && count % rows_ == 0;
    });
  }

  void add_kernel(StepId s) {
    if (rows_ != 0 && !has_rows(s)) close();
    open_.push_back(s);
  }

  void close() {
    const double work = total_ns();
    if (rows_ >= 2 * least_block_rows && open_.size() >= least_band_steps && weights_ <= most_band_weights &&
        join_ns + work / (predicted_threads * share_efficiency) < in_turn_ns())
      out_.push_back({{open_.front(), open_.back()}, rows_, block_rows(work)});
    open_.clear();
    rows_ = weights_ = 0;
  }

  [[nodiscard]] double total_ns() const {
    double out = 0;
    for (const StepId s : open_) out += times_[s].nanoseconds;
    return out;
  }

  [[nodiscard]] double in_turn_ns() const {
    double out = 0;
    for (const StepId s : open_) out += shared_ns(times_[s].nanoseconds, predicted_threads);
    return out;
  }

  /// Blocks below `good_block_rows` may be computed by other code: those stay as they are, so that results do
  /// not depend on the number of threads.
  [[nodiscard]] std::int64_t block_rows(double work) const {
    const std::int64_t usual = rows_at_once(work, good_block_rows);
    const bool has_many = rows_ / best_block_rows >= static_cast<std::int64_t>(threads_);
    return usual < good_block_rows || !has_many ? usual : rows_at_once(work, best_block_rows);
  }
  [[nodiscard]] std::int64_t rows_at_once(double work, std::int64_t good) const {
    const std::int64_t most = std::max<std::int64_t>(rows_ / good, 2);
    const std::int64_t blocks = std::clamp<std::int64_t>(std::llround(work / good_block_ns), 2, most);
    return divided_up(rows_, rounded_up(blocks, 2));
  }

  const plan::Plan& plan_;
  const plan::Binding& binding_;
  std::span<const std::optional<LibraryForm>> forms_;
  std::span<const StepTime> times_;
  const unsigned threads_;
  std::vector<StepId> open_;
  std::int64_t rows_ = 0;     ///< of the open steps; 0: there is no product among them
  std::int64_t weights_ = 0;  ///< bytes
  std::vector<RowBand> out_;
};

/// Whether items are parts of the only axis.
bool has_one_axis(const kernel::Job& job) {
  return job.lanes == kernel::Lanes::outer && job.binding.outer.size() == 1;
}

}  // namespace

bool RowBand::has_whole_items(const kernel::Job& job) const {
  return !has_one_axis(job) || job.binding.outer[0].size / rows * block % job.lane_block == 0;
}

kernel::ItemRange RowBand::items_of(kernel::ItemRange blocks, const kernel::Job& job) const {
  const std::int64_t begin = std::min(blocks.begin * block, rows), end = std::min(blocks.end * block, rows);
  if (!has_one_axis(job)) return {begin * (job.items / rows), end * (job.items / rows)};
  const std::int64_t lanes = job.binding.outer[0].size / rows;
  return {begin * lanes / job.lane_block, divided_up(end * lanes, job.lane_block)};
}

std::vector<RowBand> runtime::cpu::find_row_bands(const plan::Plan& plan, const plan::Binding& binding,
                                                  std::span<const std::optional<LibraryForm>> forms,
                                                  std::span<const StepTime> times, unsigned threads) {
  return BandFinder(plan, binding, forms, times, threads).run();
}

// ---- memory

const RowMemory::Block* RowMemory::find(const std::byte* data) const {
  for (const Block& block : blocks_)
    if (data >= block.data && data < block.data + block.bytes) return &block;
  return nullptr;
}

/// Results have no gaps.
bool RowMemory::add(const op::Array& result) {
  if (result.size() == 0 || result.size() % band_.rows != 0) return false;
  blocks_.push_back({result.data, result.size() * static_cast<std::int64_t>(ir::size_of(result.dtype))});
  return true;
}

bool RowMemory::add_all(std::span<const op::Array> results) {
  return std::all_of(results.begin(), results.end(), [&](const op::Array& r) { return add(r); });
}

/// Whether going along the first axis passes over the whole block, and what is inside of it stays between two
/// steps.
bool RowMemory::lies_by_rows(const kernel::Kernel& kernel, const kernel::Binding& binding,
                             std::size_t operand) const {
  const std::byte* const data = binding.data[operand];
  const Block* const block = find(data);
  if (block == nullptr) return true;
  const std::int64_t step = binding.stride(operand, 0);
  const auto bytes = static_cast<std::int64_t>(ir::size_of(kernel.operands[operand].dtype));
  if (data != block->data || step * binding.outer[0].size * bytes != block->bytes) return false;
  std::int64_t reach = 0;
  for (std::size_t axis = 1; axis < binding.axis_count(); ++axis) {
    const std::int64_t size = axis < binding.outer.size() ? binding.outer[axis].size
                                                          : binding.reduced[axis - binding.outer.size()].size;
    if (binding.stride(operand, axis) < 0) return false;
    reach += (size - 1) * binding.stride(operand, axis);
  }
  return reach < step;
}

bool RowMemory::take(const kernel::Kernel& kernel, const kernel::Job& job,
                     std::span<const op::Array> results) {
  const kernel::Binding& binding = job.binding;
  if (binding.is_empty || binding.outer.empty() || binding.outer[0].size % band_.rows != 0) return false;
  if (!band_.has_whole_items(job)) return false;
  const std::size_t before = blocks_.size();
  bool is_taken = add_all(results);
  for (std::size_t i = 0; is_taken && i < kernel.operands.size(); ++i)
    is_taken = lies_by_rows(kernel, binding, i);
  if (!is_taken) blocks_.resize(before);
  return is_taken;
}

bool RowMemory::is_elsewhere_or_dense(const op::Array& array) const {
  const Block* const block = find(array.at(array.layout.offset));
  if (block == nullptr) return true;
  return array.layout.is_contiguous() && array.at(array.layout.offset) == block->data &&
         array.size() * static_cast<std::int64_t>(ir::size_of(array.dtype)) == block->bytes;
}

bool RowMemory::take(const LibraryForm& form, std::span<const op::Array> inputs,
                     std::span<const op::Array> results) {
  const auto is_elsewhere = [&](std::uint32_t input) {
    return input == no_input || find(inputs[input].at(inputs[input].layout.offset)) == nullptr;
  };
  const auto whole = inputs_needed_whole(form);
  return std::all_of(whole.begin(), whole.end(), is_elsewhere) && is_elsewhere_or_dense(inputs[form.left]) &&
         (form.residual == no_input || is_elsewhere_or_dense(inputs[form.residual])) && add_all(results);
}

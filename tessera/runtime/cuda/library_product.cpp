#include "tessera/runtime/cuda/library_product.h"

#include <algorithm>
#include <limits>

#include "tessera/op/op_facts.h"
#include "tessera/pattern/graph_function.h"
#include "tessera/runtime/cuda/op_source.h"
#include "tessera/runtime/cuda/product_chain.h"
#include "tessera/runtime/cuda/program_draft.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// More calls for one product than this cost more than a kernel of our own.
constexpr std::int64_t most_calls = 32;
/// What is no product for a library: one takes about as long as thousands of sums of so few.
constexpr std::int64_t most_shallow_depth = 16, least_shallow_results = 1 << 12,
                       most_shallow_results = 1 << 18;
/// Of the arguments of a product; the least that has an address of its own.
constexpr std::size_t workspace_argument = 3;
constexpr std::int64_t least_workspace = 256;
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();

/// The last two axes of an operand, and those before them seen from the batch of the result.
struct Matrices {
  std::int64_t rows = 1, columns = 1;
  std::int64_t row_stride = 0, column_stride = 0;
  op::Extents batch;  ///< strides; 0 where it is broadcast
};

/// A vector is a matrix of one row on the left, of one column on the right.
Matrices matrices_of(const op::Layout& layout, bool is_left, std::size_t batch_rank) {
  Matrices out;
  const std::size_t rank = layout.rank();
  if (rank == 1) {
    (is_left ? out.columns : out.rows) = layout.shape[0];
    (is_left ? out.column_stride : out.row_stride) = layout.strides[0];
    out.batch = op::Extents(batch_rank, 0);
    return out;
  }
  out.rows = layout.shape[rank - 2];
  out.columns = layout.shape[rank - 1];
  out.row_stride = layout.strides[rank - 2];
  out.column_stride = layout.strides[rank - 1];
  out.batch = op::Extents(batch_rank - (rank - 2), 0);
  for (std::size_t i = 0; i + 2 < rank; ++i)
    out.batch.push_back(layout.shape[i] == 1 ? 0 : layout.strides[i]);
  return out;
}

/// How a library sees it, if it can.
std::optional<Product::Operand> operand_of(const Matrices& m) {
  const auto fits = [](std::int64_t step, std::int64_t count, std::int64_t leading, std::int64_t lines) {
    return (step == 1 || count == 1) && (lines == 1 || leading >= count);
  };
  if (std::any_of(m.batch.begin(), m.batch.end(), [](std::int64_t step) { return step < 0; }))
    return std::nullopt;
  if (fits(m.column_stride, m.columns, m.row_stride, m.rows))
    return Product::Operand{.leading = m.rows == 1 ? m.columns : m.row_stride};
  if (fits(m.row_stride, m.rows, m.column_stride, m.columns))
    return Product::Operand{.leading = m.columns == 1 ? m.rows : m.column_stride, .is_transposed = true};
  return std::nullopt;
}

std::uint8_t alignment_of(const op::Array& array, std::span<const std::int64_t> steps) {
  const auto width = static_cast<std::uintptr_t>(ir::size_of(array.dtype));
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(array.at(array.layout.offset)) | widest_access;
  for (const std::int64_t step : steps) bits |= static_cast<std::uintptr_t>(step) * width;
  return static_cast<std::uint8_t>(std::max(bits & (~bits + 1), width));
}

/// Which inputs of a step the operands of its product are.
struct Operands {
  std::size_t left = 0, right = 1;
  std::size_t bias = 0, added = 0;  ///< if the finish has them
};

/// One product after another, over a batch that is put together from axes that follow each other regularly.
class ProductProgram {
 public:
  ProductProgram(std::span<const op::Array> inputs, std::span<const op::Array> results,
                 const Operands& operands = {}, Product::Finish finish = {})
      : draft_(inputs, results),
        a_(draft_.input(operands.left)),
        b_(draft_.input(operands.right)),
        c_(draft_.result(0)),
        bias_(draft_.input(operands.bias)),
        added_(draft_.input(operands.added)) {
    product_.finish = finish;
  }

  std::optional<StepProgram> run() {
    const std::size_t left = a_.array.rank(), right = b_.array.rank();
    const op::Extents& shape = c_.array.shape();
    const std::size_t batch_rank = shape.size() - (left > 1) - (right > 1);
    for (std::size_t i = 0; i < batch_rank; ++i) sizes_.push_back(shape[i]);
    if (!see(a_, true, in_[0], product_.a) || !see(b_, false, in_[1], product_.b)) return std::nullopt;
    product_.dtype = c_.array.dtype;
    product_.rows = in_[0].rows;
    product_.columns = in_[1].columns;
    product_.depth = in_[0].columns;
    product_.c = {.leading = product_.columns};
    std::int64_t step = product_.rows * product_.columns;
    steps_[2] = op::Extents(batch_rank, 0);
    for (std::size_t i = batch_rank; i-- > 0; step *= sizes_[i]) steps_[2][i] = step;
    steps_[0] = in_[0].batch;
    steps_[1] = in_[1].batch;
    if (c_.array.size() == 0) return StepProgram{};
    if (product_.depth == 0) return product_.finish == Product::Finish() ? cleared() : std::nullopt;
    if (is_shallow()) return std::nullopt;
    if (product_.finish.adds_bias) read_bias();
    if (product_.finish.adds_array && !added_.array.layout.is_contiguous()) added_ = copied(added_);
    join_axes();
    return by_calls();
  }

 private:
  /// A copy without gaps if the library cannot read it as it lies.
  bool see(ProgramArray& array, bool is_left, Matrices& matrices, Product::Operand& operand) {
    matrices = matrices_of(array.array.layout, is_left, sizes_.size());
    auto seen = operand_of(matrices);
    if (!seen) {
      array = copied(array);
      matrices = matrices_of(array.array.layout, is_left, sizes_.size());
      seen = operand_of(matrices);
    }
    if (seen) operand = *seen;
    return seen.has_value();
  }

  /// A sum of few numbers for each result, and nothing behind it: a kernel that starts early is done before
  /// one of the library's has begun.
  [[nodiscard]] bool is_shallow() const {
    const std::int64_t results = c_.array.size();
    return product_.finish == Product::Finish() && product_.depth <= most_shallow_depth &&
           results >= least_shallow_results && results <= most_shallow_results;
  }

  /// Without gaps, in memory of the step.
  ProgramArray copied(const ProgramArray& array) {
    const ProgramArray copy = draft_.scratch(array.array.dtype, array.array.shape());
    draft_.add(copy_program(array.array, copy.array), {&array, 1}, {&copy, 1});
    return copy;
  }

  void read_bias() {
    const bool fits = bias_.array.layout.is_contiguous() && alignment_of(bias_.array, {}) == widest_access;
    if (!fits) bias_ = copied(bias_);
  }

  std::optional<StepProgram> cleared() {
    StepProgram out;
    const auto width = static_cast<std::int64_t>(ir::size_of(c_.array.dtype));
    Launch clear{.kind = Launch::Kind::clear};
    clear.to = memory_of(c_, 0);
    clear.bytes = c_.array.size() * width;
    out.launches.push_back(std::move(clear));
    return out;
  }

  [[nodiscard]] static Memory memory_of(const ProgramArray& array, std::int64_t elements) {
    Memory out = array.memory;
    out.byte +=
        (array.array.layout.offset + elements) * static_cast<std::int64_t>(ir::size_of(array.array.dtype));
    return out;
  }

  /// Neighbouring axes of the batch that all three walk over as one; then the batch of a matrix on the right
  /// that all share becomes rows.
  void join_axes() {
    for (std::size_t i = sizes_.size(); i-- > 0;) {
      const bool joins = i + 1 < sizes_.size() &&
                         std::all_of(std::begin(steps_), std::end(steps_), [&](const op::Extents& steps) {
                           return steps[i] == steps[i + 1] * sizes_[i + 1];
                         });
      if (sizes_[i] != 1 && !joins) continue;
      if (joins) sizes_[i + 1] *= sizes_[i];
      erase_axis(i);
    }
    if (sizes_.size() == 1 && steps_[1][0] == 0 && !product_.a.is_transposed &&
        steps_[0][0] == product_.rows * product_.a.leading && product_.rows * sizes_[0] <= largest_size) {
      product_.rows *= sizes_[0];
      erase_axis(0);
    }
  }

  void erase_axis(std::size_t i) {
    const auto erase = [i](op::Extents& list) {
      op::Extents left;
      for (std::size_t k = 0; k < list.size(); ++k)
        if (k != i) left.push_back(list[k]);
      list = left;
    };
    erase(sizes_);
    for (op::Extents& steps : steps_) erase(steps);
  }

  /// The last axis is the batch of a call; those before it are calls of their own.
  std::optional<StepProgram> by_calls() {
    std::int64_t calls = 1;
    for (std::size_t i = 0; i + 1 < sizes_.size(); ++i) calls *= sizes_[i];
    const std::int64_t sizes[] = {product_.rows,      product_.columns,   product_.depth,
                                  product_.a.leading, product_.b.leading, sizes_.empty() ? 1 : sizes_.back()};
    if (calls > most_calls || *std::max_element(std::begin(sizes), std::end(sizes)) > largest_size)
      return std::nullopt;
    const std::size_t last = sizes_.empty() ? 0 : sizes_.size() - 1;
    product_.batch = sizes_.empty() ? 1 : sizes_[last];
    Product::Operand* operands[] = {&product_.a, &product_.b, &product_.c};
    const ProgramArray* arrays[] = {&a_, &b_, &c_};
    for (std::size_t k = 0; k < 3; ++k) {
      if (!sizes_.empty()) operands[k]->batch = steps_[k][last];
      operands[k]->alignment = alignment_of(arrays[k]->array, steps_[k]);
    }
    if (product_.finish.adds_array)
      product_.c.alignment = std::min(product_.c.alignment, alignment_of(added_.array, steps_[2]));
    const auto product = std::make_shared<const Product>(product_);
    const ProgramArray workspace = draft_.scratch(op::Dtype::u8, {product_workspace});
    const op::Extents outer(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(last));
    op::for_each_place(outer, [&](const op::Extents& at) { add_call(product, at, workspace.memory); });
    return std::move(draft_).finish();
  }

  void add_call(const std::shared_ptr<const Product>& product, const op::Extents& at,
                const Memory& workspace) {
    Launch launch{.kind = Launch::Kind::product, .product = product};
    const ProgramArray* arrays[] = {&a_, &b_, &c_};
    const auto add = [&](const Memory& memory) {
      launch.arguments.push_back({.kind = Argument::Kind::memory, .memory = memory});
    };
    std::int64_t elements = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      elements = 0;
      for (std::size_t i = 0; i < at.size(); ++i) elements += at[i] * steps_[k][i];
      add(memory_of(*arrays[k], elements));
    }
    add(workspace);
    const auto [scale, adds_bias, adds_array, activation] = product_.finish;
    if (adds_bias) add(memory_of(bias_, 0));
    if (adds_array && !adds_bias) launch.arguments.push_back({});
    if (adds_array) add(memory_of(added_, elements));
    draft_.append(std::move(launch));
  }

  ProgramDraft draft_;
  ProgramArray a_, b_, c_, bias_, added_;
  Matrices in_[2];
  Product product_;
  op::Extents sizes_;     ///< of the batch
  op::Extents steps_[3];  ///< of the batch, for a, b and c
};

}  // namespace

std::optional<StepProgram> tessera::runtime::cuda::library_chain(const ir::Function& ops,
                                                                 std::span<const op::Array> inputs,
                                                                 std::span<const op::Array> results) {
  const auto graph = pattern::graph_of(ops, op::op_facts());
  const auto chain = graph ? product_chain(*graph) : std::nullopt;
  if (!chain || results.size() != 1) return std::nullopt;
  const auto input = [&](pattern::ValueId value) {
    const ir::ExprRef expr = graph->producer(value) == pattern::none ? graph->external(value).expr : nullptr;
    const auto found = std::find_if(ops.params.begin(), ops.params.end(),
                                    [&](const auto& param) { return param.get() == expr.get(); });
    return static_cast<std::size_t>(found - ops.params.begin());
  };
  const auto operands = graph->inputs(chain->nodes[0]);
  Operands places{.left = input(operands[0]), .right = input(operands[1])};
  if (chain->finish.adds_bias) places.bias = input(chain->bias);
  if (chain->finish.adds_array) places.added = input(chain->added);
  for (const std::size_t place : {places.left, places.right, places.bias, places.added})
    if (place >= inputs.size()) return std::nullopt;
  return ProductProgram(inputs, results, places, chain->finish).run();
}

void tessera::runtime::cuda::fit_workspaces(StepProgram& program, const WorkspaceOf& bytes_of) {
  // Calls of one step come one after another and share what they need.
  std::vector<std::int64_t> needed(program.scratch_bytes.size(), -1);
  for (const Launch& launch : program.launches) {
    if (launch.kind != Launch::Kind::product) continue;
    std::int64_t& bytes = needed[launch.arguments[workspace_argument].memory.index];
    // Even one that needs nothing is given an address.
    bytes = std::max({bytes, least_workspace, bytes_of(*launch.product)});
  }
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i] >= 0) program.scratch_bytes[i] = needed[i];
}

bool tessera::runtime::cuda::may_be_product(const op::Card& card) {
  return card.name == "matmul" || (card.traits.composite && card.traits.costly);
}

std::optional<StepProgram> tessera::runtime::cuda::library_product(const op::CallInfo& call,
                                                                   std::span<const op::Array> inputs,
                                                                   std::span<const op::Array> results) {
  if (call.card().name != "matmul" || !ir::is_float(results[0].dtype)) return std::nullopt;
  return ProductProgram(inputs, results).run();
}

#include <algorithm>
#include <bit>

#include "tessera/runtime/cuda/kernel_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr unsigned most_loop_threads = 2 * usual_threads;

/// Who computes what. Rows: a block along the reduced axes. Columns: threads side by side have outer points,
/// and those with the same x share one. Where there are few outer points, several blocks have parts of each.
struct LoopShape {
  bool has_columns = false;
  unsigned width = 1;  ///< elements of a vector, along rows
  Extent3 block;
  std::int64_t blocks = 1;   ///< for all outer points, without splits
  std::int64_t vectors = 0;  ///< of an outer point
  std::int64_t splits = 1;
  std::int64_t chunk = 0;  ///< vectors of a split
};

unsigned unroll_of(const BoundKernel& bound) {
  if (bound.kernel.body.size() > 200 || bound.load_count() > 4) return 1;
  return bound.kernel.body.size() > 60 || bound.load_count() > 2 ? 2 : 4;
}

LoopShape loop_shape(const BoundKernel& bound, bool has_columns) {
  LoopShape out;
  out.has_columns = has_columns;
  const std::int64_t outer = bound.binding.outer_points();
  std::int64_t threads = 0;  // along the reduced axes
  if (has_columns) {
    const auto x =
        std::min<unsigned>(32, std::bit_ceil(static_cast<unsigned>(std::min<std::int64_t>(outer, 32))));
    out.vectors = bound.binding.reduced_points();
    // Twice the threads if none then goes around its loop again: each time takes as long as memory does.
    const std::int64_t at_once = std::int64_t{usual_threads / x} * unroll_of(bound);
    const bool is_once = out.vectors > at_once && out.vectors <= 2 * at_once;
    out.block = {x, (is_once ? most_loop_threads : usual_threads) / x, 1};
    out.blocks = divided_up(outer, x);
    threads = out.block.y;
  } else {
    if (!bound.binding.reduced.empty()) out.width = bound.vector_width(bound.binding.axis_count() - 1, false);
    out.vectors = bound.binding.reduced_points() / out.width;
    threads = std::clamp<std::int64_t>(divided_up(out.vectors, 32) * 32, 32, most_loop_threads);
    out.block = {static_cast<std::uint32_t>(threads), 1, 1};
    out.blocks = outer;
  }
  const std::int64_t enough = threads * 8;                                  // vectors that are worth a block
  const std::int64_t wanted = has_columns ? 2 * many_blocks : many_blocks;  // single elements, or vectors
  out.splits = std::clamp<std::int64_t>(std::min(wanted / out.blocks, out.vectors / enough), 1, wanted);
  out.chunk = divided_up(out.vectors, out.splits);
  if (out.chunk > 0) out.splits = std::max<std::int64_t>(1, divided_up(out.vectors, out.chunk));
  return out;
}

/// One launch: all passes, or one of them, whose blocks first join what the blocks of earlier ones left in
/// scratch memory, or what is behind the last.
class LoopedText : KernelText {
 public:
  LoopedText(const BoundKernel& bound, const LoopShape& shape)
      : KernelText(bound),
        shape_(shape),
        first_(bound.outer_count()),
        axes_(binding_.reduced.size()),
        last_(axes_ == 0 ? 0 : first_ + axes_ - 1),
        unroll_(unroll_of(bound)) {}

  Result<Launch> all_passes() {
    TESSERA_TRY(begin());
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(p));
    TESSERA_TRY(write_row_stores("true"));
    return finished(1);
  }

  /// One pass of several blocks per outer point.
  Result<Launch> one_pass(std::size_t p) {
    TESSERA_TRY(begin());
    TESSERA_TRY(join_earlier(p));
    TESSERA_TRY(write_pass(p));
    for (const ValueId value : passes_.passes[p].reductions) {
      declare_scratch(value);
      line("if (is_point && rank == 0) w", value, "[", scratch_index("(index)blockIdx.y"), "] = v", value,
           ";");
    }
    const bool is_last = p + 1 == passes_.passes.size();
    if (is_last && passes_.passes[p].reductions.empty()) TESSERA_TRY(write_row_stores("blockIdx.y == 0"));
    return finished(shape_.splits);
  }

  /// What is behind the last pass of several blocks.
  Result<Launch> rows_alone() {
    TESSERA_TRY(begin());
    TESSERA_TRY(join_earlier(passes_.passes.size()));
    TESSERA_TRY(write_row_stores("true"));
    return finished(1);
  }

 private:
  Launch finished(std::int64_t splits) const {
    const unsigned threads = shape_.block.x * shape_.block.y;
    return launch(shape_.has_columns ? "columns" : "long_rows",
                  {static_cast<std::uint32_t>(shape_.blocks), static_cast<std::uint32_t>(splits), 1},
                  shape_.block, threads > usual_threads ? most_loop_threads : usual_threads);
  }

  Result<void> begin() {
    TESSERA_TRY(write_all(passes_.uniforms));
    add_index("count", shape_.vectors);
    add_index("chunk", shape_.chunk);
    add_index("points", binding_.outer_points());
    add_index("splits", shape_.splits);
    if (shape_.has_columns) {
      line("const unsigned rank = threadIdx.y, step = blockDim.y;");
      line("const index given = (index)blockIdx.x * (index)blockDim.x + (index)threadIdx.x;");
      line("const bool is_point = given < points;\nconst index point = is_point ? given : 0;");
    } else {
      line("const unsigned rank = threadIdx.x, step = blockDim.x;");
      line("const bool is_point = true;\nconst index point = (index)blockIdx.x;");
    }
    const unsigned threads = shape_.block.x * shape_.block.y;
    line("__shared__ unsigned long long parts[", threads > usual_threads ? most_loop_threads : usual_threads,
         "];");
    split_index("point", 0, first_, 1);
    move_to_outer_point();
    line("const index begin = (index)blockIdx.y * chunk;");
    line("const index end = begin + chunk < count ? begin + chunk : count;");
    return {};
  }

  // ---- scratch memory: a total per outer point and split

  void declare_scratch(ValueId value) {
    add_pointer(wide_type(wide(value)), cat("w", value), {Memory::Kind::scratch, scratch_number(value), 0});
  }
  [[nodiscard]] std::uint32_t scratch_number(ValueId value) const {
    std::uint32_t out = 0;
    for (ValueId i = 0; i < value; ++i) out += body_[i].kind == InstructionKind::reduction ? 1 : 0;
    return out;
  }
  /// So that threads side by side read side by side.
  [[nodiscard]] std::string scratch_index(const std::string& split) const {
    return shape_.has_columns ? cat("(long long)", split, " * points + point")
                              : cat("(long long)point * splits + ", split);
  }

  /// The totals of the passes before `p`, and what follows from them.
  Result<void> join_earlier(std::size_t p) {
    for (std::size_t q = 0; q < p; ++q) {
      TESSERA_TRY(write_all(passes_.passes[q].rows));
      for (const ValueId value : passes_.passes[q].reductions) {
        declare_scratch(value);
        const std::string name = cat("v", value), next = cat("w", value, "[", scratch_index("i"), "]");
        declare_total(value);
        line("for (index i = (index)rank; i < splits; i += (index)step)");
        line(name, " = ", TESSERA_TRY(joined(body_[value].opcode, wide(value), name, next)), ";");
        TESSERA_TRY(join_threads(value));
      }
    }
    return {};
  }

  void declare_total(ValueId value) {
    line(wide_type(wide(value)), " v", value, " = ", scalar_.neutral(body_[value].opcode, wide(value)), ";");
    values_[value] = cat("v", value);
  }

  /// The totals of the threads that share an outer point; each of them has the sum then.
  Result<void> join_threads(ValueId value) {
    const std::string name = cat("v", value), type(wide_type(wide(value)));
    line("__syncthreads();");
    if (shape_.has_columns) {
      line("((", type, "*)parts)[rank * blockDim.x + threadIdx.x] = ", name, ";\n__syncthreads();");
      line(name, " = ((", type, "*)parts)[threadIdx.x];");
      line("for (unsigned y = 1; y < step; ++y)");
      line(name, " = ",
           TESSERA_TRY(joined(body_[value].opcode, wide(value), name,
                              cat("((", type, "*)parts)[y * blockDim.x + threadIdx.x]"))),
           ";");
      return {};
    }
    TESSERA_TRY(join_lanes(value, name, "16"));
    line("if ((rank & 31) == 0) ((", type, "*)parts)[rank >> 5] = ", name, ";\n__syncthreads();");
    line(name, " = (rank & 31) < step >> 5 ? ((", type,
         "*)parts)[rank & 31] : ", scalar_.neutral(body_[value].opcode, wide(value)), ";");
    return join_lanes(value, name, "16");
  }

  // ---- passes

  [[nodiscard]] unsigned lanes_of(std::size_t operand) const {
    return axes_ == 0 ? 1 : width_of(operand, last_, shape_.width);
  }

  void open_vectors() {
    line("#pragma unroll\nfor (int u = 0; u < ", unroll_, "; ++u) {");
    line("const index i = base + u * (index)step;\nif (i < end && is_point) {");
    split_index("i", first_, axes_, shape_.width);
  }

  Result<void> write_pass(std::size_t p) {
    const Pass& pass = passes_.passes[p];
    TESSERA_TRY(write_all(pass.rows));
    const std::vector<std::uint32_t> stores = bound_.stores_of(p);
    if (pass.reductions.empty() && stores.empty()) return {};
    for (const ValueId value : pass.reductions) declare_total(value);
    const std::vector<ValueId> elements =
        bound_.elements_for(pass.reductions, stores, std::vector<bool>(body_.size(), false));
    write_reciprocals(elements);
    line("for (index base = begin + (index)rank; base < end; base += (index)step * ", unroll_, ") {");
    load_vectors(bound_.loaded_operands(elements));
    for (const ValueId value : pass.reductions) declare_part(value);
    TESSERA_TRY(write_points(pass, elements, stores));
    for (const ValueId value : pass.reductions) {
      const std::string name = cat("v", value), part = cat("(", wide_type(wide(value)), ")s", value);
      line(name, " = ", TESSERA_TRY(joined(body_[value].opcode, wide(value), name, part)), ";");
    }
    line("}");
    for (const ValueId value : pass.reductions) TESSERA_TRY(join_threads(value));
    return {};
  }

  void load_vectors(std::span<const std::uint32_t> loads) {
    for (const std::uint32_t i : loads)
      line("Vector<", element_type(i), ", ", lanes_of(i), "> a", i, "[", unroll_, "];");
    open_vectors();
    for (const std::uint32_t i : loads) {
      line("load(a", i, "[u], r", i, " + (", offset(i, first_, axes_, shape_.width), "));");
      elements_[i] = cat("a", i, "[u].at[", lanes_of(i) > 1 ? "j" : "0", "]");
    }
    line("}\n}");
  }

  Result<void> write_points(const Pass& pass, std::span<const ValueId> elements,
                            std::span<const std::uint32_t> stores) {
    open_vectors();
    for (const std::uint32_t number : stores) {
      const std::size_t operand = kernel_.stores[number].operand;
      line("Vector<", element_type(operand), ", ", lanes_of(operand), "> b", operand, ";");
    }
    line("#pragma unroll\nfor (int j = 0; j < ", shape_.width, "; ++j) {");
    if (axes_ > 0 && shape_.width > 1) set_place(last_, cat(coordinate(last_), " * ", shape_.width, " + j"));
    TESSERA_TRY(write_all(elements));
    for (const ValueId value : pass.reductions) TESSERA_TRY(join_element(value));
    for (const std::uint32_t number : stores) {
      const Store& store = kernel_.stores[number];
      line("b", store.operand, ".at[", lanes_of(store.operand) > 1 ? "j" : "0", "] = ", narrowed(store), ";");
    }
    line("}");
    for (const std::uint32_t number : stores) {
      const std::size_t i = kernel_.stores[number].operand;
      line("store(r", i, " + (", offset(i, first_, axes_, shape_.width), "), b", i, ");");
    }
    line("}\n}");
    return {};
  }

  Result<void> write_row_stores(std::string_view condition) {
    if (passes_.row_stores.empty()) return {};
    TESSERA_TRY(write_all(passes_.last_rows));
    line("if (is_point && rank == 0 && ", condition, ") {");
    for (const std::uint32_t number : passes_.row_stores)
      line("r", kernel_.stores[number].operand, "[0] = ", narrowed(kernel_.stores[number]), ";");
    line("}");
    return {};
  }

  const LoopShape shape_;
  const std::size_t first_, axes_, last_;
  const unsigned unroll_;
};

}  // namespace

Result<StepProgram> tessera::runtime::cuda::looped_program(const BoundKernel& bound, bool has_columns) {
  const LoopShape shape = loop_shape(bound, has_columns);
  StepProgram out;
  if (shape.splits == 1) {
    out.launches.push_back(TESSERA_TRY(LoopedText(bound, shape).all_passes()));
    return out;
  }
  const std::int64_t totals = bound.binding.outer_points() * shape.splits;
  for (const Instruction& instruction : bound.kernel.body)
    if (instruction.kind == InstructionKind::reduction)
      out.scratch_bytes.push_back(totals *
                                  static_cast<std::int64_t>(ir::size_of(wide_dtype(instruction.dtype))));
  for (std::size_t p = 0; p < bound.passes.passes.size(); ++p)
    out.launches.push_back(TESSERA_TRY(LoopedText(bound, shape).one_pass(p)));
  if (!bound.passes.row_stores.empty() && !bound.passes.passes.back().reductions.empty())
    out.launches.push_back(TESSERA_TRY(LoopedText(bound, shape).rows_alone()));
  return out;
}

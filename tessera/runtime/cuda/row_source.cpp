#include <algorithm>
#include <bit>
#include <optional>

#include "tessera/runtime/cuda/kernel_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// How threads share a row: a team of lanes of a warp, or a block.
struct RowShape {
  unsigned width = 1;    ///< elements of a vector
  unsigned vectors = 1;  ///< that a thread holds in registers
  unsigned shared = 0;   ///< that it holds in the block's memory, behind those
  unsigned team = 1;     ///< threads of a row
  bool is_block = false;
  bool keeps_values = true;  ///< in registers; else costly ones are computed again
};

/// Long rows have fewer threads, each with more registers for elements.
constexpr unsigned long_row_threads = 512, long_row_registers = 80;
/// Of each operand: a thread loads so many before it stores the first of them to the block's memory. One by
/// one, each would wait for the one before.
constexpr unsigned vectors_at_once = 4;
/// What rows whose vectors are shorter than 16 bytes may have of the block's memory: so few threads have too
/// little under way with them.
constexpr std::size_t whole_vector_bytes = 16, most_narrow_bytes = 40 * 1024;
/// Of the warps of a block, which are joined in its memory.
constexpr std::size_t parts_of_total = 32;

std::int64_t points_of_row(const BoundKernel& bound) { return bound.binding.reduced_points(); }

/// What is loaded of an element.
std::size_t bytes_of_element(const BoundKernel& bound) {
  std::size_t bytes = 0;
  for (const Instruction& instruction : bound.kernel.body)
    if (instruction.kind == InstructionKind::load && bound.at_points[instruction.index])
      bytes += ir::size_of(bound.kernel.operands[instruction.index].dtype);
  return bytes;
}

/// Registers that an element takes: as it lies in memory, and what is kept of it.
std::size_t words_of_element(const BoundKernel& bound) {
  std::size_t bytes = bytes_of_element(bound);
  for (const ValueId value : bound.passes.kept)
    bytes += ir::size_of(wide_dtype(bound.kernel.body[value].dtype));
  return (bytes + 3) / 4;
}

/// What a block joins its totals in.
std::size_t bytes_of_parts(const BoundKernel& bound) {
  std::size_t out = 0;
  for (const Instruction& instruction : bound.kernel.body)
    if (instruction.kind == InstructionKind::reduction)
      out += parts_of_total * ir::size_of(wide_dtype(instruction.dtype));
  return out;
}

/// Whether each row has elements of its own there; what all have is read from the caches.
bool varies_by_row(const BoundKernel& bound, std::size_t operand) {
  for (std::size_t axis = 0; axis < bound.outer_count(); ++axis)
    if (bound.varies(operand, axis)) return true;
  return false;
}

/// Whether more than one pass reads an array.
bool reads_again(const BoundKernel& bound) {
  const std::vector<bool> none_known(bound.kernel.body.size(), false);
  std::vector<bool> is_read(bound.kernel.operands.size(), false);
  for (std::size_t p = 0; p < bound.passes.passes.size(); ++p) {
    const std::vector<ValueId>& reductions = bound.passes.passes[p].reductions;
    for (const std::uint32_t i :
         bound.loaded_operands(bound.elements_for(reductions, bound.stores_of(p), none_known))) {
      if (is_read[i] && varies_by_row(bound, i)) return true;
      is_read[i] = true;
    }
  }
  return false;
}

/// Of an element of the operand that has the longest ones.
std::size_t widest_load(const BoundKernel& bound) {
  std::size_t out = 0;
  for (const Instruction& instruction : bound.kernel.body)
    if (instruction.kind == InstructionKind::load && bound.at_points[instruction.index])
      out = std::max(out, ir::size_of(bound.kernel.operands[instruction.index].dtype));
  return out;
}

/// Whether a block has so much memory for a row, and there are rows for enough of such blocks: fewer are read
/// faster by several blocks each.
bool has_room(const BoundKernel& bound, unsigned width, std::size_t bytes, const DeviceLimits& limits) {
  const std::size_t declared = bytes_of_parts(bound);
  const bool is_narrow = width * widest_load(bound) < whole_vector_bytes;
  const std::size_t most = dynamic_shared_bytes(limits, declared);
  return bytes <= (is_narrow ? std::min(most, most_narrow_bytes) : most) &&
         bound.binding.outer_points() >= least_blocks(limits, bytes + declared);
}

/// Of a row that is too long for registers of as many threads as a block can have. What is read once is not
/// held: a few loads under way in each of many threads are faster than all of them in few.
std::optional<RowShape> long_row_shape(const BoundKernel& bound, unsigned width, std::int64_t vectors,
                                       const DeviceLimits& limits) {
  if (!reads_again(bound)) return std::nullopt;
  RowShape out{.width = width, .team = long_row_threads, .is_block = true, .keeps_values = false};
  const std::int64_t all = divided_up(vectors, long_row_threads);
  const std::size_t words = (width * bytes_of_element(bound) + 3) / 4;
  const auto in_registers = static_cast<std::int64_t>(long_row_registers / std::max<std::size_t>(1, words));
  if (in_registers == 0) return std::nullopt;
  out.vectors = static_cast<unsigned>(std::min(all, in_registers));
  out.shared = static_cast<unsigned>(all - out.vectors);
  const std::size_t bytes = std::size_t{out.shared} * out.team * width * bytes_of_element(bound);
  return has_room(bound, width, bytes, limits) ? std::optional(out) : std::nullopt;
}

std::optional<RowShape> row_shape(const BoundKernel& bound, const DeviceLimits& limits) {
  RowShape out;
  const std::size_t axes = bound.binding.axis_count();
  if (!bound.binding.reduced.empty()) out.width = bound.vector_width(axes - 1, false);
  const std::int64_t vectors = std::max<std::int64_t>(1, points_of_row(bound) / out.width);
  constexpr std::int64_t most_lanes = 32, most_threads = 1024;
  if (vectors <= 4 * most_lanes) {
    out.team = std::min<unsigned>(most_lanes, std::bit_ceil(static_cast<unsigned>(vectors)));
    out.vectors = std::bit_ceil(static_cast<unsigned>(divided_up(vectors, out.team)));
  } else {
    out.is_block = true;
    out.vectors = out.width >= 4 ? 4 : 8;
    if (vectors > most_threads * out.vectors) out.vectors *= 2;
    if (vectors > most_threads * out.vectors) return long_row_shape(bound, out.width, vectors, limits);
    out.team = static_cast<unsigned>(divided_up(divided_up(vectors, out.vectors), most_lanes) * most_lanes);
  }
  const std::size_t registers = out.vectors * out.width * words_of_element(bound);
  if (registers <= (out.is_block && out.team > usual_threads ? 40 : 80)) return out;
  return out.is_block ? long_row_shape(bound, out.width, vectors, limits) : std::nullopt;
}

/// A row is read once and stays in the registers of its team through all passes, the end of a long one in the
/// block's memory: each thread has its own there, and waits for nobody.
class RowText : KernelText {
 public:
  RowText(const BoundKernel& bound, const RowShape& shape)
      : KernelText(bound),
        shape_(shape),
        first_(bound.outer_count()),
        axes_(binding_.reduced.size()),
        last_(axes_ == 0 ? 0 : first_ + axes_ - 1),
        known_(body_.size(), false),
        is_loaded_(kernel_.operands.size(), false) {}

  Result<StepProgram> generate() {
    const std::int64_t rows = binding_.outer_points();
    TESSERA_TRY(write_all(passes_.uniforms));
    add_index("count", points_of_row(bound_) / shape_.width);
    begin_row(rows);
    if (shape_.shared > 0) {
      // A number of the launch: one source serves all lengths that end in the block's memory.
      add_int("shared_vectors", shape_.shared);
      line("extern __shared__ __align__(16) unsigned char shared_memory[];");
    }
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(p));
    TESSERA_TRY(write_all(passes_.last_rows));
    if (!passes_.row_stores.empty())
      line(shape_.is_block ? "if (rank == 0) {" : "if (is_row && rank == 0) {");
    for (const std::uint32_t number : passes_.row_stores)
      line("r", kernel_.stores[number].operand, "[0] = ", narrowed(kernel_.stores[number]), ";");
    if (!passes_.row_stores.empty()) line("}");
    const unsigned threads = shape_.is_block ? shape_.team : usual_threads;
    const auto blocks =
        static_cast<std::uint32_t>(shape_.is_block ? rows : divided_up(rows, usual_threads / shape_.team));
    const unsigned most = !shape_.keeps_values      ? long_row_threads
                          : threads > usual_threads ? 1024
                                                    : usual_threads;
    StepProgram out;
    out.launches.push_back(launch("rows", {blocks, 1, 1}, {threads, 1, 1}, most));
    out.launches.back().shared_bytes = static_cast<std::uint32_t>(shape_.shared * bytes_of_vectors_);
    return out;
  }

 private:
  void begin_row(std::int64_t rows) {
    if (shape_.is_block) {
      line("const unsigned rank = threadIdx.x, team = blockDim.x;\nconst index row = (index)blockIdx.x;");
    } else {
      add_index("rows", rows);
      add_int("team_bits", std::countr_zero(shape_.team));
      line("const unsigned team = 1u << team_bits, rank = threadIdx.x & (team - 1);");
      line(
          "const unsigned long long team_number = "
          "((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) >> team_bits;");
      // Lanes without a row take part in the shuffles.
      line("const bool is_row = team_number < (unsigned long long)rows;");
      line("const index row = is_row ? (index)team_number : 0;");
    }
    split_index("row", 0, first_, 1);
    move_to_outer_point();
  }

  [[nodiscard]] unsigned lanes_of(std::size_t operand) const {
    return axes_ == 0 ? 1 : width_of(operand, last_, shape_.width);
  }

  /// Where the vectors of a thread are.
  enum class Where : std::uint8_t { registers, shared };

  void open_vectors(Where where) {
    if (where == Where::registers)
      line("#pragma unroll\nfor (int u = 0; u < ", shape_.vectors, "; ++u) {");
    else
      line("#pragma unroll 4\nfor (int u = ", shape_.vectors, "; u < ", shape_.vectors,
           " + shared_vectors; ++u) {");
    line("const index i = (index)rank + u * (index)team;");
    line(shape_.is_block ? "if (i < count) {" : "if (is_row && i < count) {");
    split_index("i", first_, axes_, shape_.width);
  }
  void open_lanes() {
    line("#pragma unroll\nfor (int j = 0; j < ", shape_.width, "; ++j) {");
    if (axes_ > 0 && shape_.width > 1) set_place(last_, cat(coordinate(last_), " * ", shape_.width, " + j"));
  }

  Result<void> write_pass(std::size_t p) {
    const Pass& pass = passes_.passes[p];
    TESSERA_TRY(write_all(pass.rows));
    const std::vector<std::uint32_t> stores = bound_.stores_of(p);
    if (pass.reductions.empty() && stores.empty()) return {};
    const std::vector<ValueId> elements = bound_.elements_for(pass.reductions, stores, known_);
    load_vectors(elements);
    write_reciprocals(elements);
    for (const ValueId value : elements)
      if (is_kept(value))
        line(wide_type(wide(value)), " k", value, "[", shape_.vectors, "][", shape_.width, "];");
    for (const ValueId value : pass.reductions) declare_part(value);
    TESSERA_TRY(write_vectors(pass, elements, stores, Where::registers));
    if (shape_.shared > 0) TESSERA_TRY(write_vectors(pass, elements, stores, Where::shared));
    for (const ValueId value : elements)
      if (is_kept(value)) {
        known_[value] = true;
        values_[value] = cat("k", value, "[u][j]");
      }
    return join_team(pass);
  }

  /// One pass over the vectors that are there.
  Result<void> write_vectors(const Pass& pass, std::span<const ValueId> elements,
                             std::span<const std::uint32_t> stores, Where where) {
    name_elements(where);
    open_vectors(where);
    for (const std::uint32_t number : stores) {
      const std::size_t operand = kernel_.stores[number].operand;
      line(vector_type(operand), " b", operand, ";");
    }
    open_lanes();
    TESSERA_TRY(write_elements(elements));
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

  [[nodiscard]] bool is_kept(ValueId value) const {
    return shape_.keeps_values && passes_.passes.size() > 1 &&
           std::binary_search(passes_.kept.begin(), passes_.kept.end(), value);
  }

  void load_vectors(std::span<const ValueId> elements) {
    std::vector<std::uint32_t> loads;
    for (const std::uint32_t i : bound_.loaded_operands(elements))
      if (!is_loaded_[i]) loads.push_back(i);
    if (loads.empty()) return;
    for (const std::uint32_t i : loads) line(vector_type(i), " a", i, "[", shape_.vectors, "];");
    if (shape_.shared > 0) load_shared(loads);
    open_vectors(Where::registers);
    for (const std::uint32_t i : loads) {
      load_vector("a", i);
      is_loaded_[i] = true;
    }
    line("}\n}");
  }
  [[nodiscard]] std::string vector_type(std::size_t operand) const {
    return cat("Vector<", element_type(operand), ", ", lanes_of(operand), ">");
  }
  void load_vector(std::string_view to, std::uint32_t i) {
    line("load(", to, i, "[u], r", i, " + (", offset(i, first_, axes_, shape_.width), "));");
  }

  void load_shared(std::span<const std::uint32_t> loads) {
    for (const std::uint32_t i : loads) {
      line(vector_type(i), "* const h", i, " = (", vector_type(i), "*)(shared_memory + shared_vectors * ",
           bytes_of_vectors_, ") + rank;");
      bytes_of_vectors_ += std::size_t{shape_.team} * lanes_of(i) * ir::size_of(kernel_.operands[i].dtype);
    }
    const unsigned batch = std::min(shape_.vectors, vectors_at_once);
    line("for (int first = ", shape_.vectors, "; first < ", shape_.vectors,
         " + shared_vectors; first += ", batch, ") {");
    for (const std::uint32_t i : loads) line(vector_type(i), " fetched", i, "[", batch, "];");
    const std::string each = cat("#pragma unroll\nfor (int u = 0; u < ", batch,
                                 "; ++u) {\nconst index place = (index)rank + (first + u) * (index)team;");
    // Behind the end the last one again: loads under conditions are not moved ahead of other stores.
    line(each, "\nconst index i = place < count ? place : count - 1;");
    split_index("i", first_, axes_, shape_.width);
    for (const std::uint32_t i : loads) load_vector("fetched", i);
    line("}\n", each, "\nif (place < count) {");
    for (const std::uint32_t i : loads)
      line("h", i, "[(first + u - ", shape_.vectors, ") * ", shape_.team, "] = fetched", i, "[u];");
    line("}\n}\n}");
  }

  /// The vector of an operand at `u`.
  [[nodiscard]] std::string place_of(std::uint32_t operand, Where where) const {
    return where == Where::registers ? cat("a", operand, "[u]")
                                     : cat("h", operand, "[(u - ", shape_.vectors, ") * ", shape_.team, "]");
  }
  void name_elements(Where where) {
    for (std::uint32_t i = 0; i < is_loaded_.size(); ++i)
      if (is_loaded_[i]) elements_[i] = cat(place_of(i, where), ".at[", lanes_of(i) > 1 ? "j" : "0", "]");
  }

  Result<void> write_elements(std::span<const ValueId> elements) {
    for (const ValueId value : elements) {
      TESSERA_TRY(write(value));
      if (is_kept(value)) line("k", value, "[u][j] = v", value, ";");
    }
    return {};
  }

  /// The parts of all threads of the team; each of them has the total then.
  Result<void> join_team(const Pass& pass) {
    for (const ValueId value : pass.reductions) {
      const std::string name = cat("v", value);
      line(wide_type(wide(value)), " ", name, " = (", wide_type(wide(value)), ")s", value, ";");
      TESSERA_TRY(join_lanes(value, name, shape_.is_block ? "16" : "team >> 1"));
      values_[value] = name;
      if (!shape_.is_block) continue;
      line("__shared__ ", wide_type(wide(value)), " parts", value, "[", parts_of_total, "];");
      line("if ((rank & 31) == 0) parts", value, "[rank >> 5] = ", name, ";");
    }
    if (!shape_.is_block || pass.reductions.empty()) return {};
    line("__syncthreads();");
    for (const ValueId value : pass.reductions) {
      const std::string name = cat("v", value);
      line(name, " = (rank & 31) < team >> 5 ? parts", value,
           "[rank & 31] : ", scalar_.neutral(body_[value].opcode, wide(value)), ";");
      TESSERA_TRY(join_lanes(value, name, "16"));
    }
    return {};
  }

  const RowShape shape_;
  const std::size_t first_, axes_, last_;
  std::vector<bool> known_;           ///< by value: kept in registers
  std::vector<bool> is_loaded_;       ///< by operand
  std::size_t bytes_of_vectors_ = 0;  ///< in the block's memory, for one of each thread
};

}  // namespace

bool tessera::runtime::cuda::fits_block(const BoundKernel& bound, const DeviceLimits& limits) {
  const auto reductions =
      std::count_if(bound.kernel.body.begin(), bound.kernel.body.end(),
                    [](const Instruction& i) { return i.kind == InstructionKind::reduction; });
  return reductions <= 64 && bound.kernel.body.size() <= 400 && row_shape(bound, limits).has_value();
}

Result<StepProgram> tessera::runtime::cuda::row_program(const BoundKernel& bound,
                                                        const DeviceLimits& limits) {
  return RowText(bound, *row_shape(bound, limits)).generate();
}

#include "tessera/runtime/cuda/block_kernel.h"

#include <algorithm>
#include <bit>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr unsigned warp_threads = 32, most_block_threads = 1024;
/// Points of a thread whose texts stand one behind another, so that their accesses overlap, of a thread of a
/// single warp, and instructions that this makes at most.
constexpr unsigned most_points_of_thread = 8, most_points_in_warp = 32;
constexpr std::size_t most_written_out = 256;

/// Many outer points have a thread each; few are computed by all threads, one after another.
bool has_thread_per_point(const BoundKernel& bound) { return bound.binding.outer_points() >= warp_threads; }

/// How many points each of the threads has of so many, as a power of two; 0 if there are no threads yet, or
/// too many points to be written out.
unsigned points_written_out(std::int64_t points, std::size_t instructions, unsigned threads) {
  const unsigned most = threads == warp_threads ? most_points_in_warp : most_points_of_thread;
  if (threads == 0 || points > std::int64_t{threads} * most) return 0;
  const unsigned out = points_of_thread(points, threads);
  return out * instructions <= most_written_out ? out : 0;
}

class BlockKernel : KernelText {
 public:
  BlockKernel(const BoundKernel& bound, SourceDraft& draft, BlockPlace place)
      : KernelText(bound, draft, std::move(place.prefix), place.arrays),
        first_(bound.outer_count()),
        axes_(binding_.reduced.size()),
        counter_(place.counter),
        counter_name_(place.counter_name),
        threads_(place.threads),
        held_(place.held) {}

  Result<std::string> generate() {
    name_counter();
    TESSERA_TRY(write_shared(passes_.uniforms));
    add_index("points", binding_.outer_points());
    if (kernel_.reduces())
      TESSERA_TRY(write_reductions());
    else
      TESSERA_TRY(write_elements());
    return part();
  }

  Result<std::string> generate_value(std::string_view name) {
    value_name_ = name;
    if (kernel_.reduces()) return generate();
    name_counter();
    TESSERA_TRY(write_shared(passes_.uniforms));
    TESSERA_TRY(write_shared(passes_.passes[0].elements));
    line(name, " = ", narrowed(kernel_.stores[0]), ";");
    return part();
  }

  Result<std::string> generate_ahead(std::string_view name, const TurnsAhead& ahead) {
    const Pass& pass = passes_.passes[0];
    TESSERA_TRY(write_shared(passes_.uniforms));
    add_index("count", binding_.reduced_points());
    line("const index rank = (index)threadIdx.x, step = ", block_step(), ";");
    move_to_outer_point();
    TESSERA_TRY(write_shared(pass.rows));
    for (const ValueId value : pass.reductions)
      line(wide_type(part_dtype(value)), " ", ahead_text(value), "[", ahead.count, "];");
    TESSERA_TRY(write_parts_ahead(pass, ahead));
    for (const ValueId value : pass.reductions) TESSERA_TRY(join_ahead(value, ahead.count));
    TESSERA_TRY(write_rows_ahead(pass));
    line(name, " = __all_sync(0xffffffffu, ", narrowed(kernel_.stores[0]), ") != 0;");
    return part();
  }

  Result<std::string> generate_loop(const PointLoop& loop) {
    const Pass& pass = passes_.passes[0];
    add_index("points", binding_.outer_points());
    line("for (index i = (index)threadIdx.x; i < points; i += (index)blockDim.x) {");
    split_index("i", 0, first_, 1);
    for (const std::uint32_t number : pass.stores)
      line(state_type(number), " state", number, " = ", lasting(loop, number), ";");
    line(loop.head);
    name_counter();
    name_states(loop);
    TESSERA_TRY(write_all(passes_.uniforms));
    write_reciprocals(pass.elements);
    for (const std::uint32_t i : bound_.loaded_operands(pass.elements))
      if (!is_counter(i)) elements_[i] = cat("p", i, "[", offset(i, 0, first_, 1), "]");
    name_states(loop);
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores)
      line("const ", state_type(number), " next_state", number, " = ", narrowed(kernel_.stores[number]), ";");
    for (const std::uint32_t number : pass.stores) line("state", number, " = next_state", number, ";");
    line("}");
    for (const std::uint32_t number : pass.stores) line(lasting(loop, number), " = state", number, ";");
    line("}");
    return part();
  }

 private:
  // ---- turns ahead

  static std::string ahead_text(ValueId value) { return cat("ahead", value); }
  /// What a thread has of each turn's reductions, and the turns themselves.
  Result<void> write_parts_ahead(const Pass& pass, const TurnsAhead& ahead) {
    const std::vector<ValueId> elements = bound_.elements_for(pass.reductions, {}, none_known());
    const unsigned each = points_of_thread(binding_.reduced_points(), elements.size());
    line("#pragma unroll\nfor (int turn = 0; turn < ", ahead.count, "; ++turn) {");
    for (const ValueId value : pass.reductions) declare_parts(value, each);
    TESSERA_TRY(open_elements(elements, each));
    for (const ValueId value : pass.reductions) TESSERA_TRY(join_to_part(value, each));
    close_points();
    for (const ValueId value : pass.reductions) {
      TESSERA_TRY(join_parts(value, each));
      line(ahead_text(value), "[turn] = ", part_text(value, 0), ";");
    }
    line(ahead.turn, "}");
    return {};
  }
  /// What is computed of the reductions of the turn that a lane has in the end.
  Result<void> write_rows_ahead(const Pass& first) {
    for (const ValueId value : first.reductions) {
      const std::string_view type = wide_type(wide(value));
      line("const ", type, " v", value, " = (", type, ")", ahead_text(value), "[0];");
      values_[value] = cat("v", value);
    }
    for (std::size_t p = 1; p < passes_.passes.size(); ++p) TESSERA_TRY(write_shared(passes_.passes[p].rows));
    return write_shared(passes_.last_rows);
  }
  /// Two lanes that join what they have of several turns take half of the turns each, until a lane has one.
  /// What is joined with what is the same as if each turn were joined for itself.
  Result<void> join_ahead(ValueId value, unsigned turns) {
    const std::string name = ahead_text(value);
    const auto of_turn = [&](unsigned turn) { return cat(name, "[", turn, "]"); };
    for (unsigned by = warp_threads / 2; by > 0; by /= 2) {
      turns /= 2;
      for (unsigned turn = 0; turn < std::max(turns, 1u); ++turn) {
        const std::string low = of_turn(turn), high = of_turn(turn + turns),
                          other = cat(name, "_", by, "_", turn);
        const auto either = [&](std::string_view upper, std::string_view lower) {
          return turns == 0 ? low : cat("((rank & ", by, ") != 0 ? ", upper, " : ", lower, ")");
        };
        line("const auto ", other, " = shuffled(", either(low, high), ", ", by, ");");
        line(low, " = ",
             TESSERA_TRY(joined(body_[value].opcode, part_dtype(value), either(high, low), other)), ";");
      }
    }
    return {};
  }
  [[nodiscard]] std::vector<bool> none_known() const { return std::vector<bool>(body_.size(), false); }

  // ---- a loop at each point

  [[nodiscard]] std::string_view state_type(std::uint32_t store) const {
    return element_type(kernel_.stores[store].operand);
  }
  /// The element that a store is about, where it lies before and after the loop.
  [[nodiscard]] std::string lasting(const PointLoop& loop, std::uint32_t store) const {
    const std::uint32_t result =
        kernel_.operands[kernel_.stores[store].operand].argument - kernel_.input_count;
    return cat("((", state_type(store), "*)", loop.carried[result], ")[i]");
  }
  void name_states(const PointLoop& loop) {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      for (std::uint32_t number = 0; number < kernel_.stores.size(); ++number) {
        const std::uint32_t result =
            kernel_.operands[kernel_.stores[number].operand].argument - kernel_.input_count;
        if (kernel_.operands[i].argument == loop.first_carried + result) elements_[i] = cat("state", number);
      }
  }

  [[nodiscard]] bool is_counter(std::size_t operand) const {
    return kernel_.operands[operand].argument == counter_;
  }
  void name_counter() {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      if (is_counter(i)) elements_[i] = counter_name_;
  }

  // ---- the points of a thread

  [[nodiscard]] unsigned points_of_thread(std::int64_t points, std::size_t instructions) const {
    return points_written_out(points, instructions, threads_);
  }

  // ---- what threads hold

  [[nodiscard]] const std::string* held(std::size_t operand) const {
    const std::uint32_t argument = kernel_.operands[operand].argument;
    return argument < held_.size() && !held_[argument].empty() ? &held_[argument] : nullptr;
  }
  /// Names the elements that are loaded, of operands that begin at `base`; `each` points are written out.
  Result<void> name_elements(std::span<const ValueId> elements, std::string_view base, std::size_t first,
                             std::size_t count, unsigned each) {
    for (const std::uint32_t i : bound_.loaded_operands(elements)) {
      if (is_counter(i)) continue;
      const std::string* const name = held(i);
      if (name != nullptr && each == 0) return not_by_point();
      elements_[i] = name != nullptr ? cat(*name, "[u]") : cat(base, i, "[", offset(i, first, count, 1), "]");
    }
    return {};
  }
  /// Values that are the same for several points, which no thread may hold for itself.
  Result<void> write_shared(std::span<const ValueId> values) {
    for (const std::uint32_t i : bound_.loaded_operands(values))
      if (held(i) != nullptr) return not_by_point();
    return write_all(values);
  }
  static Error not_by_point() {
    return Error(ErrorCode::unsupported, "a kernel that does not touch what threads hold point by point");
  }
  /// "for each i of this thread": `each` of them are written out, if any.
  void open_points(unsigned each, std::string_view rank, std::string_view step, std::int64_t count) {
    const std::string_view end = kernel_.reduces() ? "count" : "points";
    if (each == 0) return line("for (index i = ", rank, "; i < ", end, "; i += ", step, ") {\n{");
    line("#pragma unroll\nfor (int u = 0; u < ", each, "; ++u) {\nconst index i = ", rank, " + u * ", step,
         ";");
    line(count == std::int64_t{each} * threads_ ? "{" : cat("if (i < ", end, ") {"));
  }
  void close_points() { line("}\n}"); }
  [[nodiscard]] std::string block_step() const { return threads_ == 0 ? "(index)blockDim.x" : cat(threads_); }

  /// All is computed before anything is stored: the compiler must not move a load over a store.
  Result<void> write_elements() {
    const Pass& pass = passes_.passes[0];
    const unsigned each = points_of_thread(binding_.outer_points(), pass.elements.size());
    for (const std::uint32_t number : pass.stores)
      if (each == 0 && held(kernel_.stores[number].operand) != nullptr) return not_by_point();
    write_reciprocals(pass.elements);
    if (each > 1)
      for (const std::uint32_t number : pass.stores)
        line(element_type(kernel_.stores[number].operand), " held", number, "[", each, "];");
    open_points(each, "(index)threadIdx.x", block_step(), binding_.outer_points());
    split_index("i", 0, first_, 1);
    TESSERA_TRY(name_elements(pass.elements, "p", 0, first_, each));
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores)
      line(each > 1 ? cat("held", number, "[u]") : stored_element(number), " = ",
           narrowed(kernel_.stores[number]), ";");
    close_points();
    if (each <= 1) return {};
    open_points(each, "(index)threadIdx.x", block_step(), binding_.outer_points());
    split_index("i", 0, first_, 1);
    for (const std::uint32_t number : pass.stores) line(stored_element(number), " = held", number, "[u];");
    close_points();
    return {};
  }
  [[nodiscard]] std::string stored_element(std::uint32_t number) {
    const std::uint32_t operand = kernel_.stores[number].operand;
    if (const std::string* const name = held(operand)) return cat(*name, "[u]");
    return cat("p", operand, "[", offset(operand, 0, first_, 1), "]");
  }

  // ---- reductions

  Result<void> write_reductions() {
    add_index("count", binding_.reduced_points());
    if (has_thread_per_point(bound_))
      line(
          "const index rank = 0, step = 1;\nfor (index point = (index)threadIdx.x; point < points; point += ",
          block_step(), ") {");
    else
      line("const index rank = (index)threadIdx.x, step = ", block_step(),
           ";\nfor (index point = 0; point < points; ++point) {");
    split_index("point", 0, first_, 1);
    move_to_outer_point();
    name_counter();
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(p));
    TESSERA_TRY(write_shared(passes_.last_rows));
    for (const std::uint32_t number : passes_.row_stores) {
      const Store& store = kernel_.stores[number];
      if (held(store.operand) != nullptr) return not_by_point();
      if (value_name_.empty())
        line("if (rank == 0) r", store.operand, "[0] = ", narrowed(store), ";");
      else
        line(value_name_, " = ", narrowed(store), ";");
    }
    line("}");
    return {};
  }

  Result<void> write_pass(std::size_t p) {
    const Pass& pass = passes_.passes[p];
    TESSERA_TRY(write_shared(pass.rows));
    if (pass.reductions.empty() && pass.stores.empty()) return {};
    const std::vector<ValueId> elements = bound_.elements_for(pass.reductions, pass.stores, none_known());
    const unsigned each =
        has_thread_per_point(bound_) ? 0 : points_of_thread(binding_.reduced_points(), elements.size());
    for (const ValueId value : pass.reductions) declare_total(value, each);
    TESSERA_TRY(open_elements(elements, each));
    for (const ValueId value : pass.reductions)
      TESSERA_TRY(each > 0 ? join_to_part(value, each) : join_to_total(value));
    for (const std::uint32_t number : pass.stores) {
      const Store& store = kernel_.stores[number];
      if (held(store.operand) != nullptr) return not_by_point();
      line("r", store.operand, "[", offset(store.operand, first_, axes_, 1), "] = ", narrowed(store), ";");
    }
    close_points();
    for (const ValueId value : pass.reductions) TESSERA_TRY(finish_total(value, each));
    return {};
  }

  /// "for each point of a row of this thread", with these values.
  Result<void> open_elements(std::span<const ValueId> elements, unsigned each) {
    open_points(each, "rank", "step", binding_.reduced_points());
    split_index("i", first_, axes_, 1);
    TESSERA_TRY(name_elements(elements, "r", first_, axes_, each));
    return write_all(elements);
  }

  /// Few elements are joined in their own dtype, which takes less time than the total's: as a tree, so that
  /// no more than a few roundings add up.
  Result<void> finish_total(ValueId value, unsigned each) {
    if (has_thread_per_point(bound_)) return {};
    if (each == 0) return join_threads(value, cat("v", value), wide(value));
    TESSERA_TRY(join_parts(value, each));
    TESSERA_TRY(join_threads(value, part_text(value, 0), part_dtype(value)));
    line("v", value, " = (", wide_type(wide(value)), ")", part_text(value, 0), ";");
    return {};
  }
  Result<void> join_parts(ValueId value, unsigned each) {
    for (unsigned parts = parts_of(each); parts > 1; parts /= 2)
      for (unsigned i = 0; i < parts / 2; ++i)
        line(part_text(value, i), " = ",
             TESSERA_TRY(joined(body_[value].opcode, part_dtype(value), part_text(value, i),
                                part_text(value, i + parts / 2))),
             ";");
    return {};
  }
  /// Sums of a thread that do not wait for each other.
  static unsigned parts_of(unsigned each) { return each < 8 ? 1 : 4; }
  static std::string part_text(ValueId value, unsigned i) { return cat("s", value, "[", i, "]"); }
  Result<void> join_to_part(ValueId value, unsigned each) {
    const ValueId of = body_[value].operands[0];
    const Dtype dtype = part_dtype(value);
    const std::string sum = cat("s", value, "[u & ", parts_of(each) - 1, "]");
    const std::string element = wide(of) == dtype ? values_[of] : scalar_.cast(values_[of], wide(of), dtype);
    line(sum, " = ", TESSERA_TRY(joined(body_[value].opcode, dtype, sum, element)), ";");
    return {};
  }
  void declare_total(ValueId value, unsigned each) {
    line(wide_type(wide(value)), " v", value, " = ", scalar_.neutral(body_[value].opcode, wide(value)), ";");
    values_[value] = cat("v", value);
    if (each > 0) declare_parts(value, each);
  }
  void declare_parts(ValueId value, unsigned each) {
    const std::string neutral(scalar_.neutral(body_[value].opcode, part_dtype(value)));
    line(wide_type(part_dtype(value)), " s", value, "[", parts_of(each), "] = {",
         join(std::vector<std::string>(parts_of(each), neutral), ", "), "};");
  }
  Result<void> join_to_total(ValueId value) {
    const ValueId of = body_[value].operands[0];
    const std::string element =
        wide(of) == wide(value) ? values_[of] : scalar_.cast(values_[of], wide(of), wide(value));
    line(values_[value], " = ",
         TESSERA_TRY(joined(body_[value].opcode, wide(value), values_[value], element)), ";");
    return {};
  }

  /// One barrier: who is behind it reads one side, who comes to the next join writes the other.
  Result<void> join_threads(ValueId value, const std::string& name, Dtype dtype) {
    const std::string parts = cat("((", wide_type(dtype), "*)(parts + side))");
    TESSERA_TRY(join_lanes(value, name, "16", dtype));
    if (threads_ == warp_threads) return {};
    line("side ^= 32u;\nif ((rank & 31) == 0) ", parts, "[rank >> 5] = ", name, ";\n__syncthreads();");
    constexpr unsigned few_warps = 8;
    if (threads_ != 0 && threads_ <= few_warps * warp_threads) {
      const std::string next = TESSERA_TRY(joined(body_[value].opcode, dtype, name, cat(parts, "[w]")));
      line(name, " = ", parts, "[0];\n#pragma unroll\nfor (int w = 1; w < ", threads_ / warp_threads,
           "; ++w) ", name, " = ", next, ";");
      return {};
    }
    line(name, " = (rank & 31) < step >> 5 ? ", parts,
         "[rank & 31] : ", scalar_.neutral(body_[value].opcode, dtype), ";");
    return join_lanes(value, name, "16", dtype);
  }

  const std::size_t first_, axes_;
  const std::uint32_t counter_;
  const std::string counter_name_;
  const unsigned threads_;
  const std::span<const std::string> held_;
  std::string value_name_;  ///< where the one result goes, if it is not stored
};

Result<void> check_one_number(const BoundKernel& bound) {
  if (bound.binding.is_empty || bound.binding.outer_points() != 1 || bound.kernel.stores.size() != 1)
    return Error(ErrorCode::unsupported, "a kernel of more than one number");
  return {};
}

}  // namespace

unsigned tessera::runtime::cuda::points_of_thread(std::int64_t points, unsigned threads) {
  return std::bit_ceil(static_cast<unsigned>(divided_up(points, threads)));
}

Result<std::string> tessera::runtime::cuda::block_kernel(const BoundKernel& bound, SourceDraft& draft,
                                                         BlockPlace place) {
  return BlockKernel(bound, draft, std::move(place)).generate();
}

Result<std::string> tessera::runtime::cuda::block_value(const BoundKernel& bound, SourceDraft& draft,
                                                        BlockPlace place, std::string_view name) {
  TESSERA_TRY(check_one_number(bound));
  return BlockKernel(bound, draft, std::move(place)).generate_value(name);
}

Result<std::string> tessera::runtime::cuda::block_values_ahead(const BoundKernel& bound, SourceDraft& draft,
                                                               BlockPlace place, std::string_view name,
                                                               const TurnsAhead& ahead) {
  TESSERA_TRY(check_one_number(bound));
  return BlockKernel(bound, draft, std::move(place)).generate_ahead(name, ahead);
}

bool tessera::runtime::cuda::can_be_joined_at_once(const BoundKernel& bound) {
  const std::vector<Pass>& passes = bound.passes.passes;
  const bool has_one_pass =
      !passes[0].reductions.empty() && std::all_of(passes.begin() + 1, passes.end(), [](const Pass& pass) {
        return pass.reductions.empty() && pass.stores.empty();
      });
  return has_one_pass &&
         points_written_out(bound.binding.reduced_points(), passes[0].elements.size(), warp_threads) > 0;
}

unsigned tessera::runtime::cuda::block_threads(const BoundKernel& bound) {
  const std::int64_t outer = bound.binding.outer_points();
  const std::int64_t points = std::max(outer, bound.binding.reduced_points());
  const bool is_wide = (bound.kernel.reduces() && has_thread_per_point(bound)) ||
                       bound.kernel.body.size() * most_points_of_thread > most_written_out;
  // A warp needs no barrier; four warps are all that issue at once.
  constexpr std::int64_t for_one_warp = 128, for_four_warps = 1024;
  const std::int64_t wanted = is_wide                    ? points
                              : points <= for_one_warp   ? warp_threads
                              : points <= for_four_warps ? 4 * warp_threads
                                                         : divided_up(points, most_points_of_thread);
  const auto clamped =
      static_cast<unsigned>(std::clamp<std::int64_t>(wanted, warp_threads, most_block_threads));
  return std::bit_ceil(clamped);
}

Result<std::string> tessera::runtime::cuda::point_loop(const BoundKernel& bound, SourceDraft& draft,
                                                       BlockPlace place, const PointLoop& loop) {
  return BlockKernel(bound, draft, std::move(place)).generate_loop(loop);
}

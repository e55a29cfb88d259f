#include "tessera/runtime/cuda/loop_source.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/ir/dead_code.h"
#include "tessera/kernel/build.h"
#include "tessera/op/ir_builder.h"
#include "tessera/runtime/cuda/block_kernel.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

using kernel::Kernel;

constexpr std::uint32_t no_counter = ~std::uint32_t{0};
constexpr std::int64_t default_limit = 1'000'000, most_shared_bytes = 40 * 1024;

/// A value in the source: how its elements lie, the text of its address, and the registers that have it
/// instead while the loop runs.
struct Place {
  op::Array array;
  std::string text;
  std::string held = {};
};

/// Some results of a function that are computed together.
struct Group {
  Kernel kernel;
  std::vector<std::size_t> results;
};

ir::FunctionRef with_results(const ir::Function& function, std::vector<ir::ExprRef> results) {
  return ir::without_dead_code(ir::function({.name = function.name,
                                             .dims = function.dims,
                                             .params = function.params,
                                             .body = function.body,
                                             .results = std::move(results)}));
}

Result<Kernel> kernel_of(const ir::Function& function, std::span<const std::size_t> results) {
  std::vector<ir::ExprRef> wanted;
  for (const std::size_t result : results) wanted.push_back(function.results[result]);
  return kernel::build(*with_results(function, std::move(wanted)));
}

/// As few kernels as taking one result after another gives.
Result<std::vector<Group>> groups_of(const ir::Function& function) {
  std::vector<Group> out;
  for (std::size_t result = 0; result < function.results.size(); ++result) {
    bool is_placed = false;
    for (Group& group : out) {
      std::vector<std::size_t> more = group.results;
      more.push_back(result);
      auto kernel = kernel_of(function, more);
      if (!kernel) continue;
      group = {std::move(*kernel), std::move(more)};
      is_placed = true;
      break;
    }
    if (is_placed) continue;
    Kernel kernel = TESSERA_TRY(kernel_of(function, {&result, 1}));
    out.push_back({std::move(kernel), {result}});
  }
  return out;
}

/// All elements of an array to one of the same shape.
Kernel copying_kernel(ir::Dtype dtype, std::size_t rank) {
  Kernel out;
  out.input_count = out.output_count = 1;
  out.outer_axes = static_cast<std::uint32_t>(rank);
  out.fixed_sizes.assign(rank, -1);
  for (std::uint32_t argument = 0; argument < 2; ++argument) {
    kernel::Operand operand{dtype, argument, std::vector<kernel::Start>(rank), {}, {}, false};
    for (std::uint32_t axis = 0; axis < rank; ++axis) operand.terms.push_back({axis, axis, 1});
    out.operands.push_back(std::move(operand));
  }
  out.body.push_back({.kind = InstructionKind::load, .dtype = dtype});
  out.stores.push_back({1, 0});
  return out;
}

/// Whether point i of a kernel is element i of an operand's array: who computes the point is the only one who
/// touches the element, unless it is the same for all points of a row.
bool is_in_order(const BoundKernel& bound, std::size_t operand, const op::Array& array) {
  const kernel::Binding& binding = bound.binding;
  if (!array.layout.is_contiguous() || binding.data[operand] != array.at(array.layout.offset)) return false;
  std::int64_t step = 1;
  for (std::size_t axis = binding.axis_count(); axis-- > 0; step *= bound.size_of_axis(axis))
    if (binding.stride(operand, axis) != step) return false;
  return step == array.size();
}

class LoopText {
 public:
  /// Without a number of threads, what is generated tells how many there should be. `holds`: threads hold
  /// what is carried in registers; fails with code `unsupported` if they cannot.
  LoopText(const ir::Function& function, std::span<const op::Array> inputs,
           std::span<const op::Array> results, unsigned threads, bool holds)
      : function_(function), inputs_(inputs), results_(results), threads_(threads), holds_(holds) {}

  /// Whether a single warp, which needs no barrier, takes no longer for a turn than four with theirs.
  [[nodiscard]] bool suits_one_warp() const {
    constexpr std::int64_t most_in_warp = 1024, most_instructions = 128;
    return points_ <= most_in_warp && divided_up(points_, 32) * instructions_ <= most_instructions;
  }

  Result<StepProgram> generate() {
    const ir::Expr* region = function_.body.size() == 1 ? function_.body[0]->value.get() : nullptr;
    const auto* repeat = region == nullptr ? nullptr : ir::as<ir::WhileRegion>(*region);
    const auto* count = region == nullptr ? nullptr : ir::as<ir::ForRegion>(*region);
    if (repeat == nullptr && count == nullptr)
      return Error(ErrorCode::unsupported, cat("'", function_.name, "' does not run on this device yet"));
    place_inputs();
    TESSERA_TRY(repeat != nullptr ? write_while(*repeat) : write_for(*count));
    for (std::size_t i = 0; i < carried_.size(); ++i) TESSERA_TRY(copy_result(i));
    return finished();
  }

 private:
  void place_inputs() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = cat("g", i);
      draft_.add_argument("const unsigned char*", name, memory(Memory::Kind::input, i));
      given_.push_back({inputs_[i], name});
    }
  }
  static Argument memory(Memory::Kind kind, std::size_t index) {
    return {.kind = Argument::Kind::memory, .memory = {kind, static_cast<std::uint32_t>(index), 0}};
  }

  /// Memory of the loop; the address is not looked at.
  Place new_place(ir::Dtype dtype, const op::Extents& shape) {
    const std::string name = cat("at", place_count_++);
    draft_.add_argument("long long", name, {.bits = static_cast<std::uint64_t>(state_bytes_)});
    Place out{{dtype, op::contiguous(shape), reinterpret_cast<std::byte*>(16)}, cat("(state + ", name, ")")};
    const std::int64_t bytes = out.array.size() * static_cast<std::int64_t>(ir::size_of(dtype));
    state_bytes_ += (bytes + 15) / 16 * 16;
    return out;
  }

  /// A kernel with the places that it reads and writes.
  struct Placed {
    Placed(const Kernel& of, std::span<const Place> from, std::span<const Place> to) : kernel(of) {
      for (const Place& place : from) inputs.push_back(place.array);
      for (const Place& place : to) results.push_back(place.array);
      for (const std::span<const Place> places : {from, to})
        for (const Place& place : places) {
          texts.push_back(place.text);
          held.push_back(place.held);
        }
    }
    Result<void> bind() { return kernel::bind(kernel, inputs, results, binding); }
    [[nodiscard]] BoundKernel bound() const { return bound_kernel(kernel, passes, binding, inputs, results); }

    const Kernel& kernel;
    std::vector<op::Array> inputs, results;
    std::vector<std::string> texts, held;
    const kernel::Passes passes = kernel::find_passes(kernel);
    kernel::Binding binding;
  };

  BlockPlace place_of(const Placed& placed) {
    return {.prefix = cat("k", kernel_count_++, "_"),
            .arrays = placed.texts,
            .counter = counter_,
            .counter_name = "iteration",
            .threads = threads_,
            .held = is_in_loop_ ? std::span<const std::string>(placed.held) : std::span<const std::string>()};
  }

  /// Appends a kernel over these places.
  Result<void> add(const Kernel& kernel, std::span<const Place> from, std::span<const Place> to) {
    Placed placed(kernel, from, to);
    TESSERA_TRY(placed.bind());
    if (placed.binding.is_empty) return {};
    const BoundKernel bound = placed.bound();
    TESSERA_TRY(check_work(bound));
    if (!keeps_order(bound)) keeps_order_ = false;
    if (is_in_loop_) wanted_threads_ = std::max(wanted_threads_, block_threads(bound));
    if (is_in_loop_) count_work(bound);
    text_ += TESSERA_TRY(block_kernel(bound, draft_, place_of(placed)));
    return {};
  }

  /// The body of a `for` that is one kernel: as a loop at each point if it carries each for itself.
  Result<void> add_turns(const Kernel& kernel, std::span<const Place> from, std::span<const Place> to,
                         const PointLoop& loop) {
    Placed placed(kernel, from, to);
    TESSERA_TRY(placed.bind());
    const BoundKernel bound = placed.bound();
    if (!keeps_order(bound)) {
      text_ += loop.head;
      TESSERA_TRY(add(kernel, from, to));
      text_ += cat("__syncthreads();\n", swaps_, "}\n");
      return {};
    }
    TESSERA_TRY(check_work(bound));
    wanted_threads_ = whole_warps(placed.binding.outer_points());
    text_ += TESSERA_TRY(point_loop(bound, draft_, place_of(placed), loop));
    return {};
  }
  static unsigned whole_warps(std::int64_t points) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(divided_up(points, 32) * 32, 32, 1024));
  }

  /// Of a condition; nothing is stored there.
  static Place truth_value() {
    return {{ir::Dtype::boolean, op::contiguous({}), reinterpret_cast<std::byte*>(16)}, "state"};
  }
  /// Appends a kernel of one truth value, which every thread has in `name`.
  Result<void> add_value(const Kernel& kernel, std::span<const Place> from, std::string_view name) {
    const Place flag = truth_value();
    Placed placed(kernel, from, {&flag, 1});
    TESSERA_TRY(placed.bind());
    const BoundKernel bound = placed.bound();
    TESSERA_TRY(check_work(bound));
    if (!kernel.reduces() && bound.load_count() > 0) keeps_order_ = false;
    if (!keeps_order(bound)) keeps_order_ = false;
    wanted_threads_ = std::max(wanted_threads_, block_threads(bound));
    count_work(bound);
    text_ += cat("bool ", name, ";\n", TESSERA_TRY(block_value(bound, draft_, place_of(placed), name)));
    return {};
  }

  /// About the instructions of a turn at one point, and how many points there are.
  void count_work(const BoundKernel& bound) {
    points_ = std::max({points_, bound.binding.outer_points(), bound.binding.reduced_points()});
    for (const kernel::Instruction& instruction : bound.kernel.body)
      if (instruction.kind == InstructionKind::operation || instruction.kind == InstructionKind::reduction)
        instructions_ += is_short(instruction.opcode) ? 1 : 16;
  }
  static bool is_short(ScalarOpcode opcode) {
    using enum ScalarOpcode;
    constexpr ScalarOpcode one_instruction[] = {add, sub, mul, min, max, neg,  abs,    eq,
                                                ne,  lt,  le,  gt,  ge,  cast, select, fma};
    return std::find(std::begin(one_instruction), std::end(one_instruction), opcode) !=
           std::end(one_instruction);
  }

  static Result<void> check_work(const BoundKernel& bound) {
    const double points = static_cast<double>(bound.binding.outer_points()) *
                          static_cast<double>(bound.binding.reduced_points());
    if (points > static_cast<double>(most_loop_points) || !bound.has_small_indices())
      return Error(ErrorCode::unsupported,
                   "a loop with more work in an iteration than one block should have");
    return {};
  }

  /// Whether each thread reads of what the loop carries only what it wrote itself, at the same points.
  [[nodiscard]] bool keeps_order(const BoundKernel& bound) const {
    const Kernel& kernel = bound.kernel;
    if (kernel.reduces() && bound.binding.outer_points() != 1) return false;
    // Behind the counter, if there is one.
    const std::uint32_t first = counter_ == no_counter ? 0 : 1;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      const std::uint32_t argument = kernel.operands[i].argument;
      const bool is_result = argument >= bound.inputs.size();
      const bool is_carried = argument >= first && argument - first < carried_.size();
      if (!is_result && !is_carried) continue;
      // The first thread stores what there is once, but all of them read it.
      if (kernel.reduces() && !bound.at_points[i]) {
        if (is_result) continue;
        return false;
      }
      const op::Array& array =
          is_result ? bound.results[argument - bound.inputs.size()] : bound.inputs[argument];
      if (!is_in_order(bound, i, array)) return false;
    }
    return true;
  }

  /// A value around the loop: where it is, or where it is computed once.
  Result<Place> outer_value(const ir::ExprRef& expr, ir::Dtype dtype, const op::Extents& shape) {
    Place out = new_place(dtype, shape);
    const Kernel kernel = TESSERA_TRY(kernel::build(*ir::function(
        {.name = function_.name, .dims = function_.dims, .params = function_.params, .results = {expr}})));
    TESSERA_TRY(add(kernel, given_, {&out, 1}));
    return out;
  }

  [[nodiscard]] const Place* given(const ir::Expr& expr) const {
    for (std::size_t i = 0; i < function_.params.size(); ++i)
      if (function_.params[i].get() == &expr) return &given_[i];
    return nullptr;
  }

  Result<void> place_carried(std::span<const ir::ExprRef> inits) {
    for (std::size_t i = 0; i < inits.size(); ++i) {
      const op::Array& like = results_[i];
      const Place first = TESSERA_TRY(outer_value(inits[i], like.dtype, like.shape()));
      const Place second = new_place(like.dtype, like.shape());
      const std::string now = cat("now", i), next = cat("next", i);
      pointers_ += cat("unsigned char *", now, " = ", first.text, ", *", next, " = ", second.text, ";\n");
      if (!holds_ || first.array.size() <= 1)
        swaps_ +=
            cat("{ unsigned char* const other = ", now, "; ", now, " = ", next, "; ", next, " = other; }\n");
      carried_.push_back({first.array, now});
      next_.push_back({second.array, next});
      hold(i);
    }
    return {};
  }

  /// Numbers stay in memory: all threads may want them.
  void hold(std::size_t i) {
    const op::Array& array = carried_[i].array;
    if (!holds_ || array.size() <= 1) return;
    const std::string now = cat("held_now", i), next = cat("held_next", i),
                      type = std::string(memory_type(array.dtype));
    const std::string count = cat("held_count", i);
    draft_.add_argument("long long", count, {.bits = static_cast<std::uint64_t>(array.size())});
    const unsigned each = points_of_thread(array.size(), threads_);
    const auto at_points = [&](std::string_view to, std::string_view from) {
      return cat("#pragma unroll\nfor (int u = 0; u < ", each, "; ++u) {\nconst int i = threadIdx.x + u * ",
                 threads_, ";\nif (i < ", count, ") ", to, " = ", from, ";\n}\n");
    };
    const std::string element = cat("((", type, "*)now", i, ")[i]"), held = cat(now, "[u]");
    const std::string written_out = cat("#pragma unroll\nfor (int u = 0; u < ", each, "; ++u) ");
    loads_ += cat(type, " ", now, "[", each, "] = {}, ", next, "[", each, "] = {};\n");
    loads_ += at_points(held, element);
    swaps_ += cat(written_out, held, " = ", next, "[u];\n");
    stores_ += at_points(element, held);
    keeps_ += cat(type, " kept", i, "[", each, "];\n", written_out, "kept", i, "[u] = ", held, ";\n");
    returns_ += cat(written_out, held, " = kept", i, "[u];\n");
    held_bytes_ += each * std::max<std::size_t>(ir::size_of(array.dtype), 4);
    carried_[i].held = now;
    next_[i].held = next;
  }

  Result<void> place_captures(std::span<const ir::ExprRef> captures, std::span<const Ref<ir::Var>> params) {
    for (std::size_t i = 0; i < captures.size(); ++i) {
      if (const Place* place = given(*captures[i])) {
        captures_.push_back(*place);
        continue;
      }
      const auto type = op::value_type(*params[i]->type);
      if (!type || !type->shape.empty())
        return Error(ErrorCode::unsupported,
                     cat("'", function_.name, "' captures a constant that is no number"));
      captures_.push_back(TESSERA_TRY(outer_value(captures[i], type->dtype, {})));
    }
    return {};
  }

  Result<void> write_while(const ir::WhileRegion& region) {
    TESSERA_TRY(place_carried(region.inits));
    TESSERA_TRY(place_captures(region.captures, std::span(region.body->params).subspan(region.inits.size())));
    limit_ = region.limit.value_or(default_limit);
    draft_.add_argument("long long", "limit", {.bits = static_cast<std::uint64_t>(*limit_)});
    draft_.add_argument("unsigned long long*", "status", memory(Memory::Kind::status, 0));
    begin_loop("");
    const std::string before = std::exchange(text_, {});
    const std::vector<Place> seen = in_body({});
    const auto conditions = TESSERA_TRY(groups_of(*region.condition));
    for (const Group& group : conditions) TESSERA_TRY(add_value(group.kernel, seen, "goes_on"));
    const std::string condition = std::exchange(text_, {});
    for (const Group& group : TESSERA_TRY(groups_of(*region.body)))
      TESSERA_TRY(add(group.kernel, seen, next(group)));
    const std::string body = std::exchange(text_, {});
    text_ = cat(before, "long long ahead = 0;\n");
    if (can_go_ahead()) TESSERA_TRY(add_turns_ahead(conditions[0].kernel, seen, body));
    text_ += cat("for (long long iteration = ahead;; ++iteration) {\n", condition, "if (!goes_on) break;\n",
                 "if (iteration == limit) {\nif (threadIdx.x == 0) status[1] = 1;\nbreak;\n}\n", body);
    return end_loop();
  }

  // ---- turns ahead

  /// Whether one warp has all that is carried in registers, and some are left to keep it in: then turns that
  /// should not have been done leave nothing behind.
  [[nodiscard]] bool can_go_ahead() const {
    constexpr std::size_t most_bytes = 64 * 4;
    const bool holds_all =
        std::none_of(carried_.begin(), carried_.end(), [](const Place& place) { return place.held.empty(); });
    return threads_ == 32 && keeps_order_ && holds_all && !carried_.empty() && held_bytes_ <= most_bytes;
  }

  /// Turns by the round as long as all of a round are to be done: where the condition joins what the threads
  /// have, a turn takes less time than to find out whether there is one. The last ones are left to the
  /// loop that follows.
  Result<void> add_turns_ahead(const Kernel& condition, std::span<const Place> from,
                               const std::string& body) {
    const Place flag = truth_value();
    Placed placed(condition, from, {&flag, 1});
    TESSERA_TRY(placed.bind());
    const BoundKernel bound = placed.bound();
    const TurnsAhead turns{.count = turns_of_round(), .turn = body + swaps_};
    if (turns.count < 2 || !can_be_joined_at_once(bound)) return {};
    text_ += cat("for (; ahead + ", turns.count, " <= limit; ahead += ", turns.count, ") {\n", keeps_,
                 "bool all_go_on;\n",
                 TESSERA_TRY(block_values_ahead(bound, draft_, place_of(placed), "all_go_on", turns)),
                 "if (all_go_on) continue;\n", returns_, "break;\n}\n");
    return {};
  }
  /// So many that they take longer than to join numbers of a warp, which is some 150 cycles; fewer than two
  /// if one does.
  [[nodiscard]] unsigned turns_of_round() const {
    constexpr std::int64_t instructions = 512, most_turns = 8;
    const std::int64_t of_turn = std::max<std::int64_t>(divided_up(points_, 32) * instructions_, 1);
    return std::bit_floor(static_cast<unsigned>(std::min(instructions / of_turn, most_turns)));
  }

  Result<void> write_for(const ir::ForRegion& region) {
    TESSERA_TRY(place_carried(region.inits));
    TESSERA_TRY(
        place_captures(region.captures, std::span(region.body->params).subspan(region.inits.size() + 1)));
    const Place count = TESSERA_TRY(outer_value(region.count, ir::Dtype::i64, {}));
    const Place counter{{ir::Dtype::i64, op::contiguous({}), reinterpret_cast<std::byte*>(16)}, "state"};
    const auto groups = TESSERA_TRY(groups_of(*region.body));
    const auto seen = in_body(counter);
    begin_loop("");
    counter_ = 0;
    text_ += cat("const long long end = *(const long long*)", count.text, ";\n");
    PointLoop loop{.head = "for (long long iteration = 0; iteration < end; ++iteration) {\n",
                   .first_carried = 1};
    for (const Place& place : carried_) loop.carried.push_back(place.text);
    if (groups.size() == 1 && !is_empty(groups[0])) {
      if (holds_) return cannot_hold();
      TESSERA_TRY(add_turns(groups[0].kernel, seen, next(groups[0]), loop));
      is_in_loop_ = false;
      text_ += "__syncthreads();\n";
    } else {
      text_ += loop.head;
      for (const Group& group : groups) TESSERA_TRY(add(group.kernel, seen, next(group)));
      TESSERA_TRY(end_loop());
    }
    counter_ = no_counter;
    return {};
  }

  void begin_loop(std::string_view head) {
    text_ += cat("__syncthreads();\n", pointers_, loads_, head);
    is_in_loop_ = keeps_order_ = true;
  }
  /// The turn's results take their places; who does not keep to its own points waits for the others.
  Result<void> end_loop() {
    if (holds_ && !keeps_order_) return cannot_hold();
    text_ += cat(keeps_order_ ? "" : "__syncthreads();\n", swaps_, "}\n", stores_, "__syncthreads();\n");
    is_in_loop_ = false;
    return {};
  }
  static Error cannot_hold() {
    return Error(ErrorCode::unsupported, "a loop whose threads do not keep to their own points");
  }

  [[nodiscard]] std::vector<Place> next(const Group& group) const {
    std::vector<Place> out;
    for (const std::size_t result : group.results) out.push_back(next_[result]);
    return out;
  }
  /// Whether there is nothing to compute.
  [[nodiscard]] bool is_empty(const Group& group) const {
    return std::any_of(group.results.begin(), group.results.end(),
                       [this](std::size_t result) { return results_[result].size() == 0; });
  }

  /// What a body is given.
  [[nodiscard]] std::vector<Place> in_body(const std::optional<Place>& counter) const {
    std::vector<Place> out;
    if (counter) out.push_back(*counter);
    out.insert(out.end(), carried_.begin(), carried_.end());
    out.insert(out.end(), captures_.begin(), captures_.end());
    return out;
  }

  Result<void> copy_result(std::size_t i) {
    const std::string name = cat("out", i);
    draft_.add_argument("unsigned char*", name, memory(Memory::Kind::result, i));
    const Place to{results_[i], name};
    return add(copying_kernel(results_[i].dtype, results_[i].rank()), {&carried_[i], 1}, {&to, 1});
  }

  Result<StepProgram> finished() {
    if (state_bytes_ > most_loop_bytes)
      return Error(ErrorCode::unsupported,
                   cat("a loop that carries ", state_bytes_, " bytes; one block has ", most_loop_bytes));
    StepProgram out;
    std::string head(block_parts);
    const bool is_shared = state_bytes_ <= most_shared_bytes;
    if (is_shared) {
      head +=
          "extern __shared__ __align__(16) unsigned char shared_memory[];\n"
          "unsigned char* const state = shared_memory;\n";
    } else {
      draft_.add_argument("unsigned char*", "state", memory(Memory::Kind::scratch, 0));
      out.scratch_bytes.push_back(state_bytes_);
    }
    if (limit_) out.checks.push_back({.op = function_.name, .axes = {}, .limit = *limit_});
    const unsigned threads = threads_ == 0 ? wanted_threads_ : threads_;
    out.launches.push_back(draft_.launch("loop", head + text_, true, threads));
    Launch& launch = out.launches.back();
    launch.block.x = threads;
    if (is_shared) launch.shared_bytes = static_cast<std::uint32_t>(state_bytes_);
    return out;
  }

  const ir::Function& function_;
  const std::span<const op::Array> inputs_, results_;
  SourceDraft draft_;
  std::string text_, pointers_, loads_, swaps_, stores_, keeps_, returns_;
  std::vector<Place> given_, carried_, next_, captures_;
  std::optional<std::int64_t> limit_;
  std::int64_t state_bytes_ = 0;
  std::size_t held_bytes_ = 0;  ///< by a thread, of what is carried
  const unsigned threads_;
  const bool holds_;
  unsigned wanted_threads_ = 32;
  std::int64_t points_ = 0;                       ///< of the largest kernel of a turn
  std::int64_t instructions_ = 0;                 ///< of a turn, at each of them
  std::uint32_t counter_ = no_counter;            ///< the input of kernels that has the number of the turn
  bool is_in_loop_ = false, keeps_order_ = true;  ///< as far as it is written
  unsigned place_count_ = 0, kernel_count_ = 0;
};

}  // namespace

Result<StepProgram> tessera::runtime::cuda::loop_program(const ir::Function& function,
                                                         std::span<const op::Array> inputs,
                                                         std::span<const op::Array> results) {
  LoopText measured(function, inputs, results, 0, false);
  const unsigned threads = TESSERA_TRY(measured.generate()).launches[0].block.x;
  if (threads > 32 && measured.suits_one_warp())
    if (auto held = LoopText(function, inputs, results, 32, true).generate()) return held;
  auto held = LoopText(function, inputs, results, threads, true).generate();
  if (held || held.error().code() != ErrorCode::unsupported) return held;
  return LoopText(function, inputs, results, threads, false).generate();
}

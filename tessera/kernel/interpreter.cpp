#include "tessera/kernel/interpreter.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/base/text.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::kernel;

namespace {

/// Of rows that are kept at once, and of an item whose columns are added up, which has whole lines of them.
constexpr std::int64_t kept_elements = 65536, item_elements = 16384, columns_step = 64;
constexpr std::size_t line = 64;
std::size_t rounded_up(std::size_t bytes) { return (bytes + line - 1) / line * line; }

/// A number of a launch as a register of `dtype` holds it.
std::uint64_t held(std::uint64_t bits, Dtype dtype) {
  std::byte memory[8];
  if (ir::is_float(dtype)) {
    const auto value = std::bit_cast<double>(bits);
    op::storer<double>(dtype)(memory, 0, 1, 1, &value);
  } else {
    const op::SignedWide value = static_cast<std::int64_t>(bits);
    op::storer<op::SignedWide>(dtype)(memory, 0, 1, 1, &value);
  }
  std::uint64_t out = 0;
  block_loops().load[static_cast<std::size_t>(dtype)](memory, 1, &out, 1);
  return out;
}

/// A constant's bits as a register holds them.
std::uint64_t held(const Instruction& constant) {
  if (wide_dtype(constant.dtype) != Dtype::f32) return constant.bits;
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(constant.bits)));
}

/// Whether an array holds what a register would. Booleans may have any byte for true.
bool is_read_in_place(Dtype dtype) { return dtype == wide_dtype(dtype) && dtype != Dtype::boolean; }

/// One run of a range of items by one thread.
class Runner {
 public:
  Runner(const Kernel& kernel, const Program& program, const Job& job, std::byte* scratch)
      : kernel_(kernel),
        program_(program),
        job_(job),
        bind_(job.binding),
        loops_(block_loops()),
        lane_axis_(job.lanes == Lanes::outer ? bind_.outer.size() - 1 : bind_.axis_count() - 1),
        has_lanes_(!(job.lanes == Lanes::outer ? bind_.outer : bind_.reduced).empty()) {
    lay_out(scratch);
  }

  static std::size_t scratch_bytes(const Kernel& kernel, const Program& program, const Job& job) {
    const std::int64_t elements =
        job.binding.reduced_points() * (job.lanes == Lanes::outer ? job.lane_block : 1);
    std::size_t bytes = rounded_up(program.register_count * sizeof(std::byte*)) +
                        rounded_up(kernel.body.size() * 8) +
                        2 * rounded_up(kernel.operands.size() * sizeof(std::byte*)) +
                        rounded_up(job.binding.axis_count() * 8) + program.block_bytes;
    for (std::size_t size : program.kept_sizes)
      bytes += rounded_up(size * static_cast<std::size_t>(elements));
    return bytes;
  }

  void run(std::span<const ValueId> uniforms, std::span<const std::uint64_t> parameters, ItemRange range) {
    hold_scalars(kernel_, uniforms, bind_, parameters, scalars_);
    count_ = 1;
    execute(program_.uniforms, 1);
    for (std::int64_t item = range.begin; item < range.end; ++item) run_item(item);
  }

 private:
  /// The parts of the scratch memory.
  void lay_out(std::byte* at) {
    const auto take = [&](std::size_t bytes) { return std::exchange(at, at + rounded_up(bytes)); };
    registers_ = reinterpret_cast<std::byte**>(take(program_.register_count * sizeof(std::byte*)));
    scalars_ = reinterpret_cast<std::uint64_t*>(take(kernel_.body.size() * 8));
    outer_ = reinterpret_cast<std::byte**>(take(kernel_.operands.size() * sizeof(std::byte*)));
    at_ = reinterpret_cast<std::byte**>(take(kernel_.operands.size() * sizeof(std::byte*)));
    places_ = reinterpret_cast<std::int64_t*>(take(bind_.axis_count() * 8));
    blocks_ = take(program_.block_bytes);
    kept_ = at;
    for (std::size_t i = 0; i < kernel_.body.size(); ++i)
      registers_[i] = reinterpret_cast<std::byte*>(scalars_ + i);
    place(program_.blocks);
  }

  void place(std::span<const Placement> blocks) {
    for (const Placement& block : blocks) registers_[block.number] = blocks_ + block.offset;
  }

  // ---- items

  void run_item(std::int64_t item) {
    const bool lanes_outer = job_.lanes == Lanes::outer;
    std::int64_t rest = lanes_outer ? item / job_.blocks_per_line : item;
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i) outer_[i] = bind_.data[i];
    const std::size_t axes = bind_.outer.size() - (lanes_outer && has_lanes_ ? 1 : 0);
    for (std::size_t axis = axes; axis-- > 0;) {
      places_[axis] = rest % bind_.outer[axis].size;
      rest /= bind_.outer[axis].size;
      move(outer_, axis, places_[axis]);
    }
    count_ = 1;
    if (lanes_outer && has_lanes_) {
      places_[lane_axis_] = item % job_.blocks_per_line * job_.lane_block;
      count_ = std::min(job_.lane_block, bind_.outer.back().size - places_[lane_axis_]);
      move(outer_, lane_axis_, places_[lane_axis_]);
    }
    run_passes();
  }

  void move(std::byte** pointers, std::size_t axis, std::int64_t by) {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      pointers[i] +=
          by * bind_.stride(i, axis) * static_cast<std::int64_t>(ir::size_of(kernel_.operands[i].dtype));
  }

  void run_passes() {
    const auto rows = static_cast<std::size_t>(job_.lanes == Lanes::outer ? count_ : 1);
    for (const PassCode& pass : program_.passes) {
      if (program_.passes.size() > 1 || !placed_) place(pass.blocks);
      placed_ = true;
      std::copy_n(outer_, kernel_.operands.size(), at_);
      execute_rows(pass.rows, rows);
      for (const auto& reduction : pass.reductions) set_neutral(reduction, rows);
      run_pass(pass);
    }
    std::copy_n(outer_, kernel_.operands.size(), at_);
    execute_rows(program_.last_rows, rows);
    for (const auto& save : program_.row_saves) store(save, rows);
  }

  /// What is computed once per row: with lanes along the reduced axis these are single numbers.
  void execute_rows(std::span<const Step> steps, std::size_t rows) {
    in_row_ = true;
    execute(steps, rows);
    in_row_ = false;
  }

  void set_neutral(const PassCode::Reduction& reduction, std::size_t rows) {
    const std::size_t wide = wide_index(wide_dtype(kernel_.body[reduction.value].dtype));
    loops_.fill[wide](&reduction.neutral, nullptr, nullptr, registers_[reduction.value], rows);
  }

  /// All points of the reduced axes, in blocks.
  void run_pass(const PassCode& pass) {
    const std::size_t first = bind_.outer.size();
    const bool along = job_.lanes == Lanes::reduced && has_lanes_;
    const std::size_t loops = bind_.reduced.size() - (along ? 1 : 0);
    const std::int64_t length = along ? bind_.reduced.back().size : 1;
    position_ = 0;
    if (bind_.reduced_points() == 0) return;
    std::fill_n(places_ + first, loops, 0);
    for (;;) {
      if (along)
        run_line(pass, length);
      else
        run_block(pass);
      std::size_t axis = loops;
      for (; axis > 0; --axis) {
        const std::size_t a = first + axis - 1;
        move(at_, a, 1);
        if (++places_[a] < bind_.reduced[axis - 1].size) break;
        move(at_, a, -places_[a]);
        places_[a] = 0;
      }
      if (axis == 0) return;
    }
  }

  void run_line(const PassCode& pass, std::int64_t length) {
    std::int64_t begin = 0;
    for (; begin < length; begin += count_) {
      count_ = std::min<std::int64_t>(length - begin, block_elements);
      places_[lane_axis_] = begin;
      run_block(pass);
      move(at_, lane_axis_, count_);
    }
    move(at_, lane_axis_, -length);
  }

  void run_block(const PassCode& pass) {
    const auto n = static_cast<std::size_t>(count_);
    point_to_kept();
    for (const auto& save : pass.saves)
      if (writes_in_place(save)) registers_[save.from] = at_[save.operand];
    execute(pass.elements, n);
    for (const auto& reduction : pass.reductions) {
      const auto join = job_.lanes == Lanes::outer ? reduction.accumulate : reduction.reduce;
      join(registers_[reduction.from], registers_[reduction.value], n);
    }
    for (const auto& save : pass.saves)
      if (!writes_in_place(save)) store(save, n);
    position_ += count_;
  }

  void point_to_kept() {
    std::byte* at = kept_;
    const auto elements =
        static_cast<std::size_t>(bind_.reduced_points() * (job_.lanes == Lanes::outer ? job_.lane_block : 1));
    for (std::size_t i = 0; i < program_.kept.size(); ++i) {
      const std::size_t size = program_.kept_sizes[i];
      registers_[program_.kept[i]] = at + static_cast<std::size_t>(position_) * size;
      at += rounded_up(size * elements);
    }
  }

  // ---- steps

  [[nodiscard]] std::int64_t lane_stride(std::size_t operand) const {
    if (!has_lanes_ || (in_row_ && job_.lanes == Lanes::reduced)) return 1;
    return bind_.stride(operand, lane_axis_);
  }

  [[nodiscard]] bool writes_in_place(const PassCode::Save& save) const {
    return save.can_write_in_place && job_.writes_in_place && (lane_stride(save.operand) == 1 || count_ == 1);
  }

  void execute(std::span<const Step> steps, std::size_t n) {
    for (const Step& step : steps) switch (step.kind) {
        case Step::Kind::loop:
          step.loop(registers_[step.a], registers_[step.b], registers_[step.c], registers_[step.out], n);
          break;
        case Step::Kind::load:
          load(step, n);
          break;
        case Step::Kind::place:
          count_up(step, n);
          break;
        case Step::Kind::fill:
          step.loop(registers_[step.a], nullptr, nullptr, registers_[step.out], widest_block());
          break;
      }
  }

  /// The elements of the largest block of the run.
  [[nodiscard]] std::size_t widest_block() const {
    if (!has_lanes_) return 1;
    if (job_.lanes == Lanes::outer) return static_cast<std::size_t>(job_.lane_block);
    return static_cast<std::size_t>(std::min<std::int64_t>(bind_.reduced.back().size, block_elements));
  }

  void load(const Step& step, std::size_t n) {
    const Dtype dtype = kernel_.operands[step.a].dtype;
    const std::int64_t stride = n == 1 ? 1 : lane_stride(step.a);
    const bool is_uniform = kernel_.operands[step.a].terms.empty();
    std::byte* const from = is_uniform ? bind_.data[step.a] : at_[step.a];
    std::byte*& to = registers_[step.out];
    if (stride == 1 && n > 1 && is_read_in_place(dtype) && !step.keeps) {
      to = from;
      return;
    }
    if (stride == 0) {
      std::uint64_t one = 0;
      loops_.load[static_cast<std::size_t>(dtype)](from, 1, &one, 1);
      loops_.fill[wide_index(wide_dtype(dtype))](&one, nullptr, nullptr, to, n);
      return;
    }
    loops_.load[static_cast<std::size_t>(dtype)](from, stride, to, n);
  }

  void count_up(const Step& step, std::size_t n) {
    const std::int64_t place = place_along(step.a);
    if (is_lane_axis(step.a)) {
      loops_.count_up(place, registers_[step.out], n);
      return;
    }
    loops_.fill[wide_index(Dtype::i64)](&place, nullptr, nullptr, registers_[step.out], n);
  }

  /// Axes of size 1 are not there.
  [[nodiscard]] std::int64_t place_along(std::uint32_t number) const {
    for (std::size_t i = 0; i < bind_.axis_count(); ++i)
      if (axis_at(i).number == number) return places_[i];
    return 0;
  }
  [[nodiscard]] bool is_lane_axis(std::uint32_t number) const {
    return has_lanes_ && axis_at(lane_axis_).number == number;
  }
  [[nodiscard]] const Binding::Axis& axis_at(std::size_t i) const {
    return i < bind_.outer.size() ? bind_.outer[i] : bind_.reduced[i - bind_.outer.size()];
  }

  void store(const PassCode::Save& save, std::size_t n) {
    const std::int64_t stride = n == 1 ? 1 : lane_stride(save.operand);
    const auto dtype = static_cast<std::size_t>(kernel_.operands[save.operand].dtype);
    loops_.store[dtype](registers_[save.from], at_[save.operand], stride, n);
  }

  const Kernel& kernel_;
  const Program& program_;
  const Job& job_;
  const Binding& bind_;
  const LoopTable& loops_;
  const std::size_t lane_axis_;
  const bool has_lanes_;
  bool in_row_ = false;
  bool placed_ = false;
  std::int64_t count_ = 1;     ///< elements of the block
  std::int64_t position_ = 0;  ///< of the block among the elements of the item
  std::byte** registers_ = nullptr;
  std::uint64_t* scalars_ = nullptr;
  std::byte** outer_ = nullptr;  ///< by operand: at the outer point
  std::byte** at_ = nullptr;     ///< by operand: at the block
  std::int64_t* places_ = nullptr;
  std::byte* blocks_ = nullptr;
  std::byte* kept_ = nullptr;
};

/// How many operands lie side by side along an axis, times how far that carries.
std::int64_t contiguity(const Binding& binding, std::size_t operands, std::size_t axis, std::int64_t size) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < operands; ++i) out += binding.stride(i, axis) == 1 ? 1 : 0;
  return out * std::min<std::int64_t>(size, 64);
}

Lanes choose_lanes(const Kernel& kernel, const Binding& binding) {
  if (!kernel.reduces()) return Lanes::outer;
  if (binding.outer.empty() || binding.reduced.empty())
    return binding.reduced.empty() ? Lanes::outer : Lanes::reduced;
  const std::int64_t outer =
      contiguity(binding, kernel.operands.size(), binding.outer.size() - 1, binding.outer.back().size);
  const std::int64_t reduced =
      contiguity(binding, kernel.operands.size(), binding.axis_count() - 1, binding.reduced.back().size);
  return reduced >= outer ? Lanes::reduced : Lanes::outer;
}

}  // namespace

Interpreter::Interpreter(Kernel kernel, Accuracy accuracy)
    : kernel_(std::move(kernel)),
      passes_(find_passes(kernel_)),
      over_rows_(make_program(kernel_, passes_, Lanes::outer, accuracy)) {
  if (kernel_.reduces()) along_rows_ = make_program(kernel_, passes_, Lanes::reduced, accuracy);
}

/// Neighbouring points of one item. What is kept of many rows at once should fit into a cache; columns that
/// are added up are shared out in parts that are worth a thread.
std::int64_t Interpreter::lanes_at_once(const Binding& binding) const {
  if (!kernel_.reduces()) return block_elements;
  const std::int64_t rows = std::max<std::int64_t>(binding.reduced_points(), 1);
  if (!passes_.kept.empty()) return std::clamp<std::int64_t>(kept_elements / rows, 16, block_elements);
  const std::int64_t columns = item_elements / rows / columns_step * columns_step;
  return std::clamp<std::int64_t>(columns, columns_step, block_elements);
}

Result<void> Interpreter::prepare(std::span<const op::Array> inputs, std::span<const op::Array> outputs,
                                  Job& job) const {
  TESSERA_TRY(bind(kernel_, inputs, outputs, job.binding));
  const Binding& binding = job.binding;
  job.items = 0;
  if (binding.is_empty) return {};
  job.lanes = choose_lanes(kernel_, binding);
  job.lane_block = 1;
  job.blocks_per_line = 1;
  std::int64_t lines = binding.outer_points();
  if (job.lanes == Lanes::outer && !binding.outer.empty()) {
    const std::int64_t size = binding.outer.back().size;
    job.lane_block = lanes_at_once(binding);
    job.lane_block = std::min(job.lane_block, size);
    job.blocks_per_line = (size + job.lane_block - 1) / job.lane_block;
    lines /= size;
  }
  job.items = lines * job.blocks_per_line;
  job.writes_in_place = true;
  for (const Store& store : kernel_.stores)
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      if (i != store.operand && binding.data[i] == binding.data[store.operand]) job.writes_in_place = false;
  return {};
}

void Interpreter::run(const Job& job, std::span<const std::uint64_t> parameters, ItemRange range,
                      Scratch& scratch) const {
  if (range.begin >= range.end) return;
  const Program& code = program(job.lanes);
  std::byte* memory = scratch.reserve(Runner::scratch_bytes(kernel_, code, job));
  Runner(kernel_, code, job, memory).run(passes_.uniforms, parameters, range);
}

void tessera::kernel::hold_scalars(const Kernel& kernel, std::span<const ValueId> uniforms,
                                   const Binding& binding, std::span<const std::uint64_t> parameters,
                                   std::uint64_t* out) {
  for (const ValueId i : uniforms) {
    const Instruction& instruction = kernel.body[i];
    if (instruction.kind == InstructionKind::constant) out[i] = held(instruction);
    if (instruction.kind == InstructionKind::parameter)
      out[i] = held(parameters[instruction.index], instruction.dtype);
    if (instruction.kind == InstructionKind::extent)
      out[i] = static_cast<std::uint64_t>(binding.extents[instruction.index]);
  }
}

Result<void> tessera::kernel::run(const Interpreter& interpreter, std::span<const op::Array> inputs,
                                  std::span<const op::Array> outputs,
                                  std::span<const std::uint64_t> parameters, Scratch& scratch) {
  const Kernel& kernel = interpreter.kernel();
  if (parameters.size() != kernel.parameters.size())
    return Error(ErrorCode::invalid_argument, cat("the kernel has ", kernel.parameters.size(),
                                                  " scalar parameters, got ", parameters.size()));
  Job job;
  TESSERA_TRY(interpreter.prepare(inputs, outputs, job));
  try {
    interpreter.run(job, parameters, {0, job.items}, scratch);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "no memory for the scratch of a kernel");
  }
  return {};
}

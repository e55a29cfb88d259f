#include "tessera/runtime/cpu/compiled_kernel.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>
#include <new>
#include <utility>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cpu;
using kernel::Binding;
using kernel::ItemRange;
using kernel::Job;
using kernel::Lanes;

namespace {

constexpr std::size_t line_bytes = 64;
std::size_t whole_lines(std::size_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

/// Numbers of f32 in the widest vectors of this processor.
unsigned vector_width() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return 16;
#endif
  return 8;
}

/// Changes with how code is compiled and called: what older versions stored is not used.
constexpr int code_version = 4;

/// The processor as it describes itself: code made for one is used on its like alone.
std::string processor_name() {
  std::string out;
#ifdef __x86_64__
  for (const auto& [leaf, sub] : {std::pair{0U, 0U}, {1U, 0U}, {7U, 0U}, {7U, 1U}}) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(leaf, sub, &a, &b, &c, &d) == 0) continue;
    if (leaf == 1) b = 0;  // the number of the core
    out += cat(a, ".", b, ".", c, ".", d, " ");
  }
#endif
  return out;
}

/// The text that is compiled says all about kernel and shape, and changes with the generator.
std::string store_key(const std::string& text) {
  return cat("code ", code_version, " for ", processor_name(), "\n", text);
}

RowFunction row_function(const ObjectCode& code) {
  return reinterpret_cast<RowFunction>(reinterpret_cast<std::uintptr_t>(code.entry()));
}

/// Whether generated code has the loops of a run: along the lanes, and over the rows of columns.
bool has_one_loop(const kernel::Interpreter& interpreter, const Job& job) {
  if (job.lanes == Lanes::reduced) return job.binding.reduced.size() == 1;
  if (job.binding.outer.empty()) return false;
  if (!interpreter.kernel().reduces()) return true;
  // What columns keep for later passes has no room in registers.
  return job.binding.reduced.size() == 1 && job.binding.reduced[0].size > 0 &&
         interpreter.passes().kept.empty();
}

std::size_t lane_axis(const Job& job) {
  return job.lanes == Lanes::outer ? job.binding.outer.size() - 1 : job.binding.axis_count() - 1;
}

/// The first and the last byte that an array has, as numbers.
std::pair<std::uintptr_t, std::uintptr_t> bounds_of(const op::Array& array) {
  std::int64_t low = array.layout.offset, high = low;
  for (std::size_t a = 0; a < array.layout.rank(); ++a) {
    const std::int64_t reach = (array.layout.shape[a] - 1) * array.layout.strides[a];
    (reach < 0 ? low : high) += reach;
  }
  return {reinterpret_cast<std::uintptr_t>(array.at(low)), reinterpret_cast<std::uintptr_t>(array.at(high))};
}

/// Whether a result is written over an input: a run that fails then has destroyed what it began with.
bool is_in_place(std::span<const op::Array> inputs, std::span<const op::Array> outputs) {
  for (const op::Array& output : outputs)
    for (const op::Array& input : inputs) {
      if (output.size() == 0 || input.size() == 0) continue;
      const auto [a, a_end] = bounds_of(output);
      const auto [b, b_end] = bounds_of(input);
      if (a <= b_end && b <= a_end) return true;
    }
  return false;
}

CodeShape shape_of(const kernel::Kernel& kernel, const Job& job, const KernelOptions& options) {
  const Binding& binding = job.binding;
  CodeShape out{job.lanes,
                (job.lanes == Lanes::outer ? binding.outer : binding.reduced).back().number,
                {},
                vector_width(),
                options.is_precise};
  if (job.lanes == Lanes::outer && kernel.reduces()) out.row_axis = binding.reduced.back().number;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    const std::int64_t stride = binding.stride(i, lane_axis(job));
    out.operands.push_back(stride == 0   ? LanePattern::repeated
                           : stride == 1 ? LanePattern::contiguous
                                         : LanePattern::strided);
  }
  return out;
}

#ifdef __x86_64__
constexpr bool can_stream = true;
#else
constexpr bool can_stream = false;
#endif
/// What the last cache holds. Jobs that read and write more find none of it there when they run again.
constexpr std::int64_t cached_bytes = std::int64_t{1} << 25;
/// Smaller results are kept for those who read them next.
constexpr std::int64_t least_streamed_bytes = cached_bytes / 4;

/// Bytes of the operand's elements that a run reads or writes.
std::int64_t touched_bytes(const kernel::Kernel& kernel, const Binding& binding, std::size_t operand) {
  auto bytes = static_cast<std::int64_t>(ir::size_of(kernel.operands[operand].dtype));
  for (std::size_t axis = 0; axis < binding.axis_count(); ++axis) {
    const bool is_outer = axis < binding.outer.size();
    const std::int64_t size =
        is_outer ? binding.outer[axis].size : binding.reduced[axis - binding.outer.size()].size;
    if (binding.stride(operand, axis) != 0) bytes *= size;
  }
  return bytes;
}

/// Whether every row of the results is one piece that begins with a line of the cache.
bool has_whole_lines(const kernel::Kernel& kernel, const Job& job) {
  const Binding& binding = job.binding;
  const std::size_t axes = binding.axis_count();
  return std::ranges::all_of(kernel.stores, [&](const kernel::Store& store) {
    auto misplaced = reinterpret_cast<std::uintptr_t>(binding.data[store.operand]);
    if (axes == 2)
      misplaced |= static_cast<std::uintptr_t>(binding.stride(store.operand, 0)) *
                   ir::size_of(kernel.operands[store.operand].dtype);
    return binding.stride(store.operand, axes - 1) == 1 && misplaced % line_bytes == 0;
  });
}

/// Whether results are better written past the caches, which would read what they replace from memory first.
bool is_streamed(const kernel::Kernel& kernel, const Job& job) {
  const Binding& binding = job.binding;
  const std::size_t lanes = job.lanes == Lanes::outer ? binding.outer.size() : binding.reduced.size();
  if (!can_stream || binding.is_empty || lanes != 1 || binding.axis_count() > 2) return false;
  if (job.lanes == Lanes::outer && binding.axis_count() != 1) return false;
  if (!has_whole_lines(kernel, job)) return false;
  std::int64_t written = 0, touched = 0;
  for (const kernel::Store& store : kernel.stores) written += touched_bytes(kernel, binding, store.operand);
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) touched += touched_bytes(kernel, binding, i);
  return written >= least_streamed_bytes && touched >= cached_bytes;
}

std::int64_t size_of(const kernel::Operand& operand) {
  return static_cast<std::int64_t>(ir::size_of(operand.dtype));
}

/// The memory of one run by generated code.
class Run {
 public:
  Run(const kernel::Interpreter& interpreter, const CompiledJob& job,
      std::span<const std::uint64_t> parameters, kernel::Scratch& scratch)
      : kernel_(interpreter.kernel()), job_(job.job), bind_(job.job.binding), code_(job.code) {
    const kernel::Passes& passes = interpreter.passes();
    const auto lanes = static_cast<std::size_t>(job_.lanes == Lanes::reduced ? bind_.reduced.back().size : 0);
    std::size_t bytes = 2 * whole_lines(kernel_.operands.size() * 8) + whole_lines(kernel_.body.size() * 8) +
                        whole_lines(passes.kept.size() * 8) + whole_lines(kernel_.axis_count() * 8) +
                        line_bytes;
    for (kernel::ValueId value : passes.kept)
      bytes += whole_lines(lanes * kernel::register_size(kernel_.body[value].dtype));
    std::byte* at = scratch.reserve(bytes);
    const auto take = [&](std::size_t size) { return std::exchange(at, at + whole_lines(size)); };
    data_ = reinterpret_cast<std::byte**>(take(kernel_.operands.size() * 8));
    steps_ = reinterpret_cast<std::int64_t*>(take(kernel_.operands.size() * 8));
    for (std::size_t i = 0; i < kernel_.operands.size() && !bind_.outer.empty(); ++i)
      steps_[i] = bind_.stride(i, bind_.outer.size() - 1) * size_of(kernel_.operands[i]);
    auto* scalars = reinterpret_cast<std::uint64_t*>(take(kernel_.body.size() * 8));
    auto** kept = reinterpret_cast<std::byte**>(take(passes.kept.size() * 8));
    places_ = reinterpret_cast<std::int64_t*>(take(kernel_.axis_count() * 8));
    for (std::size_t i = 0; i < passes.kept.size(); ++i)
      kept[i] = take(lanes * kernel::register_size(kernel_.body[passes.kept[i]].dtype));
    std::fill_n(places_, kernel_.axis_count(), 0);
    kernel::hold_scalars(kernel_, passes.uniforms, bind_, parameters, scalars);
    frame_ = {data_,
              job.strides.data(),
              scalars,
              kept,
              places_,
              0,
              &failed_,
              bind_.reduced_points(),
              job.row_strides.data()};
  }

  /// The items that the code had no right result for are given to `again`.
  template <class F>
  void operator()(ItemRange range, F&& again) {
    for (std::int64_t item = range.begin; item < range.end;) {
      const std::int64_t next = job_.lanes == Lanes::outer ? run_line(item, range.end) : run_row(item);
      if (failed_ != 0) again(ItemRange{item, next});
      failed_ = 0;
      item = next;
    }
  }

 private:
  void move(std::size_t axis, std::int64_t by) {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      data_[i] += by * bind_.stride(i, axis) * size_of(kernel_.operands[i]);
  }

  /// To an outer point, by the number of the point along the first `axes` axes.
  void go_to(std::int64_t point, std::size_t axes) {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i) data_[i] = bind_.data[i];
    for (std::size_t axis = axes; axis-- > 0;) {
      const std::int64_t place = point % bind_.outer[axis].size;
      point /= bind_.outer[axis].size;
      places_[bind_.outer[axis].number] = place;
      move(axis, place);
    }
  }

  /// Neighbouring blocks of one line at once. The item behind them.
  std::int64_t run_line(std::int64_t item, std::int64_t end) {
    const std::int64_t number = item / job_.blocks_per_line, first = item % job_.blocks_per_line;
    const std::int64_t last = std::min(job_.blocks_per_line, first + (end - item));
    const std::int64_t size = bind_.outer.back().size, begin = first * job_.lane_block;
    go_to(number, bind_.outer.size() - 1);
    move(bind_.outer.size() - 1, begin);
    places_[bind_.outer.back().number] = begin;
    frame_.count = std::min(size, last * job_.lane_block) - begin;
    code_(&frame_);
    return item + last - first;
  }

  /// Rows mostly come one behind the other.
  void go_to_row(std::int64_t item) {
    if (left_in_line_ > 0) {
      --left_in_line_;
      ++places_[bind_.outer.back().number];
      for (std::size_t i = 0; i < kernel_.operands.size(); ++i) data_[i] += steps_[i];
      return;
    }
    go_to(item, bind_.outer.size());
    if (!bind_.outer.empty()) left_in_line_ = bind_.outer.back().size - 1 - item % bind_.outer.back().size;
  }

  std::int64_t run_row(std::int64_t item) {
    go_to_row(item);
    frame_.count = bind_.reduced.back().size;
    code_(&frame_);
    return item + 1;
  }

  const kernel::Kernel& kernel_;
  const Job& job_;
  const Binding& bind_;
  RowFunction code_;
  Frame frame_;
  std::uint8_t failed_ = 0;
  std::byte** data_ = nullptr;
  std::int64_t* steps_ = nullptr;  ///< bytes from row to row, by operand
  std::int64_t* places_ = nullptr;
  std::int64_t left_in_line_ = 0;  ///< rows along the last outer axis that follow
};

bool has_scalars(const kernel::Interpreter& interpreter) {
  const auto& body = interpreter.kernel().body;
  return std::any_of(body.begin(), body.end(), [](const kernel::Instruction& instruction) {
    return instruction.kind == kernel::InstructionKind::parameter ||
           instruction.kind == kernel::InstructionKind::extent;
  });
}

/// Whether the code had a right result.
bool run_plain(const CompiledJob& job) {
  std::uint8_t failed = 0;
  const Frame frame = plain_frame(job, failed);
  job.code(&frame);
  return failed == 0;
}

}  // namespace

Frame tessera::runtime::cpu::plain_frame(const CompiledJob& job, std::uint8_t& failed) {
  return {job.job.binding.data.data(), job.strides.data(), nullptr, nullptr,
          job.places.data(),           job.lanes,          &failed, job.rows,
          job.row_strides.data()};
}

CompiledKernel::CompiledKernel(kernel::Kernel kernel, KernelOptions options)
    : interpreter_(std::move(kernel), options.accuracy()),
      options_(options),
      is_plain_(interpreter_.passes().kept.empty() && !has_scalars(interpreter_)) {}

Result<void> CompiledKernel::prepare(std::span<const op::Array> inputs, std::span<const op::Array> outputs,
                                     CompiledJob& job, Readers readers) {
  TESSERA_TRY(interpreter_.prepare(inputs, outputs, job.job));
  const bool in_place = is_in_place(inputs, outputs);
  // What is written over an input lies in the cache already.
  job.streams = !in_place && readers == Readers::later && is_streamed(kernel(), job.job);
  job.code = job.job.items > 0 ? code_for(job, !in_place) : nullptr;
  job.points = job.job.binding.outer_points() * job.job.binding.reduced_points();
  if (job.code != nullptr) lay_out(job);
  return {};
}

void CompiledKernel::lay_out(CompiledJob& job) const {
  const Binding& binding = job.job.binding;
  const auto& operands = kernel().operands;
  job.strides.assign(operands.size(), 0);
  job.row_strides.assign(operands.size(), 0);
  const bool has_columns = job.job.lanes == Lanes::outer && !binding.reduced.empty();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    job.strides[i] = binding.stride(i, lane_axis(job.job)) * size_of(operands[i]);
    if (has_columns) job.row_strides[i] = binding.stride(i, binding.axis_count() - 1) * size_of(operands[i]);
  }
  job.places.assign(kernel().axis_count(), 0);
  job.lanes = (job.job.lanes == Lanes::outer ? binding.outer : binding.reduced).back().size;
  job.rows = binding.reduced_points();
  job.is_plain = job.job.items == 1 && is_plain_;
}

RowFunction CompiledKernel::code_for(const CompiledJob& job, bool can_repeat) {
  if (!options_.compiles || !has_one_loop(interpreter_, job.job)) return nullptr;
  CodeShape shape = shape_of(kernel(), job.job, options_);
  shape.can_repeat = can_repeat;
  shape.streams = job.streams;
  const std::lock_guard lock(mutex_);
  auto at =
      std::find_if(variants_.begin(), variants_.end(), [&](const Variant& v) { return v.shape == shape; });
  if (at == variants_.end()) {
    auto made = compile(shape, options_.quality);
    // There may be memory the next time.
    if (!made && made.error().code() == ErrorCode::memory) return nullptr;
    if (!made) why_interpreted_ = made.error().to_text();
    if (made && !made->why_not_stored.empty()) why_not_stored_ = made->why_not_stored;
    const bool can_improve = made && made->quality != CodeQuality::good;
    variants_.push_back({shape, made ? std::move(made->code) : nullptr, nullptr, can_improve});
    at = variants_.end() - 1;
  }
  return at->code == nullptr ? nullptr : at->entry();
}

RowFunction CompiledKernel::Variant::entry() const {
  return row_function(better != nullptr ? *better : *code);
}

bool CompiledKernel::can_improve() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(variants_.begin(), variants_.end(), [](const Variant& v) { return v.can_improve; });
}

bool CompiledKernel::improve() {
  bool is_better = false;
  std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < variants_.size(); ++i) {
    if (!std::exchange(variants_[i].can_improve, false)) continue;
    const CodeShape shape = variants_[i].shape;
    lock.unlock();
    auto made = compile(shape, CodeQuality::good);
    lock.lock();
    if (!made) continue;  // what there is serves
    variants_[i].better = std::move(made->code);
    if (!made->why_not_stored.empty()) why_not_stored_ = made->why_not_stored;
    is_better = true;
  }
  return is_better;
}

RowFunction CompiledKernel::best(RowFunction code) const {
  const std::lock_guard lock(mutex_);
  for (const Variant& variant : variants_)
    if (variant.code != nullptr && row_function(*variant.code) == code) return variant.entry();
  return code;
}

/// What a file holds: a byte that says how the code was made, then the code.
std::optional<CompiledKernel::Code> CompiledKernel::stored(const std::string& key) const {
  const auto bytes = options_.store->load(key);
  if (!bytes || bytes->empty()) return std::nullopt;
  const auto quality = static_cast<CodeQuality>((*bytes)[0]);
  auto code = ObjectCode::load(std::span(*bytes).subspan(1), row_function_name);
  if (!code || quality > CodeQuality::good) return std::nullopt;
  return Code{std::make_unique<ObjectCode>(*std::move(code)), quality};
}

/// Good code takes the place of what was made fast, never the other way round.
Result<CompiledKernel::Code> CompiledKernel::compile(const CodeShape& shape, CodeQuality quality) const {
  const std::string text = TESSERA_TRY(generate(kernel(), interpreter_.passes(), shape));
  const std::string key = options_.store != nullptr ? store_key(text) : std::string();
  if (options_.store != nullptr)
    if (auto found = stored(key); found && found->quality >= quality) return *std::move(found);
  const Llvm* llvm = TESSERA_TRY(Llvm::open());
  if (!llvm->outlives_program()) quality = CodeQuality::good;
  const auto object = TESSERA_TRY(llvm->compile(text, quality));
  auto code = TESSERA_TRY(ObjectCode::load(object, row_function_name));
  Code out{std::make_unique<ObjectCode>(std::move(code)), quality};
  if (options_.store == nullptr) return out;
  std::vector<std::byte> bytes{static_cast<std::byte>(quality)};
  bytes.insert(bytes.end(), object.begin(), object.end());
  if (const auto saved = options_.store->save(key, bytes); !saved)
    out.why_not_stored = saved.error().to_text();
  return out;
}

void CompiledKernel::run(const CompiledJob& job, std::span<const std::uint64_t> parameters, ItemRange range,
                         kernel::Scratch& scratch) const {
  if (range.begin >= range.end) return;
  if (job.code == nullptr || (job.is_plain && !run_plain(job)))
    return interpreter_.run(job.job, parameters, range, scratch);
  if (job.is_plain) return;
  Run(interpreter_, job, parameters, scratch)(range, [&](ItemRange failed) {
    kernel::Scratch own;  // the other is in use
    interpreter_.run(job.job, parameters, failed, own);
  });
}

std::string CompiledKernel::why_not_stored() const {
  const std::lock_guard lock(mutex_);
  return why_not_stored_;
}

std::string CompiledKernel::why_interpreted() const {
  const std::lock_guard lock(mutex_);
  return why_interpreted_;
}

Result<void> tessera::runtime::cpu::run(CompiledKernel& kernel, std::span<const op::Array> inputs,
                                        std::span<const op::Array> outputs,
                                        std::span<const std::uint64_t> parameters, kernel::Scratch& scratch) {
  if (parameters.size() != kernel.kernel().parameters.size())
    return Error(ErrorCode::invalid_argument, cat("the kernel has ", kernel.kernel().parameters.size(),
                                                  " scalar parameters, got ", parameters.size()));
  CompiledJob job;
  TESSERA_TRY(kernel.prepare(inputs, outputs, job));
  try {
    kernel.run(job, parameters, {0, job.job.items}, scratch);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::memory, "no memory for the scratch of a kernel");
  }
  return {};
}

#include "tessera/runtime/cuda/kernel_text.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tessera/kernel/repeats.h"
#include "tessera/runtime/cuda/early_start.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

const std::string_view tessera::runtime::cuda::kernel_prelude = R"(
template <class T, int N>
struct __align__(sizeof(T) * N) Vector { T at[N]; };
template <class T, int N>
static __device__ __forceinline__ void load(Vector<T, N>& out, const T* from) { out = *(const Vector<T, N>*)from; }
template <class T, int N>
static __device__ __forceinline__ void store(T* to, const Vector<T, N>& in) { *(Vector<T, N>*)to = in; }
// n / d by a multiplication where the indices are small.
static __device__ __forceinline__ int quotient(int n, int, unsigned magic, unsigned shift) {
  return (int)((__umulhi((unsigned)n, magic) + (unsigned)n) >> shift);
}
static __device__ __forceinline__ long long quotient(long long n, long long d, unsigned, unsigned) { return n / d; }
template <class T>
static __device__ __forceinline__ T shuffled(T x, unsigned by) { return __shfl_xor_sync(0xffffffffu, x, by); }
static __device__ __forceinline__ bool shuffled(bool x, unsigned by) {
  return __shfl_xor_sync(0xffffffffu, (int)x, by) != 0;
}
)";

namespace {

/// Instructions that are worth a loop: so many do not fill a vector of elements anyway (element_source.cpp).
constexpr std::size_t least_loop = 512;

/// What stands for a division by `d` of numbers below 2^31.
struct Division {
  explicit Division(std::int64_t d) {
    if (d < 1) d = 1;  // of no elements
    while ((std::int64_t{1} << shift) < d) ++shift;
    const auto divisor = static_cast<std::uint64_t>(d);
    magic = ((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - divisor)) / divisor + 1;
  }
  std::uint64_t magic = 0;
  unsigned shift = 0;
};

}  // namespace

// ---- a kernel with its arrays

BoundKernel tessera::runtime::cuda::bound_kernel(const Kernel& kernel, const Passes& passes,
                                                 const Binding& binding, std::span<const op::Array> inputs,
                                                 std::span<const op::Array> results) {
  BoundKernel out{kernel, passes, binding, inputs, results, {}};
  for (const kernel::Operand& operand : kernel.operands)
    out.at_points.push_back(std::any_of(operand.terms.begin(), operand.terms.end(), [&](const Term& term) {
      return !kernel.reduces() || term.axis >= kernel.outer_axes;
    }));
  return out;
}

std::int64_t BoundKernel::size_of_axis(std::size_t axis) const {
  return axis < outer_count() ? binding.outer[axis].size : binding.reduced[axis - outer_count()].size;
}

unsigned BoundKernel::vector_width(std::size_t axis, bool may_have_tail) const {
  std::size_t widest = 1;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    if (!at_points[i] || !varies(i, axis)) continue;
    if (binding.stride(i, axis) != 1) return 1;
    widest = std::max(widest, ir::size_of(kernel.operands[i].dtype));
  }
  auto width = static_cast<std::int64_t>(16 / widest);
  const auto fits = [&](std::int64_t by) {
    if (!may_have_tail && size_of_axis(axis) % by != 0) return false;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      if (!at_points[i] || !varies(i, axis)) continue;
      const auto bytes = static_cast<std::uintptr_t>(by) * ir::size_of(kernel.operands[i].dtype);
      if (reinterpret_cast<std::uintptr_t>(binding.data[i]) % bytes != 0) return false;
      for (std::size_t other = 0; other < binding.axis_count(); ++other)
        if (other != axis && binding.stride(i, other) % by != 0) return false;
    }
    return true;
  };
  while (width > 1 && !fits(width)) width /= 2;
  return static_cast<unsigned>(width);
}

bool BoundKernel::has_small_indices() const {
  constexpr double limit = 2147483647.0 - 1024 * 1024;
  double points = 1;
  for (std::size_t axis = 0; axis < binding.axis_count(); ++axis)
    points *= static_cast<double>(size_of_axis(axis));
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    double reach = 0;
    for (std::size_t axis = 0; axis < binding.axis_count(); ++axis)
      reach +=
          static_cast<double>(std::abs(binding.stride(i, axis))) * static_cast<double>(size_of_axis(axis));
    points = std::max(points, reach);
  }
  return points < limit;
}

std::size_t BoundKernel::load_count() const {
  return static_cast<std::size_t>(
      std::count_if(kernel.body.begin(), kernel.body.end(),
                    [](const Instruction& i) { return i.kind == InstructionKind::load; }));
}

std::vector<ValueId> BoundKernel::elements_for(std::span<const ValueId> reductions,
                                               std::span<const std::uint32_t> stores,
                                               const std::vector<bool>& known) const {
  std::vector<ValueId> wanted, out;
  for (const ValueId reduction : reductions) wanted.push_back(kernel.body[reduction].operands[0]);
  for (const std::uint32_t store : stores) wanted.push_back(kernel.stores[store].value);
  std::vector<bool> seen = known;
  while (!wanted.empty()) {
    const ValueId value = wanted.back();
    wanted.pop_back();
    if (seen[value] || passes.levels[value] != Level::element) continue;
    seen[value] = true;
    out.push_back(value);
    for (std::size_t k = 0; k < operand_count(kernel.body[value]); ++k)
      wanted.push_back(kernel.body[value].operands[k]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::uint32_t> BoundKernel::loaded_operands(std::span<const ValueId> values) const {
  std::vector<std::uint32_t> out;
  for (const ValueId value : values)
    if (kernel.body[value].kind == InstructionKind::load) out.push_back(kernel.body[value].index);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::uint32_t> BoundKernel::stores_of(std::size_t pass) const {
  std::vector<std::uint32_t> out;
  if (pass + 1 == passes.passes.size())
    for (const Pass& each : passes.passes) out.insert(out.end(), each.stores.begin(), each.stores.end());
  return out;
}

// ---- arguments

KernelText::KernelText(const BoundKernel& bound) : KernelText(bound, own_, {}, {}) {}

KernelText::KernelText(const BoundKernel& bound, SourceDraft& draft, std::string prefix,
                       std::span<const std::string> arrays)
    : bound_(bound),
      kernel_(bound.kernel),
      passes_(bound.passes),
      binding_(bound.binding),
      body_(bound.kernel.body),
      draft_(draft),
      scalar_(draft.scalar),
      values_(bound.kernel.body.size()),
      elements_(bound.kernel.operands.size()),
      prefix_(std::move(prefix)),
      places_(bound.binding.axis_count()),
      has_reciprocal_(bound.kernel.body.size(), false),
      has_jumps_(has_jumps(bound.kernel)),
      has_small_indices_(bound.has_small_indices()) {
  for (std::size_t i = 0; i < kernel_.operands.size(); ++i) {
    const std::uint32_t argument = kernel_.operands[i].argument;
    const bool is_input = argument < kernel_.input_count;
    const std::uint32_t index = is_input ? argument : argument - kernel_.input_count;
    const op::Array& array = (is_input ? bound.inputs : bound.results)[index];
    const std::int64_t byte = binding_.data[i] - array.data;
    const std::string type = cat(is_input ? "const " : "", element_type(i));
    elements_[i] = cat("p", i, "[0]");
    if (arrays.empty()) {
      add_pointer(type, cat("p", i), {is_input ? Memory::Kind::input : Memory::Kind::result, index, byte});
      continue;
    }
    add_argument("long long", cat("o", i), {.bits = static_cast<std::uint64_t>(byte)});
    locals_ += cat(type, "* const p", i, " = (", type, "*)(", arrays[argument], " + o", i, ");\n");
  }
}

void SourceDraft::add_argument(std::string_view type, std::string_view name, const Argument& argument) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  names.emplace_back(name);
  parameters += cat(arguments.empty() ? "" : ", ", type, " ", name);
  arguments.push_back(argument);
}

void KernelText::add_argument(std::string_view type, const std::string& name, Argument argument) {
  const std::size_t before = draft_.names.size();
  draft_.add_argument(type, cat(prefix_, name), argument);
  if (!prefix_.empty() && draft_.names.size() > before)
    locals_ += cat("const ", type, " ", name, " = ", prefix_, name, ";\n");
}

void KernelText::add_index(const std::string& name, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (has_small_indices_)
    add_argument("index", name, {.bits = bits & 0xffffffffU, .bytes = 4});
  else
    add_argument("index", name, {.bits = bits, .bytes = 8});
}

void KernelText::add_int(const std::string& name, std::int64_t value) {
  add_argument("unsigned", name, {.bits = static_cast<std::uint64_t>(value) & 0xffffffffU, .bytes = 4});
}

void KernelText::add_pointer(std::string_view type, const std::string& name, Memory memory) {
  add_argument(cat(type, "*"), name, {.kind = Argument::Kind::memory, .memory = memory});
}

// ---- indices

void KernelText::split_index(const std::string& from, std::size_t first, std::size_t count, unsigned width) {
  for (std::size_t k = 0; k < count; ++k) places_[first + k] = coordinate(first + k);
  if (count == 0) return;
  if (count == 1) {
    line("const index ", coordinate(first), " = ", from, ";");
    return;
  }
  std::string rest = from;
  for (std::size_t axis = first + count - 1; axis > first; --axis) {
    const std::int64_t size = bound_.size_of_axis(axis) / (axis == first + count - 1 ? width : 1);
    const Division division(size);
    add_index(cat("d", axis), size);
    add_int(cat("m", axis), static_cast<std::int64_t>(division.magic));
    add_int(cat("t", axis), division.shift);
    const std::string next = axis == first + 1 ? coordinate(first) : cat("q", axis);
    line("const index ", next, " = quotient(", rest, ", d", axis, ", m", axis, ", t", axis, ");");
    line("const index ", coordinate(axis), " = ", rest, " - ", next, " * d", axis, ";");
    rest = next;
  }
}

std::string KernelText::stride(std::size_t operand, std::size_t axis) {
  // Operands with the same strides share the arguments.
  std::size_t same = 0;
  while (same < operand && !std::equal(binding_.strides.begin() + same * binding_.axis_count(),
                                       binding_.strides.begin() + (same + 1) * binding_.axis_count(),
                                       binding_.strides.begin() + operand * binding_.axis_count()))
    ++same;
  std::string name = cat("s", same, "_", axis);
  add_index(name, binding_.stride(same, axis));
  return name;
}

std::string KernelText::offset(std::size_t operand, std::size_t first, std::size_t count, unsigned width) {
  std::string out;
  for (std::size_t axis = first; axis < first + count; ++axis) {
    if (!bound_.varies(operand, axis)) continue;
    if (!out.empty()) out += " + ";
    const bool is_last = axis == first + count - 1;
    if (is_last && width > 1)
      out += cat(coordinate(axis), " * ", width);  // contiguous
    else
      out += cat(coordinate(axis), " * ", stride(operand, axis));
  }
  return out.empty() ? "0" : out;
}

void KernelText::move_to_outer_point() {
  for (std::size_t i = 0; i < kernel_.operands.size(); ++i) {
    const bool is_input = kernel_.operands[i].argument < kernel_.input_count;
    line(is_input ? "const " : "", element_type(i), "* const r", i, " = p", i, " + (",
         offset(i, 0, bound_.outer_count(), 1), ");");
    elements_[i] = cat("r", i, "[0]");
  }
}

// ---- reductions

Dtype KernelText::part_dtype(ValueId reduction) const {
  // Products leave the range of f32 long before the result does.
  const ValueId of = body_[reduction].operands[0];
  return body_[reduction].opcode == ScalarOpcode::mul ? wide(reduction) : wide(of);
}

void KernelText::declare_part(ValueId reduction) {
  const Dtype dtype = part_dtype(reduction);
  line(wide_type(dtype), " s", reduction, " = ", scalar_.neutral(body_[reduction].opcode, dtype), ";");
}

Result<void> KernelText::join_element(ValueId reduction) {
  const ValueId of = body_[reduction].operands[0];
  const Dtype dtype = part_dtype(reduction);
  const std::string part = cat("s", reduction);
  const std::string element = wide(of) == dtype ? values_[of] : scalar_.cast(values_[of], wide(of), dtype);
  line(part, " = ", TESSERA_TRY(joined(body_[reduction].opcode, dtype, part, element)), ";");
  return {};
}

Result<void> KernelText::join_lanes(ValueId reduction, const std::string& name, const std::string& from,
                                    std::optional<Dtype> dtype) {
  const Dtype of = dtype.value_or(wide(reduction));
  const std::string next = TESSERA_TRY(joined(body_[reduction].opcode, of, name, "other"));
  line("for (unsigned by = ", from, "; by > 0; by >>= 1) {\nconst ", wide_type(of), " other = shuffled(",
       name, ", by);\n", name, " = ", next, ";\n}");
  return {};
}

// ---- values

Result<void> KernelText::write(ValueId value) {
  const std::string text = TESSERA_TRY(expression(value));
  line("const ", wide_type(wide(value)), " v", value, " = ", text, ";");
  values_[value] = cat("v", value);
  return {};
}

Result<void> KernelText::write_all(std::span<const ValueId> values) {
  std::size_t at = 0;
  for (const kernel::Repeat& repeat : kernel::find_repeats(kernel_, values, least_loop)) {
    // What is handed on from one time to the next is one variable.
    const ValueId before = values[repeat.begin - 1], last = values[repeat.begin + repeat.period - 1];
    if (wide(before) != wide(last)) continue;
    for (; at < repeat.begin; ++at) TESSERA_TRY(write(values[at]));
    TESSERA_TRY(write_loop(values.subspan(at, repeat.period), repeat.times, before));
    at = repeat.end();
    values_[values[at - 1]] = values_[last];
  }
  for (; at < values.size(); ++at) TESSERA_TRY(write(values[at]));
  return {};
}

/// Computes the values so many times, each time with the last of them in the place of `before`; the last one
/// has the text of what came out. Instructions of a long chain do not stay in the cache for code.
Result<void> KernelText::write_loop(std::span<const ValueId> values, std::size_t times, ValueId before) {
  const std::string carried = cat("carried", values.back()), held = values_[before];
  line(wide_type(wide(before)), " ", carried, " = ", held, ";");
  line("#pragma unroll 16\nfor (int time = 0; time < ", times, "; ++time) {");
  values_[before] = carried;
  for (const ValueId value : values) TESSERA_TRY(write(value));
  line(carried, " = ", values_[values.back()], ";\n}");
  values_[before] = held;
  values_[values.back()] = carried;
  return {};
}

Result<std::string> KernelText::expression(ValueId value) {
  const Instruction& instruction = body_[value];
  switch (instruction.kind) {
    case InstructionKind::constant:
      return scalar_.constant(wide(value), instruction.bits);
    case InstructionKind::parameter:
      return parameter(instruction);
    case InstructionKind::extent:
      add_argument("long long", cat("e", instruction.index),
                   {.bits = static_cast<std::uint64_t>(binding_.extents[instruction.index])});
      return cat("e", instruction.index);
    case InstructionKind::load:
      return scalar_.widened(instruction.dtype, elements_[instruction.index]);
    case InstructionKind::place:
      return place(instruction.index);
    case InstructionKind::operation:
      return operation(instruction);
    case InstructionKind::reduction:
      break;
  }
  return Error(ErrorCode::internal, "a reduction has no expression");
}

/// f32 as it is; others as f64, from which they are converted as the host does it.
std::string KernelText::parameter(const Instruction& instruction) {
  const std::string name = cat("n", instruction.index);
  const Dtype passed = instruction.dtype == Dtype::f32 ? Dtype::f32 : Dtype::f64;
  add_argument(wide_type(passed), name,
               {.kind = Argument::Kind::number,
                .slot = prefix_.empty() ? instruction.index : kernel_.slots[instruction.index],
                .dtype = passed,
                .bytes = static_cast<std::uint8_t>(ir::size_of(passed))});
  return passed == instruction.dtype ? name : scalar_.cast(name, passed, instruction.dtype);
}

/// Axes of size 1 are not there.
std::string KernelText::place(std::uint32_t number) const {
  for (std::size_t i = 0; i < binding_.axis_count(); ++i) {
    const auto& axis =
        i < binding_.outer.size() ? binding_.outer[i] : binding_.reduced[i - binding_.outer.size()];
    if (axis.number == number) return cat("(long long)(", places_[i], ")");
  }
  return "0LL";
}

const Instruction* KernelText::operation_at(ValueId value, ScalarOpcode opcode) const {
  const Instruction& instruction = body_[value];
  const bool is_it = instruction.kind == InstructionKind::operation && instruction.opcode == opcode;
  return is_it && wide_dtype(instruction.dtype) == Dtype::f32 ? &instruction : nullptr;
}

bool KernelText::is_number(ValueId value, float number) const {
  return body_[value].kind == InstructionKind::constant &&
         static_cast<float>(std::bit_cast<double>(body_[value].bits)) == number;
}

/// 0.5 * x * (1 + erf(x * sqrt(1/2))): computed as it stands, nothing is left of a large negative x. Empty if
/// it is something else.
std::string KernelText::gelu(const Instruction& instruction) const {
  if (instruction.opcode != ScalarOpcode::mul || wide_dtype(instruction.dtype) != Dtype::f32) return {};
  const Instruction* half = operation_at(instruction.operands[0], ScalarOpcode::mul);
  const Instruction* sum = operation_at(instruction.operands[1], ScalarOpcode::add);
  if (half == nullptr || sum == nullptr || !is_number(half->operands[0], 0.5f) ||
      !is_number(sum->operands[0], 1.0f))
    return {};
  const Instruction* erf = operation_at(sum->operands[1], ScalarOpcode::erf);
  const Instruction* scaled = erf == nullptr ? nullptr : operation_at(erf->operands[0], ScalarOpcode::mul);
  const ValueId x = half->operands[1];
  if (scaled == nullptr || scaled->operands[0] != x || !is_number(scaled->operands[1], 0.707106781186547524f))
    return {};
  return cat(values_[x], " * normcdff(", values_[x], ")");
}

/// Whether an element is divided by what is the same for all of a row: it is multiplied by the reciprocal,
/// unless that is too large or too small. Not where a rounding could make a value jump.
bool KernelText::is_by_reciprocal(const Instruction& instruction) const {
  return instruction.kind == InstructionKind::operation && instruction.opcode == ScalarOpcode::div &&
         wide_dtype(instruction.dtype) == Dtype::f32 && !has_jumps_ &&
         passes_.levels[instruction.operands[0]] == Level::element &&
         passes_.levels[instruction.operands[1]] != Level::element;
}

void KernelText::write_reciprocals(std::span<const ValueId> elements) {
  for (const ValueId value : elements) {
    if (!is_by_reciprocal(body_[value])) continue;
    const ValueId divisor = body_[value].operands[1];
    if (has_reciprocal_[divisor]) continue;
    has_reciprocal_[divisor] = true;
    line("const float q", divisor, " = 1.0f / ", values_[divisor], ";");
    line("const bool g", divisor, " = fabsf(", values_[divisor], ") > 7.888609e-31f && fabsf(",
         values_[divisor], ") < 1.2676506e30f;");
  }
}

Result<std::string> KernelText::operation(const Instruction& instruction) {
  if (std::string text = gelu(instruction); !text.empty()) return text;
  if (is_by_reciprocal(instruction) && has_reciprocal_[instruction.operands[1]]) {
    const std::string &x = values_[instruction.operands[0]], &y = values_[instruction.operands[1]];
    const ValueId divisor = instruction.operands[1];
    return cat("(g", divisor, " ? ", x, " * q", divisor, " : ", x, " / ", y, ")");
  }
  std::vector<std::string> operands;
  for (std::size_t k = 0; k < operand_count(instruction); ++k)
    operands.push_back(values_[instruction.operands[k]]);
  const Dtype from = body_[instruction.operands[0]].dtype;
  if (instruction.opcode == ScalarOpcode::cast) return scalar_.cast(operands[0], from, instruction.dtype);
  if (instruction.opcode == ScalarOpcode::bitcast)
    return scalar_.bitcast(operands[0], from, instruction.dtype);
  const std::size_t typed = instruction.opcode == ScalarOpcode::select ? 1 : 0;
  return scalar_.operation(instruction.opcode, wide(instruction.operands[typed]), operands);
}

std::string KernelText::narrowed(const Store& store) {
  return scalar_.narrowed(kernel_.operands[store.operand].dtype, values_[store.value]);
}

Result<std::string> KernelText::joined(ScalarOpcode opcode, Dtype dtype, const std::string& a,
                                       const std::string& b) {
  const std::string operands[] = {a, b};
  const bool is_extreme = opcode == ScalarOpcode::min || opcode == ScalarOpcode::max;
  if (is_extreme && dtype == Dtype::f32) return scalar_.extreme(opcode, a, b);
  return scalar_.operation(opcode, dtype, operands);
}

Launch KernelText::launch(std::string entry, Extent3 grid, Extent3 block, unsigned most_threads) const {
  Launch out = draft_.launch(std::move(entry), text_, has_small_indices_, most_threads);
  out.grid = grid;
  out.block = block;
  return out;
}

Launch SourceDraft::launch(std::string entry, std::string_view text, bool has_small_indices,
                           unsigned most_threads) const {
  Source source;
  source.text =
      cat("typedef ", has_small_indices ? "int" : "long long", " index;", kernel_prelude, begin_text(),
          scalar.functions(), "extern \"C\" __global__ void __launch_bounds__(", most_threads, ") ", entry,
          "(", parameters, ") {\n", starts_next ? "" : "start_next();\n", "begin_kernel();\n", text, "}\n");
  source.entry = std::move(entry);
  source.waits = true;
  return {.source = std::make_shared<const Source>(std::move(source)), .arguments = arguments};
}

#include "tessera/runtime/cpu/kernel_code.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/kernel/gelu.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

constexpr std::size_t stored_line_bytes = 64;

}  // namespace

KernelCode::KernelCode(const Kernel& kernel, const Passes& passes, const CodeShape& shape)
    : kernel_(kernel),
      passes_(passes),
      shape_(shape),
      code_(shape.width, shape.is_precise),
      values_(kernel.body.size()),
      has_jumps_(has_jumps(kernel)),
      repeated_(kernel.body.size()),
      reciprocals_(kernel.body.size()) {
  code_.set_width(1);
}

std::string KernelCode::function_text() const {
  return cat(code_.declarations(), "define void @", row_function_name,
             "(ptr noalias nocapture readonly %frame) nounwind \"prefer-vector-width\"=\"512\" "
             "\"min-legal-vector-width\"=\"512\" {\n",
             code_.text(), "}\n", shape_.streams ? "!0 = !{i32 1}\n" : "");
}

// ---- the frame

std::string KernelCode::field(std::size_t number) {
  return code_.value(cat("getelementptr inbounds i64, ptr %frame, i64 ", number));
}
std::string KernelCode::loaded(std::string_view type, const std::string& pointer) {
  return code_.value(cat("load ", type, ", ptr ", pointer));
}
std::string KernelCode::entry(const std::string& table, std::string_view type, std::size_t number) {
  return loaded(type, code_.value(cat("getelementptr inbounds i64, ptr ", table, ", i64 ", number)));
}

void KernelCode::load_frame() {
  const std::string data = loaded("ptr", field(0)), strides = loaded("ptr", field(1));
  scalars_ = loaded("ptr", field(2));
  const std::string kept = loaded("ptr", field(3));
  places_ = loaded("ptr", field(4));
  count_ = loaded("i64", field(5));
  failed_ = loaded("ptr", field(6));
  std::string row_strides;
  if (shape_.row_axis.has_value()) {
    row_count_ = loaded("i64", field(7));
    row_strides = loaded("ptr", field(8));
  }
  for (std::size_t i = 0; i < kernel_.operands.size(); ++i) {
    data_.push_back(entry(data, "ptr", i));
    strides_.push_back(shape_.operands[i] == LanePattern::strided ? entry(strides, "i64", i) : "");
    row_strides_.push_back(row_strides.empty() ? "" : entry(row_strides, "i64", i));
  }
  for (std::size_t i = 0; i < passes_.kept.size(); ++i) kept_.push_back(entry(kept, "ptr", i));
}

// ---- values

Result<void> KernelCode::write(ValueId value, const Point& point) {
  values_[value] = TESSERA_TRY(text_of(value, point));
  report_failure();
  return {};
}

/// Tells the caller of lanes that the code has no result for.
void KernelCode::report_failure() {
  if (code_.failed().empty()) return;
  const std::string truths = code_.vector_of("i1");
  const std::string any =
      code_.call("i1", cat("llvm.vector.reduce.or.", code_.suffix("i1")), {truths}, {code_.failed()});
  const std::string before = loaded("i8", failed_), more = code_.value(cat("zext i1 ", any, " to i8"));
  code_.line(cat("store i8 ", code_.value(cat("or i8 ", before, ", ", more)), ", ptr ", failed_));
  code_.forget_failure();
}

Result<std::string> KernelCode::text_of(ValueId value, const Point& point) {
  const Instruction& instruction = kernel_.body[value];
  switch (instruction.kind) {
    case InstructionKind::constant:
      return code_.number(wide(value), instruction.bits);
    case InstructionKind::parameter:
    case InstructionKind::extent:
      return scalar(value);
    case InstructionKind::load:
      return load(instruction.index, is_vector(value) ? point : Point());
    case InstructionKind::place:
      return place(instruction.index, is_vector(value) ? point : Point());
    case InstructionKind::reduction:
      return values_[value];
    case InstructionKind::operation:
      return operation(instruction);
  }
  return Error(ErrorCode::internal, "an unknown kind of instruction");
}

std::string KernelCode::scalar(ValueId value) {
  const std::string_view type = register_type(wide(value));
  if (wide(value) != Dtype::boolean) return code_.splat(type, entry(scalars_, type, value));
  const std::string byte = entry(scalars_, "i8", value);
  return code_.splat("i1", code_.value(cat("icmp ne i8 ", byte, ", 0")));
}

std::string KernelCode::place(std::uint32_t axis, const Point& point) {
  const std::string first = code_.splat("i64", entry(places_, "i64", axis));
  if (axis == shape_.row_axis && !point.row.empty())
    return code_.value(cat("add ", code_.vector_of("i64"), " ", first, ", ", code_.splat("i64", point.row)));
  if (axis != shape_.lane_axis || point.index.empty()) return first;  // the same for all lanes
  const std::string vector = code_.vector_of("i64");
  const std::string along =
      code_.value(cat("add ", vector, " ", code_.splat("i64", point.index), ", ", code_.iota()));
  return code_.value(cat("add ", vector, " ", first, ", ", along));
}

/// The value as the code that is being written wants it: of one number, or of a whole vector.
std::string KernelCode::use(ValueId value) {
  if (kernel_.body[value].kind == InstructionKind::constant)
    return code_.number(wide(value), kernel_.body[value].bits);
  if (code_.width() == 1 || is_vector(value)) return values_[value];
  return repeated_[value];
}

/// Whether an element is divided by what is the same for all of a row: it is multiplied by the reciprocal.
bool KernelCode::is_by_reciprocal(const Instruction& instruction) const {
  return instruction.kind == InstructionKind::operation && instruction.opcode == ScalarOpcode::div &&
         wide_dtype(instruction.dtype) == Dtype::f32 && !shape_.is_precise && shape_.can_repeat &&
         !has_jumps_ && is_vector(instruction.operands[0]) && !is_vector(instruction.operands[1]);
}

/// 1 / value, for all lanes. Divisors near the ends of the range have none that is good enough.
void KernelCode::write_reciprocal(ValueId value) {
  if (!reciprocals_[value].empty()) return;
  const std::string floats = code_.vector_of("float"), divisor = use(value);
  const auto power = [&](double number) {
    return code_.number(Dtype::f32, std::bit_cast<std::uint64_t>(number));
  };
  const std::string size = code_.call(floats, cat("llvm.fabs.", code_.suffix("float")), {floats}, {divisor});
  const std::string small = code_.value(cat("fcmp ult ", floats, " ", size, ", ", power(0x1p-100)));
  const std::string large = code_.value(cat("fcmp ugt ", floats, " ", size, ", ", power(0x1p100)));
  code_.note_failure(small);
  code_.note_failure(large);
  report_failure();
  const std::string one = code_.value(cat("fdiv ", floats, " ", power(1.0), ", ", divisor));
  reciprocals_[value] = in_all_lanes("float", one);
}

std::string KernelCode::in_all_lanes(std::string_view type, const std::string& one) {
  code_.set_width(shape_.width);
  std::string out = code_.repeated(type, one);
  code_.set_width(1);
  return out;
}

void KernelCode::repeat(ValueId value) {
  if (is_vector(value) || kernel_.body[value].kind == InstructionKind::constant) return;
  if (repeated_[value].empty()) repeated_[value] = in_all_lanes(register_type(wide(value)), values_[value]);
}

void KernelCode::repeat_operands_of(ValueId value) {
  const Instruction& instruction = kernel_.body[value];
  const bool by_reciprocal = is_by_reciprocal(instruction);
  if (by_reciprocal) write_reciprocal(instruction.operands[1]);
  for (std::size_t k = 0; k < operand_count(instruction) - (by_reciprocal ? 1 : 0); ++k)
    repeat(instruction.operands[k]);
}

Result<std::string> KernelCode::operation(const Instruction& instruction) {
  if (const auto x = kernel::gelu_operand(kernel_, instruction)) return code_.gelu(use(*x));
  if (is_by_reciprocal(instruction) && code_.width() > 1)
    return code_.value(cat("fmul ", code_.vector_of("float"), " ", use(instruction.operands[0]), ", ",
                           reciprocals_[instruction.operands[1]]));
  const bool is_angle = instruction.opcode == ScalarOpcode::sin || instruction.opcode == ScalarOpcode::cos;
  if (is_angle && !shape_.can_repeat)
    return Error(ErrorCode::unsupported, "sine and cosine may have to be computed again");
  std::vector<std::string> operands;
  for (std::size_t k = 0; k < operand_count(instruction); ++k)
    operands.push_back(use(instruction.operands[k]));
  const Dtype from = kernel_.body[instruction.operands[0]].dtype;
  if (instruction.opcode == ScalarOpcode::cast) return code_.cast(operands[0], from, instruction.dtype);
  if (instruction.opcode == ScalarOpcode::bitcast) return code_.bitcast(operands[0], from, instruction.dtype);
  const std::size_t typed = instruction.opcode == ScalarOpcode::select ? 1 : 0;
  bool literal = false;
  if (operands.size() == 2) {
    const Instruction& second = kernel_.body[instruction.operands[1]];
    const double number = std::bit_cast<double>(second.bits);
    literal = second.kind == InstructionKind::constant && number == number;
  }
  return code_.operation(instruction.opcode, wide(instruction.operands[typed]), operands, literal);
}

// ---- memory

std::string KernelCode::lane_offsets(std::size_t operand, const Point& point) {
  const std::string vector = code_.vector_of("i64");
  const std::string index =
      code_.value(cat("add ", vector, " ", code_.splat("i64", point.index), ", ", code_.iota()));
  return code_.value(cat("mul ", vector, " ", index, ", ", code_.splat("i64", strides_[operand])));
}

/// Where the lanes of a point's row begin.
std::string KernelCode::base_of(std::size_t operand, const Point& point) {
  if (point.row.empty()) return data_[operand];
  const std::string offset = code_.value(cat("mul i64 ", point.row, ", ", row_strides_[operand]));
  return code_.value(cat("getelementptr i8, ptr ", data_[operand], ", i64 ", offset));
}

std::string KernelCode::load(std::uint32_t operand, const Point& point) {
  const Dtype dtype = kernel_.operands[operand].dtype;
  const std::string_view type = memory_type(dtype);
  const std::string base = base_of(operand, point);
  if (point.index.empty() || shape_.operands[operand] == LanePattern::repeated)
    return code_.widened(code_.splat(type, loaded(type, base)), dtype);
  const std::string vector = code_.vector_of(type), truths = code_.vector_of("i1");
  const std::string alignment = cat(ir::size_of(dtype));
  if (shape_.operands[operand] == LanePattern::strided) {
    const std::string pointers = code_.value(
        cat("getelementptr i8, ptr ", base, ", ", code_.vector_of("i64"), " ", lane_offsets(operand, point)));
    const std::string name = cat("llvm.masked.gather.", code_.suffix(type), ".v", shape_.width, "p0");
    return code_.widened(
        code_.call(vector, name, {code_.vector_of("ptr"), "i32", truths, vector},
                   {pointers, alignment, point.mask.empty() ? all_lanes() : point.mask, "zeroinitializer"}),
        dtype);
  }
  return code_.widened(load_at(base, type, ir::size_of(dtype), point), dtype);
}

std::string KernelCode::pointer_at(const std::string& base, std::string_view type, const Point& point) {
  return code_.value(cat("getelementptr ", type, ", ptr ", base, ", i64 ", point.index));
}

std::string KernelCode::load_at(const std::string& base, std::string_view type, std::size_t alignment,
                                const Point& point) {
  const std::string vector = code_.vector_of(type), at = pointer_at(base, type, point);
  if (point.mask.empty()) return code_.value(cat("load ", vector, ", ptr ", at, ", align ", alignment));
  return code_.call(vector, cat("llvm.masked.load.", code_.suffix(type), ".p0"),
                    {"ptr", "i32", code_.vector_of("i1"), vector},
                    {at, cat(alignment), point.mask, "zeroinitializer"});
}

void KernelCode::store_at(const std::string& value, const std::string& base, std::string_view type,
                          std::size_t alignment, const Point& point) {
  const std::string vector = code_.vector_of(type), at = pointer_at(base, type, point);
  if (point.mask.empty()) {
    code_.line(cat("store ", vector, " ", value, ", ptr ", at, ", align ", alignment));
    return;
  }
  code_.call_void(cat("llvm.masked.store.", code_.suffix(type), ".p0"),
                  {vector, "ptr", "i32", code_.vector_of("i1")}, {value, at, cat(alignment), point.mask});
}

void KernelCode::store(const Store& store, const Point& point) {
  const Dtype dtype = kernel_.operands[store.operand].dtype;
  const std::string_view type = memory_type(dtype);
  const std::string base = base_of(store.operand, point);
  const std::string value = code_.narrowed(use(store.value), dtype);
  if (shape_.streams && point.mask.empty()) {
    const std::size_t alignment = std::min(stored_line_bytes, code_.width() * ir::size_of(dtype));
    code_.line(cat("store ", code_.vector_of(type), " ", value, ", ptr ", pointer_at(base, type, point),
                   ", align ", alignment, ", !nontemporal !0"));
    return;
  }
  if (shape_.operands[store.operand] != LanePattern::strided) {
    store_at(value, base, type, ir::size_of(dtype), point);
    return;
  }
  const std::string pointers = code_.value(cat("getelementptr i8, ptr ", base, ", ", code_.vector_of("i64"),
                                               " ", lane_offsets(store.operand, point)));
  code_.call_void(cat("llvm.masked.scatter.", code_.suffix(type), ".v", shape_.width, "p0"),
                  {code_.vector_of(type), code_.vector_of("ptr"), "i32", code_.vector_of("i1")},
                  {value, pointers, cat(ir::size_of(dtype)), point.mask.empty() ? all_lanes() : point.mask});
}

void KernelCode::phi(const std::string& name, std::string_view type, const std::string& a,
                     const std::string& from_a, const std::string& b, const std::string& from_b) {
  code_.line(cat(name, " = phi ", type, " [ ", a, ", %", from_a, " ], [ ", b, ", %", from_b, " ]"));
}

std::string KernelCode::mask(const std::string& index, const std::string& end) {
  const std::string vector = code_.vector_of("i64");
  const std::string at = code_.value(cat("add ", vector, " ", code_.splat("i64", index), ", ", code_.iota()));
  return code_.value(cat("icmp ult ", vector, " ", at, ", ", code_.splat("i64", end)));
}

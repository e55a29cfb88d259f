#include "tessera/runtime/cpu/codegen.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/vector_code.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

/// Whether some value jumps where another moves by a rounding: then a quotient is rounded as it should be.
bool has_jumps(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instruction& instruction) {
    switch (instruction.opcode) {
      case ScalarOpcode::floor:
      case ScalarOpcode::ceil:
      case ScalarOpcode::round:
      case ScalarOpcode::trunc:
      case ScalarOpcode::fmod:
        return instruction.kind == InstructionKind::operation;
      case ScalarOpcode::cast:
        return instruction.kind == InstructionKind::operation && ir::is_integer(instruction.dtype);
      default:
        return false;
    }
  });
}

/// So many elements of a sum are added in f32 before they go to the f64 total.
constexpr std::int64_t sum_block = 4096;

/// What leaves every other value as it is, as bits of a constant.
std::uint64_t neutral_bits(ScalarOpcode opcode, Dtype wide) {
  const bool is_float = ir::is_float(wide);
  const auto from = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const bool is_unsigned = wide == Dtype::u64 || wide == Dtype::boolean;
  switch (opcode) {
    case ScalarOpcode::mul:
      return is_float ? from(1.0) : 1;
    case ScalarOpcode::min:
      if (is_float) return from(std::numeric_limits<double>::infinity());
      return is_unsigned ? ~std::uint64_t{0} : std::uint64_t{0x7fffffffffffffff};
    case ScalarOpcode::max:
      if (is_float) return from(-std::numeric_limits<double>::infinity());
      return is_unsigned ? 0 : std::uint64_t{1} << 63;
    case ScalarOpcode::bit_and:
      return ~std::uint64_t{0};
    default:
      return is_float ? from(0.0) : 0;
  }
}

class Generator {
 public:
  Generator(const Kernel& kernel, const Passes& passes, const CodeShape& shape)
      : kernel_(kernel),
        passes_(passes),
        shape_(shape),
        code_(shape.width, shape.is_precise),
        values_(kernel.body.size()),
        repeated_(kernel.body.size()),
        reciprocals_(kernel.body.size()) {
    code_.set_width(1);
  }

  Result<std::string> generate() {
    code_.label("entry");
    load_frame();
    for (ValueId value : passes_.uniforms) TESSERA_TRY(write(value, {}));
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(p));
    for (ValueId value : passes_.last_rows) TESSERA_TRY(write(value, {}));
    for (std::uint32_t store : passes_.row_stores) store_row(kernel_.stores[store]);
    code_.line("ret void");
    return cat(code_.declarations(), "define void @", row_function_name,
               "(ptr noalias nocapture readonly %frame) nounwind \"prefer-vector-width\"=\"512\" "
               "\"min-legal-vector-width\"=\"512\" {\n",
               code_.text(), "}\n");
  }

 private:
  /// Where in the loop an element is computed.
  struct Point {
    std::string index = {};  ///< of the first lane of the vector, i64
    std::string mask = {};   ///< of the lanes that count; empty: all
  };
  /// The names of a reduction in the loops of a pass.
  struct Sum {
    ValueId value = 0;
    Dtype lane = Dtype::f32;   ///< what a lane accumulates in
    Dtype total = Dtype::f32;  ///< what the blocks are joined in
    std::string neutral;       ///< of a lane
  };

  // ---- the frame

  std::string field(std::size_t number) {
    return code_.value(cat("getelementptr inbounds i64, ptr %frame, i64 ", number));
  }
  std::string loaded(std::string_view type, const std::string& pointer) {
    return code_.value(cat("load ", type, ", ptr ", pointer));
  }
  std::string entry(const std::string& table, std::string_view type, std::size_t number) {
    return loaded(type, code_.value(cat("getelementptr inbounds i64, ptr ", table, ", i64 ", number)));
  }

  void load_frame() {
    const std::string data = loaded("ptr", field(0)), strides = loaded("ptr", field(1));
    scalars_ = loaded("ptr", field(2));
    const std::string kept = loaded("ptr", field(3));
    places_ = loaded("ptr", field(4));
    count_ = loaded("i64", field(5));
    failed_ = loaded("ptr", field(6));
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i) {
      data_.push_back(entry(data, "ptr", i));
      strides_.push_back(shape_.operands[i] == LanePattern::strided ? entry(strides, "i64", i) : "");
    }
    for (std::size_t i = 0; i < passes_.kept.size(); ++i) kept_.push_back(entry(kept, "ptr", i));
  }

  // ---- values

  [[nodiscard]] Dtype wide(ValueId value) const { return wide_dtype(kernel_.body[value].dtype); }
  [[nodiscard]] bool is_at_points(ValueId value) const { return passes_.levels[value] == Level::element; }

  Result<void> write(ValueId value, const Point& point) {
    values_[value] = TESSERA_TRY(text_of(value, point));
    report_failure();
    return {};
  }

  /// Tells the caller of lanes that the code has no result for.
  void report_failure() {
    if (code_.failed().empty()) return;
    const std::string truths = code_.vector_of("i1");
    const std::string any =
        code_.call("i1", cat("llvm.vector.reduce.or.", code_.suffix("i1")), {truths}, {code_.failed()});
    const std::string before = loaded("i8", failed_), more = code_.value(cat("zext i1 ", any, " to i8"));
    code_.line(cat("store i8 ", code_.value(cat("or i8 ", before, ", ", more)), ", ptr ", failed_));
    code_.forget_failure();
  }

  Result<std::string> text_of(ValueId value, const Point& point) {
    const Instruction& instruction = kernel_.body[value];
    switch (instruction.kind) {
      case InstructionKind::constant:
        return code_.number(wide(value), instruction.bits);
      case InstructionKind::parameter:
      case InstructionKind::extent:
        return scalar(value);
      case InstructionKind::load:
        return load(instruction.index, is_at_points(value) ? point : Point());
      case InstructionKind::place:
        return place(instruction.index, is_at_points(value) ? point : Point());
      case InstructionKind::reduction:
        return values_[value];
      case InstructionKind::operation:
        return operation(instruction);
    }
    return Error(ErrorCode::internal, "an unknown kind of instruction");
  }

  std::string scalar(ValueId value) {
    const std::string_view type = register_type(wide(value));
    if (wide(value) != Dtype::boolean) return code_.splat(type, entry(scalars_, type, value));
    const std::string byte = entry(scalars_, "i8", value);
    return code_.splat("i1", code_.value(cat("icmp ne i8 ", byte, ", 0")));
  }

  std::string place(std::uint32_t axis, const Point& point) {
    const std::string first = code_.splat("i64", entry(places_, "i64", axis));
    if (axis != shape_.lane_axis || point.index.empty()) return first;  // the same for all lanes
    const std::string vector = code_.vector_of("i64");
    const std::string along =
        code_.value(cat("add ", vector, " ", code_.splat("i64", point.index), ", ", code_.iota()));
    return code_.value(cat("add ", vector, " ", first, ", ", along));
  }

  /// The value as the code that is being written wants it: of one number, or of a whole vector.
  std::string use(ValueId value) {
    if (kernel_.body[value].kind == InstructionKind::constant)
      return code_.number(wide(value), kernel_.body[value].bits);
    if (code_.width() == 1 || is_at_points(value)) return values_[value];
    return repeated_[value];
  }

  /// Whether an element is divided by what is the same for all of a row: it is multiplied by the reciprocal.
  [[nodiscard]] bool is_by_reciprocal(const Instruction& instruction) const {
    return instruction.kind == InstructionKind::operation && instruction.opcode == ScalarOpcode::div &&
           wide_dtype(instruction.dtype) == Dtype::f32 && !shape_.is_precise && shape_.can_repeat &&
           !has_jumps_ && is_at_points(instruction.operands[0]) && !is_at_points(instruction.operands[1]);
  }

  /// 1 / value, for all lanes. Divisors near the ends of the range have none that is good enough.
  void write_reciprocal(ValueId value) {
    if (!reciprocals_[value].empty()) return;
    const std::string floats = code_.vector_of("float"), divisor = use(value);
    const auto power = [&](double number) {
      return code_.number(Dtype::f32, std::bit_cast<std::uint64_t>(number));
    };
    const std::string size =
        code_.call(floats, cat("llvm.fabs.", code_.suffix("float")), {floats}, {divisor});
    const std::string small = code_.value(cat("fcmp ult ", floats, " ", size, ", ", power(0x1p-100)));
    const std::string large = code_.value(cat("fcmp ugt ", floats, " ", size, ", ", power(0x1p100)));
    code_.note_failure(small);
    code_.note_failure(large);
    report_failure();
    const std::string one = code_.value(cat("fdiv ", floats, " ", power(1.0), ", ", divisor));
    reciprocals_[value] = in_all_lanes("float", one);
  }

  std::string in_all_lanes(std::string_view type, const std::string& one) {
    code_.set_width(shape_.width);
    std::string out = code_.repeated(type, one);
    code_.set_width(1);
    return out;
  }

  /// What the elements of a pass need of values that are the same for all of them, ahead of its loops.
  void repeat_operands(const Pass& pass) {
    const auto want = [&](ValueId value) {
      if (is_at_points(value) || kernel_.body[value].kind == InstructionKind::constant) return;
      if (repeated_[value].empty())
        repeated_[value] = in_all_lanes(register_type(wide(value)), values_[value]);
    };
    for (ValueId value : pass.elements) {
      const Instruction& instruction = kernel_.body[value];
      const bool by_reciprocal = is_by_reciprocal(instruction);
      if (by_reciprocal) write_reciprocal(instruction.operands[1]);
      for (std::size_t k = 0; k < operand_count(instruction) - (by_reciprocal ? 1 : 0); ++k)
        want(instruction.operands[k]);
    }
    for (ValueId value : pass.reductions) want(kernel_.body[value].operands[0]);
    for (std::uint32_t store : pass.stores) want(kernel_.stores[store].value);
  }

  [[nodiscard]] const Instruction* operation_at(ValueId value, ScalarOpcode opcode) const {
    const Instruction& instruction = kernel_.body[value];
    const bool is_it = instruction.kind == InstructionKind::operation && instruction.opcode == opcode;
    return is_it && wide_dtype(instruction.dtype) == Dtype::f32 ? &instruction : nullptr;
  }
  [[nodiscard]] bool is_number(ValueId value, float number) const {
    const Instruction& instruction = kernel_.body[value];
    return instruction.kind == InstructionKind::constant &&
           static_cast<float>(std::bit_cast<double>(instruction.bits)) == number;
  }

  /// The x of 0.5 * x * (1 + erf(x * sqrt(1/2))). Computed as it stands, nothing is left of a large negative
  /// x: 1 + erf is a difference of nearly equal numbers.
  [[nodiscard]] std::optional<ValueId> gelu_operand(const Instruction& instruction) const {
    if (instruction.opcode != ScalarOpcode::mul || wide_dtype(instruction.dtype) != Dtype::f32)
      return std::nullopt;
    const Instruction* half = operation_at(instruction.operands[0], ScalarOpcode::mul);
    const Instruction* sum = operation_at(instruction.operands[1], ScalarOpcode::add);
    if (half == nullptr || sum == nullptr || !is_number(half->operands[0], 0.5f) ||
        !is_number(sum->operands[0], 1.0f))
      return std::nullopt;
    const Instruction* erf = operation_at(sum->operands[1], ScalarOpcode::erf);
    const Instruction* scaled = erf == nullptr ? nullptr : operation_at(erf->operands[0], ScalarOpcode::mul);
    const ValueId x = half->operands[1];
    const bool matches = scaled != nullptr && scaled->operands[0] == x &&
                         is_number(scaled->operands[1], 0.707106781186547524f);
    return matches ? std::optional(x) : std::nullopt;
  }

  Result<std::string> operation(const Instruction& instruction) {
    if (const auto x = gelu_operand(instruction)) return code_.gelu(use(*x));
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
    if (instruction.opcode == ScalarOpcode::bitcast)
      return code_.bitcast(operands[0], from, instruction.dtype);
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

  [[nodiscard]] std::string all_lanes() const { return code_.constant("i1", "true"); }

  std::string lane_offsets(std::size_t operand, const Point& point) {
    const std::string vector = code_.vector_of("i64");
    const std::string index =
        code_.value(cat("add ", vector, " ", code_.splat("i64", point.index), ", ", code_.iota()));
    return code_.value(cat("mul ", vector, " ", index, ", ", code_.splat("i64", strides_[operand])));
  }

  std::string load(std::uint32_t operand, const Point& point) {
    const Dtype dtype = kernel_.operands[operand].dtype;
    const std::string_view type = memory_type(dtype);
    if (point.index.empty() || shape_.operands[operand] == LanePattern::repeated)
      return code_.widened(code_.splat(type, loaded(type, data_[operand])), dtype);
    const std::string vector = code_.vector_of(type), truths = code_.vector_of("i1");
    const std::string alignment = cat(ir::size_of(dtype));
    if (shape_.operands[operand] == LanePattern::strided) {
      const std::string pointers =
          code_.value(cat("getelementptr i8, ptr ", data_[operand], ", ", code_.vector_of("i64"), " ",
                          lane_offsets(operand, point)));
      const std::string name = cat("llvm.masked.gather.", code_.suffix(type), ".v", shape_.width, "p0");
      return code_.widened(
          code_.call(vector, name, {code_.vector_of("ptr"), "i32", truths, vector},
                     {pointers, alignment, point.mask.empty() ? all_lanes() : point.mask, "zeroinitializer"}),
          dtype);
    }
    return code_.widened(load_at(data_[operand], type, ir::size_of(dtype), point), dtype);
  }

  std::string pointer_at(const std::string& base, std::string_view type, const Point& point) {
    return code_.value(cat("getelementptr ", type, ", ptr ", base, ", i64 ", point.index));
  }

  std::string load_at(const std::string& base, std::string_view type, std::size_t alignment,
                      const Point& point) {
    const std::string vector = code_.vector_of(type), at = pointer_at(base, type, point);
    if (point.mask.empty()) return code_.value(cat("load ", vector, ", ptr ", at, ", align ", alignment));
    return code_.call(vector, cat("llvm.masked.load.", code_.suffix(type), ".p0"),
                      {"ptr", "i32", code_.vector_of("i1"), vector},
                      {at, cat(alignment), point.mask, "zeroinitializer"});
  }

  void store_at(const std::string& value, const std::string& base, std::string_view type,
                std::size_t alignment, const Point& point) {
    const std::string vector = code_.vector_of(type), at = pointer_at(base, type, point);
    if (point.mask.empty()) {
      code_.line(cat("store ", vector, " ", value, ", ptr ", at, ", align ", alignment));
      return;
    }
    code_.call_void(cat("llvm.masked.store.", code_.suffix(type), ".p0"),
                    {vector, "ptr", "i32", code_.vector_of("i1")}, {value, at, cat(alignment), point.mask});
  }

  void store(const Store& store, const Point& point) {
    const Dtype dtype = kernel_.operands[store.operand].dtype;
    const std::string_view type = memory_type(dtype);
    const std::string value = code_.narrowed(use(store.value), dtype);
    if (shape_.operands[store.operand] != LanePattern::strided) {
      store_at(value, data_[store.operand], type, ir::size_of(dtype), point);
      return;
    }
    const std::string pointers =
        code_.value(cat("getelementptr i8, ptr ", data_[store.operand], ", ", code_.vector_of("i64"), " ",
                        lane_offsets(store.operand, point)));
    code_.call_void(
        cat("llvm.masked.scatter.", code_.suffix(type), ".v", shape_.width, "p0"),
        {code_.vector_of(type), code_.vector_of("ptr"), "i32", code_.vector_of("i1")},
        {value, pointers, cat(ir::size_of(dtype)), point.mask.empty() ? all_lanes() : point.mask});
  }

  void store_row(const Store& store) {
    const Dtype dtype = kernel_.operands[store.operand].dtype;
    const std::string_view type = memory_type(dtype);
    const std::string vector = code_.narrowed(use(store.value), dtype);
    const std::string one =
        code_.value(cat("extractelement ", code_.vector_of(type), " ", vector, ", i64 0"));
    code_.line(cat("store ", type, " ", one, ", ptr ", data_[store.operand], ", align ", ir::size_of(dtype)));
  }

  [[nodiscard]] std::optional<std::size_t> kept_number(ValueId value) const {
    const auto at = std::lower_bound(passes_.kept.begin(), passes_.kept.end(), value);
    if (at == passes_.kept.end() || *at != value) return std::nullopt;
    return static_cast<std::size_t>(at - passes_.kept.begin());
  }

  // ---- passes

  /// Element values that a pass reads from an earlier one.
  [[nodiscard]] std::vector<ValueId> kept_inputs(const Pass& pass) const {
    std::vector<ValueId> out;
    const auto want = [&](ValueId value) {
      if (is_at_points(value) && kept_number(value) &&
          !std::binary_search(pass.elements.begin(), pass.elements.end(), value) &&
          std::find(out.begin(), out.end(), value) == out.end())
        out.push_back(value);
    };
    for (ValueId value : pass.elements)
      for (std::size_t k = 0; k < operand_count(kernel_.body[value]); ++k)
        want(kernel_.body[value].operands[k]);
    for (ValueId value : pass.reductions) want(kernel_.body[value].operands[0]);
    for (std::uint32_t store : pass.stores) want(kernel_.stores[store].value);
    return out;
  }

  /// Everything that a pass does at one vector of lanes, but the sums.
  Result<void> write_elements(const Pass& pass, const Point& point) {
    for (ValueId value : kept_inputs(pass)) {
      const Dtype dtype = wide(value);
      values_[value] = code_.widened(
          load_at(kept_[*kept_number(value)], memory_type(dtype), ir::size_of(dtype), point), dtype);
    }
    for (ValueId value : pass.elements) {
      if (is_hoisted(value)) continue;
      TESSERA_TRY(write(value, point));
      if (const auto number = kept_number(value)) {
        const Dtype dtype = wide(value);
        store_at(code_.narrowed(values_[value], dtype), kept_[*number], memory_type(dtype),
                 ir::size_of(dtype), point);
      }
    }
    for (std::uint32_t number : pass.stores) store(kernel_.stores[number], point);
    return {};
  }

  /// Loads that are the same for all lanes stand before the loop.
  [[nodiscard]] bool is_hoisted(ValueId value) const {
    const Instruction& instruction = kernel_.body[value];
    return instruction.kind == InstructionKind::load && !kept_number(value) &&
           shape_.operands[instruction.index] == LanePattern::repeated;
  }

  [[nodiscard]] unsigned unroll_of(const Pass& pass) const {
    std::size_t work = 0;
    for (ValueId value : pass.elements) work += is_costly(kernel_.body[value]) ? 30 : 1;
    if (work > 150) return 1;
    return work > 20 || pass.reductions.empty() ? 2 : 4;
  }

  std::vector<Sum> sums_of(const Pass& pass) const {
    std::vector<Sum> out;
    for (ValueId value : pass.reductions) {
      const Instruction& instruction = kernel_.body[value];
      const Dtype from = wide(instruction.operands[0]), total = wide(value);
      // Products leave the range of f32 long before the result does.
      const Dtype lane = instruction.opcode == ScalarOpcode::mul ? total : from;
      out.push_back({value, lane, total, code_.number(lane, neutral_bits(instruction.opcode, lane))});
    }
    return out;
  }

  Result<std::string> joined(const Sum& sum, Dtype dtype, const std::string& a, const std::string& b) {
    const std::string operands[] = {a, b};
    return code_.operation(kernel_.body[sum.value].opcode, dtype, operands);
  }

  /// The lane's next total.
  Result<void> accumulate(const Sum& sum, const std::string& before, const std::string& after,
                          const Point& point) {
    const ValueId of = kernel_.body[sum.value].operands[0];
    std::string value = use(of);
    if (wide(of) != sum.lane) value = TESSERA_TRY(code_.cast(value, wide(of), sum.lane));
    if (!point.mask.empty()) value = code_.select(register_type(sum.lane), point.mask, value, sum.neutral);
    const std::string next = TESSERA_TRY(joined(sum, sum.lane, before, value));
    const std::string vector = code_.vector_of(register_type(sum.lane));
    code_.line(cat(after, " = bitcast ", vector, " ", next, " to ", vector));  // the name the loop has for it
    return {};
  }

  void phi(const std::string& name, std::string_view type, const std::string& a, const std::string& from_a,
           const std::string& b, const std::string& from_b) {
    code_.line(cat(name, " = phi ", type, " [ ", a, ", %", from_a, " ], [ ", b, ", %", from_b, " ]"));
  }

  Result<void> write_pass(std::size_t p) {
    const Pass& pass = passes_.passes[p];
    for (ValueId value : pass.rows) TESSERA_TRY(write(value, {}));
    for (ValueId value : pass.elements)
      if (is_hoisted(value)) {
        TESSERA_TRY(write(value, {}));
        values_[value] = in_all_lanes(register_type(wide(value)), values_[value]);
      }
    if (pass.reductions.empty() && pass.stores.empty()) return {};
    repeat_operands(pass);
    code_.set_width(shape_.width);
    const std::string name = cat("p", p);
    const std::vector<Sum> sums = sums_of(pass);
    const unsigned unroll = unroll_of(pass);
    code_.line(cat("br label %", name, ".outer"));
    write_outer(name, sums, unroll);
    TESSERA_TRY(write_main(name, pass, sums, unroll));
    TESSERA_TRY(write_tail(name, pass, sums, unroll));
    TESSERA_TRY(write_flush(name, sums, unroll));
    block_ = cat(name, ".after");
    return {};
  }

  /// Blocks of lanes whose sums are short enough for f32.
  void write_outer(const std::string& p, const std::vector<Sum>& sums, unsigned unroll) {
    code_.label(cat(p, ".outer"));
    phi(cat("%", p, ".begin"), "i64", "0", block_, cat("%", p, ".end"), cat(p, ".flush"));
    for (const Sum& sum : sums) {
      const std::string neutral =
          code_.number(sum.total, neutral_bits(kernel_.body[sum.value].opcode, sum.total));
      phi(total(p, sum), code_.vector_of(register_type(sum.total)), neutral, block_, next_total(p, sum),
          cat(p, ".flush"));
    }
    const std::int64_t step = sums.empty() ? std::int64_t{1} << 62 : sum_block;
    code_.line(cat("%", p, ".left = sub i64 ", count_, ", %", p, ".begin"));
    code_.line(cat("%", p, ".less = icmp ult i64 %", p, ".left, ", step));
    code_.line(cat("%", p, ".size = select i1 %", p, ".less, i64 %", p, ".left, i64 ", step));
    code_.line(cat("%", p, ".end = add i64 %", p, ".begin, %", p, ".size"));
    code_.line(cat("%", p, ".whole = and i64 %", p, ".size, -", unroll * shape_.width));
    code_.line(cat("%", p, ".stop = add i64 %", p, ".begin, %", p, ".whole"));
    code_.line(cat("%", p, ".none = icmp eq i64 %", p, ".whole, 0"));
    code_.line(cat("br i1 %", p, ".none, label %", p, ".rest, label %", p, ".main"));
  }

  static std::string total(const std::string& p, const Sum& sum) { return cat("%", p, ".total", sum.value); }
  static std::string next_total(const std::string& p, const Sum& sum) {
    return cat("%", p, ".next", sum.value);
  }
  static std::string lane(const std::string& p, const Sum& sum, unsigned copy, std::string_view at) {
    return cat("%", p, ".", at, sum.value, ".", copy);
  }

  Result<void> write_main(const std::string& p, const Pass& pass, const std::vector<Sum>& sums,
                          unsigned unroll) {
    const std::string here = cat(p, ".main"), outer = cat(p, ".outer");
    code_.label(here);
    phi(cat("%", p, ".i"), "i64", cat("%", p, ".begin"), outer, cat("%", p, ".inext"), here);
    for (const Sum& sum : sums)
      for (unsigned u = 0; u < unroll; ++u)
        phi(lane(p, sum, u, "a"), code_.vector_of(register_type(sum.lane)), sum.neutral, outer,
            lane(p, sum, u, "b"), here);
    for (unsigned u = 0; u < unroll; ++u) {
      const Point point{code_.value(cat("add i64 %", p, ".i, ", u * shape_.width)), ""};
      TESSERA_TRY(write_elements(pass, point));
      for (const Sum& sum : sums)
        TESSERA_TRY(accumulate(sum, lane(p, sum, u, "a"), lane(p, sum, u, "b"), point));
    }
    code_.line(cat("%", p, ".inext = add i64 %", p, ".i, ", unroll * shape_.width));
    code_.line(cat("%", p, ".more = icmp ult i64 %", p, ".inext, %", p, ".stop"));
    code_.line(cat("br i1 %", p, ".more, label %", here, ", label %", p, ".rest"));
    return {};
  }

  /// The lanes that do not fill the vectors of the main loop, with a mask.
  Result<void> write_tail(const std::string& p, const Pass& pass, const std::vector<Sum>& sums,
                          unsigned unroll) {
    const std::string outer = cat(p, ".outer"), main = cat(p, ".main"), rest = cat(p, ".rest"),
                      here = cat(p, ".tail");
    code_.label(rest);
    phi(cat("%", p, ".j0"), "i64", cat("%", p, ".begin"), outer, cat("%", p, ".inext"), main);
    for (const Sum& sum : sums)
      for (unsigned u = 0; u < unroll; ++u)
        phi(lane(p, sum, u, "m"), code_.vector_of(register_type(sum.lane)), sum.neutral, outer,
            lane(p, sum, u, "b"), main);
    code_.line(cat("%", p, ".full = icmp eq i64 %", p, ".j0, %", p, ".end"));
    code_.line(cat("br i1 %", p, ".full, label %", p, ".flush, label %", here));
    code_.label(here);
    phi(cat("%", p, ".j"), "i64", cat("%", p, ".j0"), rest, cat("%", p, ".jnext"), here);
    for (const Sum& sum : sums)
      phi(lane(p, sum, 0, "t"), code_.vector_of(register_type(sum.lane)), lane(p, sum, 0, "m"), rest,
          lane(p, sum, 0, "u"), here);
    const Point point{cat("%", p, ".j"), mask(p)};
    TESSERA_TRY(write_elements(pass, point));
    for (const Sum& sum : sums)
      TESSERA_TRY(accumulate(sum, lane(p, sum, 0, "t"), lane(p, sum, 0, "u"), point));
    code_.line(cat("%", p, ".jnext = add i64 %", p, ".j, ", shape_.width));
    code_.line(cat("%", p, ".jmore = icmp ult i64 %", p, ".jnext, %", p, ".end"));
    code_.line(cat("br i1 %", p, ".jmore, label %", here, ", label %", p, ".flush"));
    return {};
  }

  std::string mask(const std::string& p) {
    const std::string vector = code_.vector_of("i64");
    const std::string at =
        code_.value(cat("add ", vector, " ", code_.splat("i64", cat("%", p, ".j")), ", ", code_.iota()));
    return code_.value(cat("icmp ult ", vector, " ", at, ", ", code_.splat("i64", cat("%", p, ".end"))));
  }

  /// Joins the lanes of a block into the totals, and the totals into one number behind the last block.
  Result<void> write_flush(const std::string& p, const std::vector<Sum>& sums, unsigned unroll) {
    code_.label(cat(p, ".flush"));
    for (const Sum& sum : sums)
      phi(lane(p, sum, 0, "f"), code_.vector_of(register_type(sum.lane)), lane(p, sum, 0, "m"),
          cat(p, ".rest"), lane(p, sum, 0, "u"), cat(p, ".tail"));
    for (const Sum& sum : sums) {
      std::string lanes = lane(p, sum, 0, "f");
      for (unsigned u = 1; u < unroll; ++u)
        lanes = TESSERA_TRY(joined(sum, sum.lane, lanes, lane(p, sum, u, "m")));
      if (sum.lane != sum.total) lanes = TESSERA_TRY(code_.cast(lanes, sum.lane, sum.total));
      const std::string next = TESSERA_TRY(joined(sum, sum.total, total(p, sum), lanes));
      const std::string vector = code_.vector_of(register_type(sum.total));
      code_.line(cat(next_total(p, sum), " = bitcast ", vector, " ", next, " to ", vector));
    }
    code_.line(cat("%", p, ".done = icmp eq i64 %", p, ".end, ", count_));
    code_.line(cat("br i1 %", p, ".done, label %", p, ".after, label %", p, ".outer"));
    code_.label(cat(p, ".after"));
    for (const Sum& sum : sums) values_[sum.value] = TESSERA_TRY(across(sum, next_total(p, sum)));
    code_.set_width(1);
    return {};
  }

  /// All lanes joined into one number, in pairs.
  Result<std::string> across(const Sum& sum, std::string lanes) {
    const std::string_view type = register_type(sum.total);
    for (unsigned width = shape_.width / 2; width > 0; width /= 2) {
      code_.set_width(width);
      const std::string first = code_.half_of(type, lanes, false), second = code_.half_of(type, lanes, true);
      lanes = TESSERA_TRY(joined(sum, sum.total, first, second));
    }
    return lanes;
  }

  const Kernel& kernel_;
  const Passes& passes_;
  const CodeShape& shape_;
  const bool has_jumps_ = has_jumps(kernel_);
  VectorCode code_;
  std::vector<std::string> values_;       ///< by value: its name now; of one number if it is not at points
  std::vector<std::string> repeated_;     ///< by value: the same as a whole vector
  std::vector<std::string> reciprocals_;  ///< by value: 1 / value as a whole vector
  std::vector<std::string> data_, strides_, kept_;
  std::string scalars_, places_, count_, failed_;
  std::string block_ = "entry";  ///< the label of the block that is being written
};

}  // namespace

Result<std::string> tessera::runtime::cpu::generate(const Kernel& kernel, const Passes& passes,
                                                    const CodeShape& shape) {
  return Generator(kernel, passes, shape).generate();
}

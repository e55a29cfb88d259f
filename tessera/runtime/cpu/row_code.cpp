#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/kernel_code.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

/// So many elements of a sum are added in f32 before they go to the f64 total.
constexpr std::int64_t sum_block = 4096;

/// One row: a loop along the lanes per pass, and what is one per row between them.
class RowCode : KernelCode {
 public:
  using KernelCode::KernelCode;

  Result<std::string> generate() {
    code_.label("entry");
    load_frame();
    for (ValueId value : passes_.uniforms) TESSERA_TRY(write(value, {}));
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(p));
    for (ValueId value : passes_.last_rows) TESSERA_TRY(write(value, {}));
    for (std::uint32_t store : passes_.row_stores) store_row(kernel_.stores[store]);
    // Stores past the caches are seen by other threads behind this alone.
    if (shape_.streams) code_.call_void("llvm.x86.sse.sfence", {}, {});
    code_.line("ret void");
    return function_text();
  }

 private:
  /// The names of a reduction in the loops of a pass.
  struct Sum {
    ValueId value = 0;
    Dtype lane = Dtype::f32;   ///< what a lane accumulates in
    Dtype total = Dtype::f32;  ///< what the blocks are joined in
    std::string neutral;       ///< of a lane
  };

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

  /// Element values that a pass reads from an earlier one.
  [[nodiscard]] std::vector<ValueId> kept_inputs(const Pass& pass) const {
    std::vector<ValueId> out;
    const auto want = [&](ValueId value) {
      if (is_vector(value) && kept_number(value) &&
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
      out.push_back({value, lane, total, code_.number(lane, kernel::neutral_bits(instruction.opcode, lane))});
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

  Result<void> write_pass(std::size_t p) {
    const Pass& pass = passes_.passes[p];
    for (ValueId value : pass.rows) TESSERA_TRY(write(value, {}));
    for (ValueId value : pass.elements)
      if (is_hoisted(value)) {
        TESSERA_TRY(write(value, {}));
        values_[value] = in_all_lanes(register_type(wide(value)), values_[value]);
      }
    if (pass.reductions.empty() && pass.stores.empty()) return {};
    for (ValueId value : pass.elements) repeat_operands_of(value);
    for (ValueId value : pass.reductions) repeat_operands_of(value);
    for (std::uint32_t store : pass.stores) repeat(kernel_.stores[store].value);
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
          code_.number(sum.total, kernel::neutral_bits(kernel_.body[sum.value].opcode, sum.total));
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
    const Point point{cat("%", p, ".j"), mask(cat("%", p, ".j"), cat("%", p, ".end"))};
    TESSERA_TRY(write_elements(pass, point));
    for (const Sum& sum : sums)
      TESSERA_TRY(accumulate(sum, lane(p, sum, 0, "t"), lane(p, sum, 0, "u"), point));
    code_.line(cat("%", p, ".jnext = add i64 %", p, ".j, ", shape_.width));
    code_.line(cat("%", p, ".jmore = icmp ult i64 %", p, ".jnext, %", p, ".end"));
    code_.line(cat("br i1 %", p, ".jmore, label %", here, ", label %", p, ".flush"));
    return {};
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

  std::string block_ = "entry";  ///< the label of the block that is being written
};

}  // namespace

Result<std::string> tessera::runtime::cpu::generate_rows(const Kernel& kernel, const Passes& passes,
                                                         const CodeShape& shape) {
  return RowCode(kernel, passes, shape).generate();
}

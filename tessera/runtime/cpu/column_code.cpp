#include "tessera/base/text.h"
#include "tessera/runtime/cpu/kernel_code.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime::cpu;

namespace {

/// Neighbouring columns: a loop over groups of vectors, and in it a loop over the rows per pass. Sums stay in
/// registers, in the type of their totals.
class ColumnCode : KernelCode {
 public:
  using KernelCode::KernelCode;

  Result<std::string> generate() {
    code_.label("entry");
    load_frame();
    for (ValueId value : passes_.uniforms) TESSERA_TRY(write(value, {}));
    for (ValueId value = 0; value < kernel_.body.size(); ++value)
      if (is_vector(value)) repeat_operands_of(value);
    for (const Store& store : kernel_.stores) repeat(store.value);
    code_.set_width(shape_.width);
    const unsigned group = vectors_in_group();
    code_.line(cat("%whole = and i64 ", count_, ", -", group * shape_.width));
    code_.line("br label %main");
    TESSERA_TRY(write_groups({"main", "tail", "0", "%whole", group, false}));
    TESSERA_TRY(write_groups({"tail", "end", "%whole", count_, 1, true}));
    code_.label("end");
    code_.line("ret void");
    return function_text();
  }

 private:
  /// A loop over groups of vectors.
  struct Groups {
    std::string name, next;  ///< labels of the loop and of what follows
    std::string begin, end;  ///< lanes
    unsigned vectors = 1;    ///< of one group
    bool is_masked = false;
  };
  /// One vector of a group.
  struct Column {
    Point point;
    std::vector<std::string> values;
  };

  [[nodiscard]] unsigned vectors_in_group() const {
    std::size_t work = 0;
    for (const Pass& pass : passes_.passes)
      for (ValueId value : pass.elements) work += is_costly(kernel_.body[value]) ? 30 : 1;
    return work > 60 ? 1 : work > 20 ? 2 : 4;
  }

  Result<void> write_groups(const Groups& groups) {
    const std::string &n = groups.name, index = cat("%", n, ".i");
    code_.label(n);
    code_.line(cat("%", n, ".any = icmp ult i64 ", groups.begin, ", ", groups.end));
    code_.line(cat("br i1 %", n, ".any, label %", n, ".loop, label %", groups.next));
    code_.label(cat(n, ".loop"));
    phi(index, "i64", groups.begin, n, cat("%", n, ".inext"), cat(n, ".last"));
    std::vector<Column> columns(groups.vectors);
    for (unsigned u = 0; u < groups.vectors; ++u) {
      columns[u].values = values_;
      columns[u].point.index = code_.value(cat("add i64 ", index, ", ", u * shape_.width));
      if (groups.is_masked) columns[u].point.mask = mask(index, groups.end);
    }
    block_ = cat(n, ".loop");
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(cat(n, p), p, columns));
    for (Column& column : columns) TESSERA_TRY(write_results(column));
    code_.line(cat("br label %", n, ".last"));
    code_.label(cat(n, ".last"));
    code_.line(cat("%", n, ".inext = add i64 ", index, ", ", groups.vectors * shape_.width));
    code_.line(cat("%", n, ".more = icmp ult i64 %", n, ".inext, ", groups.end));
    code_.line(cat("br i1 %", n, ".more, label %", n, ".loop, label %", groups.next));
    return {};
  }

  /// With the column's values in place of the others.
  template <class F>
  Result<void> at(Column& column, F&& f) {
    values_.swap(column.values);
    auto done = f();
    values_.swap(column.values);
    return done;
  }

  Result<void> write_all(Column& column, const std::vector<ValueId>& values, const Point& point) {
    return at(column, [&]() -> Result<void> {
      for (ValueId value : values) TESSERA_TRY(write(value, point));
      return {};
    });
  }

  Result<void> write_results(Column& column) {
    TESSERA_TRY(write_all(column, passes_.last_rows, column.point));
    return at(column, [&]() -> Result<void> {
      for (std::uint32_t number : passes_.row_stores) store(kernel_.stores[number], column.point);
      return {};
    });
  }

  Result<void> write_pass(const std::string& n, std::size_t p, std::vector<Column>& columns) {
    const Pass& pass = passes_.passes[p];
    for (Column& column : columns) TESSERA_TRY(write_all(column, pass.rows, column.point));
    if (pass.reductions.empty() && pass.stores.empty()) return {};
    code_.line(cat("br label %", n, ".rows"));
    code_.label(cat(n, ".rows"));
    phi(cat("%", n, ".r"), "i64", "0", block_, cat("%", n, ".rnext"), cat(n, ".rows"));
    for (std::size_t u = 0; u < columns.size(); ++u)
      for (ValueId value : pass.reductions)
        phi(sum(n, value, u, "a"), code_.vector_of(register_type(wide(value))),
            code_.number(wide(value), kernel::neutral_bits(kernel_.body[value].opcode, wide(value))), block_,
            sum(n, value, u, "b"), cat(n, ".rows"));
    for (std::size_t u = 0; u < columns.size(); ++u) TESSERA_TRY(write_row(n, pass, columns[u], u));
    code_.line(cat("%", n, ".rnext = add i64 %", n, ".r, 1"));
    code_.line(cat("%", n, ".rmore = icmp ult i64 %", n, ".rnext, ", row_count_));
    code_.line(cat("br i1 %", n, ".rmore, label %", n, ".rows, label %", n, ".after"));
    block_ = cat(n, ".after");
    code_.label(block_);
    for (std::size_t u = 0; u < columns.size(); ++u)
      for (ValueId value : pass.reductions) columns[u].values[value] = sum(n, value, u, "b");
    return {};
  }

  static std::string sum(const std::string& n, ValueId value, std::size_t copy, std::string_view at) {
    return cat("%", n, ".", at, value, ".", copy);
  }

  /// Everything that a pass does at one row of one vector.
  Result<void> write_row(const std::string& n, const Pass& pass, Column& column, std::size_t copy) {
    Point point = column.point;
    point.row = cat("%", n, ".r");
    TESSERA_TRY(write_all(column, pass.elements, point));
    return at(column, [&]() -> Result<void> {
      for (std::uint32_t number : pass.stores) store(kernel_.stores[number], point);
      for (ValueId value : pass.reductions) {
        const Instruction& instruction = kernel_.body[value];
        const ValueId of = instruction.operands[0];
        std::string next = use(of);
        if (wide(of) != wide(value)) next = TESSERA_TRY(code_.cast(next, wide(of), wide(value)));
        const std::string operands[] = {sum(n, value, copy, "a"), next};
        next = TESSERA_TRY(code_.operation(instruction.opcode, wide(value), operands));
        const std::string vector = code_.vector_of(register_type(wide(value)));
        // The name that the loop has for it.
        code_.line(cat(sum(n, value, copy, "b"), " = bitcast ", vector, " ", next, " to ", vector));
      }
      return {};
    });
  }

  std::string block_;  ///< the label of the block that is being written
};

}  // namespace

Result<std::string> tessera::runtime::cpu::generate_columns(const Kernel& kernel, const Passes& passes,
                                                            const CodeShape& shape) {
  return ColumnCode(kernel, passes, shape).generate();
}

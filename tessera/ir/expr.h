// Expressions: variables, constants, scalar arithmetic, calls of ops, tuples.
//
// Scalar expressions nest freely (sharing a subexpression is not structure). Tensor-level code is flat: the
// arguments of a call are variables, constants, parameters or scalar expressions, and its value is bound by
// an assignment (function.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/ir/attribute.h"
#include "tessera/ir/scalar_opcode.h"
#include "tessera/ir/type.h"

namespace tessera::ir {

/// A variable is an object: two with the same name and type are still two. The name is for people.
struct Var final : Concrete<Expr, NodeKind::var> {
  using Concrete::Concrete;
  std::string name;
  TypeRef type;
  /// Distinct per object, growing in order of creation.
  std::uint64_t id = 0;
  /// Set by the parser for variables declared `free` in a text: their strict hash is that of name and type,
  /// the same in every process, while equality still asks for the same object.
  bool declared = false;

  static constexpr auto fields() { return std::tuple{ignore("name", &Var::name), usual("type", &Var::type)}; }
};

struct IntConst final : Concrete<Expr, NodeKind::int_const> {
  using Concrete::Concrete;
  std::int64_t value = 0;  ///< u64 values keep their bits
  Dtype dtype = Dtype::i64;

  static constexpr auto fields() {
    return std::tuple{head("value", &IntConst::value), usual("dtype", &IntConst::dtype)};
  }
};

/// Compared by bits: 0.0 and -0.0 differ, a NaN equals itself. `value` is representable in `dtype`.
struct FloatConst final : Concrete<Expr, NodeKind::float_const> {
  using Concrete::Concrete;
  double value = 0;
  Dtype dtype = Dtype::f32;

  static constexpr auto fields() {
    return std::tuple{head("value", &FloatConst::value), usual("dtype", &FloatConst::dtype)};
  }
};

struct BoolConst final : Concrete<Expr, NodeKind::bool_const> {
  using Concrete::Concrete;
  bool value = false;

  static constexpr auto fields() { return std::tuple{head("value", &BoolConst::value)}; }
};

/// A tensor whose elements are known. `data` is row-major, `type` has constant dimensions.
struct Dense final : Concrete<Expr, NodeKind::dense> {
  using Concrete::Concrete;
  Ref<TensorType> type;
  Bytes data;

  static constexpr auto fields() {
    return std::tuple{usual("type", &Dense::type), usual("data", &Dense::data)};
  }
};

/// A scalar whose value is given anew at each run. Two slots are two even when their values agree today, and
/// no pass may use `value`: it is what the slot held when the function was recorded.
struct Param final : Concrete<Expr, NodeKind::param> {
  using Concrete::Concrete;
  std::uint32_t slot = 0;
  Dtype dtype = Dtype::f32;
  double value = 0;

  static constexpr auto fields() {
    return std::tuple{head("slot", &Param::slot), usual("dtype", &Param::dtype),
                      ignore("value", &Param::value)};
  }
};

/// One scalar operation. `dtype` is that of the result.
struct ScalarOp final : Concrete<Expr, NodeKind::scalar_op> {
  using Concrete::Concrete;
  ScalarOpcode opcode = ScalarOpcode::add;
  Dtype dtype = Dtype::i64;
  SmallVector<ExprRef, 2> operands;

  static constexpr auto fields() {
    return std::tuple{head("opcode", &ScalarOp::opcode), usual("dtype", &ScalarOp::dtype),
                      usual("operands", &ScalarOp::operands)};
  }
};

/// A call of an op by its canonical name. The IR does not know which ops exist; `op/` does.
struct Call final : Concrete<Expr, NodeKind::call> {
  using Concrete::Concrete;
  std::string op;
  std::vector<ExprRef> args;
  Attributes attrs;

  static constexpr std::string_view syntax = "$op($args)$attrs";
  static constexpr auto fields() {
    return std::tuple{head("op", &Call::op), usual("args", &Call::args), usual("attrs", &Call::attrs)};
  }
};

struct Tuple final : Concrete<Expr, NodeKind::tuple> {
  using Concrete::Concrete;
  std::vector<ExprRef> elements;

  static constexpr std::string_view syntax = "tuple($elements)";
  static constexpr auto fields() { return std::tuple{usual("elements", &Tuple::elements)}; }
};

/// One element of a tuple.
struct Item final : Concrete<Expr, NodeKind::item> {
  using Concrete::Concrete;
  ExprRef tuple;
  std::uint32_t index = 0;

  static constexpr std::string_view syntax = "item($tuple, $index)";
  static constexpr auto fields() {
    return std::tuple{usual("tuple", &Item::tuple), usual("index", &Item::index)};
  }
};

[[nodiscard]] Ref<Var> variable(std::string name, TypeRef type, Span span = {});
/// A size symbol: an i64 scalar variable, by default at least 0.
[[nodiscard]] Ref<Var> size_symbol(std::string name, Range range = {});
[[nodiscard]] Ref<IntConst> int_const(std::int64_t value, Dtype dtype = Dtype::i64);
/// The value is rounded to `dtype` first.
[[nodiscard]] Ref<FloatConst> float_const(double value, Dtype dtype = Dtype::f32);
[[nodiscard]] Ref<BoolConst> bool_const(bool value);
[[nodiscard]] Ref<Dense> dense(Ref<TensorType> type, Bytes data);
[[nodiscard]] Ref<Param> param(std::uint32_t slot, Dtype dtype, double value = 0);
/// REQUIRES as many operands as the opcode takes. `dtype` is needed for casts only; elsewhere it follows from
/// the operands.
[[nodiscard]] ExprRef scalar_op(ScalarOpcode opcode, SmallVector<ExprRef, 2> operands, Span span = {});
[[nodiscard]] ExprRef scalar_cast(Dtype to, ExprRef operand, Span span = {});
[[nodiscard]] ExprRef scalar_bitcast(Dtype to, ExprRef operand, Span span = {});
[[nodiscard]] Ref<Call> call(std::string op, std::vector<ExprRef> args, Attributes attrs = {},
                             Span span = {});
[[nodiscard]] Ref<Tuple> tuple(std::vector<ExprRef> elements);
[[nodiscard]] Ref<Item> item(ExprRef tuple, std::uint32_t index);

/// The dtype of a scalar expression; nothing if it is not one (a tensor variable, a call, …).
[[nodiscard]] std::optional<Dtype> scalar_dtype(const Expr& expr);

}  // namespace tessera::ir

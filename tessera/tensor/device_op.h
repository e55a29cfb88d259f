// Ops of the program's own that a device runs: what kernels (kernel.h) and captured calls (captured.h) share.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tessera/describe/builder.h"
#include "tessera/op/device_call.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

/// What a kernel or a captured call is given, in its order.
///
///   const ts::DeviceParameters parameters = {
///       ts::parameter::read("x", {.dtype = ts::f32, .shape = "[N, K]"}),   // an argument
///       ts::parameter::write("y", {.shape = "[N, 16]"}),    // a result; the code defines all of it
///       ts::parameter::read_write("state"),                 // an argument, whose new version is a result
///       ts::parameter::append("hits", {.dtype = ts::i32, .shape = "[N]"}),  // rows; results: rows, count
///       ts::parameter::scalar("by", 2.0),                   // a number, which may change at no cost
///       ts::parameter::size("n", "N * K")};                 // a size, by value
///
/// Shapes are rules (describe/shape_rule.h); results without one have the shape of the first argument, and
/// without a dtype its dtype. Arrays lie row by row. A kernel that appends is given three values: the rows,
/// the address of an unsigned long long that is 0 when it begins, and the capacity, an unsigned long long. It
/// adds to the count how many rows it wants, and writes those below the capacity. A captured call is given
/// the rows, whose first size is the capacity, and the count as an array of one i64; it takes no sizes.
namespace parameter {
using description::append;
using description::device_scalar;
using description::integer;
using description::read;
using description::read_write;
using description::scalar;
using description::write;
/// A size by value: an expression of shape rules. `dtype` is an integer.
[[nodiscard]] description::Parameter size(std::string name, std::string rule, Dtype dtype = Dtype::i64);
}  // namespace parameter
using DeviceParameters = std::vector<description::Parameter>;

/// Rows that were appended, as a kernel or a captured call left them.
class Appended {
 public:
  Appended(Tensor rows, Tensor asked) : rows_(std::move(rows)), asked_(std::move(asked)) {}

  /// How many rows were asked for. Evaluates.
  [[nodiscard]] std::uint64_t asked(Here here = {}) const;
  [[nodiscard]] std::uint64_t capacity() const;
  /// How many rows there are: never more than the capacity. Evaluates.
  [[nodiscard]] std::uint64_t count(Here here = {}) const;
  /// Whether rows were lost. Evaluates.
  [[nodiscard]] bool has_overflowed(Here here = {}) const { return asked(here) > capacity(); }
  /// The rows that there are, and no others. Evaluates.
  [[nodiscard]] Tensor rows(Here here = {}) const;
  /// All of them: what is behind the count is anything.
  [[nodiscard]] const Tensor& all_rows() const { return rows_; }

 private:
  Tensor rows_, asked_;
};

/// A registered op. Cheap to copy, and valid for ever.
class DeviceOp {
 public:
  /// Records a call of an op with one result: arguments and numbers in the order of the parameters; numbers
  /// at the end may be left out.
  [[nodiscard]] Tensor operator()(const Operand& a = {}, const Operand& b = {}, const Operand& c = {},
                                  const Operand& d = {}, const Operand& e = {}, const Operand& f = {}) const;
  /// Records a call with any number of arguments and gives all results, in the order of the parameters.
  [[nodiscard]] std::vector<Tensor> all(std::initializer_list<Operand> arguments, Here here = {}) const;
  /// The same of an op whose first result are rows that it appends.
  [[nodiscard]] Appended appended(std::initializer_list<Operand> arguments, Here here = {}) const;

  [[nodiscard]] const std::string& name() const;

 protected:
  struct Card;
  /// What an op is made of, beside its code.
  struct Form {
    std::string_view kind;  ///< "kernel": begins messages
    DeviceParameters parameters;
    GradientRule gradient;
    // Of a kernel:
    std::string grid;
    std::vector<std::int64_t> block;
    std::int64_t shared_bytes = 0;
  };
  /// Registers it. Throws, naming the op, if the name, a parameter or a rule cannot be.
  DeviceOp(op::DeviceCall call, Form form, Here here);
  [[nodiscard]] const op::DeviceCall& call() const;

 private:
  [[nodiscard]] std::vector<Tensor> record(std::span<const Operand> arguments, Here here) const;

  const Card* card_;
};

}  // namespace tessera

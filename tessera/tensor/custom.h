// Ops of the program's own: a C++ function over elements that is recorded, planned and run like any op.
//
//   const ts::Custom blur = ts::custom({.name = "blur", .run = [](auto xs, auto ys) { … }});  // once
//   ts::Tensor y = ts::relu(blur(x)) * 0.5;                                                   // anywhere
//
// What is registered stays for the life of the process, and its name is taken: plans refer to it. A plan with
// such an op cannot be saved.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/op/value_type.h"
#include "tessera/tensor/create.h"
#include "tessera/tensor/gradient.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

/// Dtype and shape. Sizes are numbers, or symbols where one plan is made for many sizes: `2 * x.shape[0]` and
/// `a.shape[0] == b.shape[0]` work with both.
using TensorType = op::ValueType;

/// The elements of an argument or a result, row by row: what the function of a custom op sees.
class Elements {
 public:
  explicit Elements(const op::Array& array) : array_(&array) {}

  [[nodiscard]] Dtype dtype() const { return array_->dtype; }
  [[nodiscard]] std::span<const std::int64_t> shape() const { return array_->shape(); }
  [[nodiscard]] std::int64_t size() const { return array_->size(); }
  /// The elements. Those of an argument must not be written to. T must be what the dtype stores, else it
  /// throws.
  template <class T>
  [[nodiscard]] std::span<T> data() const {
    expect(dtype_of<std::remove_const_t<T>>);
    return {reinterpret_cast<T*>(begin()), static_cast<std::size_t>(size())};
  }
  [[nodiscard]] std::span<std::byte> bytes() const;

 private:
  void expect(Dtype asked) const;
  [[nodiscard]] std::byte* begin() const { return array_->at(array_->layout.offset); }

  const op::Array* array_;
};

struct CustomOptions {
  using Types = std::function<std::vector<TensorType>(std::span<const TensorType> arguments)>;
  using Run = std::function<void(std::span<const Elements> arguments, std::span<const Elements> results)>;

  std::string name;  ///< letters, digits and _; none of the catalogue
  /// The types of the results from those of the arguments, called when a call is recorded; null: one result,
  /// of the type of the first argument. What it throws is an error of the call. If it fails on symbols, each
  /// size gets a plan of its own.
  Types types = nullptr;
  /// Computes the results, which are zero at first. May be called on any thread, by several at once, and when
  /// a plan is made. What it throws is an error of the evaluation. It must not ask for values of tensors.
  Run run = nullptr;
  /// The gradients of the arguments, as in custom_gradient(); for ops with one result. Null: asking for a
  /// gradient through the op is an error.
  GradientRule gradient = nullptr;
  /// Equal arguments give equal results: calls may be merged, and computed when the plan is made.
  bool is_pure = true;
};

/// A registered op. Cheap to copy, and valid for ever.
class Custom {
 public:
  /// Records a call of an op with one result. A number takes the dtype of the first tensor.
  [[nodiscard]] Tensor operator()(const Operand& a) const;
  [[nodiscard]] Tensor operator()(const Operand& a, const Operand& b) const;
  [[nodiscard]] Tensor operator()(const Operand& a, const Operand& b, const Operand& c) const;
  [[nodiscard]] Tensor operator()(const Operand& a, const Operand& b, const Operand& c,
                                  const Operand& d) const;
  /// Records a call with any number of arguments, at least one, and gives all results.
  [[nodiscard]] std::vector<Tensor> all(const OperandList& arguments) const;

  [[nodiscard]] const std::string& name() const;

 private:
  friend Custom custom(CustomOptions options, Here here);
  struct Card;

  explicit Custom(const Card& card) : card_(&card) {}
  [[nodiscard]] Tensor one(std::span<const Operand* const> operands) const;
  [[nodiscard]] std::vector<Tensor> record(const std::vector<Tensor>& arguments, Here here) const;

  const Card* card_;
};

/// Registers an op. Throws if the name is taken or is none. Thread-safe.
[[nodiscard]] Custom custom(CustomOptions options, Here here = {});

}  // namespace tessera

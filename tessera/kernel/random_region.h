// Random regions, for tests.
#pragma once

#include <random>
#include <vector>

#include "tessera/kernel/kernel.h"
#include "tessera/op/ir_builder.h"

namespace tessera::kernel {

/// Random element-wise code with reductions over the last axis; values are matrices, rows, columns, scalars.
class RandomRegion {
 public:
  RandomRegion(std::uint64_t seed, Dtype dtype) : random_(seed), dtype_(dtype) {
    rows_ = 1 + static_cast<std::int64_t>(random_() % 9);
    columns_ = seed % 7 == 0 ? 1500 : 1 + static_cast<std::int64_t>(random_() % 40);
    values_.push_back(builder_.parameter("x", {dtype, {rows_, columns_}}));
    values_.push_back(builder_.parameter("row", {dtype, {columns_}}));
    values_.push_back(builder_.parameter("column", {dtype, {rows_, 1}}));
    values_.push_back(
        transpose(builder_.parameter("t", {dtype, {columns_, rows_}}), std::vector<std::int64_t>{1, 0}));
    values_.push_back(builder_.constant(3, dtype));
  }

  ir::FunctionRef function(std::size_t ops) {
    for (std::size_t i = 0; i < ops; ++i) add();
    // What depends on everything, over both axes.
    op::Value last = values_[0] + values_.back();
    return value_or_throw(builder_.function("region", std::vector<op::Value>{last}));
  }

 private:
  op::Value any() { return values_[random_() % values_.size()]; }

  void add() {
    static constexpr const char* float_unary[] = {"tanh", "sigmoid", "abs", "sin", "relu", "softsign", "erf"};
    static constexpr const char* both_unary[] = {"neg", "sign", "square", "abs"};
    static constexpr const char* binary[] = {"add", "sub", "mul", "maximum", "minimum"};
    const bool is_float = ir::is_float(dtype_);
    auto kind = random_() % 10;
    // Where f32 is rounded otherwise than f64, a comparison may come out otherwise.
    if (kind == 8 && dtype_ == Dtype::f32) kind = 7;
    if (kind < 3) {
      values_.push_back(unary(is_float ? float_unary[random_() % 7] : both_unary[random_() % 4], any()));
    } else if (kind < 8) {
      values_.push_back(builder_.call(binary[random_() % 5], {any(), any()}));
    } else if (kind == 8) {
      const op::Value condition = builder_.call("lt", {any(), any()});
      values_.push_back(where(condition, any(), any()));
    } else {
      static constexpr const char* reductions[] = {"sum", "max", "min"};
      const op::Value x = any() + values_[0];
      values_.push_back(builder_.call(reductions[random_() % 3], {x},
                                      {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", true}}));
      if (is_float) values_.back() = unary("tanh", values_.back());
    }
  }

  std::mt19937_64 random_;
  Dtype dtype_;
  std::int64_t rows_, columns_;
  op::IrBuilder builder_;
  std::vector<op::Value> values_;
};

}  // namespace tessera::kernel

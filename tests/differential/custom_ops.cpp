#include "tests/differential/custom_ops.h"

#include <cstring>
#include <map>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"
#include "tessera/tensor/ops.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

using Types = std::span<const TensorType>;
using Given = std::span<const Elements>;

Exception refused(std::string_view why) {
  return Exception(Error(ErrorCode::invalid_argument, std::string(why)));
}

/// Copies one element; dtypes are the same.
void copy_element(const Elements& from, std::int64_t i, const Elements& to, std::int64_t k) {
  const auto size = static_cast<std::int64_t>(ir::size_of(from.dtype()));
  std::memcpy(to.bytes().data() + k * size, from.bytes().data() + i * size, static_cast<std::size_t>(size));
}

void reverse(Given xs, Given ys) {
  for (std::int64_t i = 0; i < xs[0].size(); ++i) copy_element(xs[0], i, ys[0], xs[0].size() - 1 - i);
}

std::vector<TensorType> doubled_type(Types xs) {
  if (xs[0].rank() == 0) throw refused("a number has no axis");
  TensorType out = xs[0];
  out.shape[0] = out.shape[0] * 2;
  return {out};
}

void repeat(Given xs, Given ys) {
  const std::int64_t size = xs[0].size();
  for (std::int64_t i = 0; i < 2 * size; ++i) copy_element(xs[0], i % size, ys[0], i);
}

std::vector<TensorType> common_type(Types xs) {
  if (xs[0] != xs[1]) throw refused("both must have one type");
  return {xs[0]};
}

void weave(Given xs, Given ys) {
  for (std::int64_t i = 0; i < ys[0].size(); ++i)
    copy_element(xs[static_cast<std::size_t>(i % 2)], i, ys[0], i);
}

std::vector<TensorType> split_types(Types xs) { return {xs[0], {Dtype::i64, {1}}}; }

/// Backwards, and how many bytes are not zero.
void split(Given xs, Given ys) {
  reverse(xs, ys.first(1));
  for (const std::byte byte : xs[0].bytes()) ys[1].data<std::int64_t>()[0] += byte != std::byte{0} ? 1 : 0;
}

std::vector<TensorType> float_type(Types xs) {
  if (!ir::is_float(xs[0].dtype)) throw refused("takes floats");
  return {xs[0]};
}

std::vector<double> numbers_of(const Elements& x) {
  std::vector<double> out(static_cast<std::size_t>(x.size()));
  op::loader<double>(x.dtype())(x.bytes().data(), 0, 1, out.size(), out.data());
  return out;
}

void affine(Given xs, Given ys) {
  auto numbers = numbers_of(xs[0]);
  for (double& number : numbers) number = 3 * number + 1;
  op::storer<double>(ys[0].dtype())(ys[0].bytes().data(), 0, 1, numbers.size(), numbers.data());
}

std::vector<TensorType> integer_type(Types xs) {
  if (ir::is_float(xs[0].dtype)) throw refused("takes integers");
  return {xs[0]};
}

/// Refuses some tensors by what is in them: of integers, which no device rounds otherwise.
void strict(Given xs, Given ys) {
  if (xs[0].size() > 0 && numbers_of(xs[0])[0] > 1) throw refused("its first element is too large");
  reverse(xs, ys);
}

std::vector<CustomOp> registered() {
  struct Row {
    CustomOp op;
    CustomOptions::Types types;
    CustomOptions::Run run;
    bool is_pure = true;
  };
  std::vector<CustomOp> out;
  for (Row& row : std::vector<Row>{{{"own_reverse"}, nullptr, reverse},
                                   {{"own_repeat"}, doubled_type, repeat},
                                   {{"own_weave", 2}, common_type, weave},
                                   {{"own_split", 1, false}, split_types, split},
                                   {{"own_affine"}, float_type, affine},
                                   {{"own_noted"}, nullptr, reverse, false},
                                   {{"own_strict", 1, false}, integer_type, strict}}) {
    (void)custom({.name = row.op.name, .types = row.types, .run = row.run, .is_pure = row.is_pure});
    out.push_back(std::move(row.op));
  }
  return out;
}

// ---- twins of the catalogue

Custom twin_of(std::string_view name, GradientRule gradient) {
  const op::Card& card = *op::find_card(name);
  const auto run = [&card](Given xs, Given ys) {
    std::vector<op::Array> arguments;
    for (const Elements& x : xs)
      arguments.push_back(
          {x.dtype(), op::contiguous({x.shape().begin(), x.shape().end()}), x.bytes().data()});
    const auto results = value_or_throw(op::run_reference(card, arguments, {}));
    std::memcpy(ys[0].bytes().data(), results[0].array().data, results[0].byte_size());
  };
  const auto types = [](Types xs) {
    for (const TensorType& x : xs)
      if (x != xs[0]) throw refused("all must have one type");
    return float_type(xs);
  };
  return custom({.name = cat("own_", name), .types = types, .run = run, .gradient = std::move(gradient)});
}

std::map<std::string_view, Custom> twins() {
  using List = const std::vector<Tensor>&;
  std::map<std::string_view, Custom> out;
  const auto add = [&](std::string_view name, GradientRule rule) { out.emplace(name, twin_of(name, rule)); };
  add("neg", [](List, const Tensor&, const Tensor& dy) -> std::vector<Tensor> { return {-dy}; });
  add("square",
      [](List xs, const Tensor&, const Tensor& dy) -> std::vector<Tensor> { return {dy * (xs[0] * 2.0)}; });
  add("tanh",
      [](List, const Tensor& y, const Tensor& dy) -> std::vector<Tensor> { return {dy * (1.0 - y * y)}; });
  add("add", [](List, const Tensor&, const Tensor& dy) -> std::vector<Tensor> { return {dy, dy}; });
  add("sub", [](List, const Tensor&, const Tensor& dy) -> std::vector<Tensor> { return {dy, -dy}; });
  add("mul", [](List xs, const Tensor&, const Tensor& dy) -> std::vector<Tensor> {
    return {dy * xs[1], dy * xs[0]};
  });
  return out;
}

}  // namespace

std::span<const CustomOp> tessera::differential::custom_ops() {
  static const auto* ops = new std::vector<CustomOp>(registered());
  return *ops;
}

const Custom* tessera::differential::custom_twin(std::string_view op) {
  static const auto* all = new std::map<std::string_view, Custom>(twins());
  const auto found = all->find(op);
  return found == all->end() ? nullptr : &found->second;
}

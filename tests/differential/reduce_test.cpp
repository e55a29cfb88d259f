// What is left of programs that are reduced.
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/walk.h"
#include "tests/differential/check.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

constexpr const char* text = R"(
func main(p: bool[], x: f32[3], y: f32[3]) {
  a: f32[3] = exp(x)
  s: f32[3], t: f32[3] = for 2 (a, y) with (p, x) (i: i64[], u: f32[3], v: f32[3], q: bool[], w: f32[3]) {
    b: f32[3] = mul(u, w)
    c: f32[3], d: f32[3] = if q with (b, v) (e: f32[3], f: f32[3]) {
      g: f32[3] = add(e, f)
      h: f32[3] = floor(g)
      k: f32[3] = neg(h)
      return k, f
    } else (e: f32[3], f: f32[3]) {
      return f, e
    }
    l: f32[3] = tanh(c)
    return l, d
  }
  z: f32[3] = sub(s, t)
  return z, a
}
)";

op::HostTensor numbers() {
  return op::HostTensor::of<float>(op::Dtype::f32, {3}, std::vector<float>{0.5, -1.25, 2});
}

Program program() {
  const ir::NodeRef node = value_or_throw(ir::parse(text));
  const auto flag = op::HostTensor::of<std::uint8_t>(op::Dtype::boolean, {}, std::vector<std::uint8_t>{1});
  return {ir::FunctionRef(ir::as<ir::Function>(node)), {flag, numbers(), numbers()}, {}, {}, {}};
}

bool calls_floor(const ir::Function& function) {
  return std::any_of(function.body.begin(), function.body.end(), [](const auto& statement) {
    const auto* call = ir::as<ir::Call>(statement->value);
    return call != nullptr && call->op == "floor";
  });
}

std::size_t statements_of(const Program& program) {
  std::size_t out = 0;
  for (const ir::Function* function : ir::functions_below(*program.function)) out += function->body.size();
  return out;
}

TEST(Reduced, TakesACallOutOfItsRegions) {
  const Program out = reduced(program(), [](const Program& one) -> std::optional<std::string> {
    for (const ir::Function* function : ir::functions_below(*one.function))
      if (calls_floor(*function)) return "floor is called";
    return std::nullopt;
  });
  EXPECT_EQ(statements_of(out), 1U) << ir::print(*out.function);
  EXPECT_TRUE(calls_floor(*out.function)) << ir::print(*out.function);
}

TEST(Reduced, EmptiesTheBodiesOfRegions) {
  const Program out = reduced(program(), [](const Program& one) -> std::optional<std::string> {
    for (const ir::Function* function : ir::functions_below(*one.function))
      if (function != one.function.get() && calls_floor(*function)) return "a body calls floor";
    return std::nullopt;
  });
  // The call, and the two bodies that it is in.
  EXPECT_EQ(statements_of(out), 3U) << ir::print(*out.function);
}

}  // namespace

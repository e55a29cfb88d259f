// Gradients, tangents and gradients of gradients of random programs with nested regions, against finite
// differences.
#include <gtest/gtest.h>

#include "tests/support/finite_differences.h"

using namespace tessera;

namespace {

/// Writes programs over values f64[3] and counters i64[] that stay small, whatever is nested in what.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {}

  std::string text() {
    return cat("func g(p: f64[3], q: f64[3]) {\n", function_body({{"p", "q"}, {}}, 1, 0), "}\n",
               "func f(n: i64[], x: f64[3], y: f64[3]) {\n", function_body({{"x", "y"}, {"n"}}, 2, 2), "}\n");
  }

 private:
  struct Scope {
    std::vector<std::string> floats;
    std::vector<std::string> counters;
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }
  std::string name() { return cat("v", next_++); }
  const std::string& any(const std::vector<std::string>& list) { return list[below(list.size())]; }

  /// Statements that add to the scope, then as many results.
  std::string function_body(Scope scope, std::size_t results, int depth) {
    std::string out;
    const std::size_t count = 2 + below(3);
    for (std::size_t i = 0; i < count; ++i) out += statement(scope, depth);
    std::vector<std::string> last;
    for (std::size_t i = 0; i < results; ++i)
      last.push_back(i == 0 ? scope.floats.back() : any(scope.floats));
    return cat(out, "return ", join(last, ", "), "\n");
  }

  std::string statement(Scope& scope, int depth) {
    if (depth > 0 && below(2) == 0) return region(scope, depth - 1);
    const std::string a = any(scope.floats), b = any(scope.floats), t = name();
    scope.floats.push_back(t);
    static constexpr std::string_view unary[] = {"sin", "tanh", "cos", "sigmoid", "neg"};
    static constexpr std::string_view binary[] = {"add", "mul", "sub"};
    switch (below(depth > 0 ? 4 : 3)) {
      case 0:
        return cat(t, ": f64[3] = ", unary[below(5)], "(", a, ")\n");
      case 1:
        return cat(t, "a: f64[3] = ", binary[below(3)], "(", a, ", ", b, ")\n", t, ": f64[3] = tanh(", t,
                   "a)\n");
      case 2:
        return cat(t, ": f64[3] = mul(", a, ", 0.", 1 + below(9), ":f64)\n");
      default:
        return cat(t, ": f64[3] = call @g(", a, ", ", b, ")\n");
    }
  }

  std::string region(Scope& scope, int depth) {
    switch (below(4)) {
      case 0:
        return if_region(scope, depth);
      case 1:
        return switch_region(scope, depth);
      case 2:
        return while_region(scope, depth);
      default:
        return for_region(scope, depth);
    }
  }

  std::string if_region(Scope& scope, int depth) {
    const std::string s = name(), c = name(), t = name(), a = any(scope.floats), b = any(scope.floats);
    const auto body = [&] {
      return cat("(p: f64[3], q: f64[3]) {\n", function_body({{"p", "q"}, {}}, 1, depth), "}");
    };
    scope.floats.push_back(t);
    return cat(s, ": f64[] = sum(", b, ")\n", c, ": bool[] = gt(", s, ", ", below(2), ".1:f64)\n", t,
               ": f64[3] = if ", c, " with (", a, ", ", b, ") ", body(), " else ", body(), "\n");
  }

  std::string switch_region(Scope& scope, int depth) {
    const std::string t = name(), k = name(), a = any(scope.floats);
    std::vector<std::string> bodies;
    for (std::size_t i = 1 + below(3); i-- > 0;)
      bodies.push_back(cat("(k: i64[], p: f64[3]) {\n", function_body({{"p"}, {"k"}}, 1, depth), "}"));
    const std::string index = scope.counters.empty() ? cat("full(", below(3), ") {shape = shape[]}")
                                                     : cat("identity(", any(scope.counters), ")");
    scope.floats.push_back(t);
    return cat(k, ": i64[] = ", index, "\n", t, ": f64[3] = switch ", k, " with (", k, ", ", a, ") [",
               join(bodies, ", "), "]\n");
  }

  std::string for_region(Scope& scope, int depth) {
    const std::string t = name(), u = name(), a = any(scope.floats), b = any(scope.floats);
    const std::string count = scope.counters.empty() || below(2) == 0 ? cat(below(4)) : any(scope.counters);
    const std::string body = function_body({{"p", "q", "r"}, {"i"}}, 2, depth);
    scope.floats.insert(scope.floats.end(), {u, t});
    return cat(t, ": f64[3], ", u, ": f64[3] = for ", count, " (", a, ", ", b, ") with (", b,
               ") (i: i64[], p: f64[3], q: f64[3], r: f64[3]) {\n", body, "}\n");
  }

  std::string while_region(Scope& scope, int depth) {
    const std::string t = name(), k = name(), z = name(), a = any(scope.floats), b = any(scope.floats);
    std::string body = function_body({{"p", "r"}, {"k"}}, 1, depth);
    body.insert(body.rfind("return ") + 7, "l, ");
    scope.floats.push_back(t);
    return cat(z, ": i64[] = full(0) {shape = shape[]}\n", k, ": i64[], ", t, ": f64[3] = while (", z, ", ",
               a, ") with (", b, ") limit 4 (k: i64[], p: f64[3], r: f64[3]) {\nm: bool[] = lt(k, ", below(4),
               ")\nreturn m\n} do (k: i64[], p: f64[3], r: f64[3]) {\nl: i64[] = add(k, 1)\n", body, "}\n");
  }

  std::mt19937_64 random_;
  int next_ = 0;
};

TEST(GradientLaws, HoldOnRandomPrograms) {
  int regions = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const std::string text = RandomProgram(seed).text();
    SCOPED_TRACE(cat("seed ", seed, "\n", text));
    const auto node = ir::parse(text);
    ASSERT_TRUE(node) << node.error().to_text();
    const auto f = ir::as<ir::Module>(*node)->functions.back();
    const auto sound = ir::verify(*f);
    ASSERT_TRUE(sound) << sound.error().to_text();
    for (const auto& statement : f->body) regions += ir::is<ir::Call>(statement->value) ? 0 : 1;
    fixture::check_both_orders(f, fixture::inputs_for(*f, {static_cast<std::int64_t>(seed % 4)}));
    if (HasFailure()) return;  // one program is enough to look at
  }
  EXPECT_GE(regions, 150);
}

TEST(GradientLaws, CheckpointsChangeNoGradient) {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    const auto node = value_or_throw(ir::parse(RandomProgram(seed).text()));
    const auto& functions = ir::as<ir::Module>(node)->functions;
    autodiff::Rules rules;
    rules.checkpoint(functions[0]);
    const auto inputs = fixture::inputs_for(*functions[1], {2});
    EXPECT_EQ(fixture::gradients_of(functions[1], inputs, rules), fixture::gradients_of(functions[1], inputs))
        << "seed " << seed;
  }
}

}  // namespace

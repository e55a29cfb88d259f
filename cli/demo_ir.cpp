#include <cstdio>

#include "cli/demo.h"
#include "tessera/ir/cse.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/structural_equal.h"
#include "tessera/ir/structural_hash.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr std::string_view program = R"(
func attention_scores[S](q: f32[S, 64], k: f32[64, S]) {
  a: f32[S, S] = matmul(q, k)
  b: f32[S, S] = mul(a, $0:f32)
  c: f32[S, S] = matmul(q, k)
  d: f32[S, S] = mul(c, $0:f32)
  e: f32[S, S] = add(b, d)
  f: f32[S, S] = softmax(e) {axis = -1}
  return f
}
)";

}  // namespace

Result<Answer> tessera::cli::show_ir() {
  const auto function = TESSERA_TRY(ir::parse_function(program, {.file = "demo"}));
  std::printf("A function of the IR, with a size S that is not known yet and a scalar parameter $0:\n\n%s\n",
              ir::print(*function).c_str());
  const auto smaller = ir::eliminate_common_subexpressions(function, [](const ir::Expr&) { return true; });
  std::printf("What is computed twice is found by hash and confirmed by equality:\n\n%s\n",
              ir::print(*smaller).c_str());
  const auto mismatch = ir::first_mismatch(*function, *smaller, ir::CompareMode::strict);
  std::printf("The two differ first at\n  %s\n\nstructural hashes\n  %s\n  %s\n",
              mismatch ? mismatch->to_text().c_str() : "nowhere",
              ir::structural_hash(*function, ir::CompareMode::strict).to_hex().c_str(),
              ir::structural_hash(*smaller, ir::CompareMode::strict).to_hex().c_str());
  return Answer::yes;
}

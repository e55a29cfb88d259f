// A bounded run of the fuzzer from seed 1 or TESSERA_SEED, and the programs it found before. tools/fuzz goes
// on.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/ir/print.h"
#include "tests/differential/check.h"
#include "tests/support/repeats.h"

using namespace tessera;
using namespace tessera::differential;
namespace fs = std::filesystem;

namespace {

TEST(Differential, FoundProgramsStayRight) {
  for (const auto& entry : fs::directory_iterator(TESSERA_SOURCE_DIR "/tests/differential/found")) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path().filename());
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const auto found = read_case(text.str());
    ASSERT_TRUE(found) << found.error().to_text();
    const Verdict verdict = check(found->program, found->variant);
    EXPECT_TRUE(verdict.ran);
    EXPECT_FALSE(verdict.failure) << *verdict.failure;
  }
}

struct Kind {
  const char* name;
  ProgramOptions options;
  const char* device = "reference";
};

class RandomPrograms : public testing::TestWithParam<Kind> {};

TEST_P(RandomPrograms, AgreeInAllRuns) {
  const char* given = std::getenv("TESSERA_SEED");
  const std::uint64_t first = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  constexpr std::uint64_t programs = fixture::repeats(300U);
  std::uint64_t ran = 0, vacuous = 0, seed = first;
  for (; ran < programs; ++seed) {
    ASSERT_LT(seed - first, 2 * programs) << "too few of them run";
    const Program program = random_program(seed, GetParam().options);
    const Variant variant = random_variant(seed, GetParam().options.numbers, GetParam().device);
    const Verdict verdict = check(program, variant);
    ran += verdict.ran ? 1 : 0;
    vacuous += verdict.is_vacuous ? 1 : 0;
    ASSERT_FALSE(verdict.failure) << "TESSERA_SEED=" << seed << "\n"
                                  << *verdict.failure << "\n"
                                  << ir::print(*program.function);
  }
  std::printf("%s: %llu programs, %llu with bounds that say nothing, seeds %llu to %llu\n", GetParam().name,
              static_cast<unsigned long long>(ran), static_cast<unsigned long long>(vacuous),
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(seed - 1));
  // A judge that says nothing finds nothing.
  EXPECT_LE(vacuous, ran / (GetParam().options.numbers == Numbers::continuous ? 50 : 8) + 2);
}

constexpr ProgramOptions continuous{.numbers = Numbers::continuous};
constexpr ProgramOptions symbolic{.symbolic = true};
constexpr ProgramOptions both{.numbers = Numbers::continuous, .symbolic = true};

INSTANTIATE_TEST_SUITE_P(Differential, RandomPrograms,
                         testing::Values(Kind{"any", {}}, Kind{"continuous", continuous},
                                         Kind{"symbolic", symbolic}, Kind{"continuous_and_symbolic", both},
                                         Kind{"any_on_cpu", {}, "cpu"},
                                         Kind{"continuous_on_cpu", continuous, "cpu"},
                                         Kind{"symbolic_on_cpu", symbolic, "cpu"},
                                         Kind{"continuous_and_symbolic_on_cpu", both, "cpu"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

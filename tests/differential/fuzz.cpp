// The fuzzer: random programs until the time is over; the first that fails is reduced and written as a file.
// Or random graph descriptions, whose seeds say all that is to say.
//
//   tessera_fuzz --minutes 10 --seed 1 --device cpu --out tests/differential/found
//   tessera_fuzz --minutes 10 --kind descriptions
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tessera/base/text.h"
#include "tessera/engine/devices.h"
#include "tests/differential/check.h"
#include "tests/differential/description_check.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

struct Arguments {
  double minutes = 1;
  std::uint64_t programs = ~std::uint64_t{0};  ///< at most
  std::uint64_t seed = 1;
  std::string out = ".";
  std::string keep;  ///< a file that gets each program before it runs, for those that crash
  std::string device = "reference";
  std::string kind = "programs";
  std::uint64_t most_failures = 1;
};

void set(Arguments& out, const std::string& name, const char* value) {
  if (name == "--minutes")
    out.minutes = std::atof(value);
  else if (name == "--programs")
    out.programs = std::strtoull(value, nullptr, 10);
  else if (name == "--seed")
    out.seed = std::strtoull(value, nullptr, 10);
  else if (name == "--device")
    out.device = value;
  else if (name == "--kind" && (value == std::string("programs") || value == std::string("descriptions")))
    out.kind = value;
  else if (name == "--out")
    out.out = value;
  else if (name == "--keep")
    out.keep = value;
  else if (name == "--failures")
    out.most_failures = std::strtoull(value, nullptr, 10);
  else
    throw std::invalid_argument(cat("unknown option '", name, " ", value, "'"));
}

Arguments parse(int argc, char** argv) {
  Arguments out;
  if (argc % 2 == 0) throw std::invalid_argument(cat("no value of '", argv[argc - 1], "'"));
  for (int i = 1; i < argc; i += 2) set(out, argv[i], argv[i + 1]);
  return out;
}

/// What reads memory that it did not write, or that it has given up, shall see garbage and not what happens
/// to be there: mostly the right numbers of the run before.
void fill_memory_with_garbage() {
#if defined(M_PERTURB)
  mallopt(M_PERTURB, 0xA5);
#endif
}

struct Counts {
  std::uint64_t ran = 0, failed = 0;
  /// Programs that were run and not judged: all, and those that may round.
  std::uint64_t vacuous = 0, vacuous_continuous = 0;
};

/// Half of all programs may round, one in eight of each half has symbolic sizes.
ProgramOptions options_of(std::uint64_t seed) {
  ProgramOptions out;
  if (seed % 2 == 1) out.numbers = Numbers::continuous;
  if (seed % 16 >= 14) out.symbolic = true;
  return out;
}

void report(const Program& program, const Variant& variant, const std::string& failure, std::uint64_t seed,
            const std::string& folder) {
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), failure.c_str());
  const Program small = reduced(program, variant);
  const auto verdict = check(small, variant);
  const std::string path = cat(folder, "/seed_", seed, ".txt");
  std::ofstream(path) << write_case(small, variant, verdict.failure.value_or(failure));
  std::printf("  %s %zu statements: %s\n", verdict.failure ? "reduced to" : "did not fail again,",
              small.function->body.size(), path.c_str());
  std::fflush(stdout);
}

bool program_fails(std::uint64_t seed, const Arguments& arguments, Counts& counts) {
  const ProgramOptions options = options_of(seed);
  const Program program = random_program(seed, options);
  const Variant variant = random_variant(seed, options.numbers, arguments.device);
  if (!arguments.keep.empty()) std::ofstream(arguments.keep) << write_case(program, variant, "it runs");
  const Verdict verdict = check(program, variant);
  counts.ran += verdict.ran ? 1 : 0;
  counts.vacuous += verdict.is_vacuous ? 1 : 0;
  counts.vacuous_continuous += verdict.is_vacuous && options.numbers == Numbers::continuous ? 1 : 0;
  if (verdict.failure) report(program, variant, *verdict.failure, seed, arguments.out);
  return verdict.failure.has_value();
}

/// Its seed is all of it: the file is a line that the test `differential` runs again.
bool description_fails(std::uint64_t seed, const Arguments& arguments, Counts& counts) {
  const DescriptionVerdict verdict = check_description(seed);
  counts.ran += verdict.ran ? 1 : 0;
  if (verdict.failure) {
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), verdict.failure->c_str());
    std::ofstream(cat(arguments.out, "/description_", seed, ".seed"))
        << seed << "\n# " << *verdict.failure << "\n";
  }
  return verdict.failure.has_value();
}

int run(const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double, std::ratio<60>>(arguments.minutes));
  (void)value_or_throw(engine::find_device(arguments.device));
  const auto begin = Clock::now();
  Counts counts;
  std::uint64_t seed = arguments.seed;
  for (; Clock::now() < end && counts.ran < arguments.programs && counts.failed < arguments.most_failures;
       ++seed)
    counts.failed += (arguments.kind == "programs" ? program_fails(seed, arguments, counts)
                                                   : description_fails(seed, arguments, counts))
                         ? 1
                         : 0;
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%s\n", cat(counts.ran, " ", arguments.kind, " ran, ", counts.failed, " failed, ",
                          counts.vacuous, " with bounds that say nothing (", counts.vacuous_continuous,
                          " of those that may round), seeds ", arguments.seed, " to ", seed - 1, ", ",
                          static_cast<double>(counts.ran) / seconds, " a second")
                          .c_str());
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  fill_memory_with_garbage();
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fuzz: %s\n", e.what());
    return 2;
  }
}

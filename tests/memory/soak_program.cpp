// Repeats one pattern and says whether memory stayed as it was: tessera_soak_program PATTERN SECONDS. Without
// arguments it lists the patterns. Its exit status is 0 if memory is flat, 1 if it grew. tools/soak runs it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/memory/patterns.h"
#include "tests/support/resident.h"

using namespace tessera::fixture;

namespace {

using Clock = std::chrono::steady_clock;

/// The most that was resident in each quarter of the time.
struct Course {
  std::int64_t evaluations = 0;
  std::int64_t quarters[4] = {};

  /// Tables and pools fill in the first half. The system gives large pages.
  [[nodiscard]] bool is_flat() const { return quarters[3] <= quarters[1] + quarters[1] / 50 + 8 * MiB; }
};

/// At least one round in each quarter, however long it takes.
Course run(const Round& round, double seconds) {
  Course out;
  const auto begin = Clock::now();
  for (int quarter = 0; quarter < 4;) {
    out.evaluations += round();
    out.quarters[quarter] = std::max(out.quarters[quarter], resident_bytes());
    const double part = std::chrono::duration<double>(Clock::now() - begin).count() / seconds;
    if (part * 4 >= quarter + 1) ++quarter;
  }
  return out;
}

std::string mebibytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", in_mebibytes(bytes));
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    for (const Pattern& pattern : patterns())
      std::printf("%-20s %s\n", std::string(pattern.name).c_str(), std::string(pattern.what).c_str());
    return count == 1 ? 0 : 2;
  }
  const Course course = run(begin_pattern(arguments[1]), std::max(1.0, std::atof(arguments[2])));
  const bool is_flat = course.is_flat() || !resident_is_judged;
  std::printf("%-20s %12lld  %12s  %12s  %s\n", arguments[1], static_cast<long long>(course.evaluations),
              mebibytes(course.quarters[1]).c_str(), mebibytes(course.quarters[3]).c_str(),
              !resident_is_judged ? "not judged"
              : is_flat           ? "flat"
                                  : "GREW");
  return is_flat ? 0 : 1;
}

#include <cmath>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/engine/autotune.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

std::string number_text(double ns) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", ns);
  return digits;
}

/// "cut 1,2|3 predicted 1200 measured 900 best 950 kept"
Result<TuningTrial> parse_trial(const std::string& line, std::size_t statements) {
  const auto wrong = [&] {
    return Error(ErrorCode::parse, cat("'", printable(shortened(line, 60)), "' is no cut"));
  };
  std::istringstream words(line);
  std::string cut, predicted, measured, best, kept, rest;
  TuningTrial out;
  words >> rest >> cut >> predicted >> out.predicted_ns >> measured >> out.measured_ns >> best >>
      out.best_ns >> kept;
  const bool has_words = rest == "cut" && predicted == "predicted" && measured == "measured" &&
                         best == "best" && (kept == "kept" || kept == "left");
  if (!words || !has_words || words >> rest) return wrong();
  out.is_kept = kept == "kept";
  const std::size_t bar = cut.find('|');
  if (bar == std::string::npos) return wrong();
  for (auto [part, to] :
       {std::pair(cut.substr(0, bar), &out.cut.before), {cut.substr(bar + 1), &out.cut.behind}}) {
    std::istringstream numbers(part);
    for (std::string number; std::getline(numbers, number, ',');) {
      std::istringstream digits(number);
      std::uint32_t statement = 0;
      if (!(digits >> statement) || !digits.eof() || statement >= statements) return wrong();
      to->push_back(statement);
    }
    if (to->empty()) return wrong();
  }
  return out;
}

}  // namespace

std::string tessera::engine::to_text(const Tuning& tuning) {
  if (!tuning.why_not.empty()) return cat("not measured: ", tuning.why_not, "\n");
  std::string out = cat("predicted ", number_text(tuning.predicted_ns), "\n");
  for (const TuningTrial& trial : tuning.trials)
    out += cat("cut ", join(trial.cut.before, ","), "|", join(trial.cut.behind, ","), " predicted ",
               number_text(trial.predicted_ns), " measured ", number_text(trial.measured_ns), " best ",
               number_text(trial.best_ns), trial.is_kept ? " kept" : " left", "\n");
  return out;
}

Result<Tuning> tessera::engine::parse_tuning(std::string_view text, std::size_t statements) {
  std::istringstream lines{std::string(text)};
  std::string line, word, rest;
  std::getline(lines, line);
  std::istringstream words(line);
  Tuning out;
  words >> word >> out.predicted_ns;
  if (!words || word != "predicted" || words >> rest || !std::isfinite(out.predicted_ns))
    return Error(ErrorCode::parse, cat("'", printable(shortened(line, 60)), "' is no prediction"));
  while (std::getline(lines, line)) out.trials.push_back(TESSERA_TRY(parse_trial(line, statements)));
  return out;
}

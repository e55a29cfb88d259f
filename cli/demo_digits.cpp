#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/demo.h"
#include "cli/digit_timing.h"
#include "cli/progress.h"
#include "tessera/base/json.h"
#include "tessera/base/text.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using namespace tessera::cli;
using End = DigitTraining::End;

namespace {

constexpr const char* default_checkpoint = "tessera-digits.safetensors";
constexpr std::size_t pictures_in_a_row = 4;

volatile sig_atomic_t stop_was_asked = 0;

/// While it lives, the first Ctrl-C asks to stop; the second ends the program as ever.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    struct sigaction action {};
    action.sa_handler = [](int) { stop_was_asked = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    stop_was_asked = 0;
    sigaction(SIGINT, &action, &before_);
  }
  ~StopOnInterrupt() { sigaction(SIGINT, &before_, nullptr); }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  struct sigaction before_ {};
};

template <class... Arguments>
std::string text(const char* format, Arguments... arguments) {
  char out[256];
  std::snprintf(out, sizeof out, format, arguments...);
  return out;
}

struct TrainingOutcome {
  End end = End::finished;
  double seconds = 0;
  std::string checkpoint;  ///< where the training is kept; empty if nowhere
  DigitGuesses guesses;
  BatchTimes times;
};

void report(Progress& progress, const TrainingMoment& now) {
  const double done =
      (static_cast<double>(now.epoch) + static_cast<double>(now.batch) / static_cast<double>(now.batches)) /
      static_cast<double>(now.epochs);
  const std::string place = text("epoch %2lld/%lld  loss %.4f", static_cast<long long>(now.epoch + 1),
                                 static_cast<long long>(now.epochs), now.loss);
  if (now.accuracy)
    progress.line(place + text("  held-out %.1f %%", 100 * *now.accuracy));
  else
    progress.draw(done, place);
}

TrainingOutcome train(DigitTraining& training, const TrainingOptions& options, Output output) {
  const StopOnInterrupt interrupt;
  const auto began = std::chrono::steady_clock::now();
  TrainingOutcome out;
  {
    Progress progress(stdout);
    out.end = training.run(
        [&](const TrainingMoment& now) {
          if (output == Output::text) report(progress, now);
        },
        [] { return stop_was_asked != 0; });
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  out.checkpoint = options.checkpoint;
  if (out.end == End::stopped) {
    if (out.checkpoint.empty()) out.checkpoint = default_checkpoint;
    training.save(out.checkpoint);
  }
  out.guesses = guess(training.parameters(), training.data().held_out);
  out.times = time_batches(training);
  return out;
}

/// A few that were guessed right, then those that were not.
std::vector<std::size_t> some_of(const DigitGuesses& guesses) {
  std::vector<std::size_t> right, wrong;
  for (std::size_t i = 0; i < guesses.classes.size(); ++i)
    (guesses.classes[i] == guesses.labels[i] ? right : wrong).push_back(i);
  right.resize(std::min(right.size(), pictures_in_a_row));
  wrong.resize(std::min(wrong.size(), pictures_in_a_row));
  right.insert(right.end(), wrong.begin(), wrong.end());
  return right;
}

/// "3 (98 %)", or "3 (55 %), it is 8" below a wrong one.
std::string caption(const DigitGuesses& guesses, std::size_t index) {
  const int guessed = static_cast<int>(guesses.classes[index]),
            label = static_cast<int>(guesses.labels[index]);
  const std::string says = text("%d (%.0f %%)", guessed, 100.0 * guesses.confidence[index]);
  return guessed == label ? says : says + text(", it is %d", label);
}

void show_row(const Digits& digits, const DigitGuesses& guesses, std::span<const std::size_t> row) {
  std::vector<std::string> lines(digit_side + 1);
  for (const std::size_t index : row) {
    const auto drawn = picture(digits, index);
    for (std::size_t i = 0; i < drawn.size(); ++i) lines[i] += text("  |%-16s|", drawn[i].c_str());
    lines.back() += text("  %-18s", caption(guesses, index).c_str());
  }
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  std::printf("\n");
}

void show_pictures(const DigitTraining& training, const DigitGuesses& guesses) {
  const auto chosen = some_of(guesses);
  std::printf("\nDigits it has never seen, and what it says:\n\n");
  for (std::size_t i = 0; i < chosen.size(); i += pictures_in_a_row)
    show_row(training.data().held_out, guesses,
             std::span(chosen).subspan(i, std::min(pictures_in_a_row, chosen.size() - i)));
}

void show_engine(const DigitTraining& training, const TrainingOutcome& outcome) {
  const auto figures = stats();
  const auto memory_now = memory();
  std::printf("What the engine did\n");
  if (training.nodes_per_step() != 0)
    std::printf("  a batch      %zu nodes recorded: loss, gradients, update; one evaluation\n",
                training.nodes_per_step());
  std::printf("  compiled     a batch takes %.3f ms as a plan, %.3f ms op by op: %.1f times as fast\n",
              outcome.times.compiled, outcome.times.streamed,
              outcome.times.streamed / outcome.times.compiled);
  std::printf("  altogether   %llu evaluations, %llu kernels, %llu views\n",
              static_cast<unsigned long long>(figures.evaluations),
              static_cast<unsigned long long>(figures.kernels),
              static_cast<unsigned long long>(figures.views));
  std::printf("  plans        %llu; %llu parts of evaluations ran as plans, %llu op by op\n",
              static_cast<unsigned long long>(figures.plans),
              static_cast<unsigned long long>(figures.planned()),
              static_cast<unsigned long long>(figures.runs(engine::Tier::streamed)));
  std::printf("  time         %.2f s of training, %lld batches so far\n", outcome.seconds,
              static_cast<long long>(training.steps()));
  std::printf("  memory       %.1f KiB now, %.1f KiB at most\n", static_cast<double>(memory_now.used) / 1024,
              static_cast<double>(memory_now.peak) / 1024);
}

void show_text(const DigitTraining& training, const TrainingOutcome& outcome) {
  if (outcome.end == End::stopped)
    std::printf(
        "\nStopped in epoch %lld, after batch %lld of %lld. The training is kept in %s;\n"
        "it goes on, bit for bit, with: tessera demo --checkpoint %s\n",
        static_cast<long long>(training.epoch() + 1), static_cast<long long>(training.batch()),
        static_cast<long long>(training.batches()), outcome.checkpoint.c_str(), outcome.checkpoint.c_str());
  show_pictures(training, outcome.guesses);
  show_engine(training, outcome);
  std::printf("\n%.1f %% of the %zu held-out digits are right.\n", 100 * outcome.guesses.accuracy(),
              outcome.guesses.labels.size());
  if (outcome.end == End::finished && !outcome.checkpoint.empty())
    std::printf("The training is kept in %s.\n", outcome.checkpoint.c_str());
}

void show_json(const DigitTraining& training, const TrainingOutcome& outcome) {
  const auto figures = stats();
  const auto memory_now = memory();
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("finished", outcome.end == End::finished).member("epochs", training.epoch());
  json.member("batches", training.steps()).member("seed", training.seed());
  json.member("accuracy", outcome.guesses.accuracy()).member("held_out", outcome.guesses.labels.size());
  json.member("loss", training.loss()).member("seconds", outcome.seconds);
  json.key("checkpoint");
  outcome.checkpoint.empty() ? json.null() : json.value(outcome.checkpoint);
  json.key("engine").begin_object().member("nodes_per_batch", training.nodes_per_step());
  json.member("evaluations", figures.evaluations).member("kernels", figures.kernels);
  json.member("views", figures.views).member("plans", figures.plans).member("planned", figures.planned());
  json.member("streamed", figures.runs(engine::Tier::streamed)).member("memory", memory_now.used);
  json.member("batch_ms_compiled", outcome.times.compiled);
  json.member("batch_ms_streamed", outcome.times.streamed);
  json.member("memory_peak", memory_now.peak).end_object().end_object();
  std::printf("%s\n", json.text().c_str());
}

void show_beginning(const DigitTraining& training, const TrainingOptions& options) {
  std::printf(
      "Training on %lld handwritten digits (Alpaydin and Kaynak 1998, CC BY 4.0); %lld more are held out\n",
      static_cast<long long>(training.data().train.labels.size()),
      static_cast<long long>(training.data().held_out.labels.size()));
  if (training.was_resumed())
    std::printf("Going on with %s: %lld epochs and %lld batches are done\n", options.checkpoint.c_str(),
                static_cast<long long>(training.epoch()), static_cast<long long>(training.batch()));
  std::fflush(stdout);
}

}  // namespace

Result<Answer> tessera::cli::train_digits(const TrainingOptions& options, Output output) {
  // What is interrupted goes on bit for bit.
  if (!Engine::configure_default({.deterministic = true}))
    return Error(ErrorCode::internal, "the default engine is in use already");
  DigitTraining training(options);
  if (output == Output::text) show_beginning(training, options);
  const TrainingOutcome outcome = train(training, options, output);
  output == Output::text ? show_text(training, outcome) : show_json(training, outcome);
  return outcome.end == End::finished ? Answer::yes : Answer::no;
}

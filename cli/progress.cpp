#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace tessera::cli;

namespace {

constexpr std::size_t width = 24;

double seconds_now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(std::FILE* out) : out_(out), is_terminal_(isatty(fileno(out)) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fputc('\n', out_);
  std::fflush(out_);
}

void Progress::draw(double done, const std::string& text) {
  if (!is_terminal_) return;
  const double now = seconds_now();
  if (drawn_ && now - last_ < 0.05) return;
  last_ = now;
  const auto full = static_cast<std::size_t>(std::lround(std::clamp(done, 0.0, 1.0) * width));
  const std::string bar = std::string(full, '#') + std::string(width - full, '.');
  std::fprintf(out_, "\r[%s] %3.0f %%  %s\x1b[K", bar.c_str(), 100 * done, text.c_str());
  std::fflush(out_);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\x1b[K", out_);
  drawn_ = false;
}

void Progress::line(const std::string& text) {
  clear();
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

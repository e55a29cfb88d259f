// One line about how far something is: redrawn in place on a terminal, written line by line elsewhere.
#pragma once

#include <cstdio>
#include <string>

namespace tessera::cli {

class Progress {
 public:
  explicit Progress(std::FILE* out);
  /// Leaves the line that was drawn last.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` from 0 to 1. Drawn on a terminal only, a few times a second.
  void draw(double done, const std::string& text);
  /// A line that stays.
  void line(const std::string& text);
  /// Takes the line that was drawn away.
  void clear();

 private:
  std::FILE* out_;
  bool is_terminal_;
  bool drawn_ = false;
  double last_ = 0;  ///< when something was drawn, in seconds
};

}  // namespace tessera::cli

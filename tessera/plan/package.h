// A plan in a file: compiled once, run by other processes. docs/plan.md has the layout.
//
// A file is for the version that wrote it: what was made by another, is cut off, changed or not what a
// compiler makes is refused with a reason. Nothing that a file contains crashes the program that reads it.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"
#include "tessera/plan/program.h"

namespace tessera::plan {

/// A program with what those who run it by name need.
struct Package {
  Program program;
  std::string device;  ///< the one it was made for; others run it too, by single ops where they must
  std::vector<std::string> inputs;   ///< names
  std::vector<std::string> outputs;  ///< names
  std::vector<double> parameters;    ///< what each slot held when the program was written
  /// Outputs, by position, that the next run takes as its last inputs, which have no names: zero at first.
  std::vector<std::uint32_t> states;

  static constexpr auto fields() {
    return std::tuple{usual("device", &Package::device), usual("inputs", &Package::inputs),
                      usual("outputs", &Package::outputs), usual("parameters", &Package::parameters),
                      usual("states", &Package::states)};
  }
};

/// The bytes of a file. Fails if a step calls a function of this process that has no name in the catalogue.
[[nodiscard]] Result<std::string> to_bytes(const Package& package);

/// Constants look at `bytes` and keep them. `name` is for messages.
[[nodiscard]] Result<Package> from_bytes(const Bytes& bytes, const std::string& name);

/// Writes a file whole; a failure leaves what was there.
[[nodiscard]] Result<void> save(const Package& package, const std::string& path);

/// Maps a file: weights are read when they are used.
[[nodiscard]] Result<Package> load(const std::string& path);

/// Whether a file begins as those that save() writes. False if it cannot be read.
[[nodiscard]] bool is_package(const std::string& path);

}  // namespace tessera::plan

// A plan in a file: compiled once, run by other processes. docs/plan.md has the layout.
//
// A file is for the version that wrote it: what was made by another, is cut off, changed or not what a
// compiler makes is refused with a reason. Nothing that a file contains crashes the program that reads it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/base/result.h"
#include "tessera/plan/program.h"

namespace tessera::plan {

/// An input of one boolean that chooses among programs: a decoder has one that says whether there are words
/// before, and other shapes for each of its values.
struct Flag {
  std::uint32_t input = 0;  ///< among the inputs of the package
  std::uint32_t rank = 0;   ///< its shape is so many ones

  static constexpr auto fields() {
    return std::tuple{usual("input", &Flag::input), usual("rank", &Flag::rank)};
  }
};

/// The block that a line of the source belongs to: "encoder/layer1".
struct SourceBlock {
  std::string file;
  std::uint32_t line = 0;
  std::string block;

  static constexpr auto fields() {
    return std::tuple{usual("file", &SourceBlock::file), usual("line", &SourceBlock::line),
                      usual("block", &SourceBlock::block)};
  }
};

/// Each doubles the number of programs.
inline constexpr std::size_t most_flags = 3;

/// A program with what those who run it by name need, or one for each combination of values of its flags.
struct Package {
  std::vector<Program> programs;  ///< by the values of the flags as bits, the first of which counts least
  std::vector<Flag> flags;        ///< by input; the programs do not have them as inputs
  std::string device;  ///< the one it was made for; others run it too, by single ops where they must
  std::vector<std::string> inputs;   ///< names, also of flags
  std::vector<std::string> outputs;  ///< names
  /// What each slot held when the program was written, as ir::number_bits.
  std::vector<std::uint64_t> parameters;
  /// Outputs, by position, that the next run takes as its last inputs, which have no names: zero at first.
  std::vector<std::uint32_t> states;
  std::vector<SourceBlock> blocks;  ///< of lines that have one; of a line that has several, each

  static constexpr auto fields() {
    return std::tuple{usual("flags", &Package::flags),           usual("device", &Package::device),
                      usual("inputs", &Package::inputs),         usual("outputs", &Package::outputs),
                      usual("parameters", &Package::parameters), usual("states", &Package::states),
                      usual("blocks", &Package::blocks)};
  }

  /// How many values the flags can have together.
  [[nodiscard]] std::size_t variants() const { return std::size_t{1} << flags.size(); }
};

/// The type of a flag.
[[nodiscard]] op::ValueType type_of(const Flag& flag);

/// The types of all inputs that have names, as the first program has them.
[[nodiscard]] op::ValueTypes input_types(const Package& package);

/// Whether flags with these values as bits have this one set.
[[nodiscard]] constexpr bool is_set(std::size_t variant, std::size_t flag) {
  return (variant >> flag & 1) != 0;
}

/// "use_cache = true, first = false", of flags among these inputs; empty if there are none.
[[nodiscard]] std::string variant_text(std::span<const std::string> inputs, std::span<const Flag> flags,
                                       std::size_t variant);

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

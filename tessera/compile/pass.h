// What a pass is: a function from a function to one that computes the same. It returns the very object it got
// if there is nothing to do. It may look at constants, never at the value of a parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/ir/function.h"
#include "tessera/op/call_info.h"

namespace tessera::compiler {

/// How far the result of a float program may move. Each allows what those before it allow.
enum class FloatRules : std::uint8_t {
  exact,     ///< the same bits, up to which NaN a NaN is
  rounding,  ///< rounded elsewhere, within the accuracy that the ops state; NaN, infinities and zeros stay
  fast,      ///< as if numbers were real: reassociation, -0 is 0, no NaN and no infinity
};

struct PassOptions {
  FloatRules floats = FloatRules::rounding;
  /// A folded constant may have this many bytes, or as many as what it is folded from.
  std::int64_t fold_bytes = 4096;
  /// What one run of the pass may compute at compile time, in elements touched.
  std::int64_t fold_work = 64'000'000;
  /// Constants of 8 bits that are made wider for a product are not folded: the target reads them as they are.
  bool keeps_narrow_factors = false;
  /// Whether the target has a kernel for this composite call; the others are written out as their parts.
  /// Null: it has one for all.
  std::function<bool(const op::CallInfo&)> takes = {};
  /// Copies of one cheap value that duplicate_cheap may make, and values that one copy may consist of.
  std::uint32_t most_copies = 8;
  std::uint32_t most_cheap = 8;

  /// What is made of constant weights, of 8 bits say, is computed once, though it is larger than they are:
  /// for models, which are compiled once and run often. Folding then takes up to half a second.
  void fold_weights() {
    fold_bytes = std::int64_t{1} << 26;
    fold_work = std::int64_t{1} << 29;
  }
};

/// One rewrite that a pass made: what, and for which line of the program.
struct Note {
  std::string what;
  ir::Span at;
};

/// What a pass is given beside the function. One per run of a pass.
class PassContext {
 public:
  explicit PassContext(const PassOptions& options) : options_(options) {}

  [[nodiscard]] const PassOptions& options() const { return options_; }
  /// Says that something was rewritten. Beyond a thousand, only the number is kept.
  void note(std::string_view what, const ir::Span& at) {
    if (++count_ <= most_notes) notes_.push_back({std::string(what), at});
  }
  [[nodiscard]] const std::vector<Note>& notes() const { return notes_; }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t most_notes = 1000;

  const PassOptions& options_;
  std::vector<Note> notes_;
  std::size_t count_ = 0;
};

/// Notes every statement of `before` whose values are not in `after`.
void note_missing(const ir::Function& before, const ir::Function& after, std::string_view why,
                  PassContext& context);

using PassFunction = Result<ir::FunctionRef> (*)(const ir::FunctionRef& function, PassContext& context);

}  // namespace tessera::compiler

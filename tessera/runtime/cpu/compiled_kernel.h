// A kernel that runs by generated code where there is some, and by the interpreter where there is none: the
// same results within the stated accuracy, in the same form.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tessera/kernel/interpreter.h"
#include "tessera/runtime/code_store.h"
#include "tessera/runtime/cpu/codegen.h"
#include "tessera/runtime/cpu/llvm.h"
#include "tessera/runtime/cpu/object_code.h"

namespace tessera::runtime::cpu {

struct KernelOptions {
  bool compiles = true;  ///< false: the interpreter alone
  /// Products and sums are rounded one by one, as single ops do; functions are exact to two units of the last
  /// place, if the kernel was built so.
  bool is_precise = false;

  [[nodiscard]] kernel::Accuracy accuracy() const {
    return is_precise ? kernel::Accuracy::precise : kernel::Accuracy::usual;
  }
  /// Of the code that is made first; improve() makes the best. What could not be improved safely (see
  /// Llvm::outlives_program) is good at once.
  CodeQuality quality = CodeQuality::good;
  /// Where code is looked for before it is made, and put when it was; may be null. Must outlive the kernel.
  const CodeStore* store = nullptr;
};

/// Who reads results.
enum class Readers : std::uint8_t {
  later,    ///< when all of them are written
  at_once,  ///< row by row, while they lie in the cache of the thread that wrote them
};

/// One run of a compiled kernel.
struct CompiledJob {
  kernel::Job job;
  RowFunction code = nullptr;  ///< null: the interpreter runs it
  std::int64_t points = 0;     ///< of the iteration space
  /// Bytes by operand, along the lanes and along the rows of columns.
  std::vector<std::int64_t> strides = {}, row_strides = {};
  std::vector<std::int64_t> places = {};  ///< of the first point
  std::int64_t lanes = 0, rows = 1;       ///< of one item, if there is only one
  bool streams = false;                   ///< results go past the caches
  bool is_plain = false;                  ///< one item, without scalars and kept values: code needs no memory
};

/// Thread-safe.
class CompiledKernel {
 public:
  explicit CompiledKernel(kernel::Kernel kernel, KernelOptions options = {});

  [[nodiscard]] const kernel::Kernel& kernel() const { return interpreter_.kernel(); }

  /// Checks the arrays, lays out the run, and finds or makes code for it. What cannot be compiled is run by
  /// the interpreter; why_interpreted() tells the reason.
  [[nodiscard]] Result<void> prepare(std::span<const op::Array> inputs, std::span<const op::Array> outputs,
                                     CompiledJob& job, Readers readers = Readers::later);
  /// Computes some of the items; any number of threads at once, each with its own scratch.
  void run(const CompiledJob& job, std::span<const std::uint64_t> parameters, kernel::ItemRange range,
           kernel::Scratch& scratch) const;

  /// Whether improve() has something to do.
  [[nodiscard]] bool can_improve() const;
  /// Makes good code for every shape that has only code that was made fast. Returns whether there is some
  /// now; what was handed out before stays.
  bool improve();
  /// The best code for what a job has: itself, or what improve() made.
  [[nodiscard]] RowFunction best(RowFunction code) const;

  /// Why the last shape that has no code has none; empty if all have.
  [[nodiscard]] std::string why_interpreted() const;
  /// Why code could not be put into the store; empty if it could.
  [[nodiscard]] std::string why_not_stored() const;

 private:
  /// Code with how it was made: what is in the store may be better than what was asked for.
  struct Code {
    std::unique_ptr<ObjectCode> code;
    CodeQuality quality = CodeQuality::good;
    std::string why_not_stored = {};
  };
  struct Variant {
    CodeShape shape;
    std::unique_ptr<ObjectCode> code;    ///< null if it could not be made
    std::unique_ptr<ObjectCode> better;  ///< null until improve() made it
    bool can_improve = false;

    [[nodiscard]] RowFunction entry() const;
  };

  RowFunction code_for(const CompiledJob& job, bool can_repeat);
  void lay_out(CompiledJob& job) const;
  [[nodiscard]] Result<Code> compile(const CodeShape& shape, CodeQuality quality) const;
  [[nodiscard]] std::optional<Code> stored(const std::string& key) const;

  kernel::Interpreter interpreter_;
  KernelOptions options_;
  bool is_plain_;  ///< an item needs neither scalars nor memory for kept values
  mutable std::mutex mutex_;
  std::vector<Variant> variants_;
  std::string why_interpreted_, why_not_stored_;
};

/// All that the code of a plain job needs. It stays right as long as the job does; `failed` gets 1 if there
/// was no right result.
[[nodiscard]] Frame plain_frame(const CompiledJob& job, std::uint8_t& failed);

/// Prepares and runs all items on this thread.
[[nodiscard]] Result<void> run(CompiledKernel& kernel, std::span<const op::Array> inputs,
                               std::span<const op::Array> outputs, std::span<const std::uint64_t> parameters,
                               kernel::Scratch& scratch);

}  // namespace tessera::runtime::cpu

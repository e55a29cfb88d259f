// What random programs are written with: functions with their sizes, operands, and calls whose results are
// followed while they are written, so that ops with jumps get operands that are exact.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/op/ir_builder.h"
#include "tests/differential/program.h"
#include "tests/differential/random_values.h"
#include "tests/differential/wide_run.h"

namespace tessera::differential {

/// A size that types and attributes of a function may mention.
struct Size {
  Ref<ir::Var> var;
  std::optional<std::int64_t> number;  ///< in the first run, if it is known
  bool is_learned = false;             ///< computed: no input can have it
};

/// One function while it is written.
struct Scope {
  op::IrBuilder builder;
  std::vector<op::Value> pool;
  std::vector<Size> sizes;
  bool is_outer = false;
  int depth = 0;  ///< of regions that may still be opened
};

/// Which operands will do.
enum class Operands : std::uint8_t {
  any,
  exact,  ///< those that every run has bit by bit: what ops with jumps take
};

class ProgramWriter {
 protected:
  ProgramWriter(std::uint64_t seed, const ProgramOptions& options) : random_(seed), options_(options) {}

  /// Whether operands are judged before they are used: in programs that may round.
  [[nodiscard]] bool follows() const { return options_.numbers == Numbers::continuous; }
  [[nodiscard]] ir::Dtype any_dtype(op::DtypeSet set);

  // ---- sizes

  /// A size symbol of the program.
  void add_size(Scope& scope, const std::string& name, std::int64_t number);
  /// All sizes of a function as those of a body in it, and what a region hands to it.
  static void hand_sizes(const Scope& from, Scope& to);
  [[nodiscard]] static std::vector<ir::ExprRef> handed_sizes(const Scope& scope);
  /// The same over the symbols that this function has for these names.
  [[nodiscard]] static op::ValueType in_scope(op::ValueType type, const Scope& scope);
  [[nodiscard]] static op::Attributes in_scope(op::Attributes attributes, const Scope& scope);
  /// Nothing if a size is not known.
  [[nodiscard]] static std::optional<op::ValueType> with_numbers(op::ValueType type, const Scope& scope);

  // ---- operands

  /// A new value: an input, a constant, a scalar; of sizes that no input can have, a number broadcast. Empty
  /// if that is too large.
  [[nodiscard]] op::Value leaf(Scope& scope, const op::ValueType& type, double low = -2, double high = 2);
  /// A value of this type: one that is there, one made of one that is there, or a new one.
  [[nodiscard]] op::Value value(Scope& scope, const op::ValueType& type, double low = -2, double high = 2,
                                Operands operands = Operands::any);
  [[nodiscard]] op::Value number(Scope& scope, double number, ir::Dtype dtype);
  [[nodiscard]] op::Value input(Scope& scope, const op::HostTensor& tensor, const op::ValueType& type);
  [[nodiscard]] op::Value constant(Scope& scope, const op::HostTensor& tensor);
  /// Numbers for the second run.
  void set_second_parameters();

  // ---- calls

  /// Empty if the call would be wrong or large, or if nothing could be said about its results.
  op::Value call(Scope& scope, std::string_view op, std::vector<op::Value> inputs,
                 op::Attributes attributes = {});
  op::Values call_all(Scope& scope, std::string_view op, std::vector<op::Value> inputs,
                      op::Attributes attributes);
  /// Where elements are not 0, and those elements: tensors of a size that is learned.
  op::Values write_nonzero(Scope& scope, op::Value of);
  static void keep(Scope& scope, const op::Values& values);

  // ---- following

  [[nodiscard]] const op::HostTensor* tensor_of(const Scope& scope, op::Value value) const;
  void set_tensor(const Scope& scope, op::Value value, op::HostTensor tensor);
  /// Whether every run has these elements; where nothing is followed, always.
  [[nodiscard]] bool is_exact(const Scope& scope, op::Value value) const;
  /// The same elements as what a loop carries: any of its floats may be rounded.
  [[nodiscard]] op::HostTensor as_carried(const op::HostTensor& tensor);
  /// Runs the last statement, which takes these operands. Takes it back if nothing could be said about its
  /// results.
  [[nodiscard]] bool follow_last(Scope& scope, const std::vector<op::Value>& operands,
                                 const op::Values& results);

  Random random_;
  const ProgramOptions& options_;
  Program out_;

 private:
  struct SlotRange {
    bool is_float;
    double low, high;
  };
  struct Followed {
    ir::ExprRef expr;  ///< held, so that nothing else gets its address
    op::HostTensor tensor;
  };

  op::Value scalar_leaf(Scope& scope, ir::Dtype dtype, double low, double high);
  [[nodiscard]] double slot_number(const SlotRange& range);
  [[nodiscard]] std::optional<Results> followed_call(const Scope& scope, const op::Card& card,
                                                     std::span<const op::Value> inputs,
                                                     const op::Attributes& attributes);
  /// Whether bounds are known, and narrow, for all of them.
  [[nodiscard]] bool is_judged(const Results& results) const;

  std::vector<SlotRange> slots_;
  WideRun wide_;
  std::map<const ir::Expr*, Followed> tensors_;
  std::size_t learned_ = 0;
};

}  // namespace tessera::differential

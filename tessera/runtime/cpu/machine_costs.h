// What things take on this machine: what the compiler and the scheduler reckon with. Without a measurement
// they are those of a usual machine; `tessera calibrate` measures them once and keeps them in the user's
// cache.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "tessera/base/reflect.h"
#include "tessera/base/result.h"
#include "tessera/pattern/step_cost.h"
#include "tessera/runtime/code_store.h"

namespace tessera::runtime::cpu {

/// Nanoseconds, on one thread if nothing else is said.
struct MachineCosts {
  double begin_ns = 200;     ///< to begin a step of a plan
  double element_ns = 0.2;   ///< an element of a generated kernel, per op
  double product_ns = 0.02;  ///< a multiply-add of a library
  double reference_ns = 5;   ///< an element of an op without either
  double byte_ns = 0.05;     ///< to read or write a byte of memory, on all threads
  double operation_ns =
      0.01;  ///< an arithmetic operation of a generated kernel (op/arithmetic.h), on all threads

  bool operator==(const MachineCosts&) const = default;
  static constexpr auto fields() {
    return std::tuple{
        usual("begin_ns", &MachineCosts::begin_ns),     usual("element_ns", &MachineCosts::element_ns),
        usual("product_ns", &MachineCosts::product_ns), usual("reference_ns", &MachineCosts::reference_ns),
        usual("byte_ns", &MachineCosts::byte_ns),       usual("operation_ns", &MachineCosts::operation_ns)};
  }
  /// For the choice of tiles.
  [[nodiscard]] pattern::StepCosts steps() const {
    return {.step_ns = begin_ns, .byte_ns = byte_ns, .operation_ns = operation_ns};
  }
};

/// "begin_ns 300\n…": what is kept.
[[nodiscard]] std::string to_text(const MachineCosts& costs);
/// Every field once, each a positive number below a second; else an error that names the line.
[[nodiscard]] Result<MachineCosts> parse_costs(std::string_view text);

/// Where measurements are kept: one for each machine, number of threads and version.
class CostStore {
 public:
  explicit CostStore(std::string folder = default_folder()) : store_(std::move(folder)) {}
  [[nodiscard]] static std::string default_folder() { return CodeStore::default_folder("costs"); }

  /// What was measured with `threads` threads; nothing if nothing was. Fails if there is a file that cannot
  /// be believed.
  [[nodiscard]] Result<std::optional<MachineCosts>> load(unsigned threads) const;
  [[nodiscard]] Result<void> save(unsigned threads, const MachineCosts& costs) const;
  [[nodiscard]] std::string path_of(unsigned threads) const;

 private:
  CodeStore store_;
};

}  // namespace tessera::runtime::cpu

// Constants of few bits that are made wider for a product: weights of quantised models.
#pragma once

#include "tessera/ir/function.h"
#include "tessera/ir/node_table.h"

namespace tessera::compiler {

/// Which statements make a constant of 8 bits i32 that a matmul alone reads, on its right: there it may have
/// a number taken from it before. A device that multiplies bytes reads them as they are, four times as small.
class NarrowFactors {
 public:
  /// REQUIRES that the function lives as long as this.
  explicit NarrowFactors(const ir::Function& function);
  [[nodiscard]] bool has(const ir::Assign& statement);

 private:
  struct Use {
    const ir::Assign* statement = nullptr;  ///< null: there are several, or it is no call's operand
    std::size_t operand = 0;
  };
  /// The call of this op that alone reads what a statement gives, as this operand.
  [[nodiscard]] const ir::Assign* only_reader(const ir::Assign& statement, std::string_view op,
                                              std::size_t operand);

  ir::NodeTable<Use> uses_;  ///< of variables and of constants
};

}  // namespace tessera::compiler

// Random well-formed programs of the IR: every node type, symbolic sizes, nested regions, shared parts.
#pragma once

#include <cstdint>
#include <random>

#include "tessera/ir/function.h"

namespace tessera::fixture {

struct RandomIrOptions {
  int statements = 8;  ///< per function, at most
  int region_depth = 2;
  bool free_variables = true;
};

/// The same seed gives the same program.
class RandomIr {
 public:
  explicit RandomIr(std::uint64_t seed, RandomIrOptions options = {});

  /// A function, a module, a statement, an expression or a type.
  ir::NodeRef node();
  ir::FunctionRef function();
  /// A scalar expression over the free variables, with shared parts.
  ir::ExprRef scalar_expression(ir::Dtype dtype);

 private:
  struct Scope {
    std::vector<Ref<ir::Var>> sizes;
    std::vector<Ref<ir::Var>> tensors;
    std::vector<Ref<ir::Var>> scalars;  // f32
    std::vector<Ref<ir::Var>> tuples;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool chance(int percent) { return below(100) < static_cast<std::uint64_t>(percent); }
  std::string name(const char* base);
  ir::Dtype dtype();
  ir::Dim dim(const Scope& scope);
  ir::TypeRef tensor_type(const Scope& scope);
  ir::ExprRef scalar(const Scope& scope, ir::Dtype dtype, int depth);
  ir::ExprRef operand(const Scope& scope);
  ir::Attributes attributes(const Scope& scope);
  ir::AttributeValue attribute(const Scope& scope);
  ir::ExprRef dense();
  Ref<ir::Assign> statement(Scope& scope, int depth);
  Ref<ir::Assign> region(Scope& scope, int depth);
  Ref<ir::Assign> invocation(Scope& scope, int depth);
  ir::FunctionRef body(const std::vector<ir::TypeRef>& params, std::size_t own_params, bool condition,
                       int depth);
  void fill(Scope& scope, std::vector<Ref<ir::Assign>>& out, int depth);

  std::mt19937_64 random_;
  RandomIrOptions options_;
  Scope free_;
};

}  // namespace tessera::fixture

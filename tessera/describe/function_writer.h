// Writes steps of a schedule as statements of an IR function: op nodes, buffers that are zeroed, and regions
// of such. What a buffer holds is a value; writing it makes another one, so that which memory is reused is
// for the compiler to say.
//
// A region becomes one of the IR: what its branches write is its results, what they read is captured. A `for`
// whose count is in a buffer becomes a `while`, which has a limit.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/describe/uses.h"
#include "tessera/describe/validate.h"
#include "tessera/op/ir_builder.h"

namespace tessera::description {

/// What statements take from around them: what a buffer holds, or a number of a node.
struct Taken {
  static Taken content(std::uint32_t buffer) { return {false, buffer, 0}; }
  static Taken number(std::uint32_t node, std::uint32_t pin) { return {true, node, pin}; }

  bool is_number = false;
  std::uint32_t index = 0;  ///< the buffer, or the node
  std::uint32_t pin = 0;

  auto operator<=>(const Taken&) const = default;
};

/// The statements of a function, and what buffers hold after them.
struct Statements {
  op::IrBuilder builder;
  std::unordered_map<std::uint32_t, op::Value> contents = {};  ///< by buffer
  std::map<Taken, op::Value> taken = {};
  std::vector<std::uint32_t> written = {};  ///< buffers, in the order in which they first were
};

/// Why a step is no statement ("kernel node 'k', a host function"); nothing if it is one.
[[nodiscard]] std::optional<std::string> why_no_statement(const Program& program, const Step& step);

class FunctionWriter {
 public:
  /// `scopes` are those of the program's buffers, and outlive the writer.
  FunctionWriter(const Program& program, const BufferScopes& scopes) : program_(program), scopes_(scopes) {}
  virtual ~FunctionWriter() = default;

  /// Appends to the function. REQUIRES that the step is a statement.
  [[nodiscard]] Result<void> add(const Step& step) { return add(outer_, step); }

 protected:
  /// The parameter of the function, or whatever else stands for what was there before.
  virtual op::Value take(Statements& outer, const Taken& what) = 0;

  Statements& outer() { return outer_; }
  const Program& program() const { return program_; }
  [[nodiscard]] op::ValueType type_of(const Taken& what) const;

 private:
  Result<void> add(Statements& at, const Step& step);
  Result<void> add_scope(Statements& at, std::uint32_t scope);
  void add_node(Statements& at, std::uint32_t node);
  Result<void> add_region(Statements& at, std::uint32_t region);
  Result<ir::ExprRef> branches(Statements& at, std::uint32_t region,
                               const std::vector<std::uint32_t>& written);
  Result<ir::ExprRef> while_loop(Statements& at, std::uint32_t region,
                                 const std::vector<std::uint32_t>& written);
  Result<ir::ExprRef> for_loop(Statements& at, std::uint32_t region,
                               const std::vector<std::uint32_t>& written);
  /// What a loop carries, as parameters of its body.
  std::vector<op::Value> carry(Statements& body, const std::vector<std::uint32_t>& written) const;
  /// One iteration, and what it carries on. `number` is that of the iteration, where somebody asks for it.
  Result<std::vector<op::Value>> iterate(Statements& body, std::uint32_t region,
                                         const std::vector<std::uint32_t>& written, op::Value number);
  /// What bodies of a region capture, as it is where the region stands.
  std::vector<ir::ExprRef> exprs(Statements& at, const std::set<Taken>& captures);

  op::Value content(Statements& at, std::uint32_t buffer);
  op::Value value(Statements& at, const Taken& what);
  static void write(Statements& at, std::uint32_t buffer, op::Value value);
  /// What a region shows to those around it of what it writes.
  [[nodiscard]] std::vector<std::uint32_t> written_by(std::uint32_t region) const;
  [[nodiscard]] bool is_inside(std::uint32_t scope, std::uint32_t region) const;
  [[nodiscard]] ir::Span span_of(const Place& place);

  const Program& program_;
  const BufferScopes& scopes_;
  std::unordered_map<std::uint32_t, Ref<ir::SourceFile>> files_;
  Statements outer_;
};

}  // namespace tessera::description

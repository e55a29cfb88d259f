#include "tessera/compile/region_kernels.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tessera/kernel/binding.h"
#include "tessera/kernel/build.h"
#include "tessera/op/ir_builder.h"

using namespace tessera;
using namespace tessera::compiler;
using pattern::NodeId;

namespace {

/// Points of a kernel for each of its largest op's.
constexpr double most_repeats = 4;
/// What a size symbol is in such a comparison.
constexpr std::int64_t example_size = 4096;
/// More do not fit in a number.
constexpr double most_points = 1e17;

double points_of(const op::Extents& shape) {
  double out = 1;
  for (const std::int64_t size : shape) out *= static_cast<double>(size);
  return out;
}

/// An array of the type, with a number for each size symbol, and without elements.
op::Array example_of(const ir::Var& var) {
  const auto type = op::value_type(*var.type);
  op::Extents shape;
  for (const ir::Dim& dim : type->shape) {
    const auto size = ir::evaluate(dim, [](const ir::Var&) { return std::optional(example_size); });
    shape.push_back(std::max<std::int64_t>(size.value_or(example_size), 1));
  }
  if (points_of(shape) > most_points) std::fill(shape.begin(), shape.end(), 1);  // which fits nothing
  return {type->dtype, op::contiguous(shape), nullptr};
}

/// Whether the kernel goes over many more points than any of its ops: a mean over everything, say, that it
/// would compute again for each element.
bool repeats_much(const kernel::Kernel& kernel, const ir::Function& ops) {
  if (!kernel.reduces() || kernel.outer_axes == 0) return false;
  std::vector<op::Array> inputs, results;
  for (const auto& param : ops.params) inputs.push_back(example_of(*param));
  for (const ir::ExprRef& result : ops.results)
    results.push_back(example_of(static_cast<const ir::Var&>(*result)));
  double most = 1;
  const auto see = [&](const op::Array& array) { most = std::max(most, points_of(array.shape())); };
  std::for_each(inputs.begin(), inputs.end(), see);
  for (const auto& statement : ops.body)
    for (const auto& target : statement->targets) see(example_of(*target));
  kernel::Binding bound;
  if (!kernel::bind(kernel, inputs, results, bound)) return false;
  return static_cast<double>(bound.outer_points()) * static_cast<double>(bound.reduced_points()) >
         most_repeats * most;
}

}  // namespace

/// Writes the key of one region.
class RegionKernels::KeyWriter {
 public:
  KeyWriter(const pattern::Graph& graph, const ir::Function& ops) : graph_(graph), ops_(ops) {
    for (const auto& param : ops.params) is_open_.insert(param.get());
  }

  void add(NodeId node, const ir::Assign& statement) {
    const auto& args = static_cast<const ir::Call&>(*statement.value).args;
    const auto inputs = graph_.inputs(node);
    words_.insert(words_.end(),
                  {graph_.op(node), graph_.attributes_id(node), static_cast<std::uint32_t>(args.size())});
    for (std::size_t i = 0; i < args.size(); ++i) add_operand(*args[i], inputs[i]);
    for (std::uint32_t k = 0; k < statement.targets.size(); ++k) {
      const ir::Var& target = *statement.targets[k];
      const bool escapes = results_ < ops_.results.size() && ops_.results[results_].get() == &target;
      if (escapes) ++results_;
      words_.push_back(escapes ? 1 : 0);
      add_value(target, graph_.result(node, k));
    }
  }
  [[nodiscard]] Key finish() && { return std::move(words_); }

 private:
  void add_operand(const ir::Expr& operand, pattern::ValueId value) {
    const auto* var = ir::as<ir::Var>(operand);
    if (const auto known = numbers_.find(var); known != numbers_.end())
      words_.push_back(known->second);
    else if (is_open_.erase(var) != 0)
      add_value(*var, value);
    else
      words_.insert(words_.end(), {pattern::none, value});  // a scalar: the kernel computes it
  }
  /// What is met for the first time.
  void add_value(const ir::Var& var, pattern::ValueId value) {
    const auto number = static_cast<std::uint32_t>(numbers_.size());
    const pattern::ValueType& type = graph_.type(value);
    numbers_.emplace(&var, number);
    words_.insert(words_.end(),
                  {number, static_cast<std::uint32_t>(var.type->kind()),
                   type.dtype ? static_cast<std::uint32_t>(*type.dtype) : pattern::none, type.shape});
  }

  const pattern::Graph& graph_;
  const ir::Function& ops_;
  Key words_;
  std::unordered_map<const ir::Var*, std::uint32_t> numbers_;
  std::unordered_set<const ir::Var*> is_open_;  ///< parameters that were not read yet
  std::size_t results_ = 0;                     ///< that were met; they stand in the order of the statements
};

std::shared_ptr<const kernel::Kernel> RegionKernels::of(std::span<const std::uint32_t> statements,
                                                        const ir::Function& ops) {
  KeyWriter key(graph_, ops);
  for (std::size_t i = 0; i < statements.size(); ++i) key.add(statements[i], *ops.body[i]);
  const auto [place, is_new] = kernels_.try_emplace(std::move(key).finish());
  if (!is_new) return place->second;
  auto built = kernel::build(ops);
  if (built && !repeats_much(*built, ops))
    place->second = std::make_shared<const kernel::Kernel>(*std::move(built));
  return place->second;
}

#include "tessera/autodiff/halves.h"

#include <algorithm>

#include "tessera/autodiff/simplify.h"
#include "tessera/ir/node_table.h"
#include "tessera/ir/uses.h"

using namespace tessera;
using namespace tessera::autodiff;

namespace {

class Cut {
 public:
  Cut(const ir::Function& whole, const ir::Function& function, std::size_t forward_count)
      : whole_(whole), function_(function), forward_count_(forward_count) {}

  Halves run() {
    for (const auto& result : whole_.results) need(*result);
    for (std::size_t i = whole_.body.size(); i-- > 0;) {
      const ir::Assign& statement = *whole_.body[i];
      if (!is_needed(statement)) continue;
      if (i < forward_count_ && can_be_kept(statement)) {
        keep(statement);
      } else {
        backward_.push_back(whole_.body[i]);
        need(*statement.value);
        for (const auto& target : statement.targets) need(*target->type);
      }
    }
    std::reverse(backward_.begin(), backward_.end());
    std::reverse(kept_.begin(), kept_.end());
    return {forward(), backward(), kept_};
  }

 private:
  void need(const ir::Node& node) {
    for_each_use(node, [&](const ir::Var& var) { needed_[var] = true; });
  }
  bool is_needed(const ir::Var& var) { return needed_.find(var) != nullptr; }
  bool is_needed(const ir::Assign& statement) {
    return std::any_of(statement.targets.begin(), statement.targets.end(),
                       [&](const auto& target) { return is_needed(*target); });
  }

  bool can_be_kept(const ir::Assign& statement) {
    if (!statement.value->has_variables()) return false;
    return std::all_of(statement.targets.begin(), statement.targets.end(), [&](const auto& target) {
      return !is_needed(*target) || (ir::is<ir::TensorType>(target->type) && has_outer_sizes(*target->type));
    });
  }
  bool has_outer_sizes(const ir::Type& type) const {
    bool out = true;
    for_each_use(type, [&](const ir::Var& var) {
      out = out && std::any_of(function_.dims.begin(), function_.dims.end(),
                               [&](const auto& dim) { return dim.get() == &var; });
    });
    return out;
  }
  /// In the order of a walk from the end.
  void keep(const ir::Assign& statement) {
    for (std::size_t i = statement.targets.size(); i-- > 0;)
      if (is_needed(*statement.targets[i])) kept_.push_back(statement.targets[i]);
  }

  ir::FunctionRef forward() const {
    ir::FunctionParts parts{.name = function_.name, .dims = function_.dims, .params = function_.params};
    parts.body.assign(whole_.body.begin(), whole_.body.begin() + static_cast<std::ptrdiff_t>(forward_count_));
    parts.results = function_.results;
    parts.results.insert(parts.results.end(), kept_.begin(), kept_.end());
    return simplified(ir::function(std::move(parts)));
  }

  ir::FunctionRef backward() const {
    ir::FunctionParts parts{.name = whole_.name, .dims = whole_.dims, .params = function_.params};
    parts.params.insert(parts.params.end(), kept_.begin(), kept_.end());
    parts.params.insert(parts.params.end(),
                        whole_.params.begin() + static_cast<std::ptrdiff_t>(function_.params.size()),
                        whole_.params.end());
    parts.body = backward_;
    parts.results = whole_.results;
    return simplified(ir::function(std::move(parts)));
  }

  const ir::Function& whole_;
  const ir::Function& function_;
  std::size_t forward_count_;
  ir::NodeTable<bool> needed_;
  std::vector<Ref<ir::Assign>> backward_;
  std::vector<Ref<ir::Var>> kept_;
};

}  // namespace

Halves tessera::autodiff::cut_in_halves(const ir::Function& whole, const ir::Function& function,
                                        std::size_t forward_count) {
  return Cut(whole, function, forward_count).run();
}

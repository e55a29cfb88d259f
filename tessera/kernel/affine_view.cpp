#include "tessera/kernel/affine_view.h"

#include <cstdlib>
#include <optional>

#include "tessera/ir/dim.h"

using namespace tessera;
using namespace tessera::kernel;
using op::Extents;
using op::Layout;

namespace {

/// Numbers for size symbols, given in the order in which they are met: distinct ones that much divides.
class Numbers {
 public:
  explicit Numbers(std::int64_t unit) : unit_(unit) {}

  std::optional<std::int64_t> of(const ir::Dim& dim) {
    return ir::evaluate(dim, [&](const ir::Var& var) -> std::optional<std::int64_t> {
      for (std::size_t i = 0; i < symbols_.size(); ++i)
        if (symbols_[i] == &var) return number(i);
      symbols_.push_back(&var);
      return number(symbols_.size() - 1);
    });
  }
  [[nodiscard]] bool used() const { return !symbols_.empty(); }

 private:
  [[nodiscard]] std::int64_t number(std::size_t i) const { return unit_ * static_cast<std::int64_t>(i + 2); }

  std::int64_t unit_;
  std::vector<const ir::Var*> symbols_;
};

/// One call with numbers for sizes.
struct Probe {
  op::ValueTypes types;
  op::Attributes attributes;
  Extents shape;  ///< of the source
  bool symbolic = false;

  [[nodiscard]] std::optional<Layout> view(const op::CallInfo& call, const Layout& source) const {
    try {
      return call.card().view(op::CallInfo(call.card(), types, attributes), source);
    } catch (const Exception&) {  // these numbers do not make a call
      return std::nullopt;
    }
  }
};

bool put_numbers(ir::Shape& shape, Numbers& numbers) {
  for (ir::Dim& dim : shape) {
    const auto number = numbers.of(dim);
    if (!number) return false;
    dim = *number;
  }
  return true;
}

std::optional<Probe> make_probe(const op::CallInfo& call, std::int64_t unit) {
  Numbers numbers(unit);
  Probe out{{call.inputs().begin(), call.inputs().end()}, call.attributes(), {}, false};
  for (op::ValueType& type : out.types)
    if (!put_numbers(type.shape, numbers)) return std::nullopt;
  for (auto& [name, value] : out.attributes.mutable_entries())
    if (auto* shape = std::get_if<ir::Shape>(&value); shape != nullptr && !put_numbers(*shape, numbers))
      return std::nullopt;
  out.shape = op::extents_of(out.types[0].shape);
  out.symbolic = numbers.used();
  return out;
}

struct Matrix {
  Extents shape;                                ///< of the result
  std::vector<std::vector<std::int64_t>> step;  ///< by result axis, by source axis
  std::vector<std::int64_t> start;              ///< by source axis
};

/// Strides among which no reshape finds axes that it could join.
std::int64_t odd_stride(std::size_t axis) { return 1000003 + 7919 * static_cast<std::int64_t>(axis * axis); }

std::optional<Matrix> matrix_of(const op::CallInfo& call, const Probe& probe) {
  const std::size_t rank = probe.shape.size();
  Layout odd{probe.shape, Extents(rank, 0), 0};
  for (std::size_t k = 0; k < rank; ++k) odd.strides[k] = odd_stride(k);
  const auto whole = probe.view(call, odd);
  if (!whole) return std::nullopt;
  Matrix out{whole->shape, {}, std::vector<std::int64_t>(rank, 0)};
  out.step.assign(whole->rank(), std::vector<std::int64_t>(rank, 0));
  Extents strides(whole->rank(), 0);
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < rank; ++k) {
    Layout unit{probe.shape, Extents(rank, 0), 0};
    unit.strides[k] = 1;
    const auto part = probe.view(call, unit);
    if (!part || part->rank() != whole->rank()) return std::nullopt;
    for (std::size_t j = 0; j < part->rank(); ++j) {
      out.step[j][k] = part->strides[j];
      strides[j] += part->strides[j] * odd_stride(k);
    }
    out.start[k] = part->offset;
    offset += part->offset * odd_stride(k);
  }
  return strides == whole->strides && offset == whole->offset ? std::optional(out) : std::nullopt;
}

bool keeps_order(const op::CallInfo& call, const Probe& probe) {
  const Layout source = op::contiguous(probe.shape);
  const auto view = probe.view(call, source);
  return view && view->offset == 0 && view->is_contiguous() &&
         op::element_count(view->shape) == op::element_count(source.shape);
}

/// The start that both probes agree on.
std::optional<Start> agreed_start(std::int64_t a, std::int64_t b, std::int64_t a_size, std::int64_t b_size) {
  if (a == b) return Start{a, false, true};
  if (a_size - a == b_size - b) return Start{a_size - a, true, true};
  return std::nullopt;
}

/// Whether the view goes once over all of axis `k` of the source; over an axis of size 1 it need not go.
bool walks_all(const Matrix& matrix, std::size_t k, std::int64_t size) {
  std::size_t terms = 0;
  bool all = true;
  for (std::size_t j = 0; j < matrix.step.size(); ++j) {
    if (matrix.step[j][k] == 0) continue;
    ++terms;
    all = all && std::abs(matrix.step[j][k]) == 1 && matrix.shape[j] == size;
  }
  return all && (terms == 1 || size == 1);
}

}  // namespace

ViewMap tessera::kernel::view_map(const op::CallInfo& call) {
  const auto first = make_probe(call, 240), second = make_probe(call, 336);
  if (!first || !second) return {};
  const ViewMap fallback{keeps_order(call, *first) ? ViewKind::same_order : ViewKind::other, {}, {}};
  const auto a = matrix_of(call, *first), b = matrix_of(call, *second);
  if (!a || !b || a->step != b->step) return fallback;
  ViewMap out{ViewKind::affine, {}, {}};
  for (std::size_t k = 0; k < a->start.size(); ++k) {
    const auto start = agreed_start(a->start[k], b->start[k], first->shape[k], second->shape[k]);
    if (!start) return fallback;
    out.starts.push_back(*start);
    out.starts.back().whole = walks_all(*a, k, first->shape[k]) && walks_all(*b, k, second->shape[k]);
  }
  for (std::size_t j = 0; j < a->step.size(); ++j)
    for (std::size_t k = 0; k < a->start.size(); ++k)
      if (a->step[j][k] != 0 && a->shape[j] != 1)
        out.terms.push_back({static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(k), a->step[j][k]});
  return out;
}

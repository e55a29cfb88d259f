// Control flow: the bodies are walked as often as they run. Which branch, and how often, must be known then.
#include <algorithm>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

Result<Values> tensors_of(NodeCall& node, const Items& items) {
  Values out;
  for (const Item& item : items) {
    if (item.kind != Item::Kind::tensor) return node.unsupported("a branch gives a value that is no tensor");
    out.push_back(item.value);
  }
  return out;
}

/// One branch if the condition is known; else both are written.
Result<Items> map_if(NodeCall& node) {
  const Value condition = node.in(0);
  const Graph* then = TESSERA_TRY(node.graph("then_branch"));
  const Graph* otherwise = TESSERA_TRY(node.graph("else_branch"));
  TESSERA_TRY(node.status());
  if (node.target.elements(condition))
    return node.bodies.run_body(TESSERA_TRY(node.integer_in(0)) != 0 ? *then : *otherwise, {});
  const auto written = [&](const Graph& body) -> Result<Values> {
    return tensors_of(node, TESSERA_TRY(node.bodies.run_body(body, {})));
  };
  const Values out = TESSERA_TRY(node.target.branch(
      reshape(cast(condition, Dtype::boolean), {}), [&] { return written(*then); },
      [&] { return written(*otherwise); }));
  return Items(out.begin(), out.end());
}

/// Adds the result of one iteration. It is held, since it may also be a value that the next one ends the use
/// of.
Result<void> add_row(NodeCall& node, Values& rows, const Item& item) {
  if (item.kind != Item::Kind::tensor) return node.error("a scan output of the body is no tensor");
  node.target.hold(item.value);
  rows.push_back(item.value);
  return {};
}

/// The results of all iterations, one after another along a new axis.
Value stacked(NodeCall& node, const Values& rows, std::int64_t axis, bool is_reversed) {
  Values all;
  for (Value row : rows) {
    all.push_back(node.b.call("unsqueeze", {row}, {{"axes", std::vector{axis}}}));
    node.target.release(row);
  }
  if (is_reversed) std::reverse(all.begin(), all.end());
  return node.b.call("concat", all, {{"axis", axis}});
}

/// A scan output of a loop that did not run once: no rows, of the declared shape where it is known.
Value no_rows(NodeCall& node, const ValueInfo& info) {
  Shape shape{Dim(0)};
  if (info.type.shape)
    for (const DeclaredDim& dim : *info.type.shape)
      shape.emplace_back(std::holds_alternative<std::int64_t>(dim) ? std::get<std::int64_t>(dim) : 0);
  return op::full(node.b, 0, {info.type.dtype.value_or(Dtype::f32), shape});
}

Result<bool> is_true(NodeCall& node, const Item& item) {
  if (item.kind != Item::Kind::tensor) return node.error("the condition of the loop is no tensor");
  const auto elements = integers_of(TESSERA_TRY(node.elements_of(item.value, "the condition of the loop")));
  if (elements.size() != 1) return node.error("the condition of the loop has ", elements.size(), " elements");
  return elements[0] != 0;
}

Result<Items> map_loop(NodeCall& node) {
  const Graph& body = *TESSERA_TRY(node.graph("body"));
  const bool has_count = node.has(0);
  const std::int64_t count = has_count ? TESSERA_TRY(node.integer_in(0)) : 0;
  const std::size_t carried_count = node.input_count() < 2 ? 0 : node.input_count() - 2;
  if (body.inputs.size() != carried_count + 2 || body.outputs.size() < carried_count + 1)
    return node.error("attribute 'body' has ", body.inputs.size(), " inputs and ", body.outputs.size(),
                      " outputs, which do not fit ", carried_count, " carried values");
  Items carried;
  for (std::size_t i = 0; i < carried_count; ++i) carried.push_back(node.item(2 + i));
  std::vector<Values> rows(body.outputs.size() - 1 - carried_count);
  bool goes_on = !node.has(1) || TESSERA_TRY(is_true(node, node.item(1)));
  for (std::int64_t i = 0; goes_on && (!has_count || i < count); ++i) {
    if (i == node.bodies.limits().iterations)
      return Error(ErrorCode::limit, cat("the loop goes on after ", i, " iterations"));
    Items inputs{node.b.extent(i), node.b.constant(1, Dtype::boolean)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    Items outputs = TESSERA_TRY(node.bodies.run_body(body, std::move(inputs)));
    goes_on = TESSERA_TRY(is_true(node, outputs[0]));
    for (std::size_t k = 0; k < carried_count; ++k) carried[k] = outputs[1 + k];
    for (std::size_t k = 0; k < rows.size(); ++k)
      TESSERA_TRY(add_row(node, rows[k], outputs[1 + carried_count + k]));
  }
  for (std::size_t k = 0; k < rows.size(); ++k)
    carried.emplace_back(rows[k].empty() ? no_rows(node, body.outputs[1 + carried_count + k])
                                         : stacked(node, rows[k], 0, false));
  return carried;
}

// ---- scan

/// An attribute with one entry per scan input or output, 0 where it is not given.
Result<std::vector<std::int64_t>> per_scan(NodeCall& node, std::string_view name, std::size_t count) {
  auto out = node.integers(name);
  TESSERA_TRY(node.status());
  if (out.empty()) out.assign(count, 0);
  if (out.size() != count)
    return node.error("attribute '", name, "' has ", out.size(), " entries, expected ", count);
  return out;
}

struct ScanLayout {
  std::vector<std::int64_t> input_axes, input_directions, output_axes, output_directions;
};

Value scan_slice(NodeCall& node, Value x, std::int64_t axis, std::int64_t at) {
  return node.b.call("squeeze", {slice(x, axis, at, at + 1)}, {{"axes", std::vector{axis}}});
}

/// One scan over `scanned`; states and rows follow each other in the result.
Result<Items> run_scan(NodeCall& node, const Graph& body, Items states, const Values& scanned,
                       const ScanLayout& at) {
  std::vector<std::int64_t> axes;
  std::int64_t count = -1;
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    axes.push_back(TESSERA_TRY(node.axis(at.input_axes[i], scanned[i].rank())));
    const Dim& size = scanned[i].shape()[static_cast<std::size_t>(axes[i])];
    if (!size.is_constant()) return node.unsupported("the number of steps, ", size, ", must be known");
    if (count >= 0 && size.value() != count)
      return node.error("scan inputs have ", count, " and ", size, " steps");
    count = size.value();
  }
  if (count > node.bodies.limits().iterations)
    return Error(ErrorCode::limit, cat("the scan has ", count, " steps"));
  const std::size_t state_count = states.size();
  if (body.inputs.size() != state_count + scanned.size() || body.outputs.size() < state_count)
    return node.error("attribute 'body' has ", body.inputs.size(), " inputs, expected ",
                      state_count + scanned.size());
  std::vector<Values> rows(body.outputs.size() - state_count);
  for (std::int64_t step = 0; step < count; ++step) {
    Items inputs = states;
    for (std::size_t i = 0; i < scanned.size(); ++i)
      inputs.emplace_back(
          scan_slice(node, scanned[i], axes[i], at.input_directions[i] != 0 ? count - 1 - step : step));
    Items outputs = TESSERA_TRY(node.bodies.run_body(body, std::move(inputs)));
    for (std::size_t k = 0; k < state_count; ++k) states[k] = outputs[k];
    for (std::size_t k = 0; k < rows.size(); ++k)
      TESSERA_TRY(add_row(node, rows[k], outputs[state_count + k]));
  }
  for (std::size_t k = 0; k < rows.size(); ++k)
    states.emplace_back(rows[k].empty()
                            ? no_rows(node, body.outputs[state_count + k])
                            : stacked(node, rows[k], at.output_axes[k], at.output_directions[k] != 0));
  return states;
}

Result<std::size_t> scan_count(NodeCall& node, std::size_t inputs) {
  const std::int64_t count = node.integer("num_scan_inputs", 0);
  TESSERA_TRY(node.status());
  if (count < 1 || static_cast<std::size_t>(count) > inputs)
    return node.error("attribute 'num_scan_inputs' is ", count, ", there are ", inputs, " inputs");
  return static_cast<std::size_t>(count);
}

Result<Items> map_scan(NodeCall& node) {
  const Graph& body = *TESSERA_TRY(node.graph("body"));
  const std::size_t count = TESSERA_TRY(scan_count(node, node.input_count()));
  const std::size_t state_count = node.input_count() - count;
  if (body.outputs.size() < state_count) return node.error("attribute 'body' has too few outputs");
  const std::size_t row_count = body.outputs.size() - state_count;
  const auto axes_in = TESSERA_TRY(per_scan(node, "scan_input_axes", count));
  const auto directions_in = TESSERA_TRY(per_scan(node, "scan_input_directions", count));
  const auto axes_out = TESSERA_TRY(per_scan(node, "scan_output_axes", row_count));
  const auto directions_out = TESSERA_TRY(per_scan(node, "scan_output_directions", row_count));
  const ScanLayout layout{axes_in, directions_in, axes_out, directions_out};
  Items states;
  Values scanned;
  for (std::size_t i = 0; i < state_count; ++i) states.push_back(node.item(i));
  for (std::size_t i = state_count; i < node.input_count(); ++i) scanned.push_back(node.in(i));
  TESSERA_TRY(node.status());
  return run_scan(node, body, std::move(states), scanned, layout);
}

/// Version 8 has a batch axis in front of everything and lengths as its first input.
Result<Items> map_old_scan(NodeCall& node) {
  const Graph& body = *TESSERA_TRY(node.graph("body"));
  if (node.has(0)) return node.unsupported("input 0, lengths per batch, is given");
  if (node.input_count() < 2) return node.error("input 1 is missing");
  const std::size_t count = TESSERA_TRY(scan_count(node, node.input_count() - 1));
  const std::size_t state_count = node.input_count() - 1 - count;
  if (body.outputs.size() < state_count) return node.error("attribute 'body' has too few outputs");
  const std::size_t row_count = body.outputs.size() - state_count;
  const auto directions = TESSERA_TRY(per_scan(node, "directions", count));
  const ScanLayout layout{std::vector<std::int64_t>(count, 0), directions,
                          std::vector<std::int64_t>(row_count, 0), std::vector<std::int64_t>(row_count, 0)};
  const Value first = node.in(1);
  TESSERA_TRY(node.status());
  if (first.rank() == 0 || !first.shape()[0].is_constant())
    return node.unsupported("the batch must be a number");
  std::vector<Values> results(body.outputs.size());
  for (std::int64_t batch = 0; batch < first.shape()[0].value(); ++batch) {
    Items states;
    Values scanned;
    for (std::size_t i = 0; i < state_count; ++i)
      states.emplace_back(scan_slice(node, node.in(1 + i), 0, batch));
    for (std::size_t i = 0; i < count; ++i)
      scanned.push_back(scan_slice(node, node.in(1 + state_count + i), 0, batch));
    const Items out = TESSERA_TRY(run_scan(node, body, std::move(states), scanned, layout));
    for (std::size_t k = 0; k < out.size(); ++k) TESSERA_TRY(add_row(node, results[k], out[k]));
  }
  Items out;
  for (const Values& rows : results) out.emplace_back(stacked(node, rows, 0, false));
  return out;
}

Result<Items> map_sequence_map(NodeCall& node) {
  const Graph& body = *TESSERA_TRY(node.graph("body"));
  const std::size_t length = node.sequence(0).size();
  TESSERA_TRY(node.status());
  std::vector<Values> results(body.outputs.size());
  for (std::size_t i = 0; i < length; ++i) {
    Items inputs;
    for (std::size_t k = 0; k < node.input_count(); ++k) {
      const Item& item = node.item(k);
      if (item.kind == Item::Kind::sequence && item.sequence->size() != length)
        return node.error("input ", k, " has ", item.sequence->size(), " tensors, input 0 has ", length);
      inputs.push_back(item.kind == Item::Kind::sequence ? Item((*item.sequence)[i]) : item);
    }
    const Items out = TESSERA_TRY(node.bodies.run_body(body, std::move(inputs)));
    for (std::size_t k = 0; k < out.size(); ++k) results[k].push_back(out[k].value);
  }
  Items out;
  for (Values& values : results) out.push_back(Item::of_sequence(std::move(values)));
  return out;
}

constexpr Mapping control_table[] = {
    {"If", map_if},
    {"Loop", map_loop},
    {"Scan", map_old_scan},
    {"Scan", map_scan, 9},
    {"SequenceMap", map_sequence_map},
};

}  // namespace

std::span<const Mapping> tessera::onnx::control_mappings() { return control_table; }

#include "tessera/model/device_diff.h"

#include <cmath>
#include <limits>

using namespace tessera;
using op::HostTensor;

namespace {

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : std::numeric_limits<double>::infinity();
}

HostTensor seen(const op::Array& array) {
  return HostTensor::wrap(array.dtype, array.shape(), array.data, nullptr);
}

/// What differs most in one result, if something differs by more than the tolerance.
std::optional<DeviceDifference> compare(const op::Array& a, const op::Array& b,
                                        const DiffTolerance& tolerance) {
  const auto first = onnx::numbers_of(seen(a)), second = onnx::numbers_of(seen(b));
  std::optional<DeviceDifference> out;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double off = distance(first[i], second[i]);
    if (off <= tolerance.absolute + tolerance.relative * std::abs(first[i])) continue;
    if (out && off <= out->largest) continue;
    if (!out) out.emplace();
    out->element = static_cast<std::int64_t>(i);
    out->first = first[i], out->second = second[i], out->largest = off;
  }
  return out;
}

/// Runs calls on both devices and remembers where they are in the model.
class Comparison {
 public:
  Comparison(runtime::Device& a, runtime::Device& b, const DiffTolerance& tolerance)
      : a_(a), b_(b), tolerance_(tolerance) {}

  void at(const onnx::Node& node, std::size_t position) { node_ = &node, position_ = position; }

  Result<void> run(const op::CallInfo& call, std::span<const op::Array> inputs,
                   std::span<const op::Array> results) {
    TESSERA_TRY(a_.run(call, inputs, results));
    std::vector<HostTensor> other;
    std::vector<op::Array> arrays;
    for (const op::Array& result : results) {
      other.push_back(TESSERA_TRY(HostTensor::allocate(result.dtype, result.shape())));
      arrays.push_back(other.back().array());
    }
    auto done = b_.run(call, inputs, arrays);
    if (!done) return std::move(done).error().note(cat("on device '", b_.name(), "'"));
    ++diff.calls;
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto found = compare(results[i], arrays[i], tolerance_);
      if (!found) continue;
      ++diff.different;
      if (!diff.first) diff.first = described(*std::move(found), call, i);
      break;
    }
    return {};
  }

  DeviceDiff diff;

 private:
  DeviceDifference described(DeviceDifference found, const op::CallInfo& call, std::size_t result) const {
    found.node = onnx::describe(*node_);
    found.position = position_;
    found.op = call.card().name;
    found.result = result;
    return found;
  }

  runtime::Device &a_, &b_;
  DiffTolerance tolerance_;
  const onnx::Node* node_ = nullptr;
  std::size_t position_ = 0;
};

}  // namespace

Result<DeviceDiff> tessera::diff_devices(const onnx::Model& model, std::span<const onnx::DataValue> inputs,
                                         runtime::Device& a, runtime::Device& b,
                                         const DiffTolerance& tolerance, const onnx::RunOptions& options) {
  Comparison comparison(a, b, tolerance);
  onnx::RunOptions both = options;
  both.call = [&](const op::CallInfo& call, auto in, auto out) { return comparison.run(call, in, out); };
  both.observer = [&](const onnx::Node& node, std::size_t position) {
    comparison.at(node, position);
    if (options.observer) options.observer(node, position);
  };
  TESSERA_TRY(onnx::run(model, inputs, both));
  return comparison.diff;
}

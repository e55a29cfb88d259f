#include <charconv>
#include <chrono>
#include <cmath>

#include "cli/files.h"
#include "cli/program_file.h"
#include "cli/run_options.h"
#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/autotune.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/plan/binding.h"

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

Result<plan::Package> plan_in(const ProgramFile& file, const RunOptions& options) {
  TESSERA_TRY(check_choice(file, {.name = options.function}));
  if (file.content.empty()) return plan::load(file.path);
  return plan::from_bytes(Bytes::copy(std::as_bytes(std::span(file.content.data(), file.content.size()))),
                          shown(file.path));
}

Result<plan::Package> package_of(const RunOptions& options) {
  const ProgramFile file = TESSERA_TRY(open_program(options.file));
  if (file.kind == FileKind::plan) return plan_in(file, options);
  NamedProgram program = TESSERA_TRY(read_program(file, {.name = options.function}));
  const std::string name = options.device.empty() ? std::string(default_plan_device) : options.device;
  const auto device = TESSERA_TRY(engine::find_device(name));
  const auto tuned = options.autotune ? TESSERA_TRY(engine::autotune(program.function, *device))
                                      : engine::untuned(program.function, *device);
  auto planned = TESSERA_TRY(compiler::plan_program(tuned.function, tuned.target));
  return compiler::package(*program.function, std::move(planned.program), name,
                           {std::move(program.outputs), std::move(program.states)});
}

template <class T>
bool is_number(std::string_view text, T& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// Whether the dtype has the number; floats round it.
bool fits(double value, op::Dtype dtype) {
  if (ir::is_float(dtype)) return true;
  if (dtype == op::Dtype::boolean) return value == 0 || value == 1;
  const int bits = static_cast<int>(ir::size_of(dtype)) * 8;
  const double low = ir::is_unsigned(dtype) ? 0 : -std::ldexp(1.0, bits - 1);
  const double high = std::ldexp(1.0, ir::is_unsigned(dtype) ? bits : bits - 1);
  return value == std::floor(value) && value >= low && value < high;
}

/// The values of all slots: as they were written, or as --parameter says.
Result<std::vector<double>> parameters_of(const plan::Package& package, const RunOptions& options) {
  std::vector<double> out = package.parameters;
  std::vector<bool> is_given(out.size());
  for (const std::string& given : options.parameters) {
    const std::size_t equals = given.find('=');
    std::size_t slot = 0;
    double value = 0;
    if (equals == std::string::npos || !is_number(std::string_view(given).substr(0, equals), slot) ||
        !is_number(std::string_view(given).substr(equals + 1), value))
      return wrong("--parameter: ", in_quotes(given), " is not of the form SLOT=VALUE, or out of range");
    if (slot >= out.size())
      return wrong("--parameter: there is no slot ", slot, ", the plan has ", out.size(), " parameters");
    if (is_given[slot]) return wrong("--parameter: slot ", slot, " is given twice");
    is_given[slot] = true;
    if (const op::Dtype dtype = package.program.parameters[slot]; !fits(value, dtype))
      return wrong("--parameter: slot ", slot, " is ", dtype, ", which does not have ", in_quotes(given));
    out[slot] = value;
  }
  return out;
}

/// The inputs of a plan: read where they are given, the others random in sizes that fit.
class PlanInputs {
 public:
  PlanInputs(const plan::Package& package, const TensorSourceOptions& options)
      : package_(package), program_(package.program), options_(options), sizes_(program_.dims.size(), -1) {}

  Result<std::vector<HostTensor>> read() {
    const auto sources = TESSERA_TRY(sources_of(package_.inputs, options_.inputs));
    TESSERA_TRY(take_given_sizes());
    std::vector<HostTensor> out(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!sources[i].empty()) out[i] = TESSERA_TRY(read_one(sources[i], i));
    std::mt19937_64 random(options_.random.value_or(0));
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i].empty()) out[i] = TESSERA_TRY(random_one(i, random));
    return out;
  }

 private:
  [[nodiscard]] const op::ValueType& type(std::size_t i) const { return program_.inputs[i]; }

  Result<void> take_given_sizes() {
    for (const auto& [name, size] : TESSERA_TRY(sizes_from(options_.dims))) {
      bool is_known = false;
      for (std::size_t d = 0; d < program_.dims.size(); ++d)
        if (program_.dims[d]->name == name || is_along(name, d)) {
          sizes_[d] = size;
          is_known = true;
        }
      if (!is_known) return wrong("--dim: no input has an open size ", in_quotes(name));
    }
    return {};
  }

  /// Whether INPUT:AXIS names an axis whose size is the symbol.
  [[nodiscard]] bool is_along(const std::string& name, std::size_t d) const {
    for (std::size_t i = 0; i < package_.inputs.size(); ++i)
      for (std::size_t axis = 0; axis < type(i).rank(); ++axis)
        if (const op::Dim& dim = type(i).shape[axis]; !dim.is_constant() && dim.expr() == program_.dims[d])
          if (cat(package_.inputs[i], ":", axis) == name) return true;
    return false;
  }

  Result<HostTensor> read_one(const std::string& source, std::size_t i) {
    auto tensor = TESSERA_TRY(read_tensor(source, package_.inputs[i]));
    if (!tensor && source.ends_with(".pb")) tensor = TESSERA_TRY(read_tensor_proto(source));
    if (!tensor) return wrong("--input: ", in_quotes(source), " is neither .npy, .npz, .pb nor raw:…");
    for (std::size_t axis = 0; axis < type(i).rank() && axis < tensor->shape().size(); ++axis)
      for (std::size_t d = 0; d < program_.dims.size(); ++d)
        if (const op::Dim& dim = type(i).shape[axis]; !dim.is_constant() && dim.expr() == program_.dims[d])
          sizes_[d] = tensor->shape()[axis];
    return *std::move(tensor);
  }

  Result<HostTensor> random_one(std::size_t i, std::mt19937_64& random) const {
    if (!options_.random)
      return wrong("there is no --input for ", in_quotes(package_.inputs[i]), "; --random SEED makes one up");
    for (std::size_t d = 0; d < program_.dims.size(); ++d)
      if (sizes_[d] < 0)
        return wrong("--random: the size ", in_quotes(program_.dims[d]->name), " of input ",
                     in_quotes(package_.inputs[i]), " (", type(i), ") is open: give --dim ",
                     printable(program_.dims[d]->name), "=SIZE");
    op::Extents shape;
    for (const op::Dim& dim : type(i).shape)
      shape.push_back(TESSERA_TRY(plan::size_of(program_.dims, sizes_, dim)));
    return random_tensor(type(i).dtype, shape, random);
  }

  const plan::Package& package_;
  const plan::Program& program_;
  const TensorSourceOptions& options_;
  std::vector<std::int64_t> sizes_;  ///< by symbol; -1: not known
};

}  // namespace

Result<RunOutcome> tessera::cli::run_plan(const RunOptions& options) {
  plan::Package package = TESSERA_TRY(package_of(options));
  const auto device =
      TESSERA_TRY(engine::find_device(options.device.empty() ? package.device : options.device));
  const auto parameters = TESSERA_TRY(parameters_of(package, options));
  const auto inputs = TESSERA_TRY(PlanInputs(package, options.inputs).read());
  auto runner = TESSERA_TRY(engine::PlanRunner::create(std::move(package), *device));
  runner.set_profiling(options.profiling());
  RunOutcome out;
  std::vector<HostTensor> results;
  for (int i = 0; i < options.repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    results = TESSERA_TRY(runner.run(inputs, parameters));
    out.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  out.profile = runner.profile();
  for (std::size_t i = 0; i < results.size(); ++i)
    out.outputs.push_back({.name = runner.package().outputs[i], .tensors = {std::move(results[i])}});
  return out;
}

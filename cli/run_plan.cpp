#include <charconv>
#include <chrono>
#include <cmath>

#include "cli/compile_description.h"
#include "cli/files.h"
#include "cli/program_file.h"
#include "cli/run_options.h"
#include "tessera/base/text.h"
#include "tessera/compile/package.h"
#include "tessera/compile/plan_program.h"
#include "tessera/engine/autotune.h"
#include "tessera/engine/devices.h"
#include "tessera/engine/plan_runner.h"
#include "tessera/ir/number_bits.h"

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

Result<plan::Package> package_of(NamedProgram program, const RunOptions& options) {
  const auto device = TESSERA_TRY(chosen_device(options.device));
  std::vector<plan::Program> programs;
  for (const ir::FunctionRef& function : program.functions) {
    const auto tuned = options.autotune ? TESSERA_TRY(engine::autotune(function, *device))
                                        : engine::untuned(function, *device);
    programs.push_back(TESSERA_TRY(compiler::plan_program(tuned.function, tuned.target)).program);
  }
  return compiler::package(*program.functions[0], std::move(programs), std::string(device->name()),
                           std::move(program.names));
}

template <class T>
bool is_number(std::string_view text, T& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// Whether the dtype, of integers or booleans, has the number.
bool fits(std::uint64_t value, op::Dtype dtype) {
  if (dtype == op::Dtype::boolean) return value <= 1;
  return ir::size_of(dtype) == 8 || value >> 8 * ir::size_of(dtype) == 0;
}
bool fits(std::int64_t value, op::Dtype dtype) {
  if (!ir::is_signed_integer(dtype)) return value >= 0 && fits(static_cast<std::uint64_t>(value), dtype);
  const std::size_t unused = 64 - 8 * ir::size_of(dtype);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused == value;
}

/// The number as ir::number_bits: floats round it, integers are exact, also written as "1e3". Nothing if the
/// dtype does not have it.
std::optional<std::uint64_t> bits_of(std::string_view text, op::Dtype dtype) {
  constexpr double all_exact = 9007199254740992;  // 2^53: above it, a double is not what was written
  double number = 0;
  if (!is_number(text, number)) return std::nullopt;
  if (ir::is_float(dtype)) return ir::number_bits(number, dtype);
  std::uint64_t large = 0;
  if (ir::is_unsigned(dtype) && is_number(text, large))
    return fits(large, dtype) ? std::optional(large) : std::nullopt;
  std::int64_t integer = 0;
  if (!is_number(text, integer)) {
    if (number != std::floor(number) || std::abs(number) > all_exact) return std::nullopt;
    integer = static_cast<std::int64_t>(number);
  }
  return fits(integer, dtype) ? std::optional(static_cast<std::uint64_t>(integer)) : std::nullopt;
}

/// The values of all slots: as they were written, or as --parameter says.
Result<std::vector<std::uint64_t>> parameters_of(const plan::Package& package, const RunOptions& options) {
  std::vector<std::uint64_t> out = package.parameters;
  std::vector<bool> is_given(out.size());
  for (const std::string& given : options.parameters) {
    const std::size_t equals = given.find('=');
    std::size_t slot = 0;
    double value = 0;  // any number is of the form, "1e3" too; whether the slot has it is said below
    if (equals == std::string::npos || !is_number(std::string_view(given).substr(0, equals), slot) ||
        !is_number(std::string_view(given).substr(equals + 1), value))
      return wrong("--parameter: ", in_quotes(given), " is not of the form SLOT=VALUE, or out of range");
    if (slot >= out.size())
      return wrong("--parameter: there is no slot ", slot, ", the plan has ", out.size(), " parameters");
    if (is_given[slot]) return wrong("--parameter: slot ", slot, " is given twice");
    is_given[slot] = true;
    const op::Dtype dtype = package.programs.front().parameters[slot];
    const auto bits = bits_of(std::string_view(given).substr(equals + 1), dtype);
    if (!bits)
      return wrong("--parameter: slot ", slot, " is ", dtype, ", which does not have ", in_quotes(given));
    out[slot] = *bits;
  }
  return out;
}

Result<std::vector<HostTensor>> inputs_of(const plan::Package& package, const TensorSourceOptions& options) {
  const op::ValueTypes types = plan::input_types(package);
  InputSpecs specs;
  specs.dims = package.programs.front().dims;
  for (std::size_t i = 0; i < types.size(); ++i)
    specs.inputs.push_back({package.inputs[i], types[i], op::to_text(types[i])});
  return read_inputs(specs, options,
                     [](const std::string& source, std::size_t) -> Result<std::optional<HostTensor>> {
                       if (source.ends_with(".pb")) return TESSERA_TRY(read_tensor_proto(source));
                       return wrong("--input: ", in_quotes(source), " is neither .npy, .npz, .pb nor raw:…");
                     });
}

Result<RunOutcome> run_package(plan::Package package, const RunOptions& options) {
  const auto device =
      TESSERA_TRY(engine::find_device(options.device.empty() ? package.device : options.device));
  const auto parameters = TESSERA_TRY(parameters_of(package, options));
  const auto inputs = TESSERA_TRY(inputs_of(package, options.inputs));
  const engine::RunLimits usual;
  const engine::RunLimits limits{.work = options.work.value_or(usual.work),
                                 .seconds = options.seconds.value_or(usual.seconds)};
  auto runner = TESSERA_TRY(engine::PlanRunner::create(std::move(package), *device, limits));
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

}  // namespace

Result<RunOutcome> tessera::cli::run_plan(const RunOptions& options) {
  const ProgramFile file = TESSERA_TRY(open_program(options.file));
  TESSERA_TRY(check_choice(file, {.name = options.function}));
  if (file.kind == FileKind::plan) return run_package(TESSERA_TRY(read_plan(file)), options);
  if (file.kind == FileKind::graph) return run_graph(TESSERA_TRY(read_graph(file)), options);
  auto program = read_program(file, {.name = options.function});
  if (is_no_program(file, program)) {
    if (options.autotune)
      return wrong("--autotune: the description is no program, which is what is measured");
    const auto device = TESSERA_TRY(chosen_device(options.device));
    return run_graph(TESSERA_TRY(compile_graph(file, *device)), options);
  }
  return run_package(TESSERA_TRY(package_of(TESSERA_TRY(std::move(program)), options)), options);
}

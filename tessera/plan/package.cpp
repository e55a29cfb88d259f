#include "tessera/plan/package.h"

#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/ir/walk.h"
#include "tessera/op/catalogue.h"
#include "tessera/plan/archive_file.h"
#include "tessera/plan/archive_schema.h"
#include "tessera/plan/verify.h"

using namespace tessera;
using namespace tessera::plan;

namespace {

archive::FileForm form() {
  return {.magic = archive::program_magic, .version = 3, .schema = archive::schema()};
}

/// The first call of something that only this process knows.
Result<void> check_calls(const Plan& plan) {
  const auto check = [](std::string_view name, const op::Card* card, const ir::Span& at) -> Result<void> {
    if (card == nullptr) card = op::find_card(name);
    if (card != nullptr && op::is_in_catalogue(*card)) return {};
    return Error(ErrorCode::unsupported,
                 cat("the plan cannot be saved: '", printable(name),
                     "' is a function of this process and not an op of the catalogue"),
                 at.resolve());
  };
  for (const Step& step : plan.steps) {
    if (step.card != nullptr) TESSERA_TRY(check(step.card->name, step.card, step.span));
    if (step.function == nullptr) continue;
    for (const ir::Function* function : ir::functions_below(*step.function))
      for (const auto& statement : function->body)
        if (const auto* call = ir::as<ir::Call>(*statement->value))
          TESSERA_TRY(check(call->op, nullptr, statement->span()));
  }
  return {};
}

/// What one run gives must be what the next one takes, in sizes that never change, whatever the flags are
/// then.
Result<void> check_states(const Package& package, const Program& program) {
  const auto state = [&](const Program& of, std::size_t i) -> const op::ValueType& {
    return of.inputs[of.inputs.size() - package.states.size() + i];
  };
  const Program& first = package.programs.empty() ? program : package.programs.front();
  for (std::size_t i = 0; i < package.states.size(); ++i) {
    const op::ValueType& taken = state(program, i);
    const std::uint32_t given = package.states[i];
    if (given >= program.outputs.size() || !ir::constant_shape(taken.shape) ||
        program.type_of(program.outputs[given]) != taken || state(first, i) != taken)
      return Error(ErrorCode::parse, cat("the file is damaged: state ", i, " is no output"));
  }
  return {};
}

/// Each is an input, in their order.
Result<void> check_flags(const Package& package) {
  bool is_fine = package.flags.size() <= most_flags;
  for (std::size_t f = 0; f < package.flags.size() && is_fine; ++f)
    is_fine = package.flags[f].input < package.inputs.size() && package.flags[f].rank <= op::max_rank &&
              (f == 0 || package.flags[f - 1].input < package.flags[f].input);
  if (is_fine) return {};
  return Error(ErrorCode::parse, "the file is damaged: its flags are no inputs of it");
}

Result<Program> take_program(archive::Reader& reader, const Package& package) {
  auto out = reader.take<Program>();
  std::vector<std::shared_ptr<Plan>> plans;
  for (std::size_t p = 0; p < out.parts.size(); ++p)
    plans.push_back(std::make_shared<Plan>(reader.take<Plan>()));
  if (const auto& error = reader.failure()) return *error;
  const std::size_t taken = package.inputs.size() - package.flags.size();
  if (taken > out.inputs.size() || out.inputs.size() - taken != package.states.size() ||
      package.outputs.size() != out.outputs.size() || package.parameters.size() != out.parameters.size())
    return Error(ErrorCode::parse, "the file is damaged: not every input and output has a name");
  for (std::size_t p = 0; p < plans.size(); ++p) {
    auto fine = verify(*plans[p]);
    if (!fine) return std::move(fine).error().note(cat("part ", p + 1));
    out.parts[p].plan = std::move(plans[p]);
  }
  TESSERA_TRY(verify(out));
  TESSERA_TRY(check_states(package, out));
  return out;
}

Result<Package> read_package(const Bytes& bytes) {
  archive::Reader reader = TESSERA_TRY(archive::open_file(bytes, form()));
  auto out = reader.take<Package>();
  if (const auto& error = reader.failure()) return *error;
  TESSERA_TRY(check_flags(out));
  for (std::size_t v = 0; v < out.variants(); ++v)
    out.programs.push_back(TESSERA_TRY(take_program(reader, out)));
  if (auto error = reader.finish()) return *std::move(error);
  return out;
}

}  // namespace

op::ValueType plan::type_of(const Flag& flag) {
  return {.dtype = op::Dtype::boolean, .shape = op::Shape(flag.rank, op::Dim(1))};
}

op::ValueTypes plan::input_types(const Package& package) {
  const auto& taken = package.programs.front().inputs;
  op::ValueTypes out(taken.begin(), taken.end() - static_cast<std::ptrdiff_t>(package.states.size()));
  for (const Flag& flag : package.flags) out.insert(out.begin() + flag.input, type_of(flag));
  return out;
}

std::string plan::variant_text(std::span<const std::string> inputs, std::span<const Flag> flags,
                               std::size_t variant) {
  std::string out;
  for (std::size_t f = 0; f < flags.size(); ++f)
    out += cat(f == 0 ? "" : ", ", printable(inputs[flags[f].input]), " = ",
               is_set(variant, f) ? "true" : "false");
  return out;
}

Result<std::string> plan::to_bytes(const Package& package) {
  TESSERA_CHECK(package.programs.size() == package.variants(), "a program for all values of the flags");
  archive::Writer writer;
  writer.add(package);
  for (const Program& program : package.programs) {
    for (const Part& part : program.parts) TESSERA_TRY(check_calls(*part.plan));
    writer.add(program);
    for (const Part& part : program.parts) writer.add(*part.plan);
  }
  return archive::to_file(writer, form());
}

Result<Package> plan::from_bytes(const Bytes& bytes, const std::string& name) {
  auto out = read_package(bytes);
  if (!out) return std::move(out).error().at({printable(name), 0, 0});
  return out;
}

Result<void> plan::save(const Package& package, const std::string& path) {
  return archive::write_archive(path, TESSERA_TRY(to_bytes(package)));
}

Result<Package> plan::load(const std::string& path) {
  const Bytes bytes = TESSERA_TRY(map_file(path));
  return from_bytes(bytes, path);
}

bool plan::is_package(const std::string& path) { return archive::begins_with(path, archive::program_magic); }

#include <cstdio>

#include "cli/command.h"
#include "cli/files.h"
#include "tessera/describe/read_json.h"
#include "tessera/describe/validate.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct ValidateOptions {
  std::string file;
  std::optional<std::uint64_t> memory;
  bool json = false;
};

struct Summary {
  description::Report report;
  std::shared_ptr<const description::Program> program;
};

Result<Summary> checked(const ValidateOptions& options) {
  std::string text = TESSERA_TRY(read_text(options.file));
  auto reading = TESSERA_TRY(description::read_description(shown(options.file), std::move(text)));
  description::Limits limits;
  if (options.memory) limits.device_memory = *options.memory;
  auto validation = description::validate(
      std::make_shared<const description::Description>(std::move(reading.description)), nullptr, limits);
  Summary out{std::move(reading.problems), std::move(validation.program)};
  out.report.add(std::move(validation.report));
  if (!out.report.ok()) out.program = nullptr;
  return out;
}

/// Steps and levels of the launch and of all bodies.
std::size_t step_count(const description::Program& program) {
  std::size_t out = 0;
  for (const auto& sequence : program.schedule.sequences) out += sequence.steps.size();
  return out;
}

void print_json(const Summary& summary) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("valid", summary.report.ok());
  json.member("errors", summary.report.errors()).member("warnings", summary.report.warnings());
  json.key("diagnostics").begin_array();
  for (const auto& diagnostic : summary.report.diagnostics()) write_json(json, diagnostic);
  json.end_array();
  if (summary.program != nullptr) {
    const auto& memory = summary.program->schedule.memory;
    json.member("nodes", summary.program->graph.nodes.size()).member("steps", step_count(*summary.program));
    json.member("levels", summary.program->schedule.sequences[0].levels);
    json.key("memory").begin_object();
    json.member("peak", memory.peak())
        .member("external", memory.external_bytes)
        .member("graph", memory.own_bytes);
    json.member("temporary", memory.shared_bytes).member("lower_bound", memory.lower_bound);
    json.member("without_reuse", memory.without_reuse).end_object();
  }
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

void print_text(const Summary& summary) {
  std::string out = summary.report.to_text();
  if (summary.program != nullptr) {
    const auto& memory = summary.program->schedule.memory;
    out += cat("valid: ", summary.program->graph.nodes.size(), " nodes, ", step_count(*summary.program),
               " steps, ", summary.program->schedule.sequences[0].levels, " levels\n");
    out += cat("memory: ", memory.peak(), " bytes: external ", memory.external_bytes, ", graph ",
               memory.own_bytes, ", temporary ", memory.shared_bytes, " (at least ", memory.lower_bound,
               ", without reuse ", memory.without_reuse, ")\n");
  } else {
    out +=
        cat("not valid: ", summary.report.errors(), summary.report.errors() == 1 ? " error, " : " errors, ",
            summary.report.warnings(), summary.report.warnings() == 1 ? " warning\n" : " warnings\n");
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
}

}  // namespace

void tessera::cli::add_validate(Commands& commands) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App& command = commands.add(
      "validate", "check a graph description: every error and warning, with block, node, parameter and place",
      "  tessera validate examples/describe/particles.json                    exit 1 if it is not valid\n"
      "  tessera validate --json --memory 1000000 examples/describe/particles.json",
      [options]() -> Result<Answer> {
        const Summary summary = TESSERA_TRY(checked(*options));
        options->json ? print_json(summary) : print_text(summary);
        return summary.report.ok() ? Answer::yes : Answer::no;
      });
  command.add_option("FILE", options->file, "the description as JSON, - for standard input")->required();
  command
      .add_option("--memory", options->memory,
                  "bytes of the device it must fit into; else what the machine has")
      ->check([](const std::string& text) {
        const bool is_positive = text.find_first_not_of("0") != std::string::npos && text[0] != '-';
        return is_positive ? std::string() : cat("expected bytes, got ", printable(text));
      });
  command.add_flag("--json", options->json, "answer as JSON");
}

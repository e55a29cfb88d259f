#include <cstdio>
#include <unordered_set>

#include "cli/command.h"
#include "cli/files.h"
#include "tessera/op/op_facts.h"
#include "tessera/stream/components.h"
#include "tessera/stream/encoder.h"
#include "tessera/stream/instruction_json.h"
#include "tessera/stream/readable.h"
#include "tessera/stream/recorder.h"

using namespace tessera;
using namespace tessera::cli;
using namespace tessera::stream;

namespace {

struct ComponentReport {
  std::string signature;
  std::vector<OpIndex> ops;

  static constexpr auto fields() {
    return std::tuple{usual("signature", &ComponentReport::signature), usual("ops", &ComponentReport::ops)};
  }
};

struct SignatureReport {
  std::vector<std::string> canonical;
  std::string signature;
  std::vector<ComponentReport> components;

  static constexpr auto fields() {
    return std::tuple{usual("canonical", &SignatureReport::canonical),
                      usual("signature", &SignatureReport::signature),
                      usual("components", &SignatureReport::components)};
  }
};

/// The trace of a stream with its live values marked. Where the stream does not say which, they are those
/// that nobody reads and that were not freed.
Trace trace_of(const StreamFile& file) {
  Trace trace;
  Recorder recorder(trace);
  std::unordered_set<std::uint32_t> freed;
  for (const OwnedInstruction& instruction : file.instructions) {
    recorder.record(instruction.view());
    for (const ValueId id : instruction.frees)
      if (const auto value = recorder.find(id); value && value->is_result()) freed.insert(value->index());
  }
  for (std::uint32_t result = 0; !file.has_live && result < trace.result_count(); ++result)
    if (!trace.is_read(result) && !freed.contains(result))
      trace.set_live(stream::Operand(stream::Operand::Kind::result, result));
  for (const ValueId id : file.live)
    if (const auto value = recorder.find(id); value && value->is_result()) trace.set_live(*value);
  return trace;
}

SignatureReport signature_report(const Trace& trace) {
  SignatureReport out;
  Encoder encoder;
  const Encoding& whole = encoder.encode(trace);
  out.signature = whole.signature.to_hex();
  out.canonical = readable(trace, whole);
  Components components;
  components.partition(trace);
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto ops = components.ops(i);
    out.components.push_back({encoder.encode(trace, ops).signature.to_hex(), {ops.begin(), ops.end()}});
  }
  return out;
}

void print(const SignatureReport& report) {
  for (const std::string& line : report.canonical) std::printf("%s\n", line.c_str());
  std::printf("signature %s\n", report.signature.c_str());
  for (const ComponentReport& component : report.components)
    std::printf("component %s ops %s\n", component.signature.c_str(), join(component.ops, " ").c_str());
}

}  // namespace

void tessera::cli::add_signature(Commands& commands) {
  struct Options {
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  const auto run = [options]() -> Result<Answer> {
    std::string text = TESSERA_TRY(read_text(options->file));
    const auto document = TESSERA_TRY(JsonDocument::parse(shown(options->file), std::move(text)));
    const StreamFile file = TESSERA_TRY(InstructionReader(*op::op_facts()).stream(document.cursor()));
    const SignatureReport report = signature_report(trace_of(file));
    if (options->json) {
      JsonWriter json;
      std::printf("%s\n", write_json(json, report).text().c_str());
    } else
      print(report);
    return Answer::yes;
  };
  CLI::App& command =
      commands.add("signature", "canonical form, signature and independent parts of an op stream",
                   "  tessera signature examples/stream/two_graphs.json\n"
                   "  tessera signature --json examples/stream/two_graphs.json",
                   run);
  command.add_option("FILE", options->file, "the stream as JSON, - for standard input")->required();
  command.add_flag("--json", options->json, "answer as JSON");
}

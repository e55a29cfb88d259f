#include <cstdio>

#include "cli/command.h"
#include "cli/files.h"
#include "tessera/op/op_facts.h"
#include "tessera/stream/hot_path_detector.h"
#include "tessera/stream/instruction_json.h"

using namespace tessera;
using namespace tessera::cli;
using namespace tessera::stream;

namespace {

struct UnitReport {
  std::string signature;
  std::uint64_t length = 0;
  std::uint64_t count = 0;
  std::uint64_t first_hot_at = 0;

  static constexpr auto fields() {
    return std::tuple{usual("signature", &UnitReport::signature), usual("length", &UnitReport::length),
                      usual("count", &UnitReport::count), usual("first_hot_at", &UnitReport::first_hot_at)};
  }
};

struct HotReport {
  std::uint64_t instructions = 0;
  std::uint64_t hot_instructions = 0;
  std::vector<UnitReport> units;

  static constexpr auto fields() {
    return std::tuple{usual("instructions", &HotReport::instructions),
                      usual("hot_instructions", &HotReport::hot_instructions),
                      usual("units", &HotReport::units)};
  }
};

/// The same error in a file in which the text it was found in begins at line `first_line`.
Error moved(const Error& error, std::uint32_t first_line) {
  SourceSpan at = error.span();
  at.line += first_line - 1;
  Error out(error.code(), error.message(), at);
  for (const std::string& note : error.notes()) (void)std::move(out).note(note);
  return out;
}

Result<OwnedInstruction> read_line(const std::string& file, std::string_view line,
                                   InstructionReader& reader) {
  const auto document = TESSERA_TRY(JsonDocument::parse(file, std::string(line)));
  return reader.instruction(document.cursor());
}

Result<void> record_lines(const std::string& path, HotPathDetector& detector) {
  InstructionReader reader(*op::op_facts());
  LineReader lines = TESSERA_TRY(LineReader::open(path));
  const std::string file = shown(path);
  std::string line;
  for (std::uint32_t number = 1; TESSERA_TRY(lines.next(line)); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto instruction = read_line(file, line, reader);
    if (!instruction) return moved(instruction.error(), number);
    detector.record(instruction->view());
  }
  detector.flush();
  return {};
}

HotReport hot_report(const HotPathDetector& detector) {
  const HotPathStatistics statistics = detector.statistics();
  HotReport out{statistics.instructions, statistics.hot_instructions, {}};
  for (const HotUnit& unit : detector.hot_units())
    out.units.push_back({unit.signature.to_hex(), unit.length, unit.count, unit.first_hot_at});
  return out;
}

void print(const HotReport& report) {
  std::printf("%llu instructions, %llu of them hot\n", static_cast<unsigned long long>(report.instructions),
              static_cast<unsigned long long>(report.hot_instructions));
  for (const UnitReport& unit : report.units)
    std::printf("unit %s length %llu count %llu hot at %llu\n", unit.signature.c_str(),
                static_cast<unsigned long long>(unit.length), static_cast<unsigned long long>(unit.count),
                static_cast<unsigned long long>(unit.first_hot_at));
}

}  // namespace

void tessera::cli::add_hot(Commands& commands) {
  struct Options {
    std::string file;
    HotPathOptions detector;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  const auto run = [options]() -> Result<Answer> {
    HotPathDetector detector(options->detector);
    TESSERA_TRY(record_lines(options->file, detector));
    const HotReport report = hot_report(detector);
    JsonWriter json;
    if (options->json)
      std::printf("%s\n", write_json(json, report).text().c_str());
    else
      print(report);
    return Answer::yes;
  };
  CLI::App& command = commands.add("hot", "the sequences of instructions that an op stream repeats",
                                   "  tessera hot examples/stream/training.jsonl\n"
                                   "  tessera hot --threshold 3 --json examples/stream/training.jsonl",
                                   run);
  command.add_option("FILE", options->file, "one instruction per line as JSON, - for standard input")
      ->required();
  command.add_option("--threshold", options->detector.threshold, "occurrences that make a unit hot")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62))
      ->capture_default_str();
  command.add_flag("--json", options->json, "answer as JSON");
}

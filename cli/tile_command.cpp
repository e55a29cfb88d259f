#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/tile_report.h"
#include "tessera/base/json.h"
#include "tessera/op/op_facts.h"
#include "tessera/pattern/graph_json.h"
#include "tessera/pattern/graph_text.h"
#include "tessera/pattern/library.h"
#include "tessera/pattern/pattern_json.h"
#include "tessera/pattern/pattern_text.h"
#include "tessera/pattern/region_grower.h"
#include "tessera/pattern/tiler.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

struct TileCommandOptions {
  std::vector<std::string> files;
  std::string dsl;
  bool has_dsl = false;
  std::vector<std::string> patterns;
  std::string objective = "cost";
  std::optional<std::int64_t> budget_ms;
  std::optional<double> uncovered;
  std::string dot;
  std::string trace;
  bool regions = false;
  bool json = false;
};

Error wrong_use(std::string message) { return Error(ErrorCode::invalid_argument, std::move(message)); }

/// The files in the order of the command line: a graph unless --dsl gives it, then a library.
struct Inputs {
  std::optional<std::string> graph;
  std::optional<std::string> library;
};

Result<Inputs> sort_files(const TileCommandOptions& options) {
  Inputs inputs;
  for (const std::string& file : options.files) {
    if (!options.has_dsl && !inputs.graph)
      inputs.graph = file;
    else if (!inputs.library)
      inputs.library = file;
    else
      return wrong_use(cat("unexpected argument '", printable(file), "'"));
  }
  if (!options.has_dsl && !inputs.graph) return wrong_use("no graph: give GRAPH.json or --dsl");
  if (inputs.graph == "-" && inputs.library == "-") return wrong_use("standard input can be read once only");
  return inputs;
}

Result<JsonDocument> read_json(const std::string& path) {
  std::string text = TESSERA_TRY(read_text(path));
  return JsonDocument::parse(shown(path), std::move(text));
}

Result<pattern::Graph> load_graph(const TileCommandOptions& options, const Inputs& inputs) {
  if (options.has_dsl) return pattern::parse_graph_text(SourceText("--dsl", options.dsl), op::op_facts());
  const JsonDocument document = TESSERA_TRY(read_json(*inputs.graph));
  return pattern::read_graph(document, op::op_facts());
}

/// `name=text`, or a text alone, which then is its own name.
Result<pattern::Pattern> parse_pattern(const std::string& argument, const ir::OpFactsRef& known) {
  const std::size_t equals = argument.find('=');
  const bool has_name = equals != std::string::npos && argument.find_first_of(":@;>") > equals;
  const std::string text = has_name ? argument.substr(equals + 1) : argument;
  const std::string name = has_name ? argument.substr(0, equals) : argument;
  if (name.empty())
    return wrong_use(cat("--pattern ", quote(shortened(argument, 60)), " has no name before the '='"));
  return pattern::parse_pattern_text(
      SourceText(has_name ? cat("--pattern ", printable(name)) : "--pattern", text), name, known);
}

/// A trait that a pattern asks for must be one of `known`.
Result<std::vector<pattern::Pattern>> load_patterns(const TileCommandOptions& options, const Inputs& inputs,
                                                    const ir::OpFactsRef& known) {
  std::vector<pattern::Pattern> patterns;
  if (inputs.library) {
    const JsonDocument document = TESSERA_TRY(read_json(*inputs.library));
    patterns = TESSERA_TRY(pattern::read_patterns(document, known));
  }
  std::set<std::string> names;
  for (const pattern::Pattern& one : patterns) names.insert(one.name());
  for (const std::string& argument : options.patterns) {
    patterns.push_back(TESSERA_TRY(parse_pattern(argument, known)));
    if (!names.insert(patterns.back().name()).second)
      return SourceText("--pattern", argument)
          .error_at(0, cat("pattern name ", quote(shortened(patterns.back().name(), 60)), " is used twice"));
  }
  return patterns;
}

Result<pattern::TileOptions> tile_options(const TileCommandOptions& options) {
  pattern::TileOptions out{.keep_candidates = !options.trace.empty()};
  if (options.objective == "coverage")
    out.objective = pattern::Objective::coverage;
  else if (options.objective != "cost")
    return wrong_use(
        cat("unknown objective '", printable(options.objective), "', expected cost or coverage"));
  // Who sets no budget waits for the proof; only memory ends the search.
  if (!options.budget_ms) out.solver.state_limit = std::numeric_limits<std::uint64_t>::max();
  if (options.budget_ms) {
    if (*options.budget_ms < 0) return wrong_use(cat("--budget-ms ", *options.budget_ms, " is negative"));
    // What does not fit the clock is as good as no budget.
    if (*options.budget_ms < 1'000'000'000'000) out.budget = std::chrono::milliseconds(*options.budget_ms);
  }
  if (options.uncovered) {
    if (!std::isfinite(*options.uncovered) || *options.uncovered < 0)
      return wrong_use(cat("--uncovered ", *options.uncovered, " is not a finite number of at least 0"));
    if (out.objective == pattern::Objective::coverage)
      return wrong_use("--uncovered is for --objective cost: coverage counts nodes, not costs");
    out.uncovered_cost = options.uncovered;
  }
  return out;
}

Result<Answer> run_tile(const TileCommandOptions& options) {
  const Inputs inputs = TESSERA_TRY(sort_files(options));
  const pattern::TileOptions how = TESSERA_TRY(tile_options(options));
  const pattern::Graph graph = TESSERA_TRY(load_graph(options, inputs));
  if (!inputs.library && options.patterns.empty() && !options.regions)
    return wrong_use("no patterns: give LIBRARY.json, --pattern or --regions");
  std::vector<pattern::Pattern> patterns = TESSERA_TRY(load_patterns(options, inputs, graph.facts()));
  const auto library = std::make_shared<pattern::PatternLibrary>(std::move(patterns));
  pattern::Target target{.name = "command line", .sources = {library}};
  if (options.regions) target.sources.push_back(std::make_shared<pattern::RegionGrower>());
  const pattern::Tiling tiling = TESSERA_TRY(pattern::tile(graph, target, how));
  if (!options.dot.empty()) TESSERA_TRY(write_text(options.dot, to_dot(graph, tiling)));
  if (!options.trace.empty()) TESSERA_TRY(write_trace(options.trace, graph, target, tiling));
  const std::string out = options.json ? to_json(graph, tiling) + "\n" : to_text(graph, tiling);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_tile(Commands& commands) {
  auto options = std::make_shared<TileCommandOptions>();
  CLI::App& command = commands.add(
      "tile", "cover a graph with the patterns of a library at the least cost",
      "  tessera tile examples/tile/mlp.json examples/tile/library.json\n"
      "  tessera tile --dsl \"1:mm->2:relu->3:mm->4:relu\" --pattern \"mm_relu=1:mm->2:relu\" --json\n"
      "  tessera tile graph.json library.json --objective coverage --dot tiling.dot --trace trace/",
      [options] { return run_tile(*options); });
  command.add_option("FILES", options->files, "GRAPH.json and LIBRARY.json, - for standard input")
      ->expected(0, 2);
  command.add_option("--dsl", options->dsl, "the graph as a text instead of GRAPH.json: \"1:mm->2:relu\"")
      ->each([options](const std::string&) { options->has_dsl = true; });
  command
      .add_option(
          "--pattern", options->patterns,
          "a further pattern as a text: \"name=1:mm->2:relu\"; repeated. Without \"name=\" the text is "
          "its name")
      ->allow_extra_args(false);
  command.add_flag("--regions", options->regions,
                   "also offer generated fusion regions, at cost 1 each; they need shapes");
  command.add_option("--objective", options->objective,
                     "cost (default), or coverage: most nodes, then fewest tiles");
  command.add_option("--budget-ms", options->budget_ms,
                     "stop after so many milliseconds with the best so far; without it, go on to the proof");
  command.add_option("--uncovered", options->uncovered,
                     "the cost of a node in no tile; default: more than any tiling");
  command.add_option("--dot", options->dot, "draw graph and tiles for Graphviz into this file");
  command.add_option("--trace", options->trace,
                     "write candidates.txt, subproblems.txt and result.txt into this folder");
  command.add_flag("--json", options->json, "answer as JSON");
}

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "tessera/engine/devices.h"
#include "tessera/op/card_text.h"
#include "tessera/op/catalogue.h"
#include "tessera/runtime/cuda/coverage.h"

using namespace tessera;
using namespace tessera::cli;
using op::Card;

namespace {

struct OpsOptions {
  std::optional<std::string> name;
  std::optional<std::string> device;
  bool json = false;
};

std::string dtypes_text(const Card& card) {
  std::vector<std::string> parts;
  const auto letters = op::type_letters(card);
  for (std::string_view letter : letters) {
    const std::string set = op::describe(op::dtypes_of(card, letter));
    parts.push_back(letters.size() == 1 ? set : cat(letter, ": ", set));
  }
  return parts.empty() ? "-" : join(parts, ", ");
}

std::string_view or_dash(std::string_view text) { return text.empty() ? "-" : text; }

/// Columns as wide as their widest cell.
template <std::size_t columns>
void print_rows(std::span<const std::array<std::string, columns>> rows) {
  using Row = std::array<std::string, columns>;
  std::array<std::size_t, columns> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      line += cat(row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    std::printf("%s%s\n", line.c_str(), row.back().c_str());
  }
}

void print_table(std::span<const Card* const> cards) {
  using Row = std::array<std::string, 7>;
  std::vector<Row> rows{{"OP", "DTYPES", "GRADIENT", "BY PARTS", "ONNX", "ORACLE", "SUMMARY"}};
  for (const Card* card : cards)
    rows.push_back({std::string(card->name), dtypes_text(*card), card->gradient != nullptr ? "yes" : "no",
                    card->decompose != nullptr ? "yes" : "-", std::string(or_dash(card->onnx.type)),
                    std::string(card->oracle.substr(0, card->oracle.find(": "))),
                    std::string(card->summary)});
  print_rows<7>(rows);
  std::printf("\n%zu ops; `tessera ops NAME` shows one\n", cards.size());
}

/// How each op runs on CUDA devices.
void print_coverage(std::span<const Card* const> cards) {
  using runtime::cuda::RunsAs;
  std::vector<std::array<std::string, 3>> rows{{"OP", "RUNS AS", "DTYPES"}};
  std::size_t missing = 0;
  for (const Card* card : cards) {
    const RunsAs how = runtime::cuda::runs_as(*card);
    if (how == RunsAs::nothing) ++missing;
    rows.push_back({std::string(card->name), std::string(to_string(how)), dtypes_text(*card)});
  }
  print_rows<3>(rows);
  std::printf("\n%zu ops, %zu do not run on CUDA devices\n", cards.size(), missing);
}

void print_coverage_json(std::span<const Card* const> cards) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("ops").begin_array();
  for (const Card* card : cards)
    json.begin_object()
        .key("name")
        .value(card->name)
        .key("runs_as")
        .value(to_string(runtime::cuda::runs_as(*card)))
        .end_object();
  json.end_array().end_object();
  std::printf("%s\n", json.text().c_str());
}

void print_card(const Card& card) {
  const auto line = [](std::string_view what, const std::string& text) {
    std::printf("  %-14s%s\n", std::string(what).c_str(), text.c_str());
  };
  std::printf("%s\n  %s\n\n", op::signature(card).c_str(), std::string(card.summary).c_str());
  for (std::string_view letter : op::type_letters(card))
    line(letter, op::describe(op::dtypes_of(card, letter)));
  for (std::size_t i = 0; i < card.attributes.size(); ++i)
    line(i == 0 ? "attributes" : "", op::describe(card.attributes[i]));
  line("traits", std::string(or_dash(join(op::trait_names(card), ", "))));
  line("gradient", card.gradient != nullptr ? "yes" : cat("no: ", card.no_gradient));
  line("decomposition", card.decompose != nullptr ? "yes" : "no");
  line("ONNX", std::string(or_dash(card.onnx.type)));
  line("also called", std::string(or_dash(card.spellings)));
  line("oracle", std::string(card.oracle));
}

void print_json(std::span<const Card* const> cards) {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().key("ops").begin_array();
  for (const Card* card : cards) op::write_json(json, *card);
  json.end_array().end_object();
  std::printf("%s\n", json.text().c_str());
}

Error unknown_op(const std::string& name) {
  const auto nearest = op::nearest_ops(name);
  const std::string hint = nearest.empty() ? "`tessera ops` lists them all" : "near: " + join(nearest, ", ");
  return Error(ErrorCode::invalid_argument,
               cat("there is no op '", shortened(printable(name), 80), "'; ", hint));
}

Result<Answer> list(const OpsOptions& options) {
  std::span<const Card* const> cards = op::all_cards();
  const Card* one = options.name ? op::find_card(*options.name) : nullptr;
  if (options.name && one == nullptr) return unknown_op(*options.name);
  if (one != nullptr) cards = {&one, 1};
  if (options.device && !engine::is_gpu_name(*options.device))
    return Error(ErrorCode::invalid_argument,
                 cat("--device is '", shortened(printable(*options.device), 80),
                     "', expected cuda: the reference and the CPU run every op"));
  if (options.device && options.json)
    print_coverage_json(cards);
  else if (options.device)
    print_coverage(cards);
  else if (options.json)
    print_json(cards);
  else if (one != nullptr)
    print_card(*one);
  else
    print_table(cards);
  return Answer::yes;
}

}  // namespace

void tessera::cli::add_ops(Commands& commands) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App& command = commands.add("ops", "list the ops, or say all about one",
                                   "  tessera ops\n"
                                   "  tessera ops softmax\n"
                                   "  tessera ops --json           everything, for programs\n"
                                   "  tessera ops --device cuda    how each runs on a GPU",
                                   [options] { return list(*options); });
  command.add_option("NAME", options->name, "an op; without one, all of them");
  command.add_option("--device", options->device, "say how ops run on such a device: cuda, cuda:0");
  command.add_flag("--json", options->json, "answer as JSON");
}

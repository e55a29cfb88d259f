// Writes the functions of the C++ face from the catalogue: `generate_ops HEADER SOURCE`. Runs at build time;
// what it writes is not committed.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <limits>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"

using namespace tessera;
using op::AttributeKind;
using op::AttributeSpec;
using op::Card;
using op::Input;
using op::InputKind;

namespace {

/// Names that are C++ keywords or stand elsewhere in this room get an underscore; none needs it today but one
/// day may.
std::string identifier(std::string_view name) {
  static constexpr std::string_view taken[] = {"and", "default", "do",     "float", "if", "int",
                                               "not", "or",      "switch", "while", "xor"};
  const bool clash = std::find(std::begin(taken), std::end(taken), name) != std::end(taken);
  return cat(name, clash ? "_" : "");
}

std::string pascal(std::string_view name) {
  std::string out;
  bool upper = true;
  for (char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return out;
}

std::string number_text(double value) {
  if (value == std::numeric_limits<double>::infinity()) return "std::numeric_limits<double>::infinity()";
  if (value == -std::numeric_limits<double>::infinity()) return "-std::numeric_limits<double>::infinity()";
  return cat(value);
}

std::string cpp_type(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::boolean:
      return "bool";
    case AttributeKind::integer:
    case AttributeKind::size:
      return "std::int64_t";
    case AttributeKind::number:
      return "double";
    case AttributeKind::text:
      return "std::string";
    case AttributeKind::dtype:
      return "Dtype";
    case AttributeKind::integers:
    case AttributeKind::shape:
      return "Shape";
    case AttributeKind::numbers:
      return "std::vector<double>";
  }
  return "";
}

std::string default_text(const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return spec.integer != 0 ? "true" : "false";
    case AttributeKind::integer:
    case AttributeKind::size:
      return cat(spec.integer);
    case AttributeKind::number:
      return number_text(spec.number);
    case AttributeKind::text:
      return quote(spec.text);
    case AttributeKind::dtype:
      return cat("static_cast<Dtype>(", spec.integer, ")");
    default:
      return "{}";
  }
}

/// An op without tensors makes one; those are written by hand, in create.h, where the caller says dtype and
/// engine.
std::vector<const Card*> cards() {
  std::vector<const Card*> out;
  for (const Card* card : op::all_cards())
    if (std::any_of(card->inputs.begin(), card->inputs.end(),
                    [](const Input& i) { return i.kind != InputKind::scalar; }))
      out.push_back(card);
  return out;
}

std::string options_name(const Card& card) { return pascal(card.name) + "Options"; }
bool has_options(const Card& card) { return !card.attributes.empty(); }
bool needs_options(const Card& card) {
  return std::any_of(card.attributes.begin(), card.attributes.end(),
                     [](const AttributeSpec& a) { return a.required; });
}

/// One Tensor, a struct of named ones, or a list where the number is not fixed.
std::string result_type(const Card& card) {
  if (card.results.empty()) return "Tensor";
  return card.results.size() == 1 ? "std::vector<Tensor>" : pascal(card.name) + "Results";
}

/// Inputs that must be given, options that must be given, inputs that may be left out, options.
std::string parameters(const Card& card, bool defaults) {
  std::vector<std::string> required, optional;
  for (const Input& input : card.inputs) {
    if (input.kind == InputKind::variadic)
      required.push_back(cat("const OperandList& ", identifier(input.name)));
    else if (input.kind == InputKind::tensor)
      required.push_back(cat("const Operand& ", identifier(input.name)));
    else
      optional.push_back(cat("const Operand& ", identifier(input.name),
                             !defaults                           ? ""
                             : input.kind == InputKind::optional ? " = {}"
                                                                 : " = " + number_text(input.otherwise)));
  }
  const std::string options = cat("const ", options_name(card), "& options");
  if (needs_options(card)) required.push_back(options);
  required.insert(required.end(), optional.begin(), optional.end());
  if (has_options(card) && !needs_options(card)) required.push_back(cat(options, defaults ? " = {}" : ""));
  return join(required, ", ");
}

void write_options(std::string& out, const Card& card) {
  if (!has_options(card)) return;
  out += cat("struct ", options_name(card), " {\n");
  for (const AttributeSpec& spec : card.attributes) {
    const std::string type =
        spec.may_be_absent ? cat("std::optional<", cpp_type(spec.kind), ">") : cpp_type(spec.kind);
    out += cat("  ", type, " ", identifier(spec.name),
               spec.required        ? " = {}"
               : spec.may_be_absent ? " = std::nullopt"
                                    : " = " + default_text(spec),
               ";\n");
  }
  out += "};\n";
}

void write_results(std::string& out, const Card& card) {
  if (card.results.size() < 2) return;
  out += cat("struct ", result_type(card), " {\n  Tensor ");
  std::vector<std::string> names;
  for (std::string_view name : card.results) names.push_back(identifier(name));
  std::vector<std::string> fields;
  for (const std::string& name : names)
    fields.push_back(cat("field(", quote(name), ", &", result_type(card), "::", name, ")"));
  out += cat(join(names, ", "), ";\n  static constexpr auto fields() { return std::tuple{",
             join(fields, ", "), "}; }\n};\n");
}

std::string header() {
  std::string out =
      "// Generated from the op catalogue; do not edit.\n#pragma once\n\n#include <limits>\n#include "
      "<optional>\n\n#include \"tessera/tensor/tensor.h\"\n#include \"tessera/tensor/tree.h\"\n\nnamespace "
      "tessera {\n\n";
  for (const Card* card : cards()) {
    write_options(out, *card);
    write_results(out, *card);
    out += cat("/// ", card->summary, "\n", result_type(*card), " ", identifier(card->name), "(",
               parameters(*card, true), ");\n\n");
  }
  return out + "}  // namespace tessera\n";
}

void write_attributes(std::string& out, const Card& card) {
  for (const AttributeSpec& spec : card.attributes) {
    const std::string field = cat("options.", identifier(spec.name));
    std::string value = spec.may_be_absent ? "*" + field : field;
    if (spec.kind == AttributeKind::shape) value = cat("ir::shape_of(", value, ")");
    if (spec.kind == AttributeKind::size) value = cat("ir::Shape{ir::Dim(", value, ")}");
    out += cat("  ", spec.may_be_absent ? cat("if (", field, ") ") : "", "attributes.set(\"", spec.name,
               "\", ", value, ");\n");
  }
}

/// One or two tensors, one result, nothing else.
bool is_plain(const Card& card) {
  if (has_options(card) || !card.results.empty() || card.inputs.empty() || card.inputs.size() > 2)
    return false;
  for (const Input& input : card.inputs)
    if (input.kind != InputKind::tensor) return false;
  return true;
}

std::string source() {
  std::string out =
      "// Generated from the op catalogue; do not edit.\n#include \"tessera/tensor/ops.h\"\n\n#include "
      "\"tessera/ir/dim.h\"\n#include \"tessera/tensor/call.h\"\n\nusing namespace tessera;\n\n";
  for (const Card* card : cards()) {
    out +=
        cat(result_type(*card), " tessera::", identifier(card->name), "(", parameters(*card, false), ") {\n");
    out += cat("  static const op::Card& card = detail::card(\"", card->name, "\");\n");
    if (is_plain(*card)) {
      const std::string first = identifier(card->inputs[0].name);
      out += card->inputs.size() == 1 ? cat("  return detail::unary(card, ", first, ");\n}\n\n")
                                      : cat("  return detail::binary(card, ", first, ", ",
                                            identifier(card->inputs[1].name), ");\n}\n\n");
      continue;
    }
    out += "  detail::CallOperands given;\n";
    for (const Input& input : card->inputs) out += cat("  given.add(", identifier(input.name), ");\n");
    // Attributes that may be left out would stay from the call before.
    const bool keeps =
        has_options(*card) && std::none_of(card->attributes.begin(), card->attributes.end(),
                                           [](const auto& spec) { return spec.may_be_absent; });
    out += keeps ? "  thread_local detail::KeptAttributes attributes;\n" : "  op::Attributes attributes;\n";
    write_attributes(out, *card);
    const char* arguments =
        keeps ? "(card, given, attributes.get())" : "(card, given, std::move(attributes))";
    if (card->results.empty()) {
      out += cat("  return detail::call", arguments, ";\n}\n\n");
    } else if (card->results.size() == 1) {
      out += cat("  return detail::call_all", arguments, ";\n}\n\n");
    } else {
      out += cat("  auto results = detail::call_all", arguments, ";\n  return {");
      std::vector<std::string> moved;
      for (std::size_t i = 0; i < card->results.size(); ++i)
        moved.push_back(cat("std::move(results[", i, "])"));
      out += join(moved, ", ") + "};\n}\n\n";
    }
  }
  return out;
}

/// Leaves a file that is right already alone, so that nothing is built again.
bool write(const char* path, const std::string& text) {
  std::ifstream old(path, std::ios::binary);
  const std::string before{std::istreambuf_iterator<char>(old), {}};
  if (before == text) return true;
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: generate_ops HEADER SOURCE\n"), 2;
  return write(argv[1], header()) && write(argv[2], source()) ? 0 : 1;
}

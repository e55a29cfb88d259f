#include "cli/pass_report.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

/// Equal notes of a pass, in the order of the first of each.
struct NoteGroup {
  std::string what;
  std::size_t count = 0;
  SourceSpan first;
};

std::vector<NoteGroup> grouped(const std::vector<compiler::Note>& notes) {
  std::vector<NoteGroup> out;
  for (const compiler::Note& note : notes) {
    auto known =
        std::find_if(out.begin(), out.end(), [&](const auto& group) { return group.what == note.what; });
    if (known == out.end()) known = out.insert(out.end(), {note.what, 0, note.at.resolve()});
    ++known->count;
  }
  return out;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string what_happened(const compiler::PassReport& report) {
  if (!report.ran) return "disabled";
  if (!report.changed) return "unchanged";
  return cat(report.statements_before, " -> ", report.statements_after, " ", report.unit, ", ",
             report.rewrites, report.rewrites == 1 ? " rewrite" : " rewrites");
}

}  // namespace

std::string tessera::cli::pass_text(const compiler::Outcome& outcome) {
  std::string out;
  for (const compiler::PassReport& report : outcome.passes) {
    out += cat(padded(std::string(report.name), 18),
               padded(cat(std::llround(report.microseconds), " us"), 10), what_happened(report), "\n");
    for (const NoteGroup& group : grouped(report.notes)) {
      out += cat("  ", printable(group.what), group.count == 1 ? "" : cat(" x ", group.count));
      if (group.first.known())
        out += cat(group.count == 1 ? ", " : ", first ", printable(group.first.to_text()));
      out += "\n";
    }
  }
  return out;
}

void tessera::cli::write_passes(JsonWriter& json, const compiler::Outcome& outcome) {
  json.key("passes").begin_array();
  for (const compiler::PassReport& report : outcome.passes) {
    json.begin_object()
        .member("name", report.name)
        .member("ran", report.ran)
        .member("changed", report.changed);
    json.member("statements_before", report.statements_before)
        .member("statements_after", report.statements_after);
    json.member("microseconds", report.microseconds).member("rewrites", report.rewrites);
    json.key("notes").begin_array();
    for (const compiler::Note& note : report.notes)
      json.begin_object().member("what", note.what).member("at", note.at.resolve().to_text()).end_object();
    json.end_array().end_object();
  }
  json.end_array();
}
